"""A served model behind a stub server: orders, answers, retries, the cache, and a key that stays
secret.
"""

import base64
import hashlib
import io
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.client import BadStatusLine
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from pydantic import ValidationError

from compclip.core.errors import UserError
from compclip.core.identity.code import ROOT
from compclip.core.settings import plugins
from compclip.judge.chooser import Asked, Context, JudgedImage, check_chances, load_kind
from compclip.judge.kinds import served as kind
from tests.loopback import Handler, serving

SECRET = "sk-a-key-that-nobody-may-see"
TEXTS = ["a red bird", "a blue bird", "a green bird", "a very large yellow bird"]
# Returns the answer to a request, or the arguments of Handler.answer.
Model = Callable[["Request"], Any]


class Request:
    """What a stub was asked: the numbered texts, the image and the headers."""

    def __init__(self, path: str, headers: Any, content: dict[str, Any]) -> None:
        self.path, self.headers, self.content = path, headers, content
        image, text = content["messages"][0]["content"]
        self.question = text["text"]
        self.texts = re.findall(r"^\d+\. (.*)$", self.question, re.MULTILINE)
        self.png = base64.b64decode(
            image["image_url"]["url"].removeprefix("data:image/png;base64,")
        )

    @property
    def chance(self) -> float:
        """A number from 0 to 1 that depends on the image and the order of the texts alone."""
        digest = hashlib.sha256(self.png + self.question.encode()).digest()
        return int.from_bytes(digest[:8], "big") / 2**64

    def name(self, text: str) -> str:
        return f"Answer: {self.texts.index(text) + 1}"


class Stub:
    """A server of a model; ``requests`` are those that it got, in order."""

    def __init__(self, model: Model) -> None:
        self.model, self.url = model, ""
        self.requests: list[Request] = []


@contextmanager
def stub(model: Model) -> Iterator[Stub]:
    state = Stub(model)

    class Answers(Handler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            request = Request(self.path, self.headers, json.loads(body))
            state.requests.append(request)
            result = state.model(request)
            if result is None:  # cut the connection
                self.close_connection = True
                return
            if isinstance(result, str):
                result = {"choices": [{"message": {"content": result}, "finish_reason": "stop"}]}
            if isinstance(result, dict):
                result = (200, json.dumps(result).encode())
            self.answer(*result)

        do_GET = do_POST

    with serving(Answers) as address:
        state.url = f"{address}/v1"
        yield state


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait briefly between tries, and have no key."""
    monkeypatch.setattr(kind, "FIRST_WAIT", 0.01)
    monkeypatch.delenv("COMPCLIP_API_KEY", raising=False)


def opened(server: Stub, folder: Path, seed: int = 0, **settings: Any) -> kind.ServedChooser:
    values = {"url": server.url, "model": "stub", "workers": 2, **settings}
    chooser = kind.open_chooser(
        kind.Settings.model_validate(values), Context(cache=folder / "cache", seed=seed)
    )
    assert isinstance(chooser, kind.ServedChooser)
    return chooser


def pictures(folder: Path, n: int) -> list[JudgedImage]:
    """Return images of different bytes."""
    folder.mkdir(exist_ok=True)
    for number in range(n):
        pixels = np.full((4, 6, 3), (number % 256, number // 256, 7), np.uint8)
        Image.fromarray(pixels).save(folder / f"{number}.png")
    return [JudgedImage(folder / f"{number}.png") for number in range(n)]


def first(request: Request) -> str:
    return "Answer: 1"


def longest(request: Request) -> str:
    return request.name(max(request.texts, key=len))


# Answers


@pytest.mark.parametrize(
    ("answer", "number"),
    [
        ("2", 2),
        (" 2.\n", 2),
        ("Answer: 2.", 2),
        ("**2**", 2),
        ("**Answer:** 2", 2),
        ("Answer = `2`", 2),
        ('{"answer": 2}', 2),
        ('{"answer": "2"}', 2),
        ("The answer is 2.", 2),
        ("Answer: 2, because 1 and 3 are red.", 2),
        ("1 is red and 3 has two wings.\nAnswer: 2", 2),
        ("<think>Is it 1? Or 3? Answer: 3</think>\n2", 2),
        ("Perhaps 1, perhaps 3.\n</think>Answer: 2", 2),  # some servers omit the first mark
        ("(2)", 2),
        ("\\boxed{2}", 2),
        ("2 … 2", 2),
    ],
)
def test_a_number_is_read_from_an_answer(answer: str, number: int) -> None:
    assert kind.chosen_text(answer, TEXTS) == TEXTS[number - 1]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("", "no number"),
        ("The second?", "no number"),
        ("The 2nd.", "no number"),
        ("2.5", "no number"),
        ("-2", "no number"),
        ("Answer: -2", "no number"),
        ("Answer: 2.5", "no number"),
        ("<think>It is 2, since", "no number"),  # no more tokens
        ("1" * 5000, "no number"),
        ("1 or 2", "several numbers"),
        ("Answer: 1 or 2", "several numbers"),
        ("Answer: 1, 2", "several numbers"),
        ("Answer: 1. No, wait. Answer: 2", "several numbers"),
        ("0", "number out of range"),
        ("5", "number out of range"),
        ("999999999", "number out of range"),
        ("refused", "refused"),
        ("beyond the context", "beyond the context"),
    ],
)
def test_an_answer_without_one_number_is_unusable(answer: str, reason: str) -> None:
    with pytest.raises(kind.Unusable, match=f"^{reason}$"):
        kind.chosen_text(answer, TEXTS)


# Orders


@pytest.mark.parametrize("n_texts", [2, 3, 5, 8])
def test_in_as_many_orders_as_texts_each_text_has_each_position(n_texts: int) -> None:
    texts = [f"text {number}" for number in range(n_texts)]
    orders = kind.text_orders(texts, n_texts, 0, "digest")
    for position in range(n_texts):
        assert sorted(order[position] for order in orders) == texts
    # More orders would repeat these.
    assert kind.text_orders(texts, 99, 0, "digest") == orders


def test_fewer_orders_spread_positions_evenly() -> None:
    texts = [f"text {number}" for number in range(8)]
    for n in (2, 4):
        orders = kind.text_orders(texts, n, 0, "digest")
        for text in texts:
            positions = sorted(order.index(text) for order in orders)
            assert set(np.diff(positions)) == {8 // n}


def test_orders_depend_on_the_content_alone() -> None:
    orders = kind.text_orders(TEXTS, 2, 0, "digest")
    for given in itertools.permutations(TEXTS):
        assert kind.text_orders(given, 2, 0, "digest") == orders
    assert len({str(kind.text_orders(TEXTS, 2, seed, "digest")) for seed in range(9)}) > 3
    assert len({str(kind.text_orders(TEXTS, 2, 0, str(image))) for image in range(9)}) > 3


def test_an_own_text_listed_first_stands_in_every_position_equally_often() -> None:
    n = 4000
    counts = np.zeros(4)
    for image in range(n):
        [order] = kind.text_orders(TEXTS, 1, 0, str(image))
        counts[order.index(TEXTS[0])] += 1
    # Five standard errors of a fraction of 1/4.
    assert abs(counts / n - 0.25).max() < 5 * np.sqrt(0.25 * 0.75 / n)


# Choices


def test_a_text_is_chosen_wherever_it_stands(tmp_path: Path) -> None:
    images = pictures(tmp_path, 3)
    with stub(longest) as server:
        chances = opened(server, tmp_path, orders=3).choose(images, [TEXTS, TEXTS[::-1], TEXTS])
    assert [row.tolist() for row in chances] == [[0, 0, 0, 1], [1, 0, 0, 0], [0, 0, 0, 1]]
    assert {request.path for request in server.requests} == {"/v1/chat/completions"}
    assert {tuple(sorted(request.texts)) for request in server.requests} == {tuple(sorted(TEXTS))}


def test_a_preference_for_the_first_position_is_chance_in_all_orders(tmp_path: Path) -> None:
    images = pictures(tmp_path, 5)
    with stub(first) as server:
        chooser = opened(server, tmp_path, orders=4)
        chances = chooser.choose(images, [TEXTS] * 5)
        assert len(server.requests) == 20
        check_chances(chooser, chances, [TEXTS] * 5)
    assert np.allclose(chances, 0.25)


def test_a_preference_for_the_first_position_is_evened_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a trial with another stub: it knows the own text of a fraction ``truth`` of the images,
    and in 30 % of calls takes the first position instead.

    For truth .542, the expected accuracy is .7 truth + .3 = .68 if the own of two texts stands
    first, and .7 truth + .3 / 2 = .53 otherwise. The tolerance is four standard errors of 400
    images, 0.1.
    """
    n, truth, preference = 400, 0.542, 0.3
    images = pictures(tmp_path, n)
    options = [[f"own {number}", f"other {number}"] for number in range(n)]

    def model(request: Request) -> str:
        if request.chance < preference:
            return "1"
        own, other = sorted(request.texts, reverse=True)
        # The same for all orders of an image.
        knows = int.from_bytes(hashlib.sha256(request.png).digest()[:8], "big") / 2**64 < truth
        return request.name(own if knows else other)

    with stub(model) as server:
        drawn = opened(server, tmp_path, orders=1).choose(images, options)
        balanced = opened(server, tmp_path, orders=2).choose(images, options)
        # The second run asks only the further order.
        assert len(server.requests) == 2 * n
        monkeypatch.setattr(kind, "text_orders", lambda texts, *_: [list(texts)])
        own_first = opened(server, tmp_path, orders=1).choose(images, options)
    tolerance = 4 * np.sqrt(0.25 / n)
    evened_out = 0.7 * truth + 0.3 / 2
    for chances, expected in (
        (drawn, evened_out),
        (balanced, evened_out),
        (own_first, 0.7 * truth + 0.3),
    ):
        assert abs(np.mean([row[0] for row in chances]) - expected) < tolerance
    assert np.mean(own_first, axis=0)[0] > np.mean(balanced, axis=0)[0] + 0.1


def test_chances_follow_the_texts_and_not_their_positions(tmp_path: Path) -> None:
    """The given order changes no call: the own text, which is listed first, is not revealed."""
    images = pictures(tmp_path, 40)
    with stub(lambda request: str(1 + int(request.chance * 4))) as server:
        chooser = opened(server, tmp_path)
        chances = chooser.choose(images, [TEXTS] * 40)
        assert len(server.requests) == 80
        backwards = chooser.choose(images, [TEXTS[::-1]] * 40)
        assert len(server.requests) == 80
    assert np.array_equal(np.array(chances)[:, ::-1], backwards)
    assert len(np.unique(chances)) == 3  # neither, one or both orders


def test_images_are_sent_as_people_see_them_and_small(tmp_path: Path) -> None:
    turned = Image.new("RGB", (400, 100), "red")
    turned.putpixel((0, 0), (0, 0, 0))
    exif = Image.Exif()
    exif[274] = 6  # turn by a quarter
    turned.save(tmp_path / "a.png", exif=exif)
    with stub(first) as server:
        opened(server, tmp_path, orders=1, max_side=200).choose(
            [JudgedImage(tmp_path / "a.png")], [TEXTS]
        )
        opened(server, tmp_path, orders=1).choose([JudgedImage(tmp_path / "a.png")], [TEXTS])
    sizes = [Image.open(io.BytesIO(request.png)).size for request in server.requests]
    assert sizes == [(50, 200), (100, 400)]


def test_a_request_has_what_was_set(tmp_path: Path) -> None:
    images = pictures(tmp_path, 1)
    with stub(first) as server:
        opened(server, tmp_path, orders=1).choose(images, [["a\nbird", "a   cat"]])
        opened(server, tmp_path, orders=1, temperature=None).choose(images, [TEXTS])
    default, newest = (request.content for request in server.requests)
    assert default["model"] == "stub" and default["temperature"] == 0
    assert sorted(server.requests[0].texts) == ["a bird", "a cat"]
    assert "temperature" not in newest and "Authorization" not in server.requests[0].headers


# Answers that cannot be used


def test_unusable_answers_are_counted_and_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    images = pictures(tmp_path, 5)
    refusal = {"choices": [{"message": {"content": None, "refusal": "I cannot help."}}]}
    filtered = {"choices": [{"message": {"content": "Ans"}, "finish_reason": "content_filter"}]}
    too_long = (400, b'{"error": {"code": "context_length_exceeded"}}')
    blocked = (400, b'{"error": {"code": "content_policy_violation"}}')
    results = dict(enumerate([refusal, filtered, too_long, blocked]))

    def model(request: Request) -> Any:
        number = int(np.asarray(Image.open(io.BytesIO(request.png)))[0, 0, 0])
        return results.get(number, "It might be 1 or 2")

    with stub(model) as server, caplog.at_level("INFO"):
        chances = opened(server, tmp_path).choose(images, [TEXTS] * 5)
        assert not np.any(chances)
        [message] = [record.getMessage() for record in caplog.records if record.levelno > 20]
        counts = "10 of 10 answers unusable: 6 refused, 2 beyond the context, 2 several numbers"
        assert message == f"stub: {counts}; first: {images[0].path}"
        # They are answers, too: nothing is asked again.
        opened(server, tmp_path).choose(images, [TEXTS] * 5)
        assert len(server.requests) == 10


def test_a_choice_with_one_usable_answer_is_answered(tmp_path: Path) -> None:
    images = pictures(tmp_path, 1)
    with stub(lambda r: longest(r) if len(server.requests) == 1 else "Sorry.") as server:
        chooser = opened(server, tmp_path, orders=4, workers=1)
        [chances] = chooser.choose(images, [TEXTS])
    assert chances.tolist() == [0, 0, 0, 1]


# Servers that fail


def failing(times: int, result: Any) -> Model:
    """Return a model that fails at first."""
    numbers = itertools.count()
    return lambda request: result() if next(numbers) < times else longest(request)


@pytest.mark.parametrize(
    "result",
    [
        lambda: (500, b"oops"),
        lambda: (503, b"loading"),
        lambda: (429, b"slowly"),
        lambda: (429, b"slowly", {"Retry-After": "0"}),
        lambda: (429, b"slowly", {"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}),
        lambda: None,
        lambda: time.sleep(0.6),
        lambda: (200, b'{"choices": [{"mess'),
        lambda: (200, b'{"choices": []}'),
        lambda: (200, b'{"choices": [', {"Content-Length": 500}),
    ],
    ids="500 503 429 429-at-once 429-date cut slow half empty short".split(),
)
def test_a_call_that_fails_for_a_moment_is_tried_again(tmp_path: Path, result: Any) -> None:
    images = pictures(tmp_path, 1)
    with stub(failing(2, result)) as server:
        chooser = opened(server, tmp_path, orders=1, timeout=0.3, retries=2)
        [chances] = chooser.choose(images, [TEXTS])
        assert chances[3] == 1 and len(server.requests) == 3


def test_retry_after_is_obeyed(tmp_path: Path) -> None:
    images = pictures(tmp_path, 1)
    with stub(failing(1, lambda: (429, b"", {"Retry-After": "1"}))) as server:
        start = time.monotonic()
        opened(server, tmp_path, orders=1).choose(images, [TEXTS])
        assert time.monotonic() - start > 1


@pytest.mark.parametrize(
    ("result", "message", "requests"),
    [
        ((500, b"oops"), r"status 500 in each of 3 tries; check the server .*are kept$", 3),
        (None, r"Remote end closed connection .* in each of 3 tries", 3),
        ((200, b"<html>Hello"), "the reply is not an answer of a chat model in each of 3 tries", 3),
        ((429, b"", {"Retry-After": "700"}), "rate limited; retry after 700 s; answers", 1),
        ((400, b"unknown parameter\n  x"), r"status 400 \(unknown parameter x\); correct", 1),
        ((404, b"no such model"), r"status 404 \(no such model\); correct url, model", 1),
        ((401, b"sk-a"), "status 401; set the environment variable COMPCLIP_API_KEY", 1),
        ((403, b"sk-a"), "status 403; set the environment variable COMPCLIP_API_KEY", 1),
        ((302, b"", {"Location": "/v2"}), r"status 302 \(\); set url to the address", 1),
    ],
)
def test_a_server_that_fails_is_an_error_in_one_line(
    tmp_path: Path, result: Any, message: str, requests: int
) -> None:
    images = pictures(tmp_path, 3)
    with stub(lambda request: result) as server:
        chooser = opened(server, tmp_path, workers=1, retries=2)
        with pytest.raises(UserError, match=message) as error:
            chooser.choose(images, [TEXTS] * 3)
        assert str(error.value).startswith(f"{server.url}/chat/completions: ")
        assert "\n" not in str(error.value) and "sk-a" not in str(error.value)
        assert len(server.requests) == requests


def test_a_server_that_is_not_there_is_an_error_in_one_line(tmp_path: Path) -> None:
    images = pictures(tmp_path, 1)
    with stub(first) as server:
        pass
    with pytest.raises(UserError, match="Connection refused.* in each of 2 tries"):
        opened(server, tmp_path, retries=1).choose(images, [TEXTS])


@pytest.mark.parametrize("is_first_refused", [True, False])
def test_a_failed_call_ends_the_retries_of_others(tmp_path: Path, is_first_refused: bool) -> None:
    images = pictures(tmp_path, 2)

    def model(request: Request) -> Any:
        is_first = np.asarray(Image.open(io.BytesIO(request.png)))[0, 0, 0] == 0
        if is_first == is_first_refused:
            time.sleep(0.2)
            return (400, b"no")
        return (429, b"", {"Retry-After": "60"})

    with stub(model) as server:
        start = time.monotonic()
        with pytest.raises(UserError, match="status 400"):
            opened(server, tmp_path, orders=1).choose(images, [TEXTS] * 2)
        assert time.monotonic() - start < 20


@pytest.mark.parametrize("content", [None, b"no image"])
def test_an_image_that_cannot_be_read_is_an_error(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "a.png"
    if content:
        file.write_bytes(content)
    with stub(first) as server:
        with pytest.raises(UserError, match=re.escape(str(file))):
            opened(server, tmp_path).choose([JudgedImage(file)], [TEXTS])
        assert not server.requests


# The key


def everything_written(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.rglob("*") if file.is_file())


@pytest.mark.parametrize("status", [200, 400, 401, 403, 404, 429, 500, 302])
def test_the_key_is_sent_and_appears_nowhere(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    status: int,
) -> None:
    """Not even if the server repeats it."""
    monkeypatch.setenv("MY_KEY", f" {SECRET}\n")
    images = pictures(tmp_path, 1)
    echo = f"Your key is {SECRET}."

    def model(request: Request) -> Any:
        assert request.headers["Authorization"] == f"Bearer {SECRET}"
        return echo if status == 200 else (status, echo.encode(), {"Location": f"/{SECRET}"})

    text = ""
    with stub(model) as server, caplog.at_level("DEBUG"):
        chooser = opened(server, tmp_path, key_env="MY_KEY", retries=1)
        try:
            chooser.choose(images, [TEXTS])
        except UserError:
            text = traceback.format_exc()
    assert len(server.requests) > 0 and (status == 200) == (text == "")
    described = [repr(chooser), str(vars(chooser)), str(vars(chooser.client)), chooser.hash]
    assert SECRET not in text + caplog.text + "".join(described)
    assert SECRET.encode() not in everything_written(tmp_path)


def encoded(text: str, prefix: str) -> str:
    """Return a text with the code of each character, as JSON or an address may have it."""
    return "".join(f"{prefix}{ord(character):0{4 if 'u' in prefix else 2}x}" for character in text)


DISGUISES = {
    "json": encoded(SECRET, "\\u"),
    "nested": encoded(SECRET, "\\\\u"),
    "percent": encoded(SECRET, "%"),
    "spaced": " ".join(SECRET),
    "masked": SECRET[:12] + "****",
}


@pytest.mark.parametrize("disguise", DISGUISES)
def test_a_message_with_a_part_of_the_key_is_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, disguise: str
) -> None:
    monkeypatch.setenv("COMPCLIP_API_KEY", SECRET)
    message = f'{{"error": "no model for {DISGUISES[disguise]}"}}'.encode()
    with stub(lambda request: (400, message)) as server:
        chooser = opened(server, tmp_path)
        with pytest.raises(UserError, match=r"status 400 \(hidden: contains a part of the API key"):
            chooser.choose(pictures(tmp_path, 1), [TEXTS])


def test_the_key_is_removed_from_an_answer_with_escapes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMPCLIP_API_KEY", SECRET)
    content = f"{DISGUISES['json']} Answer: 1"
    reply = f'{{"choices": [{{"message": {{"content": "{content}"}}}}]}}'.encode()
    with stub(lambda request: (200, reply)) as server:
        [chances] = opened(server, tmp_path, orders=4).choose(pictures(tmp_path, 1), [TEXTS])
    assert chances.tolist() == [0.25] * 4
    assert SECRET.encode() not in everything_written(tmp_path)


def test_an_answer_with_a_part_of_the_key_is_unusable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMPCLIP_API_KEY", SECRET)
    with stub(lambda request: f"{DISGUISES['percent']} Answer: 1") as server:
        [chances] = opened(server, tmp_path).choose(pictures(tmp_path, 1), [TEXTS])
    assert not chances.any()
    assert DISGUISES["percent"].encode() not in everything_written(tmp_path)


@pytest.mark.parametrize("error", [BadStatusLine(SECRET), OSError(f"no route for {SECRET}")])
def test_a_connection_error_does_not_show_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setenv("COMPCLIP_API_KEY", SECRET)

    def post(client: kind.Client, body: bytes) -> kind.Reply:
        raise error

    monkeypatch.setattr(kind.Client, "_post", post)
    chooser = opened(Stub(first), tmp_path, url="http://localhost:1", retries=0)
    with pytest.raises(UserError, match=r"\*\*\* in each of 1 tries") as fault:
        chooser.choose(pictures(tmp_path, 1), [TEXTS])
    assert SECRET not in "".join(traceback.format_exception(fault.value))


@pytest.mark.parametrize(
    "url",
    [
        f"http://a/{SECRET}/é",
        f"http://{SECRET}.é/v1",
        f"http://{SECRET}..a/v1",
        f"http://{SECRET * 3}/v1",
    ],
)
def test_an_address_that_cannot_be_sent_is_refused_unseen(url: str) -> None:
    with pytest.raises(UserError, match="url: not a valid address in ASCII; percent-en") as error:
        plugins.settings(load_kind("served"), {"url": url, "model": "a"})
    assert SECRET not in str(error.value)


@pytest.mark.parametrize("placeholder", ["1", "EMPTY", "x"])
def test_a_placeholder_of_a_key_does_not_change_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, placeholder: str
) -> None:
    monkeypatch.setenv("COMPCLIP_API_KEY", placeholder)
    images = pictures(tmp_path, 1)
    with stub(first) as server:
        [chances] = opened(server, tmp_path, orders=4).choose(images, [TEXTS])
        assert server.requests[0].headers["Authorization"] == f"Bearer {placeholder}"
    assert chances.tolist() == [0.25] * 4


@pytest.mark.parametrize("value", [f"{SECRET}\nHost: x", f"{SECRET}é", f"{SECRET}\x00"])
def test_a_key_with_strange_characters_is_refused_unseen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    if "\x00" not in value:  # which no variable can have
        monkeypatch.setenv("COMPCLIP_API_KEY", value)
    else:
        monkeypatch.setattr(os, "environ", {"COMPCLIP_API_KEY": value})
    images = pictures(tmp_path, 1)
    with stub(first) as server:
        with pytest.raises(
            UserError, match=r"^\$COMPCLIP_API_KEY: has characters that keys cannot"
        ) as error:
            opened(server, tmp_path).choose(images, [TEXTS])
        trace = "".join(traceback.format_exception(error.value))
        assert SECRET not in trace and not server.requests


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    monkeypatch.setenv("COMPCLIP_API_KEY", SECRET)
    images = pictures(tmp_path, 1)
    location = {}
    with stub(first) as other, stub(lambda request: (status, b"", location)) as server:
        location["Location"] = other.url.replace("127.0.0.1", "localhost")
        with pytest.raises(UserError, match=f"status {status}"):
            opened(server, tmp_path).choose(images, [TEXTS])
    assert not other.requests


def test_a_password_in_the_address_is_refused_unseen() -> None:
    values = {"url": f"https://me:{SECRET}@example.org/v1", "model": "a"}
    with pytest.raises(ValidationError, match="has a user or password") as error:
        kind.Settings.model_validate(values)
    assert SECRET not in str(error.value)
    with pytest.raises(UserError, match="url: has a user or password; .*key_env") as other:
        plugins.settings(load_kind("served"), values)
    assert SECRET not in str(other.value)


# The cache


def test_a_killed_run_asks_nothing_twice(tmp_path: Path) -> None:
    """The first run is killed while a request waits for its answer; only this one is repeated."""
    images = pictures(tmp_path, 6)
    reached = threading.Event()

    def model(request: Request) -> Any:
        if len(server.requests) == 8 and not reached.is_set():
            reached.set()
            time.sleep(60)
        return longest(request)

    program = (
        "import sys; from pathlib import Path; from tests.judge import test_served as test;"
        "server = test.Stub(None); server.url = sys.argv[1]; folder = Path(sys.argv[2]);"
        "images = test.pictures(folder, 6);"
        "test.opened(server, folder, workers=1).choose(images, [test.TEXTS] * 6)"
    )
    with stub(model) as server:
        command = [sys.executable, "-c", program, server.url, str(tmp_path)]
        process = subprocess.Popen(command, cwd=ROOT)
        assert reached.wait(60)
        process.send_signal(signal.SIGKILL)
        process.wait()
        answered = [(r.png, r.question) for r in server.requests[:7]]
        chances = opened(server, tmp_path, workers=1).choose(images, [TEXTS] * 6)
        counts = Counter((r.png, r.question) for r in server.requests)
    assert np.array(chances)[:, 3].tolist() == [1] * 6
    assert len(counts) == 12 and counts.total() == 13
    assert all(counts[request] == 1 for request in answered)


def test_equal_choices_are_asked_once(tmp_path: Path) -> None:
    [image] = pictures(tmp_path, 1)
    (tmp_path / "copy.png").write_bytes(image.path.read_bytes())
    with stub(longest) as server:
        images = [image, JudgedImage(tmp_path / "copy.png")]
        chances = opened(server, tmp_path).choose(images, [TEXTS, TEXTS[::-1]])
        assert len(server.requests) == 2
    assert chances[0].tolist() == chances[1].tolist()[::-1]


def test_the_hash_covers_what_decides_an_answer(tmp_path: Path) -> None:
    server = Stub(first)
    server.url = "http://localhost:1"
    plain = opened(server, tmp_path).hash
    for settings in ({"model": "b"}, {"orders": 3}, {"max_side": 99}, {"temperature": 1}):
        assert opened(server, tmp_path, **settings).hash != plain
    assert opened(server, tmp_path, seed=1).hash != plain
    harmless = {"workers": 9, "timeout": 1, "retries": 0, "price": 1, "limit": 9, "key_env": "A"}
    server.url = "https://example.org"
    assert opened(server, tmp_path, **harmless).hash == plain


# Before a run


def test_more_calls_than_the_limit_are_refused_before_the_first(tmp_path: Path) -> None:
    images = pictures(tmp_path, 3)
    with stub(longest) as server:
        chooser = opened(server, tmp_path, limit=5)
        with pytest.raises(UserError, match="^stub: 6 calls, more than limit: 5; raise limit"):
            chooser.choose(images, [TEXTS] * 3)
        assert not server.requests
        # Kept answers do not count, calls of the same judge do.
        chooser = opened(server, tmp_path, limit=5)
        chooser.choose(images[:2], [TEXTS] * 2)
        with pytest.raises(UserError, match="6 calls"):
            chooser.choose(images, [TEXTS] * 3)
        opened(server, tmp_path, limit=2).choose(images, [TEXTS] * 3)


def test_the_preview_names_calls_time_and_cost() -> None:
    values = {
        "url": "http://localhost",
        "model": "a",
        "price": 0.01,
        "workers": 10,
        "limit": 12_000,
    }
    settings = kind.Settings.model_validate(values)
    assert kind.preview(settings, Asked(3000, 4000, 1000)) == (
        "a: at most 12,000 calls (4,000 choices in 2 orders, 4,000 in one), about 1.0 h if a call "
        "takes 3 s, cost about 120.00"
    )
    assert kind.preview(settings, Asked(3000, 4001, 1000)).endswith(
        "; more than limit: 12,000, so the run would ask nothing"
    )


def test_before_prompts_are_listed_no_number_of_calls_is_named() -> None:
    settings = kind.Settings.model_validate({"url": "http://localhost", "model": "a"})
    assert kind.preview(settings, None) == (
        "a: calls are counted when the run has made prompts.parquet"
    )


def test_an_image_may_be_asked_in_one_order(tmp_path: Path) -> None:
    with stub(first) as server:
        (image,) = pictures(tmp_path / "images", 1)
        once = replace(image, orders=1)
        chooser = opened(server, tmp_path, orders=4, limit=5)
        chooser.prepare([once, image], [TEXTS] * 2)
        chooser.choose([once], [TEXTS])
        assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({"url": "file:///etc/passwd"}, "url"),
        ({"url": "http://"}, "url"),
        ({"url": "http://a/v1?key=b"}, "url"),
        ({"url": "http://[a/v1"}, "url"),
        ({"orders": 0}, "orders"),
        ({"timeout": 0}, "timeout"),
        ({"key_env": "sk-123"}, "key_env"),
        ({"model": ""}, "model"),
    ],
)
def test_wrong_settings_are_refused(values: dict[str, Any], key: str) -> None:
    with pytest.raises(UserError, match=f"settings: {key}: "):
        plugins.settings(load_kind("served"), {"url": "http://a", "model": "b", **values})
