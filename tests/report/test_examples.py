"""What is shown of the data: chosen evenly, marked where it changed, never a broken picture."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from workflow_scripts.report.examples import THUMBNAIL, mark, spread, thumbnail


@given(st.lists(st.sampled_from("abcd"), max_size=30), st.integers(0, 30), st.integers(0, 99))
def test_spread_takes_one_of_each_before_a_second(keys: list[str], n: int, seed: int) -> None:
    chosen = spread(keys, n, np.random.default_rng(seed))
    assert len(chosen) == len(set(chosen)) == min(n, len(keys))
    taken, there = Counter(keys[i] for i in chosen), Counter(keys)
    most = max(taken.values(), default=0)
    assert all(taken[key] >= min(most - 1, there[key]) for key in there)


def test_spread_depends_on_the_generator_alone() -> None:
    keys = list("aabbccddee")
    assert spread(keys, 4, np.random.default_rng(1)) == spread(keys, 4, np.random.default_rng(1))
    assert len({tuple(spread(keys, 4, np.random.default_rng(seed))) for seed in range(9)}) > 1


@given(st.text(max_size=20), st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), max_size=4))
def test_mark_keeps_every_character(text: str, spans: list[tuple[int, int]]) -> None:
    inside = [(min(a, b), max(a, b), "seen") for a, b in spans if max(a, b) <= len(text)]
    segments = mark(text, inside)
    assert "".join(words for words, _ in segments) == text
    assert all(words for words, _ in segments)


def test_mark_by_hand() -> None:
    text = "a red wing and a blue bill"
    assert mark(text, [(17, 21, "new"), (2, 5, "old")]) == [
        ("a ", ""), ("red", "old"), (" wing and a ", ""), ("blue", "new"), (" bill", "")
    ]  # fmt: skip


def test_thumbnail_is_small_and_none_for_what_cannot_be_read(tmp_path: Path) -> None:
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (900, 1200, 3), np.uint8)).save(tmp_path / "large.png")
    found = thumbnail(tmp_path / "large.png")
    assert found and found.startswith("data:image/jpeg;base64,") and len(found) < 8 * THUMBNAIL**2 / 3
    (tmp_path / "broken.png").write_bytes((tmp_path / "large.png").read_bytes()[:5000])
    assert thumbnail(tmp_path / "broken.png") is None
    assert thumbnail(tmp_path / "absent.png") is None
