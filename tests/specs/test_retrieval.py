"""Recall at k against permutations; COCO's, Urban1k's and a table's layouts."""

import itertools
import json
from pathlib import Path
from typing import Any

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


TEXTS = {
    1: ["red wing", "red wing blue", "wing red bill", "a red wing", "red", "sixth red wing"],
    2: ["blue bill", "blue blue bill", "bill", "blue", "a blue bill"],
    3: ["green tail", "tail", "green", "a green tail", " "],
    4: ["black wing", "black"],
}


def write_coco(folder: Path) -> Path:
    annotations: list[dict[str, Any]] = []
    for image, texts in TEXTS.items():
        annotations += [{"image_id": image, "id": 10 * image + n, "caption": text} for n, text in enumerate(texts)]
        drawn(folder / "val2017" / f"{image:012d}.jpg", texts[0])
    content = {
        "images": [{"id": image, "file_name": f"{image:012d}.jpg"} for image in [*TEXTS, 5]],
        "annotations": annotations[::-1][:3] + annotations[:-3] + [{"image_id": 9, "id": 90, "caption": "red"}],
    }
    (folder / "annotations").mkdir()
    (folder / "annotations" / "captions_val2017.json").write_text(json.dumps(content))
    return folder


def expected(shown: list[str], texts: list[str], own: list[int]) -> dict[str, list[float]]:
    """Return the recalls of the fake judge's embeddings by a full matrix."""
    images, captions = (np.stack([FakeJudge.embed(text) for text in some]) for some in (shown, texts))
    return {way: hits.mean(axis=0).tolist() for way, hits in retrieve(images, captions, np.array(own)).items()}


def test_coco(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = write_coco(tmp_path / "coco")
    result, judge = run(retrieval, tmp_path, data=data, monkeypatch=monkeypatch)
    texts = [[t for t in some[:5] if t.strip()] for some in TEXTS.values()]
    own = [i for i, some in enumerate(texts) for _ in some]
    for way, values in expected([some[0] for some in TEXTS.values()], sum(texts, []), own).items():
        assert [result[way][f"R@{k}"]["value"] for k in retrieval.RANKS] == pytest.approx(values, abs=1e-6)
    assert result["images"] == 4 and result["captions"] == 16
    assert result["image_to_text"]["R@1"]["n"] == 4 and result["text_to_image"]["R@1"]["images"] == 4
    assert {reason: left["names"] for reason, left in result["left_out"].items()} == {
        "captions empty": ["34"],
        "captions past an image's first 5": ["15"],
        "captions of images that the file does not list": ["90"],
        "images without a caption": ["000000000005.jpg"],
    }
    assert len(judge.texts_seen) == len(set(judge.texts_seen))
    every, _ = run(retrieval, tmp_path, data=data, captions=0, monkeypatch=monkeypatch)
    assert every["captions"] == 17


def test_urban1k_and_a_table_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = ["image,caption"]
    for image, texts in TEXTS.items():
        drawn(tmp_path / "u" / "image" / f"{image}.jpg", texts[0])
        drawn(tmp_path / "u" / "caption" / f"{image}.txt", f"{texts[1]}\n")
        rows.append(f"{image}.jpg,{texts[1]}")
    drawn(tmp_path / "u" / "caption" / "7.txt", "of no image")
    drawn(tmp_path / "u" / "image" / "8.png", "red")
    (tmp_path / "t.csv").write_text("\n".join(rows))
    found, _ = run(retrieval, tmp_path, data=tmp_path / "u", monkeypatch=monkeypatch)
    table, _ = run(retrieval, tmp_path, monkeypatch, data=tmp_path / "t.csv", images=tmp_path / "u" / "image")
    values = expected([some[0] for some in TEXTS.values()], [some[1] for some in TEXTS.values()], list(range(4)))
    for way in values:
        assert [found[way][f"R@{k}"]["value"] for k in retrieval.RANKS] == pytest.approx(values[way], abs=1e-6)
        assert found[way] == table[way]
    assert found["left_out"] == {
        "images missing": {"count": 1, "names": ["7 (of 7.txt)"]},
        "images without a caption": {"count": 1, "names": ["8.png"]},
    }


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "unknown layout"),
        ("none", "available: captions_val2014.json"),
        ("[]", "not COCO's captions"),
        ('{"images": [{"id": [1], "file_name": "a"}], "annotations": []}', "not COCO's captions"),
        ('{"images": [], "annotations": []}', "no image with a caption"),
    ],
)
def test_wrong_layouts(tmp_path: Path, content: str | None, message: str) -> None:
    if content:
        (tmp_path / "annotations").mkdir()
        (tmp_path / "annotations" / "captions_val2014.json").write_text(content)
    split = "val2017" if content == "none" else "val2014"
    assert message in refused(lambda: read_gallery(tmp_path, None, split, 5))
