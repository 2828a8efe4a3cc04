"""The rows of ``pairs.csv``: a generator's scores of one pair in a split, by the trained judges.

``evidence`` is the pair's fraction of what decides the fraction composed. Intervals are over the pair's images and the
judges.
"""

from collections.abc import Iterator, Mapping, Sequence

from compclip.report.comparisons import Name
from compclip.report.measures import COMPARED
from compclip.report.rows import Row
from compclip.report.table import Scored
from compclip.report.values import Values, values_of
from compclip.stats.estimates import estimate_score

PAIR_COLUMNS = [
    "dataset", "composition", "generator", "split", "pair", "n", "images", "evidence",
    *(f"{measure}{end}" for measure in COMPARED for end in ("", "_low", "_high")),
]  # fmt: skip


def _columns(of: Values, measure: str) -> dict[str, Row]:
    """Return the columns of a measure by pair, with intervals over images and judges."""
    columns = dict[str, Row]()
    for pair, rows in of.entries.groupby("pair").indices.items():
        found = estimate_score(of.by_judge[rows], of.images[rows])
        columns[pair] = {measure: found.value, f"{measure}_low": found.new_pairs_low}
        columns[pair][f"{measure}_high"] = found.new_pairs_high
    return columns


def pair_rows(scores: Sequence[Scored], evidence: Mapping[Name, float]) -> Iterator[Row]:
    """Yield the rows of one composition: by generator, by split, by pair; evidence: by split and pair."""
    for score in (score for score in scores if score.main):
        about = {key: score.summary[key] for key in ("dataset", "composition", "generator")} | {"split": score.split}
        columns = [_columns(values_of(score, measure), measure) for measure in COMPARED]
        for pair, entries in score.entries.groupby("pair"):
            row: Row = {**dict.fromkeys(PAIR_COLUMNS), **about, "pair": pair, "n": len(entries)}
            row |= {"images": entries["image_id"].nunique(), "evidence": evidence.get((score.split, str(pair)))}
            for of_measure in columns:
                row |= of_measure.get(pair, {})
            yield row
