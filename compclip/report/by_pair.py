"""The rows of ``pairs.csv``: a generator's scores of one pair in a split, by the trained judges.

``drawn`` is the estimated fraction of the pair's prompts whose pair the generator draws, relative
to seen pairs; empty for a pair that the judges do not recognize. Intervals are over the pair's
images and the judges.
"""

from collections.abc import Iterator, Sequence

from compclip.report.composed import Estimates
from compclip.report.measures import COMPARED
from compclip.report.rows import Row
from compclip.report.scored import Scored
from compclip.report.values import Values, values_of
from compclip.stats.estimates import estimate_values

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


def _columns(values: Values, measure: str) -> dict[str, Row]:
    """Return the columns of a measure by pair, with intervals over images and judges."""
    columns = dict[str, Row]()
    for pair, rows in values.entries.groupby("pair").indices.items():
        # All entries have the same pair, so the interval for new pairs adds only other judges.
        score = estimate_values(values.by_judge[rows], values.clusters[rows])
        columns[pair] = {
            measure: score.value,
            f"{measure}_low": score.new_pairs_low,
            f"{measure}_high": score.new_pairs_high,
        }
    return columns


def _drawn_by_pair(estimates: Estimates | None) -> dict[tuple[str, str, str], float]:
    """Return the column ``drawn`` by generator, split and pair."""
    drawn = dict[tuple[str, str, str], float]()
    if estimates is None:
        return drawn
    for generator, skills in estimates.skills.items():
        # Only recognized pairs have a row. What they compose is relative to seen pairs.
        rows = skills.by_pair[["split", "pair", "composes"]]
        for split, pair, fraction in rows.itertuples(index=False):
            key = (generator, split, pair)
            drawn[key] = fraction
    return drawn


def pair_rows(scores: Sequence[Scored], estimates: Estimates | None) -> Iterator[Row]:
    """Yield the rows of one composition: by generator, by split, by pair."""
    drawn = _drawn_by_pair(estimates)
    for score in scores:
        if not score.is_main:
            continue
        row_head: Row = dict.fromkeys(PAIR_COLUMNS)
        row_head |= {key: score.summary[key] for key in ("dataset", "composition", "generator")}
        row_head["split"] = score.split
        measured = [_columns(values_of(score, measure), measure) for measure in COMPARED]
        # Entries without a pair are in no group.
        for pair, entries in score.entries.groupby("pair"):
            row = row_head | {
                "pair": pair,
                "n": len(entries),
                "images": entries["image_id"].nunique(),
                "drawn": drawn.get((score.generator, score.split, str(pair))),
            }
            for columns in measured:
                # Without variants, a pair has no adjective accuracy.
                row |= columns.get(pair, {})
            yield row
