"""Each distinct image and caption is encoded once, and a warm cache gives what a cold one does."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from compclip.clip import embed
from compclip.clip.embed import (
    Embedder,
    InvalidEmbedding,
    items_of,
    mean_embedding,
    merge_equal,
    similarities,
)
from compclip.core.errors import UserError
from compclip.core.identity.cache import key
from compclip.core.identity.vector_cache import VectorCache
from tests.score.world import FakeJudge


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    paths = []
    for number, text in enumerate(["red wing", "blue bill", "red wing"]):
        paths.append(tmp_path / f"{number}.png")
        paths[-1].write_text(text)
    return paths


def test_distinct_items_are_encoded_once(tmp_path: Path, files: list[Path]) -> None:
    judge = FakeJudge()
    with VectorCache(tmp_path / "c.sqlite", "made") as cache:
        embedder = Embedder(judge, cache, 4)
        texts = embedder.texts(["red wing", "blue bill", "red wing"])
        images = embedder.images([(p, None) for p in files])
        again = embedder.images([(files[2], None), (files[0], (1.0, 2.0, 3.0, 4.0))])
    assert judge.texts_seen == ["red wing", "blue bill"]
    # Equal bytes are one image; another crop is another one.
    assert [p for p, _ in judge.images_seen] == [files[0], files[1], files[0]]
    assert np.array_equal(texts[0], texts[2]) and np.array_equal(images[0], images[2])
    assert np.array_equal(again[0], images[0])
    assert texts.dtype == np.float32 and texts.shape == (3, 16)


def test_an_item_is_read_once_for_all_judges(tmp_path: Path, files: list[Path]) -> None:
    judge = FakeJudge()
    judge.hash, judge.embed = "other", lambda text: -FakeJudge.embed(text)
    with (
        VectorCache(tmp_path / "c.sqlite", "made") as one,
        VectorCache(tmp_path / "d.sqlite", "made") as two,
    ):
        first, second = Embedder(FakeJudge(), one, 4), Embedder(judge, two, 4)
        first.with_same_pixels = [second]
        items = [(path, None) for path in files]
        assert np.array_equal(first.images(items), -second.images(items)) and not judge.images_seen
        first.with_same_tokens = [second]
        texts = ["red wing", "blue bill"]
        assert np.array_equal(first.texts(texts), -second.texts(texts)) and not judge.texts_seen


def test_changed_images_and_embeddings_of_another_width(tmp_path: Path, files: list[Path]) -> None:
    class Slow(FakeJudge):
        def encode_images(self, items, batch):
            files[1].write_text("red bill")
            return super().encode_images(items, batch)

    with VectorCache(tmp_path / "c.sqlite", "made") as cache:
        with pytest.raises(UserError, match=r"1\.png: changed while it was read"):
            Embedder(Slow(), cache, 4).images([(path, None) for path in files])
        assert cache.db.execute("SELECT COUNT(*) FROM entries").fetchone() == (0,)
    with VectorCache(tmp_path / "c.sqlite", "made") as cache:
        embedder = Embedder(FakeJudge(), cache, 4)
        embedder.texts(["red wing", "blue bill"])
        cache.add([key("caption", "gray wing")], np.zeros((1, 8), np.float32))
        with pytest.raises(
            InvalidEmbedding,
            match=r"c\.sqlite: embeddings of 8 and 16 numbers by one judge; delete",
        ):
            embedder.texts(["red wing", "gray wing"])


def test_warm_cache_gives_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    captions = [f"{color} wing {n}" for color in ("red", "blue") for n in range(50)]
    with VectorCache(tmp_path / "c.sqlite", "made") as cache:
        cold = Embedder(FakeJudge(), cache, 4).texts(captions)
    warm_judge, other_judge = FakeJudge(), FakeJudge()
    with VectorCache(tmp_path / "c.sqlite", "made") as cache:
        warm = Embedder(warm_judge, cache, 4).texts(captions[::-1])[::-1]
    with VectorCache(tmp_path / "c.sqlite", "made otherwise") as cache:
        Embedder(other_judge, cache, 8).texts(captions)
    assert warm.tobytes() == cold.tobytes()
    assert warm_judge.texts_seen == [] and other_judge.texts_seen == captions
    monkeypatch.setattr(embed, "BATCHES_HELD", 1)

    class Dies(FakeJudge):
        def encode_texts(self, texts, batch):
            if len(self.texts_seen) >= 8:
                raise KeyboardInterrupt
            return super().encode_texts(texts, batch)

    captions = [f"wing {n}" for n in range(20)]
    with VectorCache(tmp_path / "killed.sqlite", "made") as cache, pytest.raises(KeyboardInterrupt):
        Embedder(Dies(), cache, 4).texts(captions)
    judge = FakeJudge()
    with VectorCache(tmp_path / "killed.sqlite", "made") as cache:
        Embedder(judge, cache, 4).texts(captions)
    assert judge.texts_seen == captions[8:]


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        (np.nan, "is NaN or infinite"),
        (np.inf, "is NaN or infinite"),
        (0.0, "has length 0"),
        (2.0, "has length 2"),
    ],
)
def test_embeddings_without_a_score_are_refused(
    tmp_path: Path, files: list[Path], monkeypatch: pytest.MonkeyPatch, value: float, fault: str
) -> None:
    """From the model and from the cache; what is refused is not stored."""

    class Odd(FakeJudge):
        def embed(self, text: str) -> np.ndarray:  # type: ignore[override]
            return (
                np.float32(value) * super().embed(text)
                if text == "blue bill"
                else super().embed(text)
            )

    with VectorCache(tmp_path / "c.sqlite", "made") as cache:
        embedder = Embedder(Odd(), cache, 4)
        said = rf": its embedding by judge fake \(0123456789abcdef\) {fault}"
        with pytest.raises(InvalidEmbedding, match=rf"^caption 'blue bill'{said}"):
            embedder.texts(["red wing", "blue bill"])
        with pytest.raises(InvalidEmbedding, match=rf"1\.png{said}.*; use another judge"):
            embedder.images([(path, None) for path in files])
        assert cache.db.execute("SELECT COUNT(*) FROM entries").fetchone() == (0,)
        if np.isfinite(value):
            with monkeypatch.context() as patch:
                patch.setattr(embed, "LENGTH_TOLERANCE", 2)
                embedder.texts(["blue bill"])
            with pytest.raises(InvalidEmbedding, match="^caption 'blue bill'"):
                embedder.texts(["red wing", "blue bill"])


def test_boxes_equal_embeddings_and_their_mean() -> None:
    images = pd.DataFrame(
        {"image_id": ["a", "b"], "path": ["d/a.png", "d/b.png"]}
        | {f"bbox_{c}": [1.0, np.nan] for c in "xywh"}
    )
    items = items_of(["d/a.png", "d/b.png", "made/a.png"], images, Path("r"))
    assert items == [
        (Path("r/d/a.png"), (1.0, 1.0, 1.0, 1.0)),
        (Path("r/d/b.png"), None),
        (Path("r/made/a.png"), None),
    ]
    vectors = np.random.default_rng(0).standard_normal((300, 64)).astype(np.float32)
    vectors = np.concatenate([vectors, vectors[::-1]])
    distinct, index = merge_equal(vectors)
    assert len(distinct) == 300 and np.array_equal(distinct[index], vectors)
    values = similarities(vectors[:5], distinct)(np.arange(5))[:, index]
    assert (values[:, :300] == values[:, 300:][:, ::-1]).all()
    unit = np.eye(3, dtype=np.float32)
    assert mean_embedding(unit, np.ones(3, bool)) == pytest.approx(np.full(3, 3**-0.5))
    assert np.isfinite(
        mean_embedding(np.array([[1.0, 0], [-1.0, 0]], np.float32), np.ones(2, bool))
    ).all()
