"""A language model's server on loopback, which answers as a test says."""

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests import loopback

# (status, body, headers); a body of None: the connection is cut.
Said = tuple[int, Any, dict[str, str]]


def noun_of(body: dict[str, Any]) -> str:
    """The noun that a request asks for: the first in quotes."""
    return re.search(r'"([^"]+)"', body["messages"][0]["content"])[1]


def wanted_of(body: dict[str, Any]) -> tuple[str, int]:
    """What is asked for and how many, from the schema or, where there is none, the words."""
    form = body.get("response_format")
    if form is None:
        words = body["messages"][0]["content"]
        return re.search(r'\{"(\w+)"', words)[1], int(re.search(r"\b(\d)\b", words)[1])
    ((many, texts),) = form["json_schema"]["schema"]["properties"].items()
    return many, texts["minItems"]


def good(body: dict[str, Any]) -> str:
    """A right answer, the same for the same question."""
    many, count = wanted_of(body)
    return json.dumps({many: [f"Scene {n} with a {noun_of(body)}." for n in range(1, count + 1)]})


def completion(text: str | None, finish: str = "stop", **more: Any) -> Said:
    choice = {"message": {"role": "assistant", "content": text, **more}, "finish_reason": finish}
    return 200, {"model": "stub-1", "choices": [choice]}, {}


def fault(status: int, message: str = "", code: str | None = None, **headers: str) -> Said:
    return status, {"error": {"message": message, "code": code}}, {k.replace("_", "-"): v for k, v in headers.items()}


@dataclass
class StubModel:
    """``answer``: what is said to a request's body; ``asked``: the bodies, ``headers``: their headers."""

    answer: Callable[[dict[str, Any]], Said] = lambda body: completion(good(body))
    key: str | None = None
    address: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    def nouns(self) -> list[str]:
        return [noun_of(body) for body in self.asked]


@contextmanager
def serving(state: StubModel) -> Iterator[StubModel]:
    lock = threading.Lock()

    class Model(loopback.Handler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                state.asked.append(body)
                state.headers.append({name.title(): value for name, value in self.headers.items()})
            if not self.path.endswith("/v1/chat/completions"):
                said = fault(404, "no such path")
            elif state.key is not None and self.headers["Authorization"] != f"Bearer {state.key}":
                said = fault(401, f"wrong key: {self.headers['Authorization']}")
            else:
                said = state.answer(body)
            status, content, headers = said
            if content is None:
                self.close_connection = True
                return
            self.answer(status, content if isinstance(content, bytes) else json.dumps(content).encode(), headers)

    with loopback.serving(Model) as address:
        state.address = f"{address}/v1"
        yield state
