"""The study that crosses draws of held-out pairs with judges, on made-up scores."""

from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.seeds import HEADS, deviations, report_lines
from compclip.core.errors import UserError
from compclip.core.tables import MEASUREMENTS, TESTS
from compclip.io import write_table
from compclip.report.measures import COMPARED
from compclip.report.values import ERROR_SOURCES


def test_planted_deviations_are_found() -> None:
    rng = np.random.default_rng(0)
    draws, judges = 0.10 * rng.normal(size=(60, 1)), 0.04 * rng.normal(size=40)
    found = deviations(0.5 + draws + judges + 0.02 * rng.normal(size=(60, 40)))
    assert found.draws == pytest.approx(draws.std(ddof=1), rel=0.02)
    assert found.judges == pytest.approx(judges.std(ddof=1), rel=0.02)
    assert found.both == pytest.approx(0.02, rel=0.05)
    alone = deviations(np.array([[0.1, 0.2], [0.1, 0.2]]))
    assert (alone.draws, alone.both) == (0, pytest.approx(0)) and alone.judges == pytest.approx(0.1 / 2**0.5)


def make_run(folder: Path, draw: int) -> Path:
    """Write the tables of a run by two judges, whose scores differ by 2 points, in a draw 10 points above the last."""
    rows = []
    for generator, split, judge in product(("faithful", "memorizer"), TESTS, (None, "0", "1")):
        score = 0.3 + 0.2 * (generator == "faithful") + 0.1 * draw + (0.02 * int(judge) if judge else 0.01)
        row = {"dataset": "birds", "composition": "color", "generator": generator, "split": split, "judge": "sketch"}
        row |= {"prompts": "swapped" if split == "test_swapped" else "pairs", "judge_seed": judge}
        row |= {"judges": 1 if judge else 2, "distractors": "original", "value": score, "low": score - 0.06}
        row |= {"high": score + 0.06, **{f"se_{source}": 0.03 for source in ERROR_SOURCES}}
        rows += [row | {"measure": measure} for measure in COMPARED]
    types = {name: column.dtype for name, column in MEASUREMENTS.columns.items()}
    table = pd.DataFrame(rows, columns=[*types]).astype(types)
    differences = [
        {"composition": "color", "measure": measure, "a": "faithful", "b": "memorizer", "split": split, "low": 0.1,
         "high": 0.3}
        for measure, split in product(COMPARED, TESTS)
    ]  # fmt: skip
    folder.mkdir()
    write_table(table, folder / "scores.parquet", MEASUREMENTS)
    pd.DataFrame(differences).to_csv(folder / "comparisons.csv", index=False)
    return folder


def test_the_report_names_each_source(tmp_path: Path) -> None:
    folders = [make_run(tmp_path / str(draw), draw) for draw in range(3)]
    lines = [line.strip("|").split("|") for line in report_lines(folders, ["color"]) if line.startswith("|")]
    rows = {cells[0].strip(): [cell.strip() for cell in cells[1:]] for cells in lines[2:11]}
    assert len(rows) == 9 and all(len(row) == len(HEADS) - 1 for row in rows.values())
    # The mean over draws is in the interval of the middle one only.
    assert rows["faithful, unseen"] == ["61.0", "10.0", "1.4", "0.0", "3.0", "3.0", "3.0", "3.0", "1 of 3"]
    assert rows["faithful − memorizer, swapped"] == ["20.0", "0.0", "0.0", "0.0", *["–"] * 4, "3 of 3"]
    table = pd.read_parquet(folders[0] / "scores.parquet")
    write_table(table[table["generator"] != "memorizer"], folders[0] / "scores.parquet", MEASUREMENTS)
    with pytest.raises(UserError, match="scores.parquet, memorizer, test_seen: expected one row, found 0"):
        list(report_lines(folders, ["color"]))
