"""Selections of rows of table.csv and comparisons.csv, for figures, verdicts and pages."""

import pandas as pd

from compclip.core.layout import ORACLE
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
    own = comparisons[(comparisons["kind"] == "fall") & comparisons["difference"].notna()]
    own = own.assign(generator=own["a"].str.split(" ").str[0])
    first = {name: i for i, name in enumerate(own["generator"].drop_duplicates())}
    order = list(SPLIT_NAMES)
    place = [(first[g], order.index(s)) for g, s in zip(own["generator"], own["split"], strict=True)]
    return own.iloc[sorted(range(len(own)), key=place.__getitem__)]


def between_generators(comparisons: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of comparisons.csv that compare two generators."""
    return comparisons[(comparisons["kind"] == "generators") & comparisons["difference"].notna()]


def beyond_reference(comparisons: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of comparisons.csv that compare a generator's fall, a, with that of the reference, b."""
    return comparisons[(comparisons["kind"] == "beyond") & comparisons["difference"].notna()]
