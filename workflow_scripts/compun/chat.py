"""A language model behind an OpenAI-compatible address: asked with patience, and the key stays here.

The key comes from an environment variable and goes into one header of a request. What the server sends back is
cleared of it before anybody reads it, so that no error, log, cache or artifact can hold it.
"""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import requests
import urllib3

from workflow_scripts.compun.address import NOT_A_VARIABLE, SECRET_LENGTH, VARIABLE, check_without, endpoint
from workflow_scripts.core.cli import log
from workflow_scripts.core.errors import UserError

# Failures in a row of one question, while no other is answered.
ATTEMPTS = 6
# Seconds that a server may ask to wait; beyond, the run ends and is resumed by hand.
LONGEST_WAIT = 600
# Answers after which asking again may help; 529 is an overloaded server's.
_PASSING = {408, 409, 425, 429, 500, 502, 503, 504, 529}
# Of those with 429, the ones that waiting does not mend.
_SPENT = {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"}


class BadAnswer(Exception):
    """The answer to this question is of no use; another question's may be."""


class Stopped(Exception):
    """Not asked, since the run ends."""


class _Passing(Exception):
    """A failure after which asking again may help, in ``wait`` seconds where the server says so."""

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


class _Refused(Exception):
    """The server does not take this request as it is."""


@dataclass(frozen=True)
class Reply:
    """What the model wrote, and the model's name as the server says it."""

    text: str
    model: str


def read_key(variable: str) -> str | None:
    """The key in the environment variable of this name; None where it is not set.

    Raises UserError, which never holds the value, for a name that is none (somebody's key) and for a broken key.
    """
    if not VARIABLE.fullmatch(variable):
        raise UserError(NOT_A_VARIABLE)
    key = os.environ.get(variable, "").strip()
    if not all("!" <= character <= "~" for character in key):
        raise UserError(f"environment variable {variable}: holds a character that no key has: export it again")
    return key or None


class Chat:
    """``Chat(address, model, key, variable).ask(messages, schema)``, from several threads at once.

    settings: sent with each question (temperature, top_p). timeout: seconds without an answer. per_minute: requests,
    at most (None: as fast as they are answered). pause: seconds before the second attempt, doubled for each further.
    """

    def __init__(
        self,
        address: str,
        model: str,
        variable: str,
        settings: dict[str, float] | None = None,
        timeout: float = 120.0,
        per_minute: float | None = None,
        pause: float = 1.0,
    ) -> None:
        self.address, self.url, self.model = address, endpoint(address), model
        self.settings, self.timeout, self.pause = settings or {}, timeout, pause
        self.variable, self._key = variable, read_key(variable)
        check_without(address, self._key)
        self._interval = 60 / per_minute if per_minute else 0.0
        self._next = 0.0  # the time before which no request begins
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self.answers = self.requests = 0
        self._plain = False  # the server takes no schema
        host = urlsplit(self.url).hostname or ""
        if self._key and self.url.startswith("http:") and host != "localhost" and not host.startswith("127."):
            log.warning("warning: %s: the key goes there unencrypted: use https where the server has it", address)

    def stop(self) -> None:
        """What waits, or is asked from now on, raises Stopped; requests on their way end as they end."""
        self._stop.set()

    def clean(self, text: str) -> str:
        """``text`` without the key."""
        return text.replace(self._key, "***") if self._key and len(self._key) >= SECRET_LENGTH else text

    def ask(self, messages: list[dict[str, str]], schema: dict[str, Any]) -> Reply:
        """The model's answer to ``messages``; ``schema``: the JSON schema that it must follow, where it can.

        Raises BadAnswer where the model refuses, writes nothing or is cut off, UserError where asking further is of
        no use: no server, no key, a wrong address or model, no quota, ``ATTEMPTS`` failures in a row.
        """
        try:
            return self._patiently(messages, schema)
        except UserError:
            self.stop()  # at once, before another question begins
            raise

    def _patiently(self, messages: list[dict[str, str]], schema: dict[str, Any]) -> Reply:
        failures, seen = 0, self.answers
        while True:
            try:
                return self._in_some_form(messages, schema)
            except _Passing as passing:
                # As long as others are answered the server is alive, and this question's turn comes.
                failures = failures + 1 if self.answers == seen else 1
                seen = self.answers
                wait = max(self.pause * 2 ** (failures - 1), passing.wait or 0.0)
                if failures == ATTEMPTS:
                    raise UserError(f"{self.address}: {passing}; so {ATTEMPTS} times: try again later") from None
                if wait > LONGEST_WAIT:
                    raise UserError(
                        f"{self.address}: {passing}; it asks to wait {wait:.0f} s: try again then"
                    ) from None
                log.warning("%s: %s; again in %.0f s", self.address, passing, wait)
                if passing.wait is not None:
                    with self._lock:  # it holds for all
                        self._next = max(self._next, time.monotonic() + wait)
                elif self._stop.wait(wait):
                    raise Stopped from None

    def _in_some_form(self, messages: list[dict[str, str]], schema: dict[str, Any]) -> Reply:
        """With the schema; where a server does not know such, without: the question says the form as well."""
        body = {"model": self.model, "messages": messages, **self.settings}
        form = {"name": "answer", "strict": True, "schema": schema}
        try:
            if not self._plain:
                try:
                    return self._once({**body, "response_format": {"type": "json_schema", "json_schema": form}})
                except _Refused:
                    reply = self._once(body)
                    log.info("%s: takes no JSON schema: asked without from now on", self.address)
                    self._plain = True
                    return reply
            return self._once(body)
        except _Refused as error:
            if self.answers:  # others were taken: it is this question
                raise BadAnswer(str(error)) from None
            raise UserError(f"{self.address}: {error}: mend the model's name or its settings") from None

    def _once(self, body: dict[str, Any]) -> Reply:
        """One request."""
        self._take_turn()
        try:
            answer = requests.post(
                self.url, json=body, auth=self._sign, timeout=(20, self.timeout), allow_redirects=False
            )
        except requests.exceptions.SSLError as error:
            raise UserError(
                f"{self.address}: {self._line(error)}: name your authority's file in REQUESTS_CA_BUNDLE"
            ) from None
        except requests.ReadTimeout:
            raise _Passing(f"no answer within {self.timeout:g} s (--timeout)") from None
        except (requests.ConnectionError, requests.Timeout, requests.exceptions.ChunkedEncodingError) as error:
            if not self.answers:
                raise UserError(
                    f"{self.address}: cannot be reached ({self._line(error)}): start the server or mend the address"
                ) from None
            raise _Passing(f"the connection broke ({self._line(error)})") from None
        except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
            raise UserError(f"{self.address}: {self._line(error)}") from None
        if answer.status_code != 200:
            self._fail(answer)
        return self._reply(answer)

    def _take_turn(self) -> None:
        """Wait until this request may begin."""
        while True:
            with self._lock:
                wait = self._next - time.monotonic()
                if wait <= 0 and not self._stop.is_set():
                    self._next = time.monotonic() + self._interval
                    self.requests += 1
                    return
            if self._stop.wait(max(wait, 0)):
                raise Stopped

    def _sign(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Given as ``auth``, also without a key: requests would else take a password from ~/.netrc."""
        if self._key:
            request.headers["Authorization"] = f"Bearer {self._key}"
        return request

    def _line(self, error: Exception) -> str:
        """The innermost reason that requests and urllib3 give, in one line."""
        reason = getattr(error.args[0], "reason", error) if error.args else error
        text = " ".join(str(reason).split())
        return self.clean(text.partition("): ")[2] or text)[:200]

    def _fail(self, answer: requests.Response) -> None:
        """Raise what an answer other than 200 means."""
        status, said = answer.status_code, f"the server answers {answer.status_code}"
        if status in (401, 403) and self._key is None:
            raise UserError(f"{self.address}: {said}, and there is no key: export {self.variable}=…")
        if status == 401:  # its reason is not quoted: it may hold a part of the key
            raise UserError(f"{self.address}: {said}: it does not take the key in {self.variable}: export another")
        reason, codes = self._reason(answer)
        said = f"{said} ({reason})" if reason else said
        if status == 429 and codes & _SPENT:
            raise UserError(f"{self.address}: {said}: nothing is left of the account's quota")
        if status in _PASSING:
            raise _Passing(said, _retry_after(answer))
        if status in (400, 413, 422):
            raise _Refused(said)
        if 300 <= status < 400:
            where = answer.headers.get("Location", "").partition("?")[0]
            raise UserError(f"{self.address}: {said}: it has moved to {self.clean(where)}: give that address")
        if status == 404:
            raise UserError(
                f"{self.address}: {said}: no such address (most end in /v1), or no model {self.model!r} there"
            )
        raise UserError(f"{self.address}: {said}")

    def _reason(self, answer: requests.Response) -> tuple[str, set[str]]:
        """What the server says in an error, in one line, and its codes."""
        try:
            error = answer.json()
        except ValueError:
            return self.clean(answer.reason or ""), set()
        error = error.get("error", error) if isinstance(error, dict) else error
        codes = {str(error.get(name)) for name in ("code", "type")} if isinstance(error, dict) else set()
        message = error.get("message") or error.get("detail") if isinstance(error, dict) else error
        return self.clean(" ".join(str(message or "").split()))[:200], codes

    def _reply(self, answer: requests.Response) -> Reply:
        try:
            content = answer.json()
            choice = content["choices"][0]
            message, model = choice["message"], content.get("model")
            text, refusal = message.get("content"), message.get("refusal")
        except (ValueError, LookupError, TypeError, AttributeError):
            if not self.answers:
                raise UserError(
                    f"{self.address}: answers, but not as a language model: mend the address (most end in /v1)"
                ) from None
            raise _Passing("the server's answer is damaged") from None
        with self._lock:
            self.answers += 1
        if refusal:
            raise BadAnswer(f"the model refuses ({self.clean(' '.join(str(refusal).split()))[:200]})")
        if choice.get("finish_reason") == "length":
            raise BadAnswer("the answer is cut off at the server's limit of tokens")
        if not isinstance(text, str) or not text.strip():
            raise BadAnswer("the answer is empty")
        return Reply(self.clean(text), self.clean(str(model or self.model)))


def _retry_after(answer: requests.Response) -> float | None:
    """Seconds, from a header that gives them or a date."""
    said = answer.headers.get("Retry-After")
    if said is None:
        return None
    try:
        return max(0.0, urllib3.Retry().parse_retry_after(said))
    except urllib3.exceptions.HTTPError:
        return None
