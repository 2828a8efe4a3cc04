"""The rows of ``pairs.csv``: a generator's scores of one pair in a split, by the trained judges.

``_fall`` is the score minus that on seen: on swapped of the same captions before the swap; on unseen of all of seen,
where no caption has the pair. ``evidence`` is the pair's fraction of what decides the fraction
composed. Intervals are over the pair's images and the judges.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from compclip.report.comparisons import HELDOUT_SPLITS, Name, fall
from compclip.report.measures import COMPARED
from compclip.report.rows import Row
from compclip.report.table import Scored
from compclip.report.values import Values, values_of
from compclip.stats import crossed
from compclip.stats.interval import Estimate

PAIR_COLUMNS = [
    "dataset", "composition", "generator", "split", "pair", "n", "images", "evidence",
    *(f"{name}{end}" for measure in COMPARED for name in (measure, f"{measure}_fall") for end in ("", "_low", "_high")),
]  # fmt: skip


def _values(values: Values, rows: Any = slice(None)) -> Values:
    """Return the values of some entries without their pairs, so that intervals are over images and judges."""
    return Values(values.entries.iloc[rows].assign(pair=None), values.by_judge[rows])


def _fall(own: Values, seen: Values | None) -> Estimate:
    """Return the mean of differences or, with two sides, the difference of their means."""
    parts = [own] if seen is None else [own, seen]
    judges = own.of_judges if seen is None else own.of_judges - seen.of_judges
    value = float(judges.mean())
    return crossed.estimate_difference(value, [of.cells() for of in parts], judges) or Estimate(value, None, None)


def columns_of(name: str, value: Estimate) -> Row:
    """Return an estimate as the columns ``name``, ``name_low`` and ``name_high``."""
    return {name: value.value, f"{name}_low": value.low, f"{name}_high": value.high}


def _columns(of: Mapping[Name, Values], name: Name, measure: str) -> dict[str, Row]:
    columns = dict[str, Row]()
    for pair, rows in of[name].entries.groupby("pair").indices.items():
        own = _values(of[name], rows)
        columns[pair] = columns_of(measure, crossed.estimate(own.cells(), own.of_judges))
    parts = fall(of, *name) if name[1] in HELDOUT_SPLITS else None
    if parts and (parts[1] is None or len(parts[1])):
        seen = None if parts[1] is None else _values(parts[1])
        for pair, rows in parts[0].entries.groupby("pair").indices.items():
            columns[pair] |= columns_of(f"{measure}_fall", _fall(_values(parts[0], rows), seen))
    return columns


def by_pair(scores: Sequence[Scored], evidence: Mapping[Name, float]) -> Iterator[Row]:
    """Yield the rows of one composition: by generator, by split, by pair; evidence: by split and pair."""
    main: dict[Name, Scored] = {(score.generator, score.split): score for score in scores if score.main}
    values = {measure: {name: values_of(score, measure) for name, score in main.items()} for measure in COMPARED}
    for name, score in main.items():
        about = {key: score.summary[key] for key in ("dataset", "composition", "generator")}
        columns = [_columns(of, name, measure) for measure, of in values.items()]
        for pair, entries in score.entries.groupby("pair"):
            row: Row = {**dict.fromkeys(PAIR_COLUMNS), **about, "split": name[1], "pair": pair, "n": len(entries)}
            row |= {"images": entries["image_id"].nunique(), "evidence": evidence.get((name[1], str(pair)))}
            for of_measure in columns:
                row |= of_measure.get(pair, {})
            yield row


def ranked_pairs(table: pd.DataFrame, split: str, measure: str) -> list[str]:
    """Return the pairs of a split that have a fall, the greatest mean fall first. table: rows of ``pairs.csv``."""
    rows = table[(table["split"] == split) & table[f"{measure}_fall"].notna()]
    return list(rows.groupby("pair")[f"{measure}_fall"].mean().sort_values(kind="stable").index)
