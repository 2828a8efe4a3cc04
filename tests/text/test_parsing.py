"""Texts through a parser that is none: each once, whatever the processes; a worker that dies."""

import multiprocessing
import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import psutil
import pytest

from compclip.core.cache import Cache, key
from compclip.core.errors import UserError
from compclip.text import parsing
from compclip.text.parsing import fill_cache, values


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


@pytest.mark.parametrize("processes", [1, 2])
def test_each_distinct_text_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, processes: int) -> None:
    monkeypatch.setattr(parsing, "CHUNK", 2)
    parser, sizes = Shout(), []
    batches = [["a", "b", "a", " "], ["b", "c", ""], [], ["d", "e", "f"]]
    with Cache(tmp_path / "c.sqlite") as cache:
        assert fill_cache(parser, cache, batches, processes, sizes.append) == 6
        assert fill_cache(parser, cache, [["f", "g"]], processes) == 1
        assert values(parser, cache, ["g", "a", " ", "b", "a"]) == [b"G", b"A", None, b"B", b"A"]
        assert len(cache.get(parser.keys(["", " ", *"abcdefg"]))) == 7
    assert sizes == [4, 3, 0, 3]
    if processes == 1:
        assert parser.seen == list("abcdefg")


def test_a_run_resumes_after_it_or_a_worker_was_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "CHUNK", 2)
    parser = Shout()
    with Cache(tmp_path / "c.sqlite") as cache, pytest.raises(KeyboardInterrupt):
        fill_cache(parser, cache, [["a", "b", "c", "d", "stop"]], 1)
    with Cache(tmp_path / "c.sqlite") as cache:
        assert fill_cache(parser, cache, [["a", "b", "c", "d", "e"]], 1) == 1
    assert parser.seen == ["a", "b", "c", "d", "e"]
    monkeypatch.setattr(parsing, "CHUNK", 1)
    with Cache(tmp_path / "d.sqlite") as cache:
        with pytest.raises(UserError, match="^--processes 2: a worker was killed, .*; run again to resume"):
            fill_cache(parser, cache, [["a", "die", "b"]], 2)
        assert fill_cache(parser, cache, [["a", "b"]], 2) <= 2
        assert len(cache.get(parser.keys(["a", "b"]))) == 2


class Slow(Shout):
    """Says which process parses, and takes its time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def parse(self, texts: Sequence[str]) -> list[bytes]:
        (self.folder / str(os.getpid())).touch()
        time.sleep(0.2)
        return [b"" for _ in texts]


def _fill_slowly(folder: Path) -> None:
    with Cache(folder / "c.sqlite") as cache:
        fill_cache(Slow(folder / "workers"), cache, ([str(n)] for n in range(10**6)), 3)


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
