"""The published files are read as tables, and files of a wrong shape are refused."""

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compclip.core.errors import UserError
from compclip.core.reading.published_files import decoded, read_data, read_predictions, read_split

SWAP = {
    "swapped_text": "a tan wing",
    "changes_made": {"noun": "wing", "original_adj": "red", "new_adj": "tan"},
}


def put(folder: Path, value: Any) -> Path:
    (folder / "x.pkl").write_bytes(pickle.dumps(value, 2))
    return folder / "x.pkl"


def test_data_also_as_others_or_python_2_write_it(tmp_path: Path) -> None:
    captions = {1: {"text": "a red wing"} | SWAP, 0: {"text": "x", "more": [1]}}
    table, silent = read_data(put(tmp_path, {"b": captions, "a": {}}))
    assert silent == ["a"]
    assert table.astype(object).where(table.notna(), None).values.tolist() == [
        ["b", 0, "x", None, None, None, None],
        ["b", 1, "a red wing", "a tan wing", "wing", "red", "tan"],
    ]
    # Numbers as texts or numpy's, keys and texts as bytes.
    table, _ = read_data(
        put(tmp_path, {b"a": {"0": {b"text": b"caf\xc3\xa9"}, np.int64(1): {"text": "y"}}})
    )
    assert table[["image_id", "caption_id", "text"]].values.tolist() == [
        ["a", 0, "café"],
        ["a", 1, "y"],
    ]
    texts = [decoded(value) for value in (b"caf\xe9", "café".encode(), "x", 1, "\ud800")]
    assert texts == ["café", "café", "x", None, None]


SPLIT = {"train": ["a"], "test_seen": ["b"], "test_unseen": ["c"]}


@pytest.mark.parametrize("key", ["heldout_pairs", "heldout", "held_out", "Heldout-Pairs"])
@pytest.mark.parametrize("kind", [list, tuple, set, np.array, dict.fromkeys])
def test_split(tmp_path: Path, key: str, kind: Any) -> None:
    found = read_split(
        put(tmp_path, SPLIT | {key: kind(["tan_wing", "purple_bill"]), "test_swapped": ["b"]})
    )
    assert found.images == SPLIT
    assert sorted(found.pairs) == ["purple_bill", "tan_wing"] and found.unread == ["test_swapped"]


@pytest.mark.parametrize("kind", [list, tuple, lambda rows: np.array(rows, dtype=object)])
def test_predictions(tmp_path: Path, kind: Any) -> None:
    rows = [("a", 0, "x.png", 0), ("a", 0, "x.png", 0), ("b", np.int64(3), "y.png", np.int64(99))]
    found = read_predictions(put(tmp_path, kind(rows)))
    assert found.values.tolist() == [
        ["a", 0, "x.png", 0],
        ["a", 0, "x.png", 0],
        ["b", 3, "y.png", 99],
    ]
    assert read_predictions(put(tmp_path, [])).empty


@pytest.mark.parametrize(
    ("read", "value", "message"),
    [
        (read_data, [], "expected a dict, got []"),
        (read_data, {}, "contains no captions"),
        (read_data, {1: {}}, "expected a text as key, got 1"),
        (read_data, {"a": ["x"]}, "image 'a': expected a dict, got ['x']"),
        (read_data, {"a": {"x": {}}}, "image 'a': expected a number as key, got 'x'"),
        (read_data, {"a": {0: "a bird"}}, "image 'a': caption 0: expected a dict, got 'a bird'"),
        (read_data, {"a": {0: {}}}, "image 'a': caption 0: text: expected a text, got None"),
        (
            read_data,
            {"a": {0: {"text": "x", "swapped_text": ["y"]}}},
            "swapped_text: expected a text, got ['y']",
        ),
        (
            read_data,
            {"a": {0: {"text": "x", "swapped_text": "y"}}},
            "changes_made: expected a dict, got None",
        ),
        (
            read_data,
            {"a": {0: {"text": "x"} | SWAP | {"changes_made": {"noun": "x"}}}},
            "original_adj: expected a text, got None",
        ),
        (read_split, {"train": ["a"]}, "no list 'test_seen'; its keys: 'train'"),
        (
            read_split,
            SPLIT,
            "under 'heldout_pairs' or exactly one key that begins with heldout; its keys: "
            "'train', 'test_seen'",
        ),
        (read_split, SPLIT | {"heldout_pairs": []}, "heldout_pairs: no pairs"),
        (
            read_split,
            SPLIT | {"heldout_pairs": ["purple"]},
            "expected adjective_noun, got 'purple'",
        ),
        (
            read_split,
            SPLIT | {"heldout_pairs": "tan_wing"},
            "heldout_pairs: expected a list, got 'tan_wing'",
        ),
        (
            read_split,
            SPLIT | {"train": ["a", 4], "heldout_pairs": ["tan_wing"]},
            "train: expected a text, got 4",
        ),
        (
            read_predictions,
            {"a": 1},
            "expected a list of (image_id, caption_id, path, predicted_index), got {'a': 1}",
        ),
        (
            read_predictions,
            [("a", 0, "x.png", 0), ("a", 0, 1)],
            "entry 1: expected a tuple (image_id, caption_id, path, predicted_i",
        ),
        (read_predictions, [(1, 0, "x.png", 0)], "entry 0: image_id: expected a text, got 1"),
        (
            read_predictions,
            [("a", "first", "x.png", 0)],
            "entry 0: caption_id: expected a number, got 'first'",
        ),
        (read_predictions, [("a", 0, None, 0)], "entry 0: path: expected a text, got None"),
        (
            read_predictions,
            [("a", 0, "x.png", "TEXT")],
            "predicted index: expected an integer from 0, got 'TEXT'",
        ),
        (read_predictions, [("a", 0, "x.png", -1)], "from 0, got -1"),
    ],
    ids=lambda value: None,
)
def test_another_shape_is_refused(
    tmp_path: Path, read: Callable[[Path], Any], value: Any, message: str
) -> None:
    with pytest.raises(UserError, match=r"x\.pkl") as caught:
        read(put(tmp_path, value))
    assert message in str(caught.value) and "\n" not in str(caught.value)
