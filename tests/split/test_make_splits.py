"""The division of the images."""

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compclip.core.errors import UserError
from compclip.core.heldout import pair_names
from compclip.core.tables import SPLIT
from compclip.io import check_table
from compclip.split.make_splits import draw_seen, drawn_splits, pairs_of_images, seen_target
from tests.split.split_worlds import pairs_table, rank, world


def made(seed: int, heldout_seed: int):
    data = world(seed, images=40, captions=2)
    names = pair_names(data.ranking).tolist()
    heldout = [names[heldout_seed % len(names)]]
    of_images = pairs_of_images(data.pairs, data.ranking, heldout)
    made = drawn_splits(data.captions["image_id"], of_images, heldout, "auto", heldout_seed, "d", "color")
    return data, heldout, *made


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_what_the_splits_promise(seed: int, other: int) -> None:
    try:
        data, heldout, splits, summary = made(seed, other)
    except UserError:
        return
    check_table(splits, SPLIT, "splits")
    assert splits["image_id"].tolist() == sorted(data.captions["image_id"].unique())
    split = splits.set_index("image_id")["split"]
    of_pair = data.pairs.assign(pair=pair_names(data.pairs), split=data.pairs["image_id"].map(split))
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
    assert summary["sizes"] == {name: int(sizes.get(name, 0)) for name in ("train", "test_seen", "test_unseen")}
    # The order of the rows decides nothing.
    ids, shuffled = (table.sample(frac=1, random_state=3) for table in (data.captions["image_id"], data.pairs))
    again, _ = drawn_splits(ids, pairs_of_images(shuffled, data.ranking, heldout), heldout, "auto", other, "d", "color")
    pd.testing.assert_frame_equal(splits, again)


def test_other_seeds_draw_other_images() -> None:
    data = world(1)
    heldout = pair_names(data.ranking).tolist()[8:9]
    given = data.captions["image_id"], pairs_of_images(data.pairs, data.ranking, heldout), heldout, "auto"
    assert len({tuple(drawn_splits(*given, seed, "d", "c")[0]["split"]) for seed in range(5)}) == 5


def test_an_image_that_alone_holds_a_pair_stays_in_train() -> None:
    occurrences = pd.DataFrame(
        [("a", "p"), ("b", "q"), ("c", "q"), ("d", "r"), ("e", "q")], columns=["image_id", "pair"]
    ).assign(disputed=False)
    # a and d are alone with p and r; of the three with q, one must stay.
    assert draw_seen(list("abcdef"), occurrences, 6) == (["b", "c", "f"], ["a", "d", "e"])
    assert draw_seen(list("abcdef"), occurrences, 2) == (["b", "c"], ["a"])
    # A disputed occurrence does not teach.
    occurrences = pd.DataFrame([("a", "p", False), ("b", "p", True)], columns=["image_id", "pair", "disputed"])
    assert draw_seen(["a", "b"], occurrences, 2) == draw_seen(["b", "a"], occurrences, 2) == (["b"], ["a"])


def simple(held_images: int, images: int = 100):
    """Of ``images`` images with blue wings, ``held_images`` have a red bill too."""
    rows = [(f"i{i:03d}", 0, "blue", "wing", 0, 4, 5, 9, "adjacent") for i in range(images)]
    rows += [(f"i{i:03d}", 0, "red", "bill", 10, 13, 14, 18, "shared") for i in range(held_images)]
    pairs = pairs_table(rows)
    pairs = pairs_of_images(pairs, rank(pairs), ["red_bill"])
    return [f"i{i:03d}" for i in range(images)], pairs, ["red_bill"], "auto", 0, "d", "color"


def test_warns_under_forty_percent_and_refuses_under_twenty() -> None:
    assert drawn_splits(*simple(20))[1]["warnings"] == []
    _, summary = drawn_splits(*simple(50))
    assert summary["shares"]["train"] == 0.38
    assert "38.0%" in summary["warnings"][0] and "red_bill (50)" in summary["warnings"][0]
    few = simple(20)
    for arguments, message in (
        (simple(75), r"train keeps 13.0% of the images, less than 20% .*red_bill \(75\)"),
        ((*few[:2], ["red_wing"], *few[3:]), "no image has a held-out pair"),
        (simple(1, images=6), "6 images are too few for test_seen"),
    ):
        with pytest.raises(UserError, match=message):
            drawn_splits(*arguments)
