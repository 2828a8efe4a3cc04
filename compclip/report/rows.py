"""Selections of rows of table.csv and comparisons.csv, for figures, verdicts and pages."""

import pandas as pd

from compclip.core.tables import ORACLE
from compclip.plot.labels import SPLIT_NAMES


def main_rows(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of table.csv that represent a split: all judges, all prompts, original distractors."""
    subset = (table["split"] == "test_seen") & (table["prompts"] == "swapped")
    part = (table["judge"] != ORACLE) & (table["judges"] < table["judges"].max())
    return table[~subset & ~part & (table["distractors"] == "original")]


def of_measure(comparisons: pd.DataFrame, measure: str) -> pd.DataFrame:
    """Return the rows of comparisons.csv of one score: exact or adjective."""
    return comparisons[comparisons["measure"] == measure]


def against_seen(comparisons: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of comparisons.csv that compare a generator's split with its seen, with a column ``generator``.

    Generators keep their order; unseen comes before swapped.
    """
    own = of_kind(comparisons, "fall")
    own = own.assign(generator=own["a"].str.split(" ").str[0])
    first = {name: i for i, name in enumerate(own["generator"].drop_duplicates())}
    order = list(SPLIT_NAMES)
    place = [(first[g], order.index(s)) for g, s in zip(own["generator"], own["split"], strict=True)]
    return own.iloc[sorted(range(len(own)), key=place.__getitem__)]


def of_kind(comparisons: pd.DataFrame, kind: str) -> pd.DataFrame:
    """Return the rows of comparisons.csv of one kind that have a difference: generators, fall or beyond."""
    return comparisons[(comparisons["kind"] == kind) & comparisons["difference"].notna()]


def of_composition(rows: pd.DataFrame, dataset: str, composition: str) -> pd.DataFrame:
    return rows[(rows["dataset"] == dataset) & (rows["composition"] == composition)]
