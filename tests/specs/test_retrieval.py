"""Recall at k against permutations; a table of images and captions."""

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compclip.specs import retrieval
from compclip.specs.retrieval import read_gallery, recalls, retrieve
from tests.score.world import FakeJudge
from tests.specs.evaluated import drawn, refused, run


def unit(vectors: np.ndarray) -> np.ndarray:
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def chance(values: np.ndarray, own: np.ndarray, k: int) -> float:
    """Return the chance of a hit among the first k: its mean over all orders of the tied candidates."""
    best = values[own].max()
    tied = own[values == best]
    left = max(k - (values > best).sum(), 0)
    return float(np.mean([any(order[:left]) for order in itertools.permutations(tied)]))


@given(st.integers(0, 200), st.sampled_from([7, 10**9]), st.sampled_from([4, 30]))
def test_against_brute_force(seed: int, block: int, n: int) -> None:
    """A few candidates that tie, and more than the largest k; in blocks of a few rows or all at once."""
    random = np.random.default_rng(seed)
    own = np.r_[np.arange(n), random.integers(n, size=2)]
    if n == 4:
        kinds = np.eye(3, dtype=np.float32)
        images, texts = kinds[random.integers(3, size=4)], kinds[random.integers(3, size=6)]
    else:
        images = unit(random.standard_normal((n, 8)))
        texts = unit(images[own] + random.standard_normal((len(own), 8)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(retrieval, "SIMILARITIES_IN_MEMORY", block)
        found = retrieve(images, texts, own)
    for way, values, belongs in (
        ("image_to_text", images @ texts.T, own == np.arange(n)[:, None]),
        ("text_to_image", texts @ images.T, own[:, None] == np.arange(n)),
    ):
        for hits, *row in zip(found[way], values, belongs, strict=True):
            assert hits == pytest.approx([chance(*row, k) for k in retrieval.RANKS])


@pytest.mark.parametrize("width", [16, 100, 512])
def test_equal_candidates_tie_to_the_last_bit(width: int) -> None:
    """A matrix product may give equal candidates different last bits in different columns."""
    random = np.random.default_rng(0)
    once = unit(random.standard_normal((5, width)))
    queries = unit(once[np.arange(30) % 5] + random.standard_normal((30, width)) * 0.01)
    own = np.stack([np.arange(30), np.arange(30) % 5], axis=1)
    found = recalls(queries, np.concatenate([once, once[::-1]]), own, (1, 2), "cpu", "queries")
    assert found.tolist() == [[0.5, 1]] * 30


def test_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The values are those of the fake judge's embeddings by a full matrix; what cannot be used is named."""
    texts = {"1": ["red wing", "wing red bill", "red"], "2": ["blue bill", "bill"], "3": ["green tail"]}
    for image, captions in texts.items():
        drawn(tmp_path / "images" / image, captions[0])
    rows = [(image, caption) for image, captions in texts.items() for caption in captions]
    lines = ["image,caption", *map(",".join, rows), "3, ", ",red", "absent,blue"]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    result, judge = run(
        retrieval, tmp_path, data=tmp_path / "t.csv", images=tmp_path / "images", monkeypatch=monkeypatch
    )
    shown, captions = (
        np.stack([FakeJudge.embed(text) for text in some])
        for some in ([captions[0] for captions in texts.values()], [caption for _, caption in rows])
    )
    for way, hits in retrieve(shown, captions, np.array([int(image) - 1 for image, _ in rows])).items():
        found = [result[way][f"R@{k}"]["value"] for k in retrieval.RANKS]
        assert found == pytest.approx(hits.mean(axis=0), abs=1e-6)
    assert (result["images"], result["captions"]) == (3, 6)
    assert result["image_to_text"]["R@1"]["n"] == 3 and result["text_to_image"]["R@1"]["images"] == 3
    assert {reason: left["names"] for reason, left in result["left_out"].items()} == {
        "captions empty": ["line 8"],
        "rows without an image": ["line 9"],
        "images missing": ["absent"],
    }
    assert len(judge.texts_seen) == len(set(judge.texts_seen))
    (tmp_path / "t.csv").write_text("image,caption\n1,\n")
    assert "no image with a caption" in refused(lambda: read_gallery(tmp_path / "t.csv"))
