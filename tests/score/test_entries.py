"""Which captions may be whose distractors, against the definitions."""

from pathlib import Path

import pandas as pd
import pytest

from compclip.core.errors import UserError
from compclip.score.entries import EntrySet, number_set
from compclip.split.pools import class_names, pool_captions
from tests.score.world import build


@pytest.fixture
def tables(tmp_path: Path) -> dict[str, pd.DataFrame]:
    results = build(tmp_path)
    found = {name: pd.read_parquet(results / "d" / f"{name}.parquet") for name in ("captions", "images")}
    for name in ("splits", "swapped", "prompts"):
        found[name] = pd.read_parquet(results / "d" / "color" / f"{name}.parquet")
    return found


def test_pools_by_split(tables: dict[str, pd.DataFrame]) -> None:
    captions, swapped = tables["captions"], tables["swapped"].iloc[2:]
    # One judged image fewer than the split has.
    judged = tables["splits"].iloc[2:]
    seen = set(judged.loc[judged["split"] == "test_seen", "image_id"])

    def pool(split: str, kind: str = "original") -> pd.DataFrame:
        return pool_captions(captions, judged, swapped, split, kind)

    assert set(pool("test_seen")["image_id"]) == seen and len(pool("test_seen")) == 2 * len(seen)
    assert not set(pool("test_unseen")["image_id"]) & seen
    originals = pool("test_swapped")
    assert set(originals["image_id"]) == seen & set(swapped["image_id"]) and len(originals) == 20
    assert set(originals["text"]) <= set(captions["text"])
    others = pool("test_swapped", "swapped")
    assert set(others["image_id"]) == set(originals["image_id"]) and len(others) == 10
    assert set(others["text"]) <= set(swapped["swapped_text"])
    # As the released code draws them: what was swapped, as it was before.
    published = pool("test_swapped", "published")
    assert published[["image_id", "caption_id"]].equals(others[["image_id", "caption_id"]])
    assert published.merge(captions, on=["image_id", "caption_id", "text"]).shape[0] == len(published) == 10


def test_an_image_without_class_is_its_own_and_a_pool_not_empty(tables: dict[str, pd.DataFrame]) -> None:
    captions = pd.DataFrame({"image_id": ["a", "a", "b", "c", "image a"], "class_id": [None, None, "x", "x", "a"]})
    classes = class_names(captions)
    assert classes["b"] == classes["c"] != classes["a"]
    assert len(set(classes)) == 3
    captions = tables["captions"]
    entries = captions.assign(draw=0, pair=None, path="x").iloc[:1]
    with pytest.raises(UserError, match="no captions"):
        number_set(EntrySet("test_seen", "test_seen", "original", entries, captions.iloc[:0]), class_names(captions))
