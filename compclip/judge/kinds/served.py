"""A chat model behind an address with OpenAI's interface: vLLM, Ollama or a provider.

The model sees an image and a numbered list of texts, and names a number. Its log-probabilities,
which the newest models do not give, are not needed. Models prefer positions in a list, so each
choice is asked in several orders of its texts, and a text's chance is its fraction of the answers.
"""

from __future__ import annotations

import base64
import io
import json
import os
import re
import textwrap
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote, urlsplit
from urllib.request import HTTPErrorProcessor, Request, build_opener

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from compclip.core.errors import UserError, one_line, printable, require
from compclip.core.identity.cache import Cache, key
from compclip.core.identity.code import code_hash
from compclip.core.identity.digests import has_changed, sha256
from compclip.core.log import log
from compclip.core.progress import track
from compclip.core.seeds import rng
from compclip.core.settings.section import Count, Section
from compclip.judge.chooser import Asked, Chooser, Context, JudgedImage

if TYPE_CHECKING:
    import numpy as np

ABOUT = "a chat model behind an address, which names the number of a text"
PROMPT = """Which of these texts describes the image best?

{texts}

Reply with one line: the word Answer, a colon, and the number of the text."""
# The modules that decide what is asked and how an answer is read.
DECISIVE = (__name__, "compclip.core.reading.pictures", "compclip.core.reading.colors")

SECONDS_PER_CALL = 3  # assumed before a run
FIRST_WAIT = 1.0  # seconds before the first retry; each further one waits twice as long
LONGEST_WAIT = 120.0  # seconds; a server that asks for more ends the run
LARGEST_REPLY = 4_000_000  # bytes
SHORTEST_KEY = 8  # characters; shorter ones are placeholders, which answers may contain
HIDDEN = "hidden: contains a part of the API key"
SHOWN = 200  # characters of a server's message in an error
# Statuses that a later try may not have: time-outs and rate limits; and all from 500.
TEMPORARY = (408, 409, 425, 429)
REFUSED = "refused"
# What a server's message contains if it refuses this image or text alone, and what is kept as the
# answer.
UNANSWERABLE = {
    "content_filter": REFUSED,
    "content_policy": REFUSED,
    "context_length": "beyond the context",
    "context length": "beyond the context",
}

THINKING = re.compile(r"^.*</think>|<think>.*$", re.DOTALL)
# A number that is not part of a word, a decimal fraction or a negative number.
NUMBER = re.compile(r"(?<![\w.-])\d{1,9}(?!\w|\.\d)")
# The number after the word: "Answer: 2", "**Answer:** 2", {"answer": 2}, "the answer is 2"; but not
# that of "Answer: 2 or 3".
STATED = re.compile(
    r"answer[\s:=\"'*_`]*(?:is[\s:*]*)?(\d{1,9})(?!\w|\.\d|\s*(?:or|and|to|,|/|-)\s*\d)",
    re.IGNORECASE,
)


class Settings(Section):
    """The model, and how it is asked."""

    # An error must not show a password in the address.
    model_config = Section.model_config | ConfigDict(hide_input_in_errors=True)

    url: str = Field(
        pattern=r"^https?://[^\s?#]+$",
        description="address before /chat/completions, such as http://localhost:8000/v1",
    )
    model: str = Field(min_length=1, description="name of the model at this address")
    orders: Count = Field(
        2, ge=1, description="orders of its texts in which a choice is asked, at most one per text"
    )
    temperature: float | None = Field(0, ge=0, le=2, description="null: the server's default")
    max_side: Count = Field(768, ge=16, description="pixels; larger images are scaled down")
    limit: Count = Field(
        50_000, ge=1, description="largest number of calls; a run that needs more asks nothing"
    )
    price: float | None = Field(
        None, ge=0, le=1e6, description="of a call, for the estimate of the cost"
    )
    workers: Count = Field(4, ge=1, le=256, description="calls at once")
    timeout: float = Field(120, gt=0, le=3600, description="seconds without an answer")
    retries: Count = Field(5, ge=0, le=20, description="of a call that fails temporarily")
    key_env: str = Field(
        "COMPCLIP_API_KEY",
        pattern=r"^[A-Za-z_]\w*$",
        description="environment variable with the key, if the server needs one",
    )

    @field_validator("url")
    @classmethod
    def _check_url(cls, url: str) -> str:
        address = urlsplit(url)
        if "@" in address.netloc:
            raise ValueError("has a user or password; set the variable of key_env to the key")
        try:
            url.encode("ascii")
            # Fails for names that are too long or have an empty part.
            str(address.hostname).encode("idna")
        except UnicodeError:
            remedy = "percent-encode the path, and write the host in Punycode"
            raise ValueError(f"not a valid address in ASCII; {remedy}") from None
        return url.rstrip("/")


class Unusable(Exception):
    """An answer that names no text; the message is the reason."""


class _Message(BaseModel):
    content: str | None = None
    refusal: str | None = None


class _Choice(BaseModel):
    message: _Message
    finish_reason: str | None = None


class _Completion(BaseModel):
    """The reply to a call; only its first choice is read."""

    choices: list[_Choice] = Field(min_length=1)


class Reply(NamedTuple):
    """The reply of a server; ``retry_after`` is the header of this name, "" without."""

    status: int
    retry_after: str
    body: bytes


class Call(NamedTuple):
    """A choice in one order of its texts; ``key`` is that of its answer in the cache."""

    key: bytes
    image: JudgedImage
    digest: str  # of the image's file
    texts: Sequence[str]


def text_orders(texts: Sequence[str], n: int, seed: int, digest: str) -> list[list[str]]:
    """Return the texts in n orders, or in one per text if these are fewer.

    The orders are rotations of one permutation: in as many orders as texts, each text has each
    position once; in fewer, its positions are evenly spread.
    """
    # Choices list their own text first, so the orders must not depend on the given one.
    alphabetical = sorted(texts)
    permutation = rng(seed, "served", digest, *alphabetical).permutation(len(texts))
    shuffled = [alphabetical[row] for row in permutation]
    n = min(n, len(texts))
    orders = []
    for number in range(n):
        shift = number * len(texts) // n
        orders.append(shuffled[shift:] + shuffled[:shift])
    return orders


def chosen_text(answer: str, texts: Sequence[str]) -> str:
    """Return the text whose number, from 1, an answer names.

    Raises:
        Unusable: the answer names no number, several, or one that no text has.
    """
    if answer in (*UNANSWERABLE.values(), HIDDEN):
        raise Unusable(answer)
    conclusion = THINKING.sub("", answer)
    digits = STATED.findall(conclusion) or NUMBER.findall(conclusion)
    numbers = set(map(int, digits))
    if len(numbers) != 1:
        raise Unusable("several numbers" if numbers else "no number")
    number = numbers.pop()
    if not 1 <= number <= len(texts):
        raise Unusable("number out of range")
    return texts[number - 1]


def _plain(text: str) -> str:
    """Return a text without percent-encoding, escapes of JSON, however nested, and white space."""
    unescaped = re.sub(r"\\u([0-9A-Fa-f]{4})", lambda match: chr(int(match[1], 16)), text)
    return re.sub(r"[\s\\]", "", unquote(unescaped))


class _EveryStatus(HTTPErrorProcessor):
    """Returns replies of every status, so no redirect is followed: it would pass on the key."""

    def http_response(self, request: Request, response: Any) -> Any:
        return response

    https_response = http_response


class Client:
    """Asks a server, and retries calls that fail temporarily."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.address = f"{settings.url}/chat/completions"
        self.opener = build_opener(_EveryStatus)
        self.stopped = Event()  # ends the retries when another call has failed

    def ask(self, call: Call) -> str | None:
        """Return the answer to a call, or None if another call has failed meanwhile.

        Raises:
            UserError: the server refuses the call, or fails too often.
        """
        body = self._body(call)
        for number in range(self.settings.retries + 1):
            wait = min(FIRST_WAIT * 2**number, LONGEST_WAIT)
            try:
                reply = self._post(body)
                if reply.status not in TEMPORARY and reply.status < 500:
                    return self._read(reply)
                fault = f"status {reply.status}"
                if re.fullmatch(r"\d{1,9}", reply.retry_after):
                    wait = float(reply.retry_after)
            except ValidationError:  # a page, or a reply that was cut off
                fault = "the reply is not an answer of a chat model"
            except (OSError, HTTPException) as error:
                fault = self._without_key(one_line(error))  # it may quote the reply
            is_short = wait <= LONGEST_WAIT
            limited = f"rate limited; retry after {wait:.0f} s"
            require(is_short, self.address, limited, "answers so far are kept")
            is_last = number == self.settings.retries
            if not is_last and self.stopped.wait(wait):
                return None
        remedy = "check the server and run again; answers so far are kept"
        raise UserError(f"{self.address}: {fault} in each of {number + 1} tries; {remedy}")

    def _body(self, call: Call) -> bytes:
        """Return the request of a call, as JSON."""
        lines = []
        for number, text in enumerate(call.texts, start=1):
            words = text.split()  # without line breaks
            lines.append(f"{number}. {' '.join(words)}")
        content = [
            {"type": "image_url", "image_url": {"url": self._data_url(call)}},
            {"type": "text", "text": PROMPT.format(texts="\n".join(lines))},
        ]
        messages = [{"role": "user", "content": content}]
        request: dict[str, Any] = {"model": self.settings.model, "messages": messages}
        # The newest models refuse any other temperature than their default.
        if self.settings.temperature is not None:
            request["temperature"] = self.settings.temperature
        return json.dumps(request).encode()

    def _data_url(self, call: Call) -> str:
        """Return the image, not larger than ``max_side``, as the address of a PNG."""
        picture = call.image.read()
        # Its answer would stay in the cache under the digest of other bytes.
        is_same = not has_changed(call.image.path, call.digest)
        remedy = "wait until it is complete and run again"
        require(is_same, call.image.path, "changed while it was read", remedy)
        picture.thumbnail((self.settings.max_side, self.settings.max_side))
        file = io.BytesIO()
        picture.save(file, "PNG")
        return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"

    def _api_key(self) -> str:
        """Return the key, "" if there is none; no object holds it."""
        variable = self.settings.key_env
        value = os.environ.get(variable, "").strip()
        # The error of http.client would show it.
        is_valid = value.isascii() and value.isprintable()
        require(is_valid, f"${variable}", "has characters that keys cannot have", "set it again")
        return value

    def _post(self, body: bytes) -> Reply:
        request = Request(self.address, body, {"Content-Type": "application/json"})
        api_key = self._api_key()
        if api_key:
            request.add_header("Authorization", f"Bearer {api_key}")
        with self.opener.open(request, timeout=self.settings.timeout) as response:
            content = response.read(LARGEST_REPLY)
            return Reply(response.status, response.headers.get("Retry-After", ""), content)

    def _without_key(self, text: str) -> str:
        """Return a text of the server without the key, which some servers repeat; ``HIDDEN`` if a
        part of it remains.
        """
        api_key = self._api_key()
        if len(api_key) < SHORTEST_KEY:
            return text
        text = text.replace(api_key, "***")
        plain = _plain(text)
        plain_key = _plain(api_key)
        for start in range(len(plain_key) - SHORTEST_KEY + 1):
            if plain_key[start : start + SHORTEST_KEY] in plain:
                return HIDDEN
        return text

    def _read(self, reply: Reply) -> str:
        """Return the answer in a reply that no further try will change."""
        if reply.status == 200:
            choice = _Completion.model_validate_json(reply.body).choices[0]
            if choice.message.refusal or choice.finish_reason == "content_filter":
                return REFUSED
            return self._without_key(choice.message.content or "")
        message = reply.body.decode(errors="replace")
        reasons = [reason for words, reason in UNANSWERABLE.items() if words in message]
        if reply.status == 400 and reasons:
            return reasons[0]
        # The whole message is searched: a part of a shortened one may be too short to be found.
        public = self._without_key(message)
        shown = printable(textwrap.shorten(public, SHOWN, placeholder=" …"))
        fault = f"status {reply.status} ({shown})"
        remedy = "correct url, model and the other settings"
        if reply.status in (401, 403):
            fault = f"status {reply.status}"  # its message may contain a part of the key
            remedy = f"set the environment variable {self.settings.key_env} to a valid key"
        elif 300 <= reply.status < 400:
            remedy = "set url to the address that it redirects to"
        raise UserError(f"{self.address}: {fault}; {remedy}")


class ServedChooser:
    """The judge of a served model; answers are kept in the file ``database`` as they come."""

    def __init__(self, settings: Settings, database: Path, seed: int) -> None:
        self.settings = settings
        self.database = database
        self.seed = seed
        self.client = Client(settings)
        self.name = settings.model
        # What decides an answer, besides image and texts. It lacks the number of orders, so that
        # more orders reuse the answers of fewer.
        code = code_hash(__name__, within=DECISIVE)
        decisive = [settings.model, PROMPT, settings.max_side, settings.temperature, code]
        self.question = json.dumps(decisive)
        self.hash = key(self.question, settings.orders, seed).hex()
        self.n_asked = 0

    def prepare(self, images: Sequence[JudgedImage], options: Sequence[Sequence[str]]) -> None:
        """Log the number of calls; UserError, before the first one, if it is above the limit."""
        choices = zip(images, options, strict=True)
        calls = sum(min(self._n_orders(image), len(texts)) for image, texts in choices)
        log.info("%s: %d choices, at most %d calls", self.name, len(images), calls)
        fault = f"{calls} calls, more than limit: {self.settings.limit}"
        remedy = "raise limit, or judge fewer images"
        require(calls <= self.settings.limit, self.name, fault, remedy)

    def choose(
        self, images: Sequence[JudgedImage], options: Sequence[Sequence[str]]
    ) -> list[np.ndarray]:
        """Return each text's fraction of the usable answers, all 0 if there are none."""
        import numpy as np

        choices = zip(images, options, strict=True)
        calls_by_image = [self._calls(image, texts) for image, texts in choices]
        answers = self._answers([call for calls in calls_by_image for call in calls])
        faults = Counter[str]()
        first = None  # image with an unusable answer
        chances = []
        for texts, calls in zip(options, calls_by_image, strict=True):
            votes = Counter[str]()
            for call in calls:
                try:
                    votes[chosen_text(answers[call.key], call.texts)] += 1
                except Unusable as fault:
                    faults[str(fault)] += 1
                    first = first or call.image.path
            chances.append(np.array([votes[text] for text in texts]) / max(votes.total(), 1))
        if first:
            listed = ", ".join(f"{count} {fault}" for fault, count in faults.most_common())
            text = "%s: %d of %d answers unusable: %s; first: %s"
            n_answers = sum(map(len, calls_by_image))
            log.warning(text, self.name, faults.total(), n_answers, listed, first)
        return chances

    def _n_orders(self, image: JudgedImage) -> int:
        return image.orders or self.settings.orders

    def _calls(self, image: JudgedImage, texts: Sequence[str]) -> list[Call]:
        image.require_file()
        digest = sha256(image.path)
        calls = []
        for ordered in text_orders(texts, self._n_orders(image), self.seed, digest):
            name = key(self.question, digest, *ordered)
            calls.append(Call(name, image, digest, ordered))
        return calls

    def _answers(self, calls: Sequence[Call]) -> dict[bytes, str]:
        """Return the answer to each call by its key, from the cache or the server."""
        call_by_key = {call.key: call for call in calls}
        with Cache(self.database) as cache:
            stored = cache.get(list(call_by_key))
            missing = [call for name, call in call_by_key.items() if name not in stored]
            log.info("%s: %d calls, %d to ask", self.name, len(call_by_key), len(missing))
            limit = self.settings.limit
            self.n_asked += len(missing)
            fault = f"{self.n_asked} calls, more than limit: {limit}"
            require(self.n_asked <= limit, self.name, fault, "raise limit, or judge fewer images")
            self._ask(missing)
            stored = cache.get(list(call_by_key))
        return {name: answer.decode() for name, answer in stored.items()}

    def _ask(self, calls: Sequence[Call]) -> None:
        self.client.stopped.clear()
        with ThreadPoolExecutor(self.settings.workers) as pool:
            try:
                for _ in track(pool.map(self._ask_one, calls), len(calls), "answers"):
                    pass
            except BaseException:
                self.client.stopped.set()
                pool.shutdown(cancel_futures=True)
                raise

    def _ask_one(self, call: Call) -> None:
        """Ask, and keep the answer before the next call, so a killed run asks nothing twice."""
        # Further calls would cost money, and their answers would be lost with the error.
        if self.client.stopped.is_set():
            return
        try:
            answer = self.client.ask(call)
        except BaseException:
            self.client.stopped.set()
            raise
        if answer is None:
            return
        # SQLite's connections belong to one thread.
        with Cache(self.database) as cache:
            cache.put([(call.key, answer.encode())])


def preview(settings: Settings, counts: Asked | None) -> str:
    """Return the calls of a run, their time and their cost."""
    if counts is None:
        return f"{settings.model}: calls are counted when the run has made prompts.parquet"
    in_orders = counts.adjectives + counts.certificate
    calls = in_orders * settings.orders + counts.prompts
    hours = calls * SECONDS_PER_CALL / settings.workers / 3600
    text = (
        f"{settings.model}: at most {calls:,} calls ({in_orders:,} choices in {settings.orders} "
        f"orders, {counts.prompts:,} in one), about {hours:.1f} h if a call takes "
        f"{SECONDS_PER_CALL} s"
    )
    if settings.price is not None:
        text += f", cost about {calls * settings.price:,.2f}"
    if calls > settings.limit:
        text += f"; more than limit: {settings.limit:,}, so the run would ask nothing"
    return text


def open_chooser(settings: Settings, context: Context) -> Chooser:
    name = key(settings.model).hex()  # which may contain slashes
    return ServedChooser(settings, context.cache / "answers" / f"{name}.sqlite", context.seed)
