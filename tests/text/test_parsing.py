"""Texts are parsed once, whatever the processes or a kill; windows of tokens give spaCy's parses,
bit for bit.
"""

import multiprocessing
import os
import pickle
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import psutil
import pytest
import spacy
from spacy.language import Language

from benchmarks.speed.parse import PARSED_BY
from compclip.core.errors import UserError
from compclip.core.identity.cache import key
from compclip.core.log import log
from compclip.core.seeds import rng
from compclip.text import parsing, windows
from compclip.text.language import installed_name, load_language
from compclip.text.parsing import parse_texts


class Shout:
    def __init__(self) -> None:
        self.seen: list[str] = []

    def keys(self, texts: Iterable[str]) -> list[bytes]:
        return [key("shout", text) for text in texts]

    def parse(self, texts: Sequence[str]) -> list[bytes]:
        if "stop" in texts:
            raise KeyboardInterrupt
        self.seen += texts
        if "die" in texts:
            os._exit(1)
        return [text.upper().encode() for text in texts]


def shouted(
    parser: Shout, folder: Path, texts: Sequence[str], processes: int = 1
) -> list[bytes | None]:
    return list(parse_texts(parser, texts, processes, folder / "c.sqlite", "texts"))


@pytest.mark.parametrize("processes", [1, 2])
def test_each_distinct_text_once(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    processes: int,
) -> None:
    monkeypatch.setattr(parsing, "CHUNK", 2)
    monkeypatch.setattr(parsing, "LOOKUP_BATCH", 3)
    monkeypatch.setattr(log, "propagate", True)
    caplog.set_level("INFO", logger="compclip")
    parser = Shout()
    first = shouted(parser, tmp_path, ["a", "b", "a", " ", "b", "c", "", "d", "e", "f"], processes)
    assert first == [b"A", b"B", b"A", None, b"B", b"C", None, b"D", b"E", b"F"]
    assert shouted(parser, tmp_path, ["g", "a", " ", "b", "a"], processes) == [
        b"G",
        b"A",
        None,
        b"B",
        b"A",
    ]
    counts = [line for line in caplog.messages if line.endswith("cached")]
    assert counts == [f"{n} distinct texts parsed; the others were cached" for n in (6, 1)]
    assert shouted(parser, tmp_path, [], processes) == []
    if processes == 1:
        assert parser.seen == list("abcdefg")


def test_a_run_resumes_after_it_or_a_worker_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parsing, "CHUNK", 2)
    parser = Shout()
    with pytest.raises(KeyboardInterrupt):
        shouted(parser, tmp_path, ["a", "b", "c", "d", "stop"])
    shouted(parser, tmp_path, ["a", "b", "c", "d", "e"])
    assert parser.seen == ["a", "b", "c", "d", "e"]
    monkeypatch.setattr(parsing, "CHUNK", 1)
    with pytest.raises(UserError, match="^2 processes: one was killed, .*; run again to resume"):
        shouted(Shout(), tmp_path, ["a", "die", "b"], 2)
    assert shouted(Shout(), tmp_path, ["a", "b"], 2) == [b"A", b"B"]


class Slow(Shout):
    """Says which process parses, and takes its time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def parse(self, texts: Sequence[str]) -> list[bytes]:
        (self.folder / str(os.getpid())).touch()
        time.sleep(0.2)
        return [b"" for _ in texts]


def _fill_slowly(folder: Path) -> None:
    shouted(Slow(folder / "workers"), folder, [str(n) for n in range(10**4)], 3)


def test_workers_end_with_a_killed_parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "CHUNK", 1)
    (tmp_path / "workers").mkdir()
    parent = multiprocessing.get_context("fork").Process(target=_fill_slowly, args=(tmp_path,))
    parent.start()
    while (
        len(
            workers := [psutil.Process(int(file.name)) for file in (tmp_path / "workers").iterdir()]
        )
        < 3
    ):
        time.sleep(0.02)
    parent.kill()
    parent.join()
    assert psutil.wait_procs(workers, timeout=10)[1] == []


TEXT = "a the bird with is has red yellow Small wing bill's don't , . and\n café 3 — x-ray flies over it"  # noqa: E501
WORDS = TEXT.split(" ")


@pytest.fixture
def texts() -> list[str]:
    draw = rng(0, "windows")
    return [
        "",
        " ",
        "bird",
        *(" ".join(draw.choice(WORDS, draw.integers(1, 30))) for _ in range(200)),
        "café " * 100,
    ]


def parses(nlp: Language, texts: list[str], batch: int) -> list[tuple]:
    """All that a parse decides of each token, and its vector."""
    docs = nlp.pipe(texts, batch_size=batch)
    return [
        (doc.tensor.tobytes(), doc.to_array(["ORTH", "TAG", "HEAD", "DEP", "SENT_START"]).tolist())
        for doc in docs
    ]


def test_parses_are_those_of_spacy(texts: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    plain = spacy.load(installed_name(PARSED_BY), disable=["attribute_ruler", "lemmatizer", "ner"])
    nlp = load_language(PARSED_BY)
    assert nlp.get_pipe("tok2vec").model.name == "windows"
    expected = parses(plain, texts, 256)
    for batch, limit in (
        (256, windows.MOST_WINDOWS),
        (7, 500),
    ):  # beyond its limit, the memory starts anew
        monkeypatch.setattr(windows, "MOST_WINDOWS", limit)
        assert parses(nlp, texts, batch) == expected
    assert parses(pickle.loads(pickle.dumps(nlp)), texts[:20], 20) == expected[:20]


def test_each_distinct_window_is_computed_once() -> None:
    nlp = load_language(PARSED_BY)
    list(nlp.pipe(["a red bird with a red bill", "a red bird with a red bill", "the bird"]))
    layers = nlp.get_pipe("tok2vec").model._func.layers
    # `bird` with and without a space; padding
    assert len(layers[0].positions) == 1 + 7 and len(layers[-1].positions) == 1 + 7 + 2
    vectors = [layer.vectors.copy() for layer in layers]
    list(nlp.pipe(["a red bird with a red bill"]))
    assert all(np.array_equal(layer.vectors, v) for layer, v in zip(layers, vectors, strict=True))
    nlp = spacy.blank("en")
    nlp.add_pipe("tok2vec", config={"model": {"@architectures": "spacy.HashEmbedCNN.v2", **CNN}})
    nlp.initialize()
    windows.share_windows(nlp)
    assert nlp.get_pipe("tok2vec").model.name != "windows"
    windows.share_windows(spacy.blank("en"))


CNN = {
    "width": 16,
    "depth": 2,
    "embed_size": 50,
    "window_size": 1,
    "maxout_pieces": 2,
    "subword_features": True,
    "pretrained_vectors": None,
}
