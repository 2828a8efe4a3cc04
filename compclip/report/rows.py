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
    # Subsets of test_seen have rows of their own, which would count its prompts twice.
    is_subset = (scores["split"] == "test_seen") & scores["prompts"].isin(PARTS_OF_SEEN)
    by_judge = scores["judge"] == ORACLE if oracle else by_all_judges(scores)
    return scores[~is_subset & by_judge & (scores["distractors"] == distractors)]


def by_all_judges(scores: pd.DataFrame) -> pd.Series:
    """Return which rows are means over all trained judges, rather than of one of several."""
    return (scores["judge"] != ORACLE) & (scores["judges"] == scores["judges"].max())


def matched_rows(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of all trained judges for seen pairs as frequent as the held-out ones, as
    split ``matched``.
    """
    rows = scores[(scores["prompts"] == "matched") & by_all_judges(scores)]
    return rows.assign(split="matched")


def pivot(rows: pd.DataFrame) -> dict[str, dict[Place, Row]]:
    """Return the rows by generator and place, in the config's order of generators, as in all
    tables.
    """
    table: dict[str, dict[Place, Row]] = {}
    for record in rows.to_dict("records"):
        row = {str(column): value for column, value in record.items()}
        by_place = table.setdefault(row["generator"], {})
        by_place[row["split"], row["measure"]] = row
    return table


def select_measure(rows: pd.DataFrame, measure: str) -> pd.DataFrame:
    return rows[rows["measure"] == measure]


def select_kind(comparisons: pd.DataFrame, *kinds: str) -> pd.DataFrame:
    """Return the rows of comparisons.csv of these kinds that have a difference."""
    # Generators without common entries have none.
    return comparisons[comparisons["kind"].isin(kinds) & comparisons["difference"].notna()]


def select_composition(rows: pd.DataFrame, dataset: str, composition: str) -> pd.DataFrame:
    return rows[(rows["dataset"] == dataset) & (rows["composition"] == composition)]
