"""The sample of swapped captions for readers."""

from pathlib import Path

import pandas as pd
import pytest

from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import empty_table, write_json, write_table
from workflow_scripts.core.tables import SWAPPED
from workflow_scripts.split.sample_swaps import SampleSwaps, main, marked, sample_swaps


def swapped_table(rows: int) -> pd.DataFrame:
    """``rows`` times `red wings and a pink bill` for `gray wings and an orange bill`, of images i0, i1, ..."""
    changes = [
        {"noun": "wing", "original_adj": "gray", "new_adj": "red", "start": 0, "end": 4, "new_start": 0, "new_end": 3},
        {"noun": "bill", "original_adj": "orange", "new_adj": "pink", "start": 18, "end": 24, "new_start": 16,
         "new_end": 20},
    ]  # fmt: skip
    texts = "gray wings and an orange bill", "red wings and a pink bill"
    return pd.DataFrame([(f"i{n}", n, *texts, changes, "red_wing") for n in range(rows)], columns=list(SWAPPED.columns))


def sampled(tmp_path: Path, table: pd.DataFrame, name: str = "out.txt", **given: int) -> str:
    write_table(table, tmp_path / "swapped.parquet", SWAPPED)
    write_json({"pairs": ["red_wing", "pink_bill"]}, tmp_path / "heldout.json")
    paths = {"swapped": tmp_path / "swapped.parquet", "heldout": tmp_path / "heldout.json", "output": tmp_path / name}
    main(SampleSwaps(**paths, **given))
    return (tmp_path / name).read_text()


def test_text_for_readers(tmp_path: Path) -> None:
    text = sampled(tmp_path, swapped_table(1))
    assert "Held out: pink bill, red wing." in text
    assert text.endswith(
        "1.\noriginal: [gray] wings and an [orange] bill\nswapped:  [red] wings and a [pink] bill\n"
        "noun: wing, bill   pair: red wing, pink bill\n"
    )


def test_csv_for_verdicts(tmp_path: Path) -> None:
    lines = sampled(tmp_path, swapped_table(5), "out.csv", number=3).splitlines()
    assert lines[0] == "number,image_id,caption_id,original,swapped,nouns,pairs,wrong"
    assert len(lines) == 4 and lines[1].endswith('"wing, bill","red wing, pink bill",')


def test_a_seed_draws_the_same_again_and_no_caption_twice() -> None:
    table = swapped_table(50)
    drawn = sample_swaps(table, 20, 3)
    pd.testing.assert_frame_equal(drawn, sample_swaps(table, 20, 3))
    assert drawn["image_id"].nunique() == 20 and drawn["number"].tolist() == list(range(1, 21))
    assert set(drawn["image_id"]) != set(sample_swaps(table, 20, 4)["image_id"])
    assert len(sample_swaps(table, 300, 3)) == 50


def test_marks_by_hand() -> None:
    assert marked("a red bird", [(2, 5)]) == "a [red] bird"
    assert marked("red or blue", [(7, 11), (0, 3)]) == "[red] or [blue]"


def test_nothing_to_read(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no swapped caption"):
        sampled(tmp_path, empty_table(SWAPPED))
