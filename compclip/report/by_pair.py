"""The rows of ``pairs.csv``: a generator's scores of one pair in a split, by the trained judges.

``_fall`` is the score minus that on seen: on swapped of the same captions before the swap; on unseen of all of seen,
where no caption has the pair. Intervals are over the pair's images and the judges.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from compclip.report.comparisons import HELDOUT, Name, difference, fall
from compclip.report.measures import COMPARED
from compclip.report.rows import Row
from compclip.report.table import Scored
from compclip.report.values import Values, estimate, values_of
from compclip.stats.interval import Estimate

COLUMNS = [
    "dataset", "composition", "generator", "split", "pair", "n", "images",
    *(f"{name}{end}" for measure in COMPARED for name in (measure, f"{measure}_fall") for end in ("", "_low", "_high")),
]  # fmt: skip


def _some(values: Values, rows: Any = slice(None)) -> Values:
    """Return the values of some entries without their pairs, so that intervals are over images and judges."""
    return Values(values.entries.iloc[rows].assign(pair=None), values.by_judge[rows])


def _named(name: str, value: Estimate) -> Row:
    """Return an estimate as the columns ``name``, ``name_low`` and ``name_high``."""
    return {name: value.value, f"{name}_low": value.low, f"{name}_high": value.high}


def _columns(of: Mapping[Name, Values], name: Name, measure: str) -> dict[str, Row]:
    columns = dict[str, Row]()
    for pair, rows in of[name].entries.groupby("pair").indices.items():
        own = _some(of[name], rows)
        columns[pair] = _named(measure, estimate(own.cells(), own.of_judges))
    parts = fall(of, *name) if name[1] in HELDOUT else None
    if parts and (parts[1] is None or len(parts[1])):
        seen = None if parts[1] is None else _some(parts[1])
        for pair, rows in parts[0].entries.groupby("pair").indices.items():
            own = _some(parts[0], rows)
            value = Estimate(own.mean - (seen.mean if seen else 0), None, None)
            columns[pair] |= _named(f"{measure}_fall", difference(own, seen) or value)
    return columns


def by_pair(scores: Sequence[Scored]) -> Iterator[Row]:
    """Yield the rows of one composition: by generator, by split, by pair."""
    main: dict[Name, Scored] = {(score.generator, score.split): score for score in scores if score.main}
    values = {measure: {name: values_of(score, measure) for name, score in main.items()} for measure in COMPARED}
    for name, score in main.items():
        about = {key: score.summary[key] for key in ("dataset", "composition", "generator")}
        columns = [_columns(of, name, measure) for measure, of in values.items()]
        for pair, entries in score.entries.groupby("pair"):
            row: Row = {**dict.fromkeys(COLUMNS), **about, "split": name[1], "pair": pair, "n": len(entries)}
            row["images"] = entries["image_id"].nunique()
            for of_measure in columns:
                row |= of_measure.get(pair, {})
            yield row


def ranked_pairs(table: pd.DataFrame, split: str, measure: str) -> list[str]:
    """Return the pairs of a split that have a fall, the greatest mean fall first. table: rows of ``pairs.csv``."""
    rows = table[(table["split"] == split) & table[f"{measure}_fall"].notna()]
    return list(rows.groupby("pair")[f"{measure}_fall"].mean().sort_values(kind="stable").index)
