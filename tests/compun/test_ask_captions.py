"""Captions come from the file or the model, as they were asked for, once; and the key stays where it was."""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.compun.stub_model import StubModel, completion, fault, good, noun_of, serving
from workflow_scripts.compun import ask_captions, chat
from workflow_scripts.compun.ask_captions import (
    KINDS,
    arguments,
    ask_all,
    check_texts,
    cost,
    main,
    mentions,
    read_answer,
    read_given,
    read_nouns,
)
from workflow_scripts.compun.chat import BadAnswer, Chat, endpoint, read_key
from workflow_scripts.core.cache import Cache
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import read_json, write_table
from workflow_scripts.core.tables import COMPOUNDS

ROOT = Path(__file__).resolve().parents[2]
KEY = "sk-test/0123456789abcdef"
NOUNS = ["cricket bat", "goldfish", "lab coat", "snow ball", "paper towel", "bus stop"]
CAPTIONS = KINDS["captions"]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[StubModel]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with serving(StubModel()) as state:
        yield state


@pytest.fixture
def lines() -> Iterator[list[str]]:
    """The lines of the log, debugging ones and tracebacks included."""
    found: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append(logging.Formatter().format(record))

    handler, log = Keep(), ask_captions.log
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)
    yield found
    log.removeHandler(handler)
    log.setLevel(level)


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pauses between attempts."""
    usual = Chat.__init__

    def init(self: Chat, *args: Any, **more: Any) -> None:
        usual(self, *args, **more)
        self.pause = 0.0

    monkeypatch.setattr(Chat, "__init__", init)


class Run:
    """The step in a folder: ``Run(tmp_path, server)(count=7)``, with the list of nouns and what it writes."""

    def __init__(self, folder: Path, server: StubModel | None = None, nouns: list[str] = NOUNS) -> None:
        self.folder, self.server = folder, server
        self.nouns = folder / "nouns.txt"
        self.nouns.write_text("\n".join(nouns))
        self.output, self.summary = folder / "captions.json", folder / "summary.json"

    def argv(self, **more: Any) -> list[str]:
        asked = {"address": self.server.address, "model": "stub"} if self.server else {}
        places = {"compounds": self.nouns, "output": self.output, "summary": self.summary, "cache": self.folder / "c"}
        pairs = {**places, **asked, **more}.items()
        flags = [[f"--{k.replace('_', '-')}"] + ([] if v is True else [str(v)]) for k, v in pairs if v is not None]
        return sum(flags, [])

    def __call__(self, **more: Any) -> dict[str, list[str]]:
        main(arguments().parse_args(self.argv(**more)))
        return read_json(self.output)


# The question and the answer


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("count", [1, 5, 7])
def test_the_question_shows_the_form_that_the_check_takes(kind: str, count: int) -> None:
    question = KINDS[kind].instruction("lab coat", count)
    assert '"lab coat"' in question and str(count) in question and "10 words" in question
    example = question.splitlines()[-1]
    texts = read_answer(example, KINDS[kind], count)
    assert len(texts) == count and all(len(text.split()) <= 10 for text in texts)
    if kind == "captions":
        assert all(mentions(text, "garden hose") for text in texts)
    schema = KINDS[kind].schema(count)
    assert schema["required"] == list(schema["properties"]) == list(json.loads(example))


@pytest.mark.parametrize(
    "text",
    [
        '{"captions": ["a", "b"]}',
        '["a", "b"]',
        '["a", "b", "c"]',
        ' {"captions": ["a ", " b"], "note": 1}\n',
        '```json\n{"captions": ["a", "b"]}\n```',
        '```\n["a",\n"b"]```',
        '<think>["x", "y"] perhaps?</think>\n["a", "b"]',
        '["a", "b", "\\u00a0c"]',
        'Sure! Here you go:\n```json\n{"captions": ["a", "b"]}\n```\nAnything else?',
        'Here they are:\n```\n["a", "b"]\n```',
        'Sure: {"captions": ["a", "b"]} I hope that helps.',
    ],
)
def test_forms_of_a_right_answer(text: str) -> None:
    assert read_answer(text, CAPTIONS, 2) == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Here are your captions: a, b", "not JSON"),
        ("['a', 'b']", "not JSON"),
        ('{"texts": ["a", "b"]}', "without the key 'captions'"),
        ('{"captions": "a"}', "not a list"),
        ("3", "not a list"),
        ('["a"]', "1 of 2"),
        ('["a", 2]', "other things than texts"),
        ('["a", ["b"]]', "other things than texts"),
        ('["a", " "]', "empty"),
        ('["A cat", "a  cat"]', "twice"),
        ('["a", "\\ud800"]', "cannot be printed"),
        ('["a", "b\\u0000"]', "cannot be printed"),
        ("[" * 100_000, "not JSON"),
        ('```json\n["x", "y"]\n```\nor\n```json\n["a", "b"]\n```', "not JSON"),
        ('{"captions": ["x", "y"]} or {"captions": ["a", "b"]}', "not JSON"),
        ('["a", "' + "b" * 1001 + '"]', "more than 1,000 characters"),
        ("", "not JSON"),
    ],
)
def test_faults_of_an_answer(text: str, said: str) -> None:
    with pytest.raises(BadAnswer, match=said):
        read_answer(text, CAPTIONS, 2)


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=12), max_size=9), st.integers(1, 7))
def test_what_passes_the_check_is_fit_for_a_line_each(texts: list[str], count: int) -> None:
    try:
        lines = check_texts(texts, count)
    except ValueError:
        return
    assert len(lines) == len(texts) >= count and len({line.casefold() for line in lines}) == len(lines)
    assert all(line and line == " ".join(line.split()) and "\n" not in line for line in lines)
    assert check_texts(lines, count) == lines


def test_a_caption_names_its_noun() -> None:
    assert mentions("Two Snowballs fly.", "snow ball") and mentions("A six pack", "six-pack")
    assert not mentions("A ball of snow", "snow ball")


def test_the_cost_is_said_by_hand() -> None:
    text = "x" * 398 + "{noun}{count}{words}"  # "ab" in quotes, 2, 10: 405 characters
    kind = ask_captions.Kind("caption", "captions", 10, 7, None, text, ("e",))
    per_noun = len(kind.instruction("ab", 2))
    said = cost(["ab"] * 1000, kind, 2, 3)
    assert "1000 requests (at most 3000" in said
    assert f"about {per_noun * 1000 / 4000:.0f} thousand tokens sent and 30 thousand received" in said


# Asking


def test_asked_once_and_never_again(tmp_path: Path, server: StubModel, lines: list[str]) -> None:
    run = Run(tmp_path, server)
    found = run()
    assert list(found) == NOUNS and sorted(server.nouns()) == sorted(NOUNS)
    assert found["goldfish"] == [f"Scene {n} with a goldfish." for n in range(1, 6)]
    body = next(body for body in server.asked if noun_of(body) == "goldfish")
    assert body["temperature"] == 0.1 and body["top_p"] == 1.0 and body["model"] == "stub"
    assert body["response_format"]["json_schema"]["strict"] is True
    # No file was given.
    said = "captions of 6 nouns: 0 answered before, 6 to ask of stub"
    assert any(line.startswith(said) and "6 requests (at most 18" in line for line in lines)
    first = run.output.read_bytes(), run.summary.read_bytes()
    assert run() == found and len(server.asked) == 6
    assert any("6 answered before, 0 to ask" in line for line in lines)
    assert (run.output.read_bytes(), run.summary.read_bytes()) == first
    summary = read_json(run.summary)
    assert summary["from_model"] == 6 and summary["answered_by"] == {"stub-1": 6} and summary["captions"] == 30
    assert summary["asked"]["model"] == "stub" and "{noun}" in summary["asked"]["instruction"]
    assert server.address not in run.summary.read_text() and str(tmp_path) not in run.summary.read_text()


@pytest.mark.parametrize("change", [{"count": 4}, {"temperature": 0.5}, {"model": "other"}, {"kind": "descriptions"}])
def test_another_question_is_asked_anew(tmp_path: Path, server: StubModel, change: dict[str, Any]) -> None:
    run = Run(tmp_path, server, NOUNS[:2])
    run()
    run(**change)
    assert len(server.asked) == 4


def test_descriptions_the_same_way(tmp_path: Path, server: StubModel) -> None:
    found = Run(tmp_path, server, NOUNS[:2])(kind="descriptions", count=3)
    assert [len(texts) for texts in found.values()] == [3, 3]
    assert "without_the_noun" not in read_json(tmp_path / "summary.json")


def test_a_dry_run_asks_and_writes_nothing(tmp_path: Path, server: StubModel, lines: list[str]) -> None:
    run = Run(tmp_path, server)
    main(arguments().parse_args(run.argv(dry_run=True)))
    assert not server.asked and not run.output.exists() and not run.summary.exists()
    assert any("6 requests" in line and "thousand tokens" in line for line in lines)


def test_settings_that_a_model_does_not_take_are_left_out(tmp_path: Path, server: StubModel) -> None:
    run = Run(tmp_path, server, NOUNS[:1])
    main(arguments().parse_args([*run.argv(), "--temperature", "--top-p"]))
    assert not {"temperature", "top_p"} & set(server.asked[0])


def test_a_server_without_schemas_is_asked_without(tmp_path: Path, server: StubModel) -> None:
    def answer(body: dict[str, Any]) -> Any:
        if "response_format" in body:
            return fault(400, "'response_format' of type 'json_schema' is not supported")
        return completion(good(body))

    server.answer = answer
    found = Run(tmp_path, server)(at_once=1)
    assert list(found) == NOUNS and len(server.asked) == 7  # the schema is tried once


@pytest.mark.parametrize(
    "wrong",
    [
        completion('["only one"]'),
        completion("Sure! 1. A cat"),
        completion("{", "length"),
        completion(None, refusal="I cannot"),
        completion(None),
        completion("  "),
    ],
)
def test_a_wrong_answer_is_asked_again(tmp_path: Path, server: StubModel, wrong: Any) -> None:
    server.answer = lambda body: wrong if len(server.asked) == 1 else completion(good(body))
    found = Run(tmp_path, server, NOUNS[:1])()
    assert len(found["cricket bat"]) == 5 and len(server.asked) == 2
    assert read_json(tmp_path / "summary.json")["asked_again"] == {"cricket bat": 2}
    if wrong[1]["choices"][0]["message"]["content"] == '["only one"]':
        roles = [message["role"] for message in server.asked[1]["messages"]]
        assert roles == ["user", "assistant", "user"] and "1 of 5" in server.asked[1]["messages"][2]["content"]


def test_a_noun_without_a_right_answer_is_named_and_the_others_kept(
    tmp_path: Path, server: StubModel, lines: list[str]
) -> None:
    server.answer = lambda body: completion("[]" if noun_of(body) == "lab coat" else good(body))
    run = Run(tmp_path, server)
    with pytest.raises(UserError, match=r"of 1 of 6 nouns, asked 3 times each \('lab coat': 0 of 5\).*--file") as error:
        run()
    assert "\n" not in str(error.value) and not run.output.exists()
    assert "warning: lab coat: 0 of 5" in lines
    assert server.nouns().count("lab coat") == 3 and len(server.asked) == 5 + 3
    server.answer = lambda body: completion(good(body))
    assert list(run()) == NOUNS and len(server.asked) == 9


def test_a_single_request_that_is_refused_is_that_nouns_fault(tmp_path: Path, server: StubModel) -> None:
    def answer(body: dict[str, Any]) -> Any:
        return fault(400, "filtered") if noun_of(body) == "lab coat" else completion(good(body))

    server.answer = answer
    with pytest.raises(UserError, match=r"'lab coat': the server answers 400 \(filtered\)"):
        Run(tmp_path, server)(at_once=1)
    assert {noun for noun in server.nouns() if server.nouns().count(noun) == 1} == set(NOUNS) - {"lab coat"}


# Servers that fail


def test_passing_failures_are_waited_out(tmp_path: Path, server: StubModel, lines: list[str]) -> None:
    failures = iter([fault(500, "oops"), fault(503), fault(429, "slow down"), (200, b"<html>", {}), (200, None, {})])

    def answer(body: dict[str, Any]) -> Any:
        return completion(good(body)) if noun_of(body) == "cricket bat" else next(failures, completion(good(body)))

    server.answer = answer
    assert list(Run(tmp_path, server, NOUNS[:2])(at_once=1)) == NOUNS[:2]
    assert len(server.asked) == 7
    for said in ("answers 500 (oops)", "answers 503", "answers 429 (slow down)", "damaged", "connection broke"):
        assert any(said in line and "again in 0 s" in line for line in lines), said


def test_the_wait_that_a_server_asks_for_holds_for_all(tmp_path: Path, server: StubModel) -> None:
    server.answer = lambda body: fault(429, Retry_After="1") if len(server.asked) == 1 else completion(good(body))
    Run(tmp_path, server, NOUNS[:3])(at_once=1)
    assert server.times[1] - server.times[0] >= 0.95 and len(server.asked) == 4
    assert server.times[3] - server.times[1] < 0.9


def test_a_wait_of_hours_is_not_slept_through(tmp_path: Path, server: StubModel) -> None:
    server.answer = lambda body: fault(429, "daily limit", Retry_After="7200")
    with pytest.raises(UserError, match="daily limit.*7200 s.*0 of 1 answers came and are kept"):
        Run(tmp_path, server, NOUNS[:1])()


def test_the_pauses_double(server: StubModel, monkeypatch: pytest.MonkeyPatch, lines: list[str]) -> None:
    server.answer = lambda body: fault(500)
    talk = Chat(server.address, "stub", "OPENAI_API_KEY")
    talk.pause = 0.01
    with pytest.raises(UserError, match="answers 500.*so 6 times"):
        talk.ask([{"role": "user", "content": 'the "x"'}], CAPTIONS.schema(1))
    gaps = [b - a for a, b in zip(server.times, server.times[1:], strict=False)]
    assert len(gaps) == 5 and all(gap >= 0.01 * 2**n for n, gap in enumerate(gaps))


def test_a_question_waits_as_long_as_others_are_answered(server: StubModel) -> None:
    talk = Chat(server.address, "stub", "OPENAI_API_KEY")

    def answer(body: dict[str, Any]) -> Any:
        talk.answers += 1  # another thread's
        return fault(429) if len(server.asked) <= 3 * chat.ATTEMPTS else completion(good(body))

    server.answer = answer
    reply = talk.ask([{"role": "user", "content": 'the "x"'}], CAPTIONS.schema(1))
    assert reply.model == "stub-1" and len(server.asked) == 3 * chat.ATTEMPTS + 1


def test_a_rate_is_kept_to(server: StubModel) -> None:
    talk = Chat(server.address, "stub", "OPENAI_API_KEY", per_minute=600)
    threads = [
        threading.Thread(target=talk.ask, args=([{"role": "user", "content": f'the "{n}"'}], CAPTIONS.schema(1)))
        for n in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    times = sorted(server.times)
    assert len(times) == 4 and times[3] - times[0] >= 0.25


def test_an_answer_too_slow_is_asked_again(tmp_path: Path, server: StubModel, lines: list[str]) -> None:
    def answer(body: dict[str, Any]) -> Any:
        time.sleep(0.6 if len(server.asked) == 1 else 0)
        return completion(good(body))

    server.answer = answer
    assert list(Run(tmp_path, server, NOUNS[:1])(timeout=0.2)) == NOUNS[:1]
    assert len(server.asked) == 2 and any("no answer within 0.2 s (--timeout)" in line for line in lines)


def test_a_server_that_dies_half_way(tmp_path: Path, server: StubModel) -> None:
    server.answer = lambda body: completion(good(body)) if len(server.asked) <= 4 else fault(500, "dead")
    run = Run(tmp_path, server)
    with pytest.raises(UserError, match=r"dead\); so 6 times.*; 4 of 6 answers came and are kept: run again"):
        run(at_once=1)
    assert not run.output.exists() and len(server.asked) == 4 + 6  # one noun's attempts, not each noun's
    server.answer = lambda body: completion(good(body))
    assert list(run()) == NOUNS and len(server.asked) == 10 + 2


def test_what_is_on_its_way_when_the_run_ends_is_kept(tmp_path: Path, server: StubModel) -> None:
    both = threading.Barrier(2)

    def answer(body: dict[str, Any]) -> Any:
        if noun_of(body) not in NOUNS[:2]:
            return completion(good(body))
        both.wait(10)
        if noun_of(body) == NOUNS[0]:
            return fault(404, "gone")
        time.sleep(0.3)
        return completion(good(body))

    server.answer = answer
    talk = Chat(server.address, "stub", "OPENAI_API_KEY")
    with Cache(tmp_path / "c" / "compun" / "answers.sqlite") as cache:
        with pytest.raises(UserError, match="gone.*1 of 6 answers came"):
            ask_all(talk, cache, NOUNS, CAPTIONS, 5, 3, 2)
        kept = ask_captions.kept_answers(cache, talk, NOUNS, CAPTIONS, 5)
    assert NOUNS[1] in kept and len(server.asked) < 6


@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_run_is_resumed(tmp_path: Path, server: StubModel, sign: signal.Signals) -> None:
    def answer(body: dict[str, Any]) -> Any:
        if len(server.asked) > 3 and not done.is_set():
            reached.set()
            done.wait(0.5 if sign == signal.SIGINT else 20)
        return completion(good(body))

    reached, done = threading.Event(), threading.Event()
    server.answer = answer
    run = Run(tmp_path, server)
    command = [sys.executable, "-m", "workflow_scripts.compun.ask_captions", *run.argv(at_once=1)]
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    assert reached.wait(60)
    with Cache(tmp_path / "c" / "compun" / "answers.sqlite") as cache:
        while cache.db.execute("SELECT count(*) FROM cache").fetchone() != (3,):
            time.sleep(0.01)
    process.send_signal(sign)
    _, said = process.communicate(timeout=60)
    done.set()
    assert process.returncode == (130 if sign == signal.SIGINT else -sign) and not run.output.exists()
    kept = 4 if sign == signal.SIGINT else 3
    assert sign == signal.SIGKILL or "run again to resume" in said
    assert list(run()) == NOUNS and len(server.asked) == 4 + 6 - kept


def test_an_answer_kept_in_another_form_is_asked_anew(tmp_path: Path, server: StubModel) -> None:
    run = Run(tmp_path, server, NOUNS[:2])
    run()
    with Cache(tmp_path / "c" / "compun" / "answers.sqlite") as cache:
        names = [name for (name,) in cache.db.execute("SELECT key FROM cache")]
        cache.put([(names[0], b'{"texts": ["one"]}'), (names[1], b"\xff")])
    assert list(run()) == NOUNS[:2] and len(server.asked) == 4


# Nothing to ask, nobody to ask, no key


def test_without_file_and_model(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="of 6 of 6 nouns.*--file.*--address") as error:
        Run(tmp_path)()
    assert '{"cricket bat": [' in str(error.value) and "\n" not in str(error.value)


def test_offline(tmp_path: Path, server: StubModel) -> None:
    run = Run(tmp_path, server)
    begun = time.monotonic()
    with pytest.raises(UserError, match="cannot be reached.*Connection refused.*or give the captions by --file"):
        run(address="http://127.0.0.1:9/v1")
    assert time.monotonic() - begun < 5


def test_no_key(tmp_path: Path, server: StubModel) -> None:
    server.key = KEY
    with pytest.raises(UserError, match="401, and there is no key: export OPENAI_API_KEY=…"):
        Run(tmp_path, server)()
    assert all("Authorization" not in headers for headers in server.headers) and len(server.asked) <= 4


def test_netrc_is_not_read(tmp_path: Path, server: StubModel, monkeypatch: pytest.MonkeyPatch) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login someone password secret\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    Run(tmp_path, server, NOUNS[:1])()
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    Run(tmp_path, server, NOUNS[1:2])()
    assert [headers.get("Authorization") for headers in server.headers] == [None, f"Bearer {KEY}"]


@pytest.mark.parametrize(
    ("said", "match"),
    [
        (fault(402, "pay first"), r"402 \(pay first\)"),
        (fault(403, "not in your country"), r"403, and there is no key"),
        (fault(404, "model `stub` not found"), r"not found\).*/v1\), or no model 'stub'"),
        (fault(400, "temperature must be 1"), "temperature must be 1.*mend the model's name or its settings"),
        (fault(429, "you exceeded", "insufficient_quota"), "nothing is left of the account's quota"),
        (fault(301, Location="https://elsewhere.org/v1?a=b"), "moved to https://elsewhere.org/v1: give"),
        ((200, b"<html>hello</html>", {}), "not as a language model"),
        ((200, {"hello": 1}, {}), "not as a language model"),
        ((200, [], {}), "not as a language model"),
        ((500, b"\xff\xfe", {}), "500"),
        ((418, ["a", 1], {}), "418"),
    ],
)
def test_what_no_repetition_mends_ends_the_run(tmp_path: Path, server: StubModel, said: Any, match: str) -> None:
    server.answer = lambda body: said
    with pytest.raises(UserError, match=match) as error:
        Run(tmp_path, server)(at_once=1)
    assert "\n" not in str(error.value) and len(server.asked) <= 6


# The key


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
def test_a_key_that_the_server_sends_back_is_written_nowhere(
    tmp_path: Path, server: StubModel, echo: str, monkeypatch: pytest.MonkeyPatch, lines: list[str]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    server.answer = lambda body: ECHOES[echo](f"Bearer {KEY}", body)
    run = Run(tmp_path, server, NOUNS[:2])
    said = ""
    try:
        run()
    except UserError as error:
        assert error.__cause__ is None and (error.__context__ is None or error.__suppress_context__)
        said = str(error)
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
    written = everything_written(tmp_path) + "\n".join([said, *lines]).encode()
    assert len(written) > 100
    for piece in pieces(KEY):
        assert piece not in written


def test_the_command_writes_the_key_nowhere(tmp_path: Path, server: StubModel) -> None:
    """Through the command, with its log and traceback, once right and once with a server that sends it back."""
    server.key = KEY
    run = Run(tmp_path, server)
    environment = {**os.environ, "MY_KEY": f" {KEY}\n"}
    command = [sys.executable, "-m", "workflow_scripts.compun.ask_captions", *run.argv(key="MY_KEY")]

    def call(log: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run([*command, "--log", tmp_path / log], cwd=ROOT, env=environment, capture_output=True)

    right = call("right.log")
    assert right.returncode == 0 and len(read_json(run.output)) == 6
    server.key, server.answer = None, lambda body: fault(418, f"Bearer {KEY}")
    (tmp_path / "nouns.txt").write_text("tea cup")
    wrong = call("wrong.log")
    assert wrong.returncode == 1 and "Traceback" in (tmp_path / "wrong.log").read_text()
    written = everything_written(tmp_path) + right.stdout + right.stderr + wrong.stdout + wrong.stderr
    assert not any(piece in written for piece in pieces(KEY))


@pytest.mark.parametrize("value", ["sk-a b-0123456789", "sk-ü-0123456789", "sk-0123\n456789", "sk-\x7f-0123456789"])
def test_a_broken_key_is_not_shown(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", value)
    with pytest.raises(UserError, match="OPENAI_API_KEY: holds a character that no key has") as error:
        read_key("OPENAI_API_KEY")
    assert "123456" not in str(error.value) and "456789" not in str(error.value)


def test_a_key_in_place_of_its_name_is_not_shown() -> None:
    with pytest.raises(UserError, match="never the key itself") as error:
        read_key(KEY)
    assert "0123" not in str(error.value) and error.value.__context__ is None


def test_a_word_that_is_no_secret_stays_in_captions(
    tmp_path: Path, server: StubModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "with")
    assert Run(tmp_path, server, NOUNS[:1])()["cricket bat"][0] == "Scene 1 with a cricket bat."


def test_a_key_in_the_open_is_warned_of(monkeypatch: pytest.MonkeyPatch, lines: list[str]) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    for address in ("http://127.0.0.1/v1", "http://localhost:1/v1", "https://api.example.org/v1"):
        Chat(address, "stub", "OPENAI_API_KEY")
    assert not lines
    Chat("http://api.example.org/v1", "stub", "OPENAI_API_KEY")
    assert len(lines) == 1 and "unencrypted" in lines[0] and KEY not in lines[0]


def test_addresses() -> None:
    for address in ("http://a:8080/v1", "http://a:8080/v1/", "http://a:8080/v1/chat/completions"):
        assert endpoint(address) == "http://a:8080/v1/chat/completions"
    for address in (
        "https://me:sk-secret@a/v1",
        "https://a/v1?key=sk-secret",
        "https://a/v1#sk-secret",
        "http://[sk-secret",
        "http://u:sk-secret/b@h/v1",
        "http://h:sk-secret/v1",
        "http://h:80:sk-secret/v1",
        "https://h/sk-secret@x/v1",
        "https://h/v1;sk-secret",
        "https://h/v1 sk-secret",
        " https://h/sk-secret",
        "https://h/\tsk-secret",
        "u:sk-secret@h/v1",
        "ftp://h/sk-secret",
    ):
        with pytest.raises(UserError, match="key by the environment alone") as error:
            endpoint(address)
        assert "sk-secret" not in str(error.value)
    for address in ("localhost:8080/v1", "ftp://a/v1", "v1", "http://"):
        with pytest.raises(UserError, match="no address of a language model"):
            endpoint(address)


def test_an_address_that_holds_the_key(monkeypatch: pytest.MonkeyPatch, lines: list[str]) -> None:
    secret = "sk+" + "s3cret/" * 3
    monkeypatch.setenv("OPENAI_API_KEY", secret)
    for address in (f"http://h/{secret}/v1", f"https://h/{quote(secret, safe='')}/v1"):
        with pytest.raises(UserError, match="holds the key") as error:
            Chat(address, "stub", "OPENAI_API_KEY")
        assert "s3cret" not in str(error.value)
    assert not lines
    # What is no secret may stand there.
    monkeypatch.setenv("OPENAI_API_KEY", "v1")
    assert Chat("https://h/v1", "stub", "OPENAI_API_KEY").url == "https://h/v1/chat/completions"


# Files


def texts(noun: str, n: int) -> list[str]:
    return [f"{noun} number {i}" for i in range(n)]


def test_a_file_alone(tmp_path: Path) -> None:
    run = Run(tmp_path, nouns=["Coffee grain", "goldfish"])
    file = tmp_path / "given.json"
    file.write_text(json.dumps({"coffee  grain": texts("coffee grain", 9), "goldfish": texts("fish", 5), "cat": ["x"]}))
    found = run(file=file)
    assert found == {"Coffee grain": texts("coffee grain", 7), "goldfish": texts("fish", 5)}
    summary = read_json(run.summary)
    assert summary["from_file"] == 2 and summary["asked"] is None and summary["not_among_the_nouns"] == ["cat"]
    assert summary["beyond_7_left_out"] == 2 and summary["without_the_noun"] == {"goldfish": 5}
    assert run(file=run.output) == found  # what it writes it reads


def test_texts_that_a_file_repeats_are_counted(tmp_path: Path) -> None:
    file = tmp_path / "given.json"
    file.write_text(json.dumps({"goldfish": ["orange scales", "a fin", "Orange  scales", "a tail", "a fin"]}))
    run = Run(tmp_path, nouns=["goldfish"])
    assert run(file=file, kind="descriptions") == {"goldfish": ["orange scales", "a fin", "a tail"]}
    assert read_json(run.summary)["repeated_left_out"] == 2


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".json", ".parquet"])
def test_tables(tmp_path: Path, suffix: str) -> None:
    rows = [{"compound": noun, "caption": text} for noun in NOUNS for text in texts(noun, 5)]
    table, path = pd.DataFrame(rows).sample(frac=1, random_state=0), tmp_path / f"given{suffix}"
    if suffix in (".csv", ".tsv"):
        table.to_csv(path, index=False, sep="\t" if suffix == ".tsv" else ",")
    elif suffix == ".parquet":
        table.to_parquet(path)
    else:
        table.to_json(path, orient="records", lines=suffix == ".jsonl")
    found = read_given(path, NOUNS, CAPTIONS, 5).texts
    assert list(found) == NOUNS
    assert all(found[noun] == table.loc[table["compound"] == noun, "caption"].tolist() for noun in NOUNS)


def test_the_model_is_asked_for_what_the_file_lacks(tmp_path: Path, server: StubModel, lines: list[str]) -> None:
    file = tmp_path / "given.json"
    file.write_text(json.dumps({noun: texts(noun, 5) for noun in NOUNS[:4]}))
    found = Run(tmp_path, server)(file=file)
    assert sorted(server.nouns()) == sorted(NOUNS[4:]) and found["goldfish"] == texts("goldfish", 5)
    assert list(found) == NOUNS and any(f"4 from {file}, 0 answered before, 2 to ask" in line for line in lines)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"goldfish": "a caption"}', "'goldfish': not a list"),
        ('{"goldfish": ["a", "b", "c"]}', "'goldfish': 3 of 5"),
        ('{"goldfish": ["a", "b", "c", "d", 5]}', "other things than texts"),
        ('{"goldfish": ["a", "b", "c", "d", "A"]}', "'goldfish': 4 of 5"),
        ('{"goldfish": ["a", "b", "c", "d", ""]}', "'goldfish': a text is empty"),
        ('{"goldfish": ["a"], "goldfish": ["b"]}', "'goldfish' stands there twice"),
        ('{"Goldfish": ["a"], "GOLDFISH": ["b"]}', "both 'Goldfish' and 'GOLDFISH' may be 'goldfish'"),
        ('{"lab coat": ["a", "b", "c", "d", "e"]}', "no captions of 1 of 1 nouns"),
        ('{"goldfish": [', "not JSON"),
        ("3", "must be as"),
        ('["a"]', "record 1: is no object|no column"),
        ('[{"compound": "goldfish", "caption": null}]', "record 1: without a compound or a caption"),
    ],
)
def test_a_bad_file_is_named(tmp_path: Path, content: str, said: str) -> None:
    file = tmp_path / "given.json"
    file.write_text(content)
    with pytest.raises(UserError, match=f"{re.escape(str(file))}: .*({said})") as error:
        Run(tmp_path, nouns=["goldfish"])(file=file)
    assert "\n" not in str(error.value)


def test_a_file_that_is_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "given.json").write_bytes(b'{"goldfish": ["\xff"]}')
    with pytest.raises(UserError, match="given.json: not UTF-8"):
        Run(tmp_path, nouns=["goldfish"])(file=tmp_path / "given.json")


# Nouns


def compounds(path: Path, **complete: bool) -> Path:
    table = pd.DataFrame({"compound": [name.replace("_", " ") for name in complete], "complete": complete.values()})
    table[["first", "second", "kind", "n1", "n2"]] = None
    write_table(table.astype({name: "str" for name in ("first", "second", "kind", "n1", "n2")}), path, COMPOUNDS)
    return path


def test_nouns_of_the_stage_and_of_a_user(tmp_path: Path) -> None:
    path = compounds(tmp_path / "compounds.parquet", snow_ball=True, snowball=False, goldfish=True)
    assert read_nouns(path) == (["snow ball", "goldfish"], 1)
    (tmp_path / "a.csv").write_text("compound,first,second\nsnow  ball,snow,ball\ntea cup,tea,cup\n")
    assert read_nouns(tmp_path / "a.csv") == (["snow ball", "tea cup"], 0)
    (tmp_path / "a.txt").write_text("crane\n\ngreat  white shark\n")
    assert read_nouns(tmp_path / "a.txt") == (["crane", "great white shark"], 0)


def test_bad_lists_of_nouns(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="nothing to caption: of all 1 compounds an image is missing"):
        read_nouns(compounds(tmp_path / "compounds.parquet", goldfish=False))
    (tmp_path / "compounds.parquet").write_bytes(b"nonsense")
    with pytest.raises(UserError, match="not a readable Parquet file"):
        read_nouns(tmp_path / "compounds.parquet")
    (tmp_path / "a.txt").write_text("\n")
    with pytest.raises(UserError, match="no compounds"):
        read_nouns(tmp_path / "a.txt")


def test_counts_and_options_are_checked(tmp_path: Path, server: StubModel) -> None:
    run = Run(tmp_path, server)
    for count in (0, 8):
        with pytest.raises(UserError, match=f"--count {count}: captions of a noun are 1 to 7"):
            run(count=count)
    with pytest.raises(UserError, match="--model"):
        run(model=None)
    assert not server.asked and chat.ATTEMPTS > 1
