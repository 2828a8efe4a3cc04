"""Splits from a division by divergence: what they promise, whatever the division."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from compclip.core.errors import UserError
from compclip.core.heldout import pair_names
from compclip.core.tables import DIVISION, SPLIT
from compclip.io import check_table
from compclip.split.audit import audit, unused_images
from compclip.split.make_splits import divided_splits, pairs_of_images, seen_target
from compclip.split.sample_heldout import missing_pairs
from compclip.split.swap_adjectives import make_swaps
from tests.split.split_worlds import COLORS, LEXICONS, NOUNS, World, pairs_table, rank, world


def random_division(data: World, seed: int) -> pd.DataFrame:
    """Sides at random, but those with one pair or two do not train."""
    generator = np.random.default_rng(seed)
    images = data.images["image_id"]
    sides = generator.choice(["train", "test", "unused"], len(images), p=[0.6, 0.25, 0.15])
    names = pair_names(data.ranking)
    chosen = names.iloc[generator.integers(len(names), size=generator.integers(1, 3))]
    held = data.pairs.loc[pair_names(data.pairs).isin(chosen), "image_id"]
    sides[images.isin(held) & (sides == "train")] = "test"
    return pd.DataFrame({"image_id": images, "side": sides}).astype("str")


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(8, 40), st.integers(1, 3))
def test_what_the_splits_promise(seed: int, other: int, images: int, rare: int) -> None:
    data = world(seed, images=images, captions=2)
    ranking = data.ranking[data.ranking["count"] >= rare].reset_index(drop=True)
    division = check_table(random_division(data, other), DIVISION, "division")
    try:
        heldout = missing_pairs(data.pairs, ranking, division, "d", "color")
        splits, summary = divided_splits(
            division, pairs_of_images(data.pairs, ranking, heldout), heldout, "auto", other, "d", "color"
        )
    except UserError:
        return
    check_table(splits, SPLIT, "splits")
    side = division.set_index("image_id")["side"]
    assume((side == "train").any())
    split = splits.set_index("image_id")["split"]
    # Every image on its side, and nowhere else; what is in no split is counted.
    assert split.index.is_unique and split.index.is_monotonic_increasing
    assert set(split.index[split == "test_unseen"]) <= set(side.index[side == "test"])
    # What trains was to train; test_seen is drawn from it only as far as it is too small.
    drawn = set(side.index[side == "train"]) - set(split.index[split == "train"])
    assert set(summary["drawn_from_train"]) == drawn
    assert drawn == set(side.index[side == "train"]) & set(split.index[split == "test_seen"])
    target = seen_target((split == "test_unseen").sum(), (side != "unused").sum(), "auto")
    assert not drawn or (split == "test_seen").sum() <= target == summary["test_seen_wanted"]
    assert not side[split.index].eq("unused").any()
    assert summary["images"] + len(summary["unused"]) + len(summary["left_out"]) == images
    assert set(summary["left_out"]) == set(side.index[side == "test"]) - set(split.index)
    assert summary["sizes"]["train"] == (side == "train").sum() - len(drawn) and min(summary["sizes"].values()) > 0
    of_pair = data.pairs.assign(pair=pair_names(data.pairs), split=data.pairs["image_id"].map(split))
    said = of_pair[of_pair["split"].notna()]
    # A held-out pair is in test_unseen alone, and every image there has one, whatever the relation.
    assert set(heldout) <= set(pair_names(ranking))
    held = said[said["pair"].isin(heldout)]
    assert set(held["image_id"]) == set(split.index[split == "test_unseen"])
    assert set(held["pair"]) == set(heldout)
    # Every pair of ranked words in test_seen is in train, surely.
    ranked = said["adjective"].isin(ranking["adjective"]) & said["noun"].isin(ranking["noun"])
    sure = said[(said["split"] == "train") & (said["relation"] != "disputed")]
    assert set(said[ranked & (said["split"] == "test_seen")]["pair"]) <= set(sure["pair"])
    # No pair that is ranked and in test_unseen is new but not held out.
    new = set(said[said["split"] == "test_unseen"]["pair"]) - set(said[said["split"] == "train"]["pair"])
    assert new & set(pair_names(ranking)) == set(heldout)
    # The audit finds no fault, but an image too many without a split.
    seen = data.captions[data.captions["image_id"].isin(split.index[split == "test_seen"])]
    swapped, _ = make_swaps(seen, data.pairs, heldout, COLORS, NOUNS, 0, "d", "color")
    unused = unused_images(summary)
    found = audit(data.captions, splits, swapped, heldout, *LEXICONS, unused=unused)
    assert found["counts"]["violations"] == 0
    assert found["counts"]["images_unused"] == len(unused) == images - len(splits)
    found = audit(data.captions, splits.iloc[1:], swapped, heldout, *LEXICONS, unused=unused)
    assert any(v["guarantee"] == "every image has a split" for v in found["violations"])


def said(*rows: str) -> pd.DataFrame:
    """``image adjective noun [relation]`` a row."""
    words = [row.split() for row in rows]
    return pairs_table([(i, 0, a, n, 0, 1, 2, 3, *(more or ["adjacent"])) for i, a, n, *more in words])


def sides(**images: str) -> pd.DataFrame:
    return pd.DataFrame({"image_id": list(images), "side": list(images.values())})


def test_what_train_has_disputed_is_not_held_out_and_not_seen() -> None:
    pairs = said(
        "a red wing", "a blue bill disputed", "b blue bill", "c red wing", "d red bill", "e black wing",
        "f gray wing disputed", "c gray bill disputed",
    )  # fmt: skip
    ranking = rank(pairs)
    division = sides(a="train", b="test", c="test", d="test", e="unused", f="test", g="test")
    ranking.loc[len(ranking)] = ["gray", "wing", 1, 1, 5, 99.0]  # ranked for an occurrence that is not disputed
    heldout = missing_pairs(pairs, ranking, division, "d", "color")
    # black_wing is in no test, blue_bill disputed in train; gray_bill is not ranked.
    assert heldout == ["gray_wing", "red_bill"]
    splits, summary = divided_splits(
        division, pairs_of_images(pairs, ranking, heldout), heldout, "auto", 0, "d", "color"
    )
    assert dict(splits.to_numpy()) == {"a": "train", "d": "test_unseen", "f": "test_unseen", "g": "test_seen"}
    assert summary["left_out"] == ["b", "c"] and summary["unused"] == ["e"]
    assert summary["warnings"][0].startswith("2 images of test are not used")


def test_seen_is_filled_from_train() -> None:
    pairs = said(
        "a red wing", "b red wing", "c red wing", "c gray bill", "d red bill", "e blue wing", "f blue wing disputed",
        "f red wing", "t red wing",
    )  # fmt: skip
    ranking = rank(pairs)
    division = sides(a="train", b="train", c="train", d="test", e="train", f="train", t="test", u="unused")
    heldout = missing_pairs(pairs, ranking, division, "d", "color")
    found = [
        divided_splits(division, pairs_of_images(pairs, ranking, heldout), heldout, n, 0, "d", "color")
        for n in (1, 2, 3, 9)
    ]
    seen = [set(splits.loc[splits["split"] == "test_seen", "image_id"]) for splits, _ in found]
    # Of the rest of test there is t alone. c and e alone have a pair; one of the others with red wings stays.
    assert seen[0] == {"t"} < seen[1] < seen[2] < seen[3] and len(seen[3]) == 4 and seen[3] < {"t", "a", "b", "c", "f"}
    assert "c" not in seen[3] and [len(summary["drawn_from_train"]) for _, summary in found] == [0, 1, 2, 3]
    assert found[3][1]["warnings"][0].startswith("test_seen has 4 images, not 9")


def test_nothing_to_hold_out_or_to_see() -> None:
    pairs = said("a red wing", "a blue bill", "b red wing", "c blue bill", "d red bill")
    ranking = rank(pairs)
    with pytest.raises(UserError, match="^d/color: train has every ranked pair of test, .*divergence.compound"):
        missing_pairs(pairs, ranking, sides(a="train", b="test", c="test", d="train"), "d", "color")
    division = sides(a="train", b="train", c="unused", d="test")
    heldout = missing_pairs(pairs, ranking, division, "d", "color")
    with pytest.raises(UserError, match="^d/color: test_seen would be empty, .*lower split.divergence.comp"):
        divided_splits(division, pairs_of_images(pairs, ranking, heldout), heldout, "auto", 0, "d", "color")
    with pytest.raises(UserError, match="^d/color: heldout.json does not match division.parquet"):
        divided_splits(division, pairs_of_images(pairs, ranking, ["red_wing"]), ["red_wing"], "auto", 0, "d", "color")
