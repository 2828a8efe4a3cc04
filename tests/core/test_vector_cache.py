"""The cache of vectors gives back what was put in, to several processes, and survives damage."""

import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from compclip.core.errors import UserError
from compclip.core.identity.cache import key
from compclip.core.identity.vector_cache import VectorCache
from compclip.core.processes import map_in_processes
from tests.core.processes import run_at_once


def vector(name: str) -> np.ndarray:
    return np.full(3, float(name), np.float32)


def put(cache: VectorCache, names: Sequence[str]) -> None:
    cache.add([key(name) for name in names], np.stack([vector(name) for name in names]))


def stored(cache: VectorCache, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Return the vectors that the cache has, by name."""
    return {
        names[row]: vector
        for rows, vectors in cache.blocks([key(name) for name in names])
        for row, vector in zip(rows, vectors, strict=True)
    }


def test_vectors_are_found_in_any_batch_and_any_order(tmp_path: Path) -> None:
    with VectorCache(tmp_path / "c.sqlite") as cache:
        put(cache, ["1", "2", "3"])
        assert stored(cache, ["3", "9"]).keys() == {"3"}
        put(cache, ["4"])
    with VectorCache(tmp_path / "c.sqlite", "another judge") as cache:
        put(cache, ["9"])
    with VectorCache(tmp_path / "c.sqlite") as cache:
        found = stored(cache, ["4", "9", "3", "1"])
    assert found.keys() == {"4", "3", "1"}
    assert all(np.array_equal(found[name], vector(name)) for name in found)


def _fill(path: Path, names: Sequence[str]) -> None:
    with VectorCache(path) as cache:
        for name in names:
            put(cache, [name, "0"])


def test_processes_see_what_others_put(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    names = [str(n) for n in range(40)]
    with VectorCache(path) as cache:
        assert stored(cache, names) == {}
        run_at_once(_fill, [(path, names[:20]), (path, names[20:])])
        assert stored(cache, names).keys() == set(names)


def test_a_forked_process_connects_again(tmp_path: Path) -> None:
    with VectorCache(tmp_path / "c.sqlite") as cache:
        put(cache, ["1"])

        def add(name: str) -> set[str]:
            """Store a vector, and return which are stored."""
            cache.reconnect()
            put(cache, [name])
            return set(stored(cache, ["1", name]))

        assert list(map_in_processes(add, ["2", "3"], 2)) == [{"1", "2"}, {"1", "3"}]
        put(cache, ["4"])
        names = ["1", "2", "3", "4"]
        assert stored(cache, names).keys() == set(names)


def test_any_flipped_bit_gives_right_vectors_or_an_error_of_one_line(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    names = [str(n) for n in range(120)]
    with VectorCache(path) as cache:
        put(cache, names[:60])
        put(cache, names[60:])
    whole = path.read_bytes()
    draw = random.Random(0)
    works = 0
    for _ in range(300):
        raw = bytearray(whole)
        raw[draw.randrange(len(whole))] ^= 1 << draw.randrange(8)
        path.write_bytes(raw)
        try:
            with VectorCache(path) as cache:
                cache.db.execute("PRAGMA synchronous=OFF")
                for name, found in stored(cache, names).items():
                    assert np.array_equal(found, vector(name))
                put(cache, names)
                assert stored(cache, names).keys() == set(names)
                works += 1
        except UserError as error:
            assert "c.sqlite: " in str(error) and "\n" not in str(error)
    assert works > 200
