"""A generator's images embedded in shards: no score depends on how many there are."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from tests.judge.conftest import RESNET, VIT
from tests.score.world import FakeJudge, build, make_step
from workflow_scripts.clip import model
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import read_table, write_table
from workflow_scripts.core.tables import EMBEDDINGS, IMAGES, MANIFEST
from workflow_scripts.judge.config import JudgeConfig
from workflow_scripts.score import embed_images, score_images
from workflow_scripts.score.embed_images import open_shards, shard_of
from workflow_scripts.score.steps import EmbedImages, ScoreImages

COMPUTE: dict[str, Any] = {"threads": 2, "device": "cpu", "batch": 8}


def photographs(results: Path) -> None:
    """A generator that shows the real images, one for all the captions of each."""
    place = results / "d/color/generated"
    manifest = pd.read_parquet(place / "good/manifest.parquet")
    manifest = manifest[manifest["split"] != "test_swapped"]
    manifest = manifest.assign(path="d/images/" + manifest["image_id"] + ".png")
    write_table(manifest, place / "photographs/manifest.parquet", MANIFEST)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Images of several sizes, the real ones with boxes."""
    results = build(tmp_path)
    draw = np.random.default_rng(0)
    for path in sorted(results.rglob("*.png")):
        Image.fromarray(draw.integers(0, 256, (40, int(draw.choice([32, 40, 50])), 3), np.uint8)).save(path)
    images = pd.read_parquet(results / "d/images.parquet")
    boxed = images.assign(bbox_x=5.0, bbox_y=5.0, bbox_w=20.0, bbox_h=12.0)
    write_table(boxed, results / "d/images.parquet", IMAGES)
    photographs(results)
    return results


def embed(results: Path, generator: str, shards: Sequence[int], of: int, judge: str, cache: str = "") -> list[Path]:
    """The shards, each made alone, with nothing in its cache unless ``cache`` names one."""
    files = []
    for shard in shards:
        files.append(results.parent / f"shards/{judge}/{generator}/{shard}-of-{of}.parquet")
        manifest, images = results / f"d/color/generated/{generator}/manifest.parquet", results / "d/images.parquet"
        inputs = {"manifest": manifest, "images": images, "results": results, "judge": results.parent / judge}
        inputs |= {"cache": results.parent / (cache or f"{generator}{shard}-{of}")} | COMPUTE
        embed_images.main(EmbedImages(shard=shard, shards=of, embeddings=files[-1], **inputs))
    return files


def score(results: Path, generator: str, judge: str, output: str, embedded: Sequence[Path] = ()) -> dict[str, bytes]:
    """The bytes of all that scoring writes, by file."""
    folder = results.parent
    more = {"judge": folder / judge, "scores": folder / output, "cache": folder / f"cache_{output}"} | COMPUTE
    if generator == "photographs":
        more["serves"] = ["test_seen", "test_unseen"]
    score_images.main(make_step(ScoreImages, results, generator, embedded=list(embedded), **more))
    return {file.name: file.read_bytes() for file in (results.parent / output).iterdir()}


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeJudge:
    judge = FakeJudge()
    monkeypatch.setattr("workflow_scripts.clip.model.load_judge", lambda *_: judge)
    return judge


def assert_equal_scores(results: Path, generator: str, numbers: Sequence[int]) -> None:
    """Scores from any number of shards have the bytes of scores without shards."""
    whole = score(results, generator, "judge", "whole")
    assert len(whole) >= 5
    made = pd.read_parquet(results / f"d/color/generated/{generator}/manifest.parquet")["path"].dropna()
    for of in numbers:
        files = embed(results, generator, range(1, of + 1), of, "judge")
        sizes = [len(read_table(file, EMBEDDINGS)) for file in files]
        assert sum(sizes) == made.nunique() and (min(sizes) == 0 if of == 40 else min(sizes) > 0)
        assert score(results, generator, "judge", f"joined_{of}", files[::-1]) == whole, of


@pytest.mark.parametrize("generator", ["photographs", "partial"])
def test_the_number_of_shards_does_not_change_scores(tmp_path: Path, fake: FakeJudge, generator: str) -> None:
    """Also with more shards than images, of which some have none."""
    results = build(tmp_path)
    photographs(results)
    assert_equal_scores(results, generator, (1, 5, 40))


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "generator"), [("resnet", "photographs"), ("vit", "partial")])
def test_shards_of_networks(results: Path, tmp_path: Path, kind: str, generator: str) -> None:
    (tmp_path / "model.json").write_text(json.dumps({"resnet": RESNET, "vit": VIT}[kind]))
    built = model.build(JudgeConfig(model=str(tmp_path / "model.json")), ["a red wing"], 0)
    model.save_judge(built, kind, 0.75, tmp_path / "judge")
    assert_equal_scores(results, generator, (2, 7))


def test_an_image_is_in_a_shard_by_its_id_alone() -> None:
    ids = [f"im/{number}" for number in range(5000)]
    assert {shard_of(image, 1) for image in ids} == {1}
    counts = pd.Series([shard_of(image, 5) for image in ids]).value_counts()
    # Binomial: 1000 each, deviation 28.
    assert sorted(counts.index) == [1, 2, 3, 4, 5] and counts.between(860, 1140).all()


def test_each_image_is_read_by_one_shard_alone(tmp_path: Path, fake: FakeJudge) -> None:
    results = build(tmp_path)
    photographs(results)
    files = embed(results, "photographs", (1, 2, 3), 3, "j")
    seen = len(fake.images_seen)
    assert seen == len({path for path, _ in fake.images_seen}) > 20
    score(results, "photographs", "j", "joined", files)
    assert len(fake.images_seen) == seen, "joining looks at no image"
    # What the cache has, of another composition or of a run with other shards, is not encoded again.
    embed(results, "photographs", (1, 2), 2, "j", cache="shared")
    encoded = len(fake.images_seen)
    embed(results, "photographs", (1, 2, 3, 4), 4, "j", cache="shared")
    assert len(fake.images_seen) == encoded > seen


def test_shards_that_do_not_belong_together(tmp_path: Path, fake: FakeJudge) -> None:
    results = build(tmp_path)
    files = embed(results, "good", (1, 2), 2, "j")
    with pytest.raises(UserError, match=r"j/good: no shard has d/color/generated/good/images/test_.*png; pass all sh"):
        score(results, "good", "j", "one", files[:1])
    with pytest.raises(UserError, match="no shards in a folder named partial"):
        score(results, "partial", "j", "other", files)
    with pytest.raises(UserError, match=r"1-of-2\.parquet: embeddings by another judge"):
        open_shards(files, "another")
    table = pd.read_parquet(files[1])
    for value, fault in ((np.nan, "is NaN or infinite"), (0, "has length 0 instead of 1")):
        vectors = pd.Series([vector * np.float32(value) for vector in table["embedding"]], dtype=object)
        write_table(table.assign(embedding=vectors), files[1], EMBEDDINGS)
        with pytest.raises(
            UserError, match=rf"2-of-2\.parquet: d/color/.*\.png: its embedding .* {fault} .*; run embed_"
        ):
            open_shards(files, fake.hash)
    with pytest.raises(UserError, match="--shard: expected 1 to 2, got 3"):
        embed(results, "good", (3,), 2, "j")
