"""A language model is asked once for each compound; a killed run resumes, and the key is written nowhere."""

import functools
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import httpx
import openai
import pytest

from compclip.compun import ask_captions
from compclip.compun.ask_captions import AskCaptions, BadAnswer, read_answer
from compclip.core.errors import UserError

KEY = "sk-" + "secret" * 4
NOUNS = ("snow ball", "goldfish", "lab coat")
GOOD = '["one {0}", "two {0}"]'


def completion(text: str) -> httpx.Response:
    return httpx.Response(200, json={"model": "stub", "choices": [{"message": {"role": "assistant", "content": text}}]})


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Ask a server that answers by ``answer(noun, number of the request)``; return the nouns that it was asked for."""
    (tmp_path / "list.csv").write_text("compound\n" + "\n".join(NOUNS))
    monkeypatch.setenv("TEST_KEY", KEY)

    def run(answer: Callable[[str, int], httpx.Response]) -> list[str]:
        asked: list[str] = []

        def handle(request: httpx.Request) -> httpx.Response:
            body = json.loads(request.content)
            assert request.headers["Authorization"] == f"Bearer {KEY}"
            assert (body["model"], body["temperature"], body["top_p"]) == ("stub", 0.1, 1)
            asked.append(body["messages"][0]["content"].split('"')[1])
            return answer(asked[-1], len(asked))

        client = functools.partial(openai.OpenAI, http_client=httpx.Client(transport=httpx.MockTransport(handle)))
        monkeypatch.setattr(openai, "OpenAI", lambda **more: client(**more | {"max_retries": 0}))
        step = AskCaptions(
            compounds=tmp_path / "list.csv", texts=tmp_path / "texts.json", model="stub", key="TEST_KEY", count=2,
            base_url="http://127.0.0.1:1/v1",
        )  # fmt: skip
        try:
            ask_captions.main(step)
        finally:
            assert not [path for path in tmp_path.iterdir() if KEY in path.read_text()]
        return asked

    return run


def test_each_compound_is_asked_for_once(run: Callable[..., list[str]], tmp_path: Path) -> None:
    assert run(lambda noun, _: completion(GOOD.format(noun))) == list(NOUNS)
    texts = json.loads((tmp_path / "texts.json").read_text())
    assert texts == {noun: [f"one {noun}", f"two {noun}"] for noun in NOUNS}
    assert run(lambda noun, _: completion("")) == []


def test_an_interrupted_run_resumes(run: Callable[..., list[str]], tmp_path: Path) -> None:
    def answer(noun: str, number: int) -> httpx.Response:
        return completion(GOOD.format(noun)) if number < 3 else httpx.Response(503, text=f"busy, {KEY}")

    with pytest.raises(UserError, match=r"http://127.0.0.1:1/v1: .*503.*texts so far are kept") as caught:
        run(answer)
    assert KEY not in str(caught.value) and list(json.loads((tmp_path / "texts.json").read_text())) == list(NOUNS[:2])
    assert run(lambda noun, _: completion(GOOD.format(noun))) == [NOUNS[2]]


def test_a_faulty_answer_is_asked_for_again_and_the_third_ends_the_run(run: Callable[..., list[str]]) -> None:
    with pytest.raises(UserError, match="stub: 'snow ball': invalid answers .1 different texts of 2"):
        run(lambda *_: completion('["x"]'))
    assert run(lambda noun, number: completion("no" if number == 1 else GOOD.format(noun))) == [NOUNS[0], *NOUNS]


def test_a_key_that_the_server_quotes_is_removed(run: Callable[..., list[str]], tmp_path: Path) -> None:
    run(lambda *_: completion(f'["a {KEY}", "b"]'))
    assert json.loads((tmp_path / "texts.json").read_text())[NOUNS[0]] == ["a ***", "b"]
    (tmp_path / "texts.json").unlink()
    with pytest.raises(UserError, match="the server rejects the key in TEST_KEY; run again") as caught:
        run(lambda *_: httpx.Response(401, json={"error": {"message": f"wrong key {KEY[:8]}"}}))
    assert KEY[:8] not in str(caught.value)


@pytest.mark.parametrize(
    ("answer", "texts"),
    [
        ('["a", "b"]', ["a", "b"]),
        ('Here:\n```json\n["a ", "b", "c"]\n```', ["a", "b"]),
        ('<think>["x", "y"]</think>["a", "b"]', ["a", "b"]),
        ('["a"]', None),
        ('["a", "A"]', None),
        ('["a", ""]', None),
        ('["a", 3]', None),
        ('{"captions": 3}', None),
        ("", None),
    ],
)
def test_answers(answer: str, texts: list[str] | None) -> None:
    if texts:
        assert read_answer(answer, 2) == texts
    else:
        with pytest.raises(BadAnswer):
            read_answer(answer, 2)


@pytest.mark.parametrize(
    "option", [f"--key={KEY}", f"--base-url=http://me:{KEY}@h/v1", f"--base-url=https://h?k={KEY}"]
)
def test_a_key_in_an_option_is_refused_and_not_shown(option: str) -> None:
    command = [sys.executable, "-m", "compclip", "compun-texts", "--compounds", "a.csv", "--model", "m"]
    command += ["--texts", "t.json", option]
    done = subprocess.run(command, capture_output=True, text=True)
    printed = done.stdout + done.stderr
    assert done.returncode and "give the key by the environment only" in printed and KEY not in printed
