"""Ask a language model behind an OpenAI-compatible address, by the ``openai`` client and its timeouts and retries.

Everything that a server returns is cleared of the API key before it is used, so that no error, log, cache or artifact
can hold the key.
"""

import logging
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import openai

from workflow_scripts.compun.address import NOT_A_VARIABLE, SECRET_LENGTH, VARIABLE, check_without, endpoint
from workflow_scripts.compun.config import Asking
from workflow_scripts.compun.texts import BadAnswer
from workflow_scripts.core.cli import log
from workflow_scripts.core.errors import UserError

RETRIES = 5  # of one request, with growing pauses, or those that the server asks for
CONNECT_SECONDS = 20
# Codes of status 429 for which retrying is of no use.
OUT_OF_QUOTA = {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"}


class Stopped(Exception):
    """The request was not sent, because the run ends."""


class _Transient(Exception):
    """The client's retries failed, but another attempt may succeed."""


class _Refused(Exception):
    """The server does not accept this request as it is."""


class Reply(NamedTuple):
    """What the model wrote, and the name by which the server calls the model."""

    text: str
    model: str


def read_key(variable: str) -> str | None:
    """Return the key in the environment variable, None if not set; no UserError quotes it, or a key in its place."""
    if not VARIABLE.fullmatch(variable):
        raise UserError(NOT_A_VARIABLE)
    key = os.environ.get(variable, "").strip()
    if not all("!" <= character <= "~" for character in key):
        raise UserError(f"environment variable {variable}: holds a character that no key has; export it again")
    return key or None


class Chat:
    """A language model; several threads may ask it at once."""

    def __init__(self, ask: Asking) -> None:
        self.address, self.model, self.variable, self.timeout = ask.address or "", ask.model or "", ask.key, ask.timeout
        self.url, self.settings = endpoint(self.address), ask.sampling
        self._key = read_key(ask.key)
        check_without(self.address, self._key)
        self._stop = threading.Event()
        self.answers = 0
        self._plain = False  # the server accepts no schema
        hooks: dict[str, list[Callable[..., None]]] = {"request": [self._go], "response": [self._note]}
        self._client = openai.OpenAI(
            api_key=self._key or "none", base_url=self.url.removesuffix("/chat/completions"), max_retries=RETRIES,
            timeout=openai.Timeout(ask.timeout, connect=CONNECT_SECONDS),
            http_client=openai.DefaultHttpxClient(follow_redirects=False, event_hooks=hooks),
        )  # fmt: skip
        library = logging.getLogger("openai")
        library.parent, library.level = log, logging.INFO  # it logs its retries; below INFO it logs requests
        host = urlsplit(self.url).hostname or ""
        if self._key and self.url.startswith("http:") and host != "localhost" and not host.startswith("127."):
            log.warning("warning: %s: the key is sent unencrypted; use https if the server supports it", self.address)

    def stop(self) -> None:
        """Let requests that are not sent yet raise Stopped; those on their way are completed."""
        self._stop.set()

    def clean(self, text: str) -> str:
        """Return ``text`` without the key."""
        return text.replace(self._key, "***") if self._key and len(self._key) >= SECRET_LENGTH else text

    def ask(self, messages: list[dict[str, str]], schema: dict[str, Any]) -> Reply:
        """Return the model's answer to ``messages``, in the JSON ``schema`` if the server supports it.

        Raises:
            BadAnswer: the model refused, wrote nothing, or its answer was truncated.
            UserError: asking further is of no use.
            Stopped: the run ends.
        """
        try:
            while True:
                answers = self.answers
                try:
                    return self._ask(messages, schema)
                except _Transient as error:
                    if self.answers == answers:  # otherwise the server is alive, and this request's turn comes
                        raise UserError(f"{self.address}: {error}; try again later") from None
        except UserError:
            self.stop()  # before another request begins
            raise

    def _ask(self, messages: list[dict[str, str]], schema: dict[str, Any]) -> Reply:
        """Ask with the schema or, if the server does not accept one, without: the question states the form too."""
        form = {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": schema}}
        try:
            if not self._plain:
                with suppress(_Refused):
                    return self._request(messages=messages, response_format=form)
            reply = self._request(messages=messages)
        except _Refused as error:
            if self.answers:  # the server accepted others: it is this request
                raise BadAnswer(str(error)) from None
            raise UserError(f"{self.address}: {error}; correct the model's name or its settings") from None
        if not self._plain:
            log.info("%s: accepts no JSON schema; asked without from now on", self.address)
            self._plain = True
        return reply

    def _request(self, **body: Any) -> Reply:
        headers = None if self._key else {"Authorization": openai.Omit()}
        body |= {"model": self.model, **self.settings, "extra_headers": headers}
        try:
            answer: Any = self._client.chat.completions.create(**body)
        except openai.APITimeoutError:
            raise _Transient(f"no answer within {self.timeout:g} s (timeout)") from None
        except openai.APIConnectionError as error:
            reason = self._line(error.__cause__ or error)
            raise _Transient(f"cannot be reached ({reason}); check the address and, for https, SSL_CERT_FILE") from None
        except openai.APIStatusError as error:
            raise self._failure(error) from None
        try:
            choice = answer.choices[0]
            text, refusal = choice.message.content, choice.message.refusal
        except (AttributeError, LookupError, TypeError):
            if self.answers:
                raise BadAnswer("the server's answer is damaged") from None
            fault = "does not answer as a language model; correct the address (most end in /v1)"
            raise UserError(f"{self.address}: {fault}") from None
        self.answers += 1
        if refusal:
            raise BadAnswer(f"the model refuses ({self._line(refusal)})")
        if choice.finish_reason == "length":
            raise BadAnswer("the answer is truncated by the server's limit of tokens")
        if not isinstance(text, str) or not text.strip():
            raise BadAnswer("the answer is empty")
        return Reply(self.clean(text), self.clean(str(answer.model or self.model)))

    def _line(self, message: object) -> str:
        return self.clean(" ".join(str(message or "").split()))[:200]

    def _failure(self, error: openai.APIStatusError) -> Exception:
        """Return what a status other than 200 means."""
        status, headers, body = error.status_code, error.response.headers, error.body
        text = f"the server answered {status}"
        start = f"{self.address}: {text}"
        if status in (401, 403) and self._key is None:
            return UserError(f"{start}, and there is no key; export {self.variable}=…")
        if status == 401:  # the reason is not quoted: it may hold a part of the key
            return UserError(f"{start}: it rejects the key in {self.variable}; export another")
        if reason := self._line(body.get("message") or body.get("detail") if isinstance(body, dict) else body):
            text, start = f"{text} ({reason})", f"{start} ({reason})"
        if status == 429 and OUT_OF_QUOTA & {str(error.code), str(error.type)}:
            return UserError(f"{start}: the account's quota is used up")
        if status in (408, 409, 429) or status >= 500:
            return _Transient(text + (f"; retry after {headers['Retry-After']} s" if "Retry-After" in headers else ""))
        if status in (400, 413, 422):
            return _Refused(text)
        if 300 <= status < 400:
            place = self.clean(headers.get("Location", "").partition("?")[0])
            return UserError(f"{start}: it has moved; use the address {place}")
        hint = f": wrong address (most end in /v1), or no model {self.model!r}" if status == 404 else ""
        return UserError(start + hint)

    def _go(self, _: Any) -> None:
        """Send nothing more once the run ends; called before each request, retries included."""
        if self._stop.is_set():
            raise Stopped

    def _note(self, response: Any) -> None:
        if response.status_code in (408, 409, 429) or response.status_code >= 500:
            log.warning("%s: the server answered %d", self.address, response.status_code)
