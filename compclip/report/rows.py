"""Selections of rows of scores.parquet and comparisons.csv, for figures, verdicts and pages."""

from typing import Any

import pandas as pd

from compclip.core.tables import ORACLE

Row = dict[str, Any]
Place = tuple[str, str]  # split and measure
# Subsets of test_seen's prompts that have their own rows.
PARTS_OF_SEEN = ("swapped", "matched")


def main_rows(
    scores: pd.DataFrame, *, oracle: bool = False, distractors: str = "original"
) -> pd.DataFrame:
    """Return the rows of scores.parquet that represent a split: all trained judges or the oracle,
    all prompts.
    """
    subset = (scores["split"] == "test_seen") & scores["prompts"].isin(PARTS_OF_SEEN)
    by_oracle = scores["judge"] == ORACLE
    whole = by_oracle if oracle else ~by_oracle & (scores["judges"] == scores["judges"].max())
    return scores[~subset & whole & (scores["distractors"] == distractors)]


def matched_rows(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of all trained judges for seen pairs as frequent as the held-out ones, as
    split ``matched``.
    """
    rows = scores[(scores["prompts"] == "matched") & (scores["judges"] == scores["judges"].max())]
    return rows[rows["judge"] != ORACLE].assign(split="matched")


def pivot(rows: pd.DataFrame) -> dict[str, dict[Place, Row]]:
    """Return the rows by generator and place, in the config's order of generators, as in all
    tables.
    """
    table: dict[str, dict[Place, Row]] = {}
    for row in rows.to_dict("records"):
        table.setdefault(row["generator"], {})[row["split"], row["measure"]] = {
            str(key): row[key] for key in row
        }
    return table


def of_measure(rows: pd.DataFrame, measure: str) -> pd.DataFrame:
    return rows[rows["measure"] == measure]


def of_kind(comparisons: pd.DataFrame, *kinds: str) -> pd.DataFrame:
    """Return the rows of comparisons.csv of these kinds that have a difference."""
    return comparisons[comparisons["kind"].isin(kinds) & comparisons["difference"].notna()]


def of_composition(rows: pd.DataFrame, dataset: str, composition: str) -> pd.DataFrame:
    return rows[(rows["dataset"] == dataset) & (rows["composition"] == composition)]
