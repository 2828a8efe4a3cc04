"""Published splits: what is taken, what is a fault, and what the audit says of them."""

import pickle
from pathlib import Path

import pandas as pd
import pytest

from compclip.core.artifacts.files import read_json
from compclip.core.artifacts.parquet import read_table
from compclip.core.errors import UserError
from compclip.core.reading.published_files import PublishedSplit, read_data
from compclip.core.tables import SPLIT, SWAPPED
from compclip.split.published_split import (
    StatedChange,
    changes_of,
    fold,
    take_pairs,
    take_splits,
    take_swaps,
)
from tests.split.stage import inputs, run, run_all
from tests.split.worlds import COLORS, LEXICONS, NOUNS, captions_table, pairs_table


def take(folder: Path, on_violation: str = "error", data: bool = True) -> None:
    """Run the steps of the stage on the published files in ``folder``/export."""
    split = folder / "export" / "split.pkl"
    run("sample_heldout", folder, published=split)
    run("make_splits", folder, published=split)
    run("swap_adjectives", folder, published=folder / "export" / "data.pkl" if data else None)
    reports = [folder / f"{name}.json" for name in ("heldout", "splits", "swapped")]
    run("audit", folder, reports=reports, on_violation=on_violation)
    run("accept_split", folder, is_published=True)


def test_our_own_files_come_back_and_violations_are_refused_or_counted(tmp_path: Path) -> None:
    run_all(inputs(tmp_path))
    tables, pairs = (
        ("splits.parquet", "swapped.parquet"),
        read_json(tmp_path / "heldout.json")["pairs"],
    )
    before = [(tmp_path / name).read_bytes() for name in tables]
    # Without swaps, ours are made.
    for data in (True, False):
        take(tmp_path, data=data)
        assert [(tmp_path / name).read_bytes() for name in tables] == before
        assert read_json(tmp_path / "heldout.json")["pairs"] == pairs
        found = read_json(tmp_path / "audit.json")
        assert found["counts"]["violations"] == 0 and found["on_violation"] == "error"
    path = tmp_path / "export" / "split.pkl"
    split = pickle.loads(path.read_bytes())
    # An image with a held-out pair trains, one is in two lists, one is unknown, one is in no list,
    # a word is unknown.
    spoiled = {
        "train": [*split["train"][1:], *split["test_unseen"][:2], "nobody"],
        "test_unseen": split["test_unseen"][1:],
        "heldout_pairs": [*split["heldout_pairs"], "purple_wibble"],
        "more": 1,
    }
    path.write_bytes(pickle.dumps(split | spoiled))
    with pytest.raises(
        UserError, match="d/color: .* audit violations.* set split.on_violation to warn"
    ):
        take(tmp_path)
    take(tmp_path, "warn")
    found = read_json(tmp_path / "audit.json")
    told = {
        v["fault"]: v["names"] for v in found["violations"] if v["guarantee"] == "published files"
    }
    twice = split["test_unseen"][1]
    assert told == {
        "held-out pairs of words that no lexicon has": ["purple_wibble"],
        "images in two places of the published split": [f"{twice} (test_unseen, train)"],
        "images of the published split that the data set has not": ["nobody"],
        "images of the data set in no published split": [split["train"][0]],
    }
    trained = {v["image_id"] for v in found["violations"] if v["guarantee"] == "held out"}
    assert split["test_unseen"][0] in trained and twice not in trained
    assert found["on_violation"] == "warn" and found["counts"]["violations"] >= 4 + len(trained)
    assert found["counts"]["violations"] == 4 + sum("count" not in v for v in found["violations"])
    assert read_json(tmp_path / "splits.json")["keys_not_read"] == ["more"]


def test_a_swap_of_something_else_is_a_violation(tmp_path: Path) -> None:
    run_all(inputs(tmp_path))
    path = tmp_path / "export" / "data.pkl"
    data = pickle.loads(path.read_bytes())
    swaps = [
        (i, c)
        for i, captions in data.items()
        for c, found in captions.items()
        if "swapped_text" in found
    ]
    (one, a), (two, b), (three, c), (four, d) = swaps[:4]
    data[one][a]["text"] += " and more"
    data[two][b]["swapped_text"] += " as well"
    change = data[three][c]["changes_made"]
    change["new_adj"] = "red" if change["new_adj"] != "red" else "black"
    data[four][d]["changes_made"]["original_adj"] = "blorp"
    data["nobody"] = {0: data[two][b]}
    trains = (
        read_table(tmp_path / "splits.parquet", SPLIT).query("split == 'train'")["image_id"].iloc[0]
    )
    data[trains][0] |= {k: data[two][b][k] for k in ("swapped_text", "changes_made")}
    path.write_bytes(pickle.dumps(data))
    take(tmp_path, "warn")
    violations = read_json(tmp_path / "audit.json")["violations"]
    assert {v["fault"]: v["names"] for v in violations if "names" in v} == {
        "swapped captions that the data set has not": ["nobody 0"],
        "swapped captions of another text than the data set's": [f"{one} {a}"],
        "swapped captions of images that are not in test_seen": [f"{trains} 0"],
        "swapped captions in which a different adjective changed than recorded": [f"{four} {d}"],
    }
    others = {(v["image_id"], v["caption_id"], v["fault"]) for v in violations if "names" not in v}
    assert (two, b, "more than the adjective changed at the end") in others
    assert any(
        (i, n) == (three, c) and "not one of its changed pairs" in fault for i, n, fault in others
    )
    assert len(read_table(tmp_path / "swapped.parquet", SWAPPED)) == len(swaps) - 1
    # What was taken can be written: with the pair that the file told.
    run("export", tmp_path)
    made = pickle.loads(path.read_bytes())[three][c]["changes_made"]
    assert (made["noun"], made["new_adj"]) == (change["noun"], change["new_adj"])


def test_words_and_captions_are_folded(tmp_path: Path) -> None:
    assert fold("Grey", "beaks", COLORS, {"beaks": "bill"}) == "gray_bill"
    assert fold("grey", "eye_ring", COLORS, NOUNS) == "gray_eyering"
    assert (
        fold("mauve", "beak", COLORS, NOUNS) is None and fold("red", "knee", COLORS, NOUNS) is None
    )
    assert fold("red", "knee", COLORS, None) == "red_knee"
    folded, wrong = take_pairs(["grey_beak", "gray_bill", "red_knee"], COLORS, NOUNS, "x.pkl")
    assert folded == ["gray_bill"] and wrong[0]["names"] == ["red_knee"]
    with pytest.raises(
        UserError, match=r"x.pkl: the lexicons list none of its 1 held-out pairs \(first: round_x"
    ):
        take_pairs(["round_x"], COLORS, NOUNS, "x.pkl")
    other = PublishedSplit(
        {"train": ["x"], "test_seen": ["y"], "test_unseen": ["z"]}, ["red_bill"], []
    )
    with pytest.raises(
        UserError, match=r"s.pkl: none of its 1 images in train \(first: x\) is among the 2 "
    ):
        take_splits(other, ["a", "b"], "s.pkl")
    other.images["test_seen"].clear()
    with pytest.raises(UserError, match="s.pkl: list test_seen is empty"):
        take_splits(other, ["x", "z"], "s.pkl")
    # A line break or a space at the end of a caption in data.pkl does not make it another text.
    change = {"noun": "bill", "original_adj": "red", "new_adj": "grey"}
    data = {
        "a": {0: {"text": " a red\nbill", "swapped_text": "a grey\nbill ", "changes_made": change}}
    }
    (tmp_path / "d.pkl").write_bytes(pickle.dumps(data))
    splits = pd.DataFrame({"image_id": ["a"], "split": ["test_seen"]})
    pairs = pairs_table([("a", 0, "red", "bill", 2, 5, 6, 10, "adjacent")])
    captions = captions_table([("a", 0, "a red bill")])
    swapped, wrong = take_swaps(
        read_data(tmp_path / "d.pkl")[0], captions, splits, pairs, LEXICONS[0], NOUNS
    )
    assert not wrong and swapped[["swapped_text", "pair"]].values.tolist() == [
        ["a grey bill", "gray_bill"]
    ]


@pytest.mark.parametrize(
    ("text", "swapped_text", "bearers", "expected"),
    [
        (
            "a black wing",
            "an orange wing",
            {2: ["wing"]},
            [("wing", "black", "orange", "black", "orange")],
        ),
        # Two changes; the file tells one of them.
        (
            "Black bill, red wings",
            "Orange bill, blue wings",
            {0: ["bill"], 12: ["wing"]},
            [
                ("bill", "black", "orange", "Black", "Orange"),
                ("wing", "red", "blue", "red", "blue"),
            ],
        ),
        # The caption says the adjective of nothing: the file's word is taken for its own change,
        # for no other.
        ("red and black", "red and orange", {}, [("wing", "black", "orange", "black", "orange")]),
        ("red and black", "red and blue", {}, [("", "black", "blue", "black", "blue")]),
        # Of two bearers the one that the file tells.
        (
            "black bill and wing",
            "orange bill and wing",
            {0: ["bill", "wing"]},
            [("wing", "black", "orange", "black", "orange")],
        ),
        # Words put in or taken out are no changes; of another number, they are one.
        ("a red wing", "a wing", {2: ["wing"]}, []),
        ("a red wing", "a red red wing", {2: ["wing"]}, []),
        (
            "a red wing",
            "a light blue wing",
            {2: ["wing"]},
            [("wing", "red", "light blue", "red", "light blue")],
        ),
        ("a wing", "a wing", {}, []),
    ],
)
def test_changes_by_comparison(text: str, swapped_text: str, bearers: dict, expected: list) -> None:
    stated = StatedChange("wing", "black", "orange")
    found = changes_of(text, swapped_text, stated, bearers, COLORS)
    spans = [
        (
            c["noun"],
            c["original_adj"],
            c["new_adj"],
            text[c["start"] : c["end"]],
            swapped_text[c["new_start"] : c["new_end"]],
        )
        for c in found
    ]
    assert spans == expected
