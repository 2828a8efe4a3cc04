"""The columns of ``table.csv`` with normalized scores: (score - blind) / (score of the reference - blind).

``blind`` is the score of text alone: the reference's blind control for R-precision, chance for adjective accuracy.
"""

from collections.abc import Sequence

import numpy as np

from workflow_scripts.report.table import BLIND, Row, Scored, columns_of
from workflow_scripts.report.values import Values, values_of
from workflow_scripts.stats import crossed
from workflow_scripts.stats.interval import Estimate


def normalized(own: Values, reference: Values, blind: float) -> Estimate | None:
    """Return (own - blind) / (reference - blind) on the entries that both have, with its interval.

    The interval is that of a ratio by the delta method. None if the reference is not above ``blind``, beyond its own
    interval, by all judges; ``blind`` is the score of text alone.
    """
    a, b = own.beside(reference)
    cells = b.cells() if len(b) else None
    if cells is None or cells.clusters < 2:
        return None
    above = b.of_judges - blind
    error = crossed.variance(cells) + crossed.of_judges(above)
    low = crossed.difference(b.mean - blind, error).low
    if min(above) <= 0 or low is None or low <= 0:
        return None
    ratio = (a.mean - blind) / (b.mean - blind)
    # What each entry adds to the ratio's error.
    errors = Values(a.entries, (a.by_judge - ratio * b.by_judge - (1 - ratio) * blind) / (b.mean - blind))
    error = crossed.variance(errors.cells()) + crossed.of_judges((a.of_judges - blind) / above)
    return crossed.difference(ratio, error, np.inf)


def normalized_columns(scored: Scored, reference: Scored | None) -> Row:
    """Return the columns of a score; ``reference`` is that of the same prompts."""
    row: Row = {}
    for measure, name in BLIND.items():
        blind = reference.about.get(name) if reference else None
        value = None
        if reference and blind is not None:
            value = normalized(values_of(scored, measure), values_of(reference, measure), blind)
        row |= columns_of(f"{measure}_normalized", value)
    return row


def add_normalized(scores: Sequence[Scored], rows: Sequence[Row], reference: str | None) -> None:
    """Add the columns to rows of ``table.csv``, of the scores that are compared."""
    of_reference = {score.split: score for score in scores if score.main and score.generator == reference}
    for score, row in zip(scores, rows, strict=True):
        row |= normalized_columns(score, of_reference.get(score.split) if score.main else None)
