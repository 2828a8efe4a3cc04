"""The division of the images: drawn splits, divisions by divergence, and splits from them."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from compclip.core.artifacts.heldout import pair_names
from compclip.core.artifacts.parquet import check_table, empty_table
from compclip.core.errors import UserError
from compclip.core.tables import DIVISION, SPLIT, SWAPPED
from compclip.divergence import divide
from compclip.divergence.measure import measure
from compclip.divergence.pair_samples import pair_samples
from compclip.split import divide_images
from compclip.split.audit import audit, excluded_images
from compclip.split.composition import Seeding
from compclip.split.config import Divergence
from compclip.split.divide_images import side_sizes
from compclip.split.make_splits import (
    PAIR_NOT_IN_TRAIN,
    UNDIVIDED,
    divided_splits,
    draw_seen,
    drawn_splits,
    make_splits,
    pairs_of_images,
    seen_target,
)
from compclip.split.sample_heldout import missing_pairs
from tests.split.worlds import LEXICONS, World, captions_table, rank, said, world


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_what_the_splits_promise(seed: int, other: int) -> None:
    data = world(seed, images=40, captions=2)
    names = pair_names(data.ranking).tolist()
    heldout = [names[other % len(names)]]
    of_images = pairs_of_images(data.pairs, data.ranking, heldout)
    given = heldout, "auto", Seeding(other, "d", "color")
    try:
        splits, summary = drawn_splits(data.captions["image_id"], of_images, *given)
    except UserError:
        return
    check_table(splits, SPLIT, "splits")
    assert splits["image_id"].tolist() == sorted(data.captions["image_id"].unique())
    split = splits.set_index("image_id")["split"]
    of_pair = data.pairs.assign(
        pair=pair_names(data.pairs), split=data.pairs["image_id"].map(split)
    )
    # Whatever the relation, a held-out pair sends its image to test_unseen, and nothing else does.
    held = set(of_pair.loc[of_pair["pair"].isin(heldout), "image_id"])
    assert held == set(splits.loc[splits["split"] == "test_unseen", "image_id"])
    # Every pair of test_seen is in train, surely.
    seen = set(of_pair.loc[of_pair["split"] == "test_seen", "pair"]) & set(pair_names(data.ranking))
    train = of_pair[(of_pair["split"] == "train") & (of_pair["relation"] != "disputed")]
    assert seen <= set(train["pair"])
    sizes = splits["split"].value_counts()
    assert sizes["test_seen"] <= seen_target(len(held), 40, "auto") == min(len(held), 4)
    assert seen_target(len(held), 40, 7) == 7
    assert summary["test_seen_wanted"] == seen_target(len(held), 40, "auto")
    # The order of the rows decides nothing.
    ids, shuffled = (
        table.sample(frac=1, random_state=3) for table in (data.captions["image_id"], data.pairs)
    )
    again, _ = drawn_splits(ids, pairs_of_images(shuffled, data.ranking, heldout), *given)
    pd.testing.assert_frame_equal(splits, again)


def test_seeds_draw_and_an_image_with_a_pair_alone_stays_in_train() -> None:
    data = world(1)
    heldout = pair_names(data.ranking).tolist()[8:9]
    given = (
        data.captions["image_id"],
        pairs_of_images(data.pairs, data.ranking, heldout),
        heldout,
        "auto",
    )
    assert (
        len({tuple(drawn_splits(*given, Seeding(seed, "d", "c"))[0]["split"]) for seed in range(5)})
        == 5
    )
    occurrences = pd.DataFrame(
        [("a", "p"), ("b", "q"), ("c", "q"), ("d", "r"), ("e", "q")], columns=["image_id", "pair"]
    ).assign(disputed=False)
    # a and d are alone with p and r; of the three with q, one must stay.
    assert draw_seen(list("abcdef"), occurrences, 6) == ["b", "c", "f"]
    assert draw_seen(list("abcdef"), occurrences, 2) == ["b", "c"]
    # A disputed occurrence does not teach.
    occurrences = pd.DataFrame(
        [("a", "p", False), ("b", "p", True)], columns=["image_id", "pair", "disputed"]
    )
    assert draw_seen(["a", "b"], occurrences, 2) == draw_seen(["b", "a"], occurrences, 2) == ["b"]


def simple(held_images: int, images: int = 100):
    """Of ``images`` images with blue wings, ``held_images`` have a red bill too."""
    names = [f"i{i:03d}" for i in range(images)]
    pairs = said(
        *(f"{i} blue wing" for i in names), *(f"{i} red bill shared" for i in names[:held_images])
    )
    return (
        names,
        pairs_of_images(pairs, rank(pairs), ["red_bill"]),
        ["red_bill"],
        "auto",
        Seeding(0, "d", "color"),
    )


def test_warns_under_forty_percent_and_refuses_under_twenty() -> None:
    assert drawn_splits(*simple(20))[1]["warnings"] == []
    (warning,) = drawn_splits(*simple(50))[1]["warnings"]
    assert "train keeps 38.0%" in warning and "red_bill (50)" in warning
    few = simple(20)
    for arguments, message in (
        (simple(75), r"train keeps 13.0% of the images, less than 20% .*red_bill \(75\)"),
        ((*few[:2], ["red_wing"], *few[3:]), "no image has a held-out pair"),
        (simple(1, images=6), "6 images are too few for test_seen"),
    ):
        with pytest.raises(UserError, match=message):
            drawn_splits(*arguments)


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


def split_by(
    division: pd.DataFrame,
    pairs: pd.DataFrame,
    ranking: pd.DataFrame,
    heldout: list[str],
    test_seen: str | int = "auto",
    seed: int = 0,
) -> tuple[pd.DataFrame, dict[str, Any]]:
    of_images = pairs_of_images(pairs, ranking, heldout)
    return divided_splits(division, of_images, heldout, test_seen, Seeding(seed, "d", "color"))


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(8, 40), st.integers(1, 3))
def test_what_divided_splits_promise(seed: int, other: int, images: int, rare: int) -> None:
    data = world(seed, images=images, captions=2)
    ranking = data.ranking[data.ranking["count"] >= rare].reset_index(drop=True)
    division = check_table(random_division(data, other), DIVISION, "division")
    try:
        heldout = missing_pairs(data.pairs, ranking, division, "d/color")
        splits, summary = split_by(division, data.pairs, ranking, heldout, seed=other)
    except UserError:
        return
    check_table(splits, SPLIT, "splits")
    side = division.set_index("image_id")["side"]
    assume((side == "train").any())
    split = splits.set_index("image_id")["split"]
    # Every image is on its side; images in no split are counted.
    assert split.index.is_unique and split.index.is_monotonic_increasing
    assert set(split.index[split == "test_unseen"]) <= set(side.index[side == "test"])
    # What trains was to train; test_seen is drawn from it only as far as it is too small.
    drawn = set(side.index[side == "train"]) - set(split.index[split == "train"])
    assert drawn == set(side.index[side == "train"]) & set(split.index[split == "test_seen"])
    target = seen_target((split == "test_unseen").sum(), (side != "unused").sum(), "auto")
    assert not drawn or (split == "test_seen").sum() <= target == summary["test_seen_wanted"]
    assert not side[split.index].eq("unused").any()
    assert len(splits) + sum(map(len, summary["excluded_images"].values())) == images
    excluded_ids = set(summary["excluded_images"][PAIR_NOT_IN_TRAIN])
    assert excluded_ids == set(side.index[side == "test"]) - set(split.index)
    assert (split == "train").sum() == (side == "train").sum() - len(drawn) and split.nunique() == 3
    of_pair = data.pairs.assign(
        pair=pair_names(data.pairs), split=data.pairs["image_id"].map(split)
    )
    placed = of_pair[of_pair["split"].notna()]
    # A held-out pair is in test_unseen alone, and every image there has one, whatever the relation.
    assert set(heldout) <= set(pair_names(ranking))
    held = placed[placed["pair"].isin(heldout)]
    assert set(held["image_id"]) == set(split.index[split == "test_unseen"])
    assert set(held["pair"]) == set(heldout)
    # Every pair of ranked words in test_seen is in train, surely.
    ranked = placed["adjective"].isin(ranking["adjective"]) & placed["noun"].isin(ranking["noun"])
    sure = placed[(placed["split"] == "train") & (placed["relation"] != "disputed")]
    assert set(placed[ranked & (placed["split"] == "test_seen")]["pair"]) <= set(sure["pair"])
    # No pair that is ranked and in test_unseen is new but not held out.
    new = set(placed[placed["split"] == "test_unseen"]["pair"]) - set(
        placed[placed["split"] == "train"]["pair"]
    )
    assert new & set(pair_names(ranking)) == set(heldout)
    # The audit finds no fault, but an image too many without a split.
    rest = empty_table(SWAPPED), heldout, *LEXICONS
    found = audit(data.captions, data.pairs, splits, *rest, excluded=excluded_images(summary))
    assert found["counts"]["violations"] == 0 and found["counts"][
        "images_excluded"
    ] == images - len(splits)
    found = audit(
        data.captions, data.pairs, splits.iloc[1:], *rest, excluded=excluded_images(summary)
    )
    assert any(v["guarantee"] == "every image has a split" for v in found["violations"])


def sides(**images: str) -> pd.DataFrame:
    return pd.DataFrame({"image_id": list(images), "side": list(images.values())})


def test_divided_splits_by_hand() -> None:
    """What train has disputed is neither held out nor seen; test_seen is filled from train."""
    pairs = said(
        "a red wing",
        "a blue bill disputed",
        "b blue bill",
        "c red wing",
        "d red bill",
        "e black wing",
        "f gray wing disputed",
        "c gray bill disputed",
    )
    ranking = rank(pairs)
    division = sides(a="train", b="test", c="test", d="test", e="unused", f="test", g="test")
    ranking.loc[len(ranking)] = [
        "gray",
        "wing",
        1,
        1,
        5,
        99.0,
    ]  # ranked for an occurrence that is not disputed
    heldout = missing_pairs(pairs, ranking, division, "d/color")
    # black_wing is in no test, blue_bill disputed in train; gray_bill is not ranked.
    assert heldout == ["gray_wing", "red_bill"]
    splits, summary = split_by(division, pairs, ranking, heldout)
    assert dict(splits.to_numpy()) == {
        "a": "train",
        "d": "test_unseen",
        "f": "test_unseen",
        "g": "test_seen",
    }
    assert summary["excluded_images"] == {UNDIVIDED: ["e"], PAIR_NOT_IN_TRAIN: ["b", "c"]}
    assert summary["warnings"][0].startswith("2 images of test are not used")
    pairs = said(
        "a red wing",
        "b red wing",
        "c red wing",
        "c gray bill",
        "d red bill",
        "e blue wing",
        "f blue wing disputed",
        "f red wing",
        "t red wing",
    )
    ranking = rank(pairs)
    division = sides(
        a="train", b="train", c="train", d="test", e="train", f="train", t="test", u="unused"
    )
    heldout = missing_pairs(pairs, ranking, division, "d/color")
    found = [split_by(division, pairs, ranking, heldout, n) for n in (1, 2, 3, 9)]
    seen = [set(splits.loc[splits["split"] == "test_seen", "image_id"]) for splits, _ in found]
    # Of the rest of test there is t alone. c and e alone have a pair; one of the others with red
    # wings stays.
    assert (
        seen[0] == {"t"} < seen[1] < seen[2] < seen[3]
        and len(seen[3]) == 4
        and seen[3] < {"t", "a", "b", "c", "f"}
    )
    assert "c" not in seen[3]
    captions = captions_table([(image, 0, "a bird") for image in division["image_id"]])
    _, summary = make_splits(
        captions,
        pairs[["image_id", "adjective", "noun", "relation"]],
        ranking,
        heldout,
        *LEXICONS,
        test_seen=9,
        division=division,
    )
    assert summary["sizes"] == {"train": 2, "test_seen": 4, "test_unseen": 1}
    assert summary["warnings"] == [
        "test_seen has 4 images, not 9: the rest hold pairs that train needs"
    ]
    pairs = said("a red wing", "a blue bill", "b red wing", "c blue bill", "d red bill")
    ranking = rank(pairs)
    with pytest.raises(
        UserError, match="^d/color: train has every ranked pair of test, .*divergence.compound"
    ):
        missing_pairs(pairs, ranking, sides(a="train", b="test", c="test", d="train"), "d/color")
    division = sides(a="train", b="train", c="unused", d="test")
    heldout = missing_pairs(pairs, ranking, division, "d/color")
    with pytest.raises(
        UserError, match="^d/color: test_seen would be empty, .*lower split.divergence.comp"
    ):
        split_by(division, pairs, ranking, heldout)


@pytest.fixture(autouse=True, scope="module")
def few_exchanges() -> Iterator[None]:
    """Search less than a run does: the promises do not depend on it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(divide, "MOVES", 2000)
        yield


def divided(seed: int, images: int, **changed):
    data = world(seed, images=images, captions=2)
    target = Divergence(**{"train": 0.5, "test": 0.3} | changed)
    ids = data.captions["image_id"]
    return data, *divide_images.divide_images(
        ids, data.pairs, data.ranking, target, dataset="d", composition="color"
    )


def test_sizes_are_rounded_and_divergence_is_more_than_by_chance_or_as_wanted() -> None:
    assert side_sizes(11788, 0.5, 0.2) == (5894, 2358)
    assert side_sizes(5, 0.5, 0.5) == (3, 2)  # half rounds up, and there are no more than all
    with pytest.raises(UserError, match="3 images are too few for the fractions 0.7 and 0.1"):
        side_sizes(3, 0.7, 0.1)
    data, division, most = divided(7, 80)
    assert most["atom_divergence"] <= 0.02
    rng = np.random.default_rng(0)
    samples = pair_samples(data.pairs, data.ranking, division["image_id"].tolist())
    orders = [rng.permutation(80) for _ in range(20)]
    assert most["compound_divergence"] > max(measure(samples, o[:40], o[40:64])[1] for o in orders)
    wanted = most["compound_divergence"] / 2
    _, _, some = divided(7, 80, compound=wanted)
    assert some["compound_divergence"] == pytest.approx(wanted, abs=0.01) and not some["warnings"]
    _, _, few = divided(7, 10, atom=0.0)
    assert (
        few["atom_divergence"] > 0
        and "over the wanted 0: ask for smaller sides" in few["warnings"][0]
    )


@settings(max_examples=6)
@given(st.integers(0, 10**6), st.integers(10, 40))
def test_every_image_has_one_side_and_the_summary_is_true(seed: int, images: int) -> None:
    data, division, summary = divided(seed, images)
    check_table(division, DIVISION, "division")
    assert division["image_id"].tolist() == sorted(data.captions["image_id"].unique())
    sizes = division["side"].value_counts()
    expected = side_sizes(images, 0.5, 0.3)
    assert (sizes["train"], sizes["test"]) == expected
    assert summary["sizes"] == {
        name: int(sizes.get(name, 0)) for name in ("train", "test", "unused")
    }
    samples = pair_samples(data.pairs, data.ranking, division["image_id"].tolist())
    rows = [np.flatnonzero(division["side"] == name) for name in ("train", "test")]
    assert (summary["atom_divergence"], summary["compound_divergence"]) == tuple(
        round(d, 6) for d in measure(samples, *rows)
    )
