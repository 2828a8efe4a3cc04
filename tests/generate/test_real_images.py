"""Photographs are the prompts' own images, and shuffled ones never are."""

import json
from collections import Counter

import pandas as pd
import pytest

from compclip.core.errors import UserError
from compclip.generate.generate_images import summarize_images
from compclip.generate.generators.shuffled import partners
from tests.generate.conftest import Place, make_prompts


def test_photographs(place: Place) -> None:
    manifest, summary = place.generate("photographs")
    served = place.prompts[place.prompts["split"] != "test_swapped"]
    keys = ["image_id", "caption_id", "draw", "split"]
    pd.testing.assert_frame_equal(manifest[keys], served[keys].reset_index(drop=True))
    there = manifest[manifest["status"] == "ok"]
    assert (there["path"] == "mine/images/" + there["image_id"] + ".png").all()
    assert set(manifest["image_id"][manifest["status"] == "skipped"]) == {"s/none"}
    assert summary["splits"]["test_seen"] == {"ok": 6, "missing": 0, "unreadable": 0, "skipped": 2}
    assert list((place.target / "images").iterdir()) == []


def test_no_files_no_prompts_and_a_single_image_to_shuffle(place: Place) -> None:
    with pytest.raises(UserError, match="generator it: no image for any of 2 prompts"):
        place.generate("photographs", make_prompts({"test_seen": ["s/none"]}))
    assert not place.target.exists() or list(place.target.iterdir()) == []
    manifest, summary = place.generate("photographs", make_prompts({"test_swapped": ["s/1"]}))
    assert manifest.empty and summary["prompts"] == 0
    manifest, _ = place.generate("shuffled", make_prompts({"test_seen": ["s/1"], "test_unseen": ["u/1", "u/2"]}))
    assert manifest.groupby("split")["status"].unique().map(list).to_dict() == {
        "test_seen": ["skipped"], "test_unseen": ["ok"],
    }  # fmt: skip


@pytest.mark.parametrize("seed", range(5))
def test_shuffled(place: Place, seed: int) -> None:
    manifest, _ = place.generate("shuffled", make_prompts({"test_seen": ["s/1", "s/2", "s/3"], "test_unseen": [
        "u/1", "u/2", "u/3"]}, captions=3, draws=3), seed=seed)  # fmt: skip
    assert (manifest["status"] == "ok").all()
    given = manifest["path"].str.removeprefix("mine/images/").str.removesuffix(".png")
    assert (given != manifest["image_id"]).all()
    # Of the same split, and every image as often as any other.
    assert (given.str[0] == manifest["image_id"].str[0]).all()
    assert set(Counter(given).values()) == {9}
    # One partner for an image and draw, another one for another draw.
    partner = manifest.assign(given=given).groupby(["image_id", "draw"])["given"].unique().map(list)
    assert (partner.map(len) == 1).all()
    assert (partner.unstack()[0] != partner.unstack()[1]).all()


def test_partners_depend_only_on_the_seed_and_the_split_and_the_summary_lists_few_names() -> None:
    ids = [str(n) for n in range(50)]
    first, *others = (partners(ids, seed, split) for seed, split in ((0, "test_seen"), (1, "test_seen"), (0, "other")))
    assert first == partners(ids[::-1], 0, "test_seen") and first not in others
    manifest = make_prompts({"test_seen": [str(n) for n in range(60)]}).assign(path=None, status="missing")
    summary = summarize_images(manifest)
    assert summary["missing"]["count"] == 120 and len(summary["missing"]["names"]) == 20
    assert json.dumps(summary)
