"""The rows of ``pairs.csv``: a generator's scores of one pair in a split, by the trained judges.

``drawn`` is the estimated fraction of the pair's prompts whose pair the generator draws, relative
to seen pairs; empty for a pair that the judges do not recognize. Intervals are over the pair's
images and the judges.
"""

from collections.abc import Iterator, Sequence

from compclip.report.composed import Estimates
from compclip.report.measures import COMPARED
from compclip.report.rows import Row
from compclip.report.table import Scored
from compclip.report.values import Values, values_of
from compclip.stats.estimates import estimate_score

PAIR_COLUMNS = [
    "dataset",
    "composition",
    "generator",
    "split",
    "pair",
    "n",
    "images",
    "drawn",
    *(f"{measure}{end}" for measure in COMPARED for end in ("", "_low", "_high")),
]


def _columns(of: Values, measure: str) -> dict[str, Row]:
    """Return the columns of a measure by pair, with intervals over images and judges."""
    columns = dict[str, Row]()
    for pair, rows in of.entries.groupby("pair").indices.items():
        found = estimate_score(of.by_judge[rows], of.images[rows])
        columns[pair] = {measure: found.value, f"{measure}_low": found.new_pairs_low}
        columns[pair][f"{measure}_high"] = found.new_pairs_high
    return columns


def pair_rows(scores: Sequence[Scored], estimates: Estimates | None) -> Iterator[Row]:
    """Yield the rows of one composition: by generator, by split, by pair."""
    drawn = dict[tuple[str, str, str], float]()
    for name, skills in (estimates.skills if estimates else {}).items():
        for split, pair, value in skills.by_pair[["split", "pair", "drawn"]].itertuples(
            index=False
        ):
            drawn[name, split, pair] = value
    for score in (score for score in scores if score.main):
        about = {key: score.summary[key] for key in ("dataset", "composition", "generator")} | {
            "split": score.split
        }
        columns = [_columns(values_of(score, measure), measure) for measure in COMPARED]
        for pair, entries in score.entries.groupby("pair"):
            row: Row = {**dict.fromkeys(PAIR_COLUMNS), **about, "pair": pair, "n": len(entries)}
            row |= {
                "images": entries["image_id"].nunique(),
                "drawn": drawn.get((score.generator, score.split, str(pair))),
            }
            for of_measure in columns:
                row |= of_measure.get(pair, {})
            yield row
