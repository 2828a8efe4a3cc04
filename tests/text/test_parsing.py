"""Texts through a parser that is none: each once, whatever the processes; a worker that dies."""

import multiprocessing
import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import psutil
import pytest

from compclip.core.cache import key
from compclip.core.errors import UserError
from compclip.core.log import log
from compclip.text import parsing
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


def shouted(parser: Shout, folder: Path, texts: Sequence[str], processes: int = 1) -> list[bytes | None]:
    return list(parse_texts(parser, texts, processes, folder / "c.sqlite", "texts"))


@pytest.mark.parametrize("processes", [1, 2])
def test_each_distinct_text_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, processes: int
) -> None:
    monkeypatch.setattr(parsing, "CHUNK", 2)
    monkeypatch.setattr(parsing, "LOOKUP_BATCH", 3)
    monkeypatch.setattr(log, "propagate", True)
    caplog.set_level("INFO", logger="compclip")
    parser = Shout()
    first = shouted(parser, tmp_path, ["a", "b", "a", " ", "b", "c", "", "d", "e", "f"], processes)
    assert first == [b"A", b"B", b"A", None, b"B", b"C", None, b"D", b"E", b"F"]
    assert shouted(parser, tmp_path, ["g", "a", " ", "b", "a"], processes) == [b"G", b"A", None, b"B", b"A"]
    counts = [line for line in caplog.messages if line.endswith("cached")]
    assert counts == [f"{n} distinct texts parsed; the others were cached" for n in (6, 1)]
    assert shouted(parser, tmp_path, [], processes) == []
    if processes == 1:
        assert parser.seen == list("abcdefg")


def test_a_run_resumes_after_it_or_a_worker_was_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "CHUNK", 2)
    parser = Shout()
    with pytest.raises(KeyboardInterrupt):
        shouted(parser, tmp_path, ["a", "b", "c", "d", "stop"])
    shouted(parser, tmp_path, ["a", "b", "c", "d", "e"])
    assert parser.seen == ["a", "b", "c", "d", "e"]
    monkeypatch.setattr(parsing, "CHUNK", 1)
    with pytest.raises(UserError, match="^--processes 2: a worker was killed, .*; run again to resume"):
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
    while len(workers := [psutil.Process(int(file.name)) for file in (tmp_path / "workers").iterdir()]) < 3:
        time.sleep(0.02)
    parent.kill()
    parent.join()
    assert psutil.wait_procs(workers, timeout=10)[1] == []
