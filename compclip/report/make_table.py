"""The table of scores, their differences, and the scores by pair."""

from collections.abc import Iterable, Sequence

import pandas as pd

from compclip.core.tables import ORACLE
from compclip.report import by_pair, comparisons, table
from compclip.report.rows import main_rows
from compclip.report.table import Row, Scored
from compclip.report.values import add_normalized


def make_table(
    compositions: Iterable[tuple[Sequence[Scored], pd.DataFrame]], reference: str | None = None, *,
    chunks: int = 10, bootstrap: int = 2000,
) -> list[pd.DataFrame]:  # fmt: skip
    """Return the rows of ``table.csv``, ``comparisons.csv`` and ``pairs.csv``, not rounded.

    Args:
        compositions: of each, all scores, and its divergences (``tables.DIVERGENCE``).
        reference: generator against which falls are read.
        chunks: parts whose sampled R-precision is averaged.
        bootstrap: resamples of each interval for fixed pairs and judges.
    """
    rows, differences, pairs = list[Row](), list[Row](), list[Row]()
    for scores, divergence in compositions:
        own = [table.table_row(score, divergence, chunks, bootstrap) for score in scores]
        add_normalized(scores, own, reference)
        rows += own
        differences += comparisons.comparisons(scores, reference, bootstrap)
        pairs += by_pair.by_pair(scores)
    made = (rows, table.COLUMNS), (differences, comparisons.COLUMNS), (pairs, by_pair.COLUMNS)
    return [pd.DataFrame(of, columns=columns) for of, columns in made]


def metrics(scores: pd.DataFrame) -> dict[str, dict[str, float]]:
    """Return the exact scores that are compared, by generator and split, in percent with two decimals."""
    values: dict[str, dict[str, float]] = {}
    rows = main_rows(scores)
    for row in rows[(rows["judge"] != ORACLE) & rows["exact"].notna()].itertuples():
        values.setdefault(row.generator, {})[row.split.removeprefix("test_")] = round(100 * row.exact, 2)
    return values
