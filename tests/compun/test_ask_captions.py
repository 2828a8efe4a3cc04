"""Texts come from the file or the model, each noun is asked for once, and the API key is never written."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.compun.stub_model import StubModel, completion, fault, good, noun_of, serving
from workflow_scripts.compun import ask_captions, chat
from workflow_scripts.compun.ask_captions import ask_all, cost, main
from workflow_scripts.compun.chat import Chat, endpoint, read_key
from workflow_scripts.compun.config import Asking
from workflow_scripts.compun.steps import AskCaptions
from workflow_scripts.compun.texts import KINDS, Kind
from workflow_scripts.core.cache import Cache
from workflow_scripts.core.code import ROOT
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import read_json

KEY = "sk-test/0123456789abcdef"
NOUNS = ["cricket bat", "goldfish", "lab coat", "snow ball", "paper towel", "bus stop"]
CAPTIONS = KINDS["captions"]
ATTEMPTS = 1 + chat.RETRIES


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[StubModel]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.0)
    with serving(StubModel()) as state:
        yield state


class Run:
    """The step in a folder: ``Run(tmp_path, server)(count=7)``."""

    def __init__(self, folder: Path, server: StubModel | None = None, nouns: list[str] = NOUNS) -> None:
        self.folder, self.nouns = folder, folder / "nouns.txt"
        self.nouns.write_text("\n".join(nouns))
        self.asked = {"address": server.address, "model": "stub"} if server else {}
        self.texts, self.summary, self.cache = folder / "captions.json", folder / "summary.json", folder / "c"

    def __call__(self, kind: str = "captions", file: Path | None = None, **ask: Any) -> dict[str, list[str]]:
        asking = Asking(**{**self.asked, **ask})
        main(AskCaptions(kind=kind, compounds=self.nouns, file=file, ask=asking, cache=self.cache, texts=self.texts,
                         summary=self.summary))  # fmt: skip
        return read_json(self.texts)

    def command(self, **ask: Any) -> list[str]:
        places = {"compounds": self.nouns, "cache": self.cache, "texts": self.texts, "summary": self.summary}
        words = [word for name, path in places.items() for word in (f"--{name}", str(path))]
        asking = json.dumps({**self.asked, **ask})
        return [sys.executable, "-m", "workflow_scripts.compun.ask_captions", *words, "--ask", asking]


def talk(server: StubModel, **ask: Any) -> Chat:
    return Chat(Asking(address=server.address, model="stub", **ask))


def question(noun: str = "x") -> tuple[list[dict[str, str]], dict[str, Any]]:
    return [{"role": "user", "content": f'the "{noun}"'}], CAPTIONS.schema(1)


# Asking


def test_the_cost_by_hand() -> None:
    kind = Kind("caption", "captions", 10, 7, None, "x" * 398 + "{noun}{count}{words}", ("e",))
    per_noun = len(kind.instruction("ab", 2))
    estimate = cost(["ab"] * 1000, kind, 2, 3)
    assert "1000 requests (at most 3000" in estimate
    assert f"about {per_noun * 1000 / 4000:.0f} thousand tokens sent and 30 thousand received" in estimate


def test_each_noun_is_asked_for_once(tmp_path: Path, server: StubModel, lines: list[str]) -> None:
    run = Run(tmp_path, server)
    texts = run()
    assert list(texts) == NOUNS and sorted(server.nouns()) == sorted(NOUNS)
    assert texts["goldfish"] == [f"Scene {n} with a goldfish." for n in range(1, 6)]
    body = next(body for body in server.asked if noun_of(body) == "goldfish")
    assert body["temperature"] == 0.1 and body["top_p"] == 1.0 and body["model"] == "stub"
    assert body["response_format"]["json_schema"]["strict"] is True
    start = "captions of 6 nouns: 0 answered before, 6 to ask of stub"
    assert any(line.startswith(start) and "6 requests (at most 18" in line for line in lines)
    first = run.texts.read_bytes(), run.summary.read_bytes()
    assert run() == texts and len(server.asked) == 6
    assert any("6 answered before, 0 to ask" in line for line in lines)
    assert (run.texts.read_bytes(), run.summary.read_bytes()) == first
    summary = read_json(run.summary)
    assert summary["from_model"] == 6 and summary["answered_by"] == {"stub-1": 6} and summary["captions"] == 30
    assert summary["asked"]["model"] == "stub" and "{noun}" in summary["asked"]["instruction"]
    assert server.address not in run.summary.read_text() and str(tmp_path) not in run.summary.read_text()


@pytest.mark.parametrize("change", [{"count": 4}, {"temperature": 0.5}, {"model": "other"}, {"kind": "descriptions"}])
def test_another_question_is_asked_again(tmp_path: Path, server: StubModel, change: dict[str, Any]) -> None:
    run = Run(tmp_path, server, NOUNS[:2])
    run()
    run(**change)
    assert len(server.asked) == 4


def test_a_dry_run_asks_and_writes_nothing(tmp_path: Path, server: StubModel, lines: list[str]) -> None:
    run = Run(tmp_path, server)
    main(AskCaptions(compounds=run.nouns, ask=Asking(**run.asked), dry_run=True, cache=run.cache, texts=run.texts,
                     summary=run.summary))  # fmt: skip
    assert not server.asked and not run.texts.exists() and not run.summary.exists()
    assert any("6 requests" in line and "thousand tokens" in line for line in lines)


def test_null_settings_are_not_sent(tmp_path: Path, server: StubModel) -> None:
    Run(tmp_path, server, NOUNS[:1])(temperature=None, top_p=None)
    assert not {"temperature", "top_p"} & set(server.asked[0])


def test_a_server_without_schemas_is_asked_without(tmp_path: Path, server: StubModel) -> None:
    refusal = fault(400, "'response_format' of type 'json_schema' is not supported")
    server.answer = lambda body: refusal if "response_format" in body else completion(good(body))
    assert list(Run(tmp_path, server)(at_once=1)) == NOUNS and len(server.asked) == 7  # the schema is tried once


@pytest.mark.parametrize(
    "wrong",
    [
        completion('["only one"]'), completion("Sure! 1. A cat"), completion("{", "length"), completion(None),
        completion(None, refusal="I cannot"), completion("  "),
    ],
)  # fmt: skip
def test_after_an_invalid_answer_the_model_is_asked_again(tmp_path: Path, server: StubModel, wrong: Any) -> None:
    server.answer = lambda body: wrong if len(server.asked) == 1 else completion(good(body))
    texts = Run(tmp_path, server, NOUNS[:1])()
    assert len(texts["cricket bat"]) == 5 and len(server.asked) == 2
    assert read_json(tmp_path / "summary.json")["asked_again"] == {"cricket bat": 2}
    if wrong[1]["choices"][0]["message"]["content"] == '["only one"]':
        roles = [message["role"] for message in server.asked[1]["messages"]]
        assert roles == ["user", "assistant", "user"] and "1 of 5" in server.asked[1]["messages"][2]["content"]


@pytest.mark.parametrize(
    ("wrong", "asked", "reason"),
    [(completion("[]"), 3, "0 of 5"), (fault(400, "filtered"), 6, r"the server answered 400 \(filtered\)")],
)
def test_a_noun_without_a_valid_answer_is_named_and_the_others_are_cached(
    tmp_path: Path, server: StubModel, lines: list[str], wrong: Any, asked: int, reason: str
) -> None:
    server.answer = lambda body: wrong if noun_of(body) == "lab coat" else completion(good(body))
    run = Run(tmp_path, server)
    match = rf"of 1 of 6 nouns, asked 3 times each \('lab coat': {reason}\).*--file"
    with pytest.raises(UserError, match=match) as error:
        run(at_once=1)
    assert "\n" not in str(error.value) and not run.texts.exists()
    assert any(line.startswith("warning: lab coat: ") for line in lines)
    assert server.nouns().count("lab coat") == asked and len(server.asked) == 5 + asked
    server.answer = lambda body: completion(good(body))
    assert list(run()) == NOUNS and len(server.asked) == 6 + asked


def test_the_model_is_asked_for_what_the_file_lacks(tmp_path: Path, server: StubModel, lines: list[str]) -> None:
    file = tmp_path / "given.json"
    given = {noun: [f"{noun} number {i}" for i in range(5)] for noun in NOUNS[:4]}
    file.write_text(json.dumps(given))
    run = Run(tmp_path, server)
    texts = run(file=file)
    assert sorted(server.nouns()) == sorted(NOUNS[4:]) and texts["goldfish"] == given["goldfish"]
    assert list(texts) == NOUNS and any(f"4 from {file}, 0 answered before, 2 to ask" in line for line in lines)
    # What the step writes it can read, and then it asks for nothing.
    run.asked = {}
    assert run(file=run.texts) == texts
    summary = read_json(run.summary)
    assert summary["from_file"] == 6 and summary["asked"] is None and not summary["without_the_noun"]


# Servers that fail


def test_transient_failures_are_retried(tmp_path: Path, server: StubModel, lines: list[str]) -> None:
    failures = iter([fault(500, "oops"), fault(503), fault(429, "slow down"), (200, b"<html>", {}), (200, None, {})])

    def answer(body: dict[str, Any]) -> Any:
        return completion(good(body)) if noun_of(body) == "cricket bat" else next(failures, completion(good(body)))

    server.answer = answer
    assert list(Run(tmp_path, server, NOUNS[:2])(at_once=1)) == NOUNS[:2]
    assert len(server.asked) == 7
    for status in (500, 503, 429):
        assert any(f"the server answered {status}" in line for line in lines)
    assert sum("Retrying request" in line for line in lines) == 4


def test_a_pause_of_hours_ends_the_run(tmp_path: Path, server: StubModel) -> None:
    server.answer = lambda body: fault(429, "daily limit", Retry_After="7200")
    with pytest.raises(UserError, match="daily limit.*retry after 7200 s.*0 of 1 answers arrived and are cached"):
        Run(tmp_path, server, NOUNS[:1])()
    assert len(server.asked) == 1


def test_a_question_waits_while_others_are_answered(server: StubModel) -> None:
    model = talk(server)

    def answer(body: dict[str, Any]) -> Any:
        model.answers += 1  # another thread's
        return fault(429) if len(server.asked) <= 3 * ATTEMPTS else completion(good(body))

    server.answer = answer
    assert model.ask(*question()).model == "stub-1" and len(server.asked) == 3 * ATTEMPTS + 1


def test_a_server_that_does_not_answer(tmp_path: Path, server: StubModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat, "RETRIES", 1)
    done = threading.Event()
    server.answer = lambda body: completion(good(body)) if done.wait(20) else completion(None)
    with pytest.raises(UserError, match=r"no answer within 1 s \(timeout\)"):
        Run(tmp_path, server, NOUNS[:1])(timeout=1)
    assert len(server.asked) == 2
    done.set()


def test_a_server_that_dies_half_way(tmp_path: Path, server: StubModel) -> None:
    server.answer = lambda body: completion(good(body)) if len(server.asked) <= 4 else fault(500, "dead")
    run = Run(tmp_path, server)
    with pytest.raises(UserError, match=r"500 \(dead\).*; 4 of 6 answers arrived and are cached; run again"):
        run(at_once=1)
    assert not run.texts.exists() and len(server.asked) == 4 + ATTEMPTS  # one noun's attempts, not each noun's
    server.answer = lambda body: completion(good(body))
    assert list(run()) == NOUNS and len(server.asked) == 4 + ATTEMPTS + 2


def test_answers_on_their_way_when_the_run_ends_are_cached(tmp_path: Path, server: StubModel) -> None:
    both = threading.Barrier(2)

    def answer(body: dict[str, Any]) -> Any:
        if noun_of(body) not in NOUNS[:2]:
            return completion(good(body))
        both.wait(10)
        if noun_of(body) == NOUNS[0]:
            return fault(404, "gone")
        time.sleep(1)
        return completion(good(body))

    server.answer, model = answer, talk(server)
    with Cache(tmp_path / "answers.sqlite") as cache:
        with pytest.raises(UserError, match="gone.*1 of 6 answers arrived"):
            ask_all(model, cache, NOUNS, CAPTIONS, Asking(at_once=2))
        cached = ask_captions.cached_answers(cache, model, NOUNS, CAPTIONS, 5)
    assert NOUNS[1] in cached and len(server.asked) < 6


@pytest.mark.parametrize("sign", [pytest.param(signal.SIGKILL, marks=pytest.mark.slow), signal.SIGINT])
def test_a_killed_run_is_resumed(tmp_path: Path, server: StubModel, sign: signal.Signals) -> None:
    def answer(body: dict[str, Any]) -> Any:
        if len(server.asked) > 3 and not done.is_set():
            reached.set()
            sent.wait(20)
            done.wait(1 if sign == signal.SIGINT else 20)
        return completion(good(body))

    reached, sent, done = threading.Event(), threading.Event(), threading.Event()
    server.answer, run = answer, Run(tmp_path, server)
    process = subprocess.Popen(run.command(at_once=1), cwd=ROOT, stderr=subprocess.PIPE, text=True)
    assert reached.wait(60)
    model = talk(server)
    with Cache(run.cache / "compun" / "answers.sqlite") as cache:
        while len(ask_captions.cached_answers(cache, model, NOUNS, CAPTIONS, 5)) < 3:
            time.sleep(0.01)
    process.send_signal(sign)
    sent.set()
    _, printed = process.communicate(timeout=60)
    done.set()
    assert process.returncode == (130 if sign == signal.SIGINT else -sign) and not run.texts.exists()
    cached = 4 if sign == signal.SIGINT else 3
    assert sign == signal.SIGKILL or "run again to resume" in printed
    assert list(run()) == NOUNS and len(server.asked) == 4 + 6 - cached


@pytest.mark.parametrize(
    ("reply", "match"),
    [
        (fault(402, "pay first"), r"402 \(pay first\)"),
        (fault(403, "not in your country"), r"403, and there is no key"),
        (fault(404, "model `stub` not found"), r"not found\).*/v1\), or no model 'stub'"),
        (fault(400, "temperature must be 1"), "temperature must be 1.*correct the model's name or its settings"),
        (fault(429, "you exceeded", "insufficient_quota"), "the account's quota is used up"),
        (fault(301, Location="https://elsewhere.org/v1?a=b"), "moved; use the address https://elsewhere.org/v1;"),
        ((200, b"<html>hello</html>", {}), "not answer as a language model"),
        ((200, {"hello": 1}, {}), "not answer as a language model"),
        ((200, [], {}), "not answer as a language model"),
        ((500, b"\xff\xfe", {}), "500"),
        ((418, ["a", 1], {}), "418"),
    ],
)
def test_failures_that_no_retry_repairs_end_the_run(tmp_path: Path, server: StubModel, reply: Any, match: str) -> None:
    server.answer = lambda body: reply
    with pytest.raises(UserError, match=match) as error:
        Run(tmp_path, server)(at_once=1)
    assert "\n" not in str(error.value) and len(server.asked) <= ATTEMPTS


def test_offline(tmp_path: Path, server: StubModel) -> None:
    with pytest.raises(UserError, match="cannot be reached.*Connection refused.*or give the captions by --file"):
        Run(tmp_path, server)(address="http://127.0.0.1:9/v1")


def test_without_file_and_model(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="of 6 of 6 nouns.*--file.*--ask.address") as error:
        Run(tmp_path)()
    assert '{"cricket bat": [' in str(error.value) and "\n" not in str(error.value)


def test_captions_are_at_most_seven(tmp_path: Path, server: StubModel) -> None:
    with pytest.raises(UserError, match="--ask.count 8: expected at most 7 captions"):
        Run(tmp_path, server)(count=8)
    assert not server.asked


# The key


def test_the_key_is_sent_if_there_is_one(tmp_path: Path, server: StubModel, monkeypatch: pytest.MonkeyPatch) -> None:
    netrc = tmp_path / "netrc"  # is not read
    netrc.write_text("machine 127.0.0.1 login someone password secret\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    Run(tmp_path, server, NOUNS[:1])()
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    Run(tmp_path, server, NOUNS[1:2])()
    Run(tmp_path, server, NOUNS[2:3])(key="NOT_SET")
    assert [headers.get("Authorization") for headers in server.headers] == [None, f"Bearer {KEY}", None]
    server.key = KEY
    with pytest.raises(UserError, match="401, and there is no key; export NOT_SET=…"):
        Run(tmp_path, server)(key="NOT_SET")


def everything_written(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def pieces(key: str) -> list[bytes]:
    return [key.encode(), key[3:].encode(), key.replace("/", "\\/").encode(), key[-10:].encode()]


ECHOES: dict[str, Any] = {
    "an error": lambda auth, body: fault(500, f"header was {auth}"),
    "a refusal": lambda auth, body: fault(400, f"header was {auth}", auth),
    "a 401": lambda auth, body: fault(401, f"bad key {auth[-10:]}"),
    "a 403": lambda auth, body: fault(403, f"bad key {auth}"),
    "a redirect": lambda auth, body: fault(302, Location=f"http://127.0.0.1/{auth.split()[-1]}"),
    "a text": lambda auth, body: (500, auth.encode(), {}),
    "captions": lambda auth, body: completion(json.dumps([f"{auth} {n}" for n in range(5)])),
    "escaped captions": lambda auth, body: completion(
        json.dumps([f"{auth} {n}" for n in range(5)]).replace("/", "\\/").replace("0123", "\\u0030123")
    ),
    "the model's name": lambda auth, body: (200, completion(good(body))[1] | {"model": auth}, {}),
    "nonsense": lambda auth, body: completion(f"your key is {auth}"),
    "escaped nonsense": lambda auth, body: completion(json.dumps([auth, auth]).replace("/", "\\/")),
    "a model's refusal": lambda auth, body: completion(None, refusal=auth),
}


@pytest.mark.parametrize("echo", ECHOES)
def test_a_key_that_the_server_returns_is_not_written(
    tmp_path: Path, server: StubModel, echo: str, monkeypatch: pytest.MonkeyPatch, lines: list[str]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    server.answer = lambda body: ECHOES[echo](f"Bearer {KEY}", body)
    message = ""
    try:
        Run(tmp_path, server, NOUNS[:2])()
    except UserError as error:
        assert error.__cause__ is None and (error.__context__ is None or error.__suppress_context__)
        message = str(error)
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
    written = everything_written(tmp_path) + "\n".join([message, *lines]).encode()
    assert len(written) > 100 and not any(piece in written for piece in pieces(KEY))


@pytest.mark.slow
def test_the_command_does_not_write_the_key(tmp_path: Path, server: StubModel) -> None:
    """With its log and traceback, once successfully and once with a server that returns the key."""
    server.key = KEY
    run = Run(tmp_path, server)
    environment = {**os.environ, "MY_KEY": f" {KEY}\n"}

    def call(log: str) -> subprocess.CompletedProcess[bytes]:
        command = [*run.command(key="MY_KEY"), "--log", str(tmp_path / log)]
        return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True)

    right = call("right.log")
    assert right.returncode == 0 and len(read_json(run.texts)) == 6
    server.key, server.answer = None, lambda body: fault(418, f"Bearer {KEY}")
    run.nouns.write_text("tea cup")
    wrong = call("wrong.log")
    assert wrong.returncode == 1 and "Traceback" in (tmp_path / "wrong.log").read_text()
    written = everything_written(tmp_path) + right.stdout + right.stderr + wrong.stdout + wrong.stderr
    assert not any(piece in written for piece in pieces(KEY))


@pytest.mark.parametrize("value", ["sk-a b-0123456789", "sk-ü-0123456789", "sk-0123\n456789", "sk-\x7f-0123456789"])
def test_a_malformed_key_is_not_shown(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", value)
    with pytest.raises(UserError, match="OPENAI_API_KEY: holds a character that no key has") as error:
        read_key("OPENAI_API_KEY")
    assert "456789" not in str(error.value)


def test_a_key_in_place_of_its_name_is_not_shown() -> None:
    with pytest.raises(UserError, match="never the key itself") as error:
        read_key(KEY)
    assert "0123" not in str(error.value) and error.value.__context__ is None


def test_a_placeholder_for_a_key_stays_in_captions(
    tmp_path: Path, server: StubModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "with")
    assert Run(tmp_path, server, NOUNS[:1])()["cricket bat"][0] == "Scene 1 with a cricket bat."


@pytest.mark.parametrize(
    ("address", "warned"),
    [
        ("http://127.0.0.1/v1", False), ("http://localhost:1/v1", False), ("https://api.example.org/v1", False),
        ("http://api.example.org/v1", True),
    ],
)  # fmt: skip
def test_a_key_sent_unencrypted_is_a_warning(
    address: str, warned: bool, monkeypatch: pytest.MonkeyPatch, lines: list[str]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    Chat(Asking(address=address, model="stub"))
    assert ["unencrypted" in line for line in lines] == [True] * warned and KEY not in "".join(lines)


@pytest.mark.parametrize("address", ["http://a:8080/v1", "http://a:8080/v1/", "http://a:8080/v1/chat/completions"])
def test_addresses(address: str) -> None:
    assert endpoint(address) == "http://a:8080/v1/chat/completions"


@pytest.mark.parametrize(
    "address",
    [
        "https://me:sk-secret@a/v1", "https://a/v1?key=sk-secret", "https://a/v1#sk-secret", "http://[sk-secret",
        "http://u:sk-secret/b@h/v1", "http://h:sk-secret/v1", "http://h:80:sk-secret/v1", "https://h/sk-secret@x/v1",
        "https://h/v1;sk-secret", "https://h/v1 sk-secret", " https://h/sk-secret", "https://h/\tsk-secret",
        "u:sk-secret@h/v1", "ftp://h/sk-secret", "localhost:8080/v1", "ftp://a/v1", "v1", "http://",
    ],
)  # fmt: skip
def test_an_invalid_address_is_not_shown(address: str) -> None:
    with pytest.raises(UserError, match="pass a key by the environment only") as error:
        endpoint(address)
    assert "sk-secret" not in str(error.value)


def test_an_address_that_holds_the_key(monkeypatch: pytest.MonkeyPatch, lines: list[str]) -> None:
    secret = "sk+" + "s3cret/" * 3
    addresses = (f"http://h/{secret}/v1", f"https://h/{quote(secret, safe='')}/v1")
    asks = [Asking(address=address, model="stub") for address in addresses]
    monkeypatch.setenv("OPENAI_API_KEY", secret)
    for ask in asks:
        with pytest.raises(UserError, match="holds the key") as error:
            Chat(ask)
        assert "s3cret" not in str(error.value)
    assert not lines
    # A placeholder may be part of an address.
    monkeypatch.setenv("OPENAI_API_KEY", "v1")
    assert Chat(Asking(address="https://h/v1", model="stub")).url == "https://h/v1/chat/completions"
