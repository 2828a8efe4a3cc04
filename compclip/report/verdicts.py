"""Verdicts: how much of what was held out each generator composes, a line each, from ``report.composed``.

The words are those of ``stats.composed`` for the same held-out pairs and judges; the interval for new pairs and judges
is shown beside them. A generator that does not follow prompts gets no word, since its images need not show any pair.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pandas as pd

from compclip.core.heldout import FEW_PAIRS
from compclip.plot.labels import SPLIT_NAMES, interval, percent
from compclip.report.comparisons import HELDOUT_SPLITS
from compclip.report.composed import Anchors
from compclip.report.rows import Place, Row, main_rows, of_measure, pivot
from compclip.stats.composed import word

# A generator follows prompts if the interval of its R-precision on seen captions, as a fraction of the reference's
# (both above the blind control), is above this.
LEAST_FOLLOWED = 0.1
FOLLOWS = "test_seen", "r_precision_normalized"
NOT_FOLLOWING = "does not follow prompts"
ANCHOR_NAMES = ("reference", "habit")
# Half the width of the interval of a score near 50 %, in points, by number of held-out pairs (docs/intervals.md).
HALF_WIDTHS = {5: 27, 10: 17, 16: 13}


@dataclass(frozen=True)
class Verdict:
    """The verdict on a generator: a word, such as "composes", and the reason."""

    generator: str
    word: str
    why: str

    @property
    def line(self) -> str:
        return f"{': '.join(filter(None, (self.generator, self.word, self.why)))}."


def composed_of(rows: Mapping[Place, Row], split: str) -> Row | None:
    """Return the row of a generator to show: with simultaneous intervals, if there are any."""
    of = [rows.get((split, f"fraction_composed{kind}")) for kind in ("_together", "")]
    return next((row for row in of if row is not None), None)


def _estimate(row: Row, unreadable: int) -> str:
    name, pairs = SPLIT_NAMES[row["split"]], int(row["pairs"])
    if pd.isna(row["value"]):
        return f"not measurable on {name} ({row['note']})"
    these = interval(row["same_pairs_low"], row["same_pairs_high"], 0)
    new_pairs = interval(row["new_pairs_low"], row["new_pairs_high"], 0)
    others = f"new pairs: {new_pairs}" if new_pairs else row["note"]
    decides = f"; {row['note']}" if new_pairs and not pd.isna(row["note"]) else ""
    readable = f", {pairs - unreadable} of them readable" if unreadable else ""
    return f"{percent(row['value'], 0)} % {these} of {pairs} held-out pairs{readable} ({name}; {others}{decides})"


def _followed(row: Row | None) -> tuple[str, str]:
    """Return a word if a generator may not follow prompts ("" if it does), and how well it does."""
    if row is None or pd.isna(row["value"]):
        return "not known whether it follows prompts", ""
    ends = interval(row["same_pairs_low"], row["same_pairs_high"])
    text = f"{percent(row['value'])} % {ends} of the reference's R-precision on seen captions"
    if row["same_pairs_high"] < LEAST_FOLLOWED:
        return NOT_FOLLOWING, text
    return ("" if row["same_pairs_low"] > LEAST_FOLLOWED else "may not follow prompts"), text


def _verdict(generator: str, rows: Mapping[Place, Row], healthy: bool | None, unreadable: int) -> Verdict:
    estimates = [row for split in HELDOUT_SPLITS if (row := composed_of(rows, split))]
    doubt, followed = _followed(rows.get(FOLLOWS))
    measured = [row for row in estimates if not pd.isna(row["value"])]
    texts = [*(_estimate(row, unreadable) for row in estimates), followed]
    if doubt == NOT_FOLLOWING:
        return Verdict(generator, doubt, followed)
    given = "no word"
    if healthy is False:
        texts.insert(0, "the judge does not read held-out pairs")
    elif doubt:
        texts.insert(0, doubt)
    elif measured and measured[0]["judges"] < 2:
        texts.insert(0, "one judge")
    elif measured:
        given = word(min(row["same_pairs_low"] for row in measured), max(row["same_pairs_high"] for row in measured))
    return Verdict(generator, given, "; ".join(filter(None, texts)))


def verdicts(scores: pd.DataFrame, anchors: Anchors, healthy: bool | None, unreadable: int = 0) -> list[Verdict]:
    """Return a verdict for each generator of one composition with an estimate.

    Args:
        scores: rows of ``scores.parquet``.
        anchors: reference and habit of each held-out split.
        healthy: whether the judges are fit for verdicts, if known.
        unreadable: number of held-out pairs that the judges do not read on other images; the words exclude these.
    """
    anchors_by_name = {str(both[place]): given for both in anchors.values() for place, given in enumerate(ANCHOR_NAMES)}
    return [
        Verdict(name, given, "") if (given := anchors_by_name.get(name)) else _verdict(name, rows, healthy, unreadable)
        for name, rows in pivot(main_rows(scores)).items()
        if any(composed_of(rows, split) for split in HELDOUT_SPLITS)
    ]


def none_line(anchors: Anchors) -> str:
    """Return why there are no estimates."""
    lacking = [part for part, of in zip(ANCHOR_NAMES, zip(*anchors.values(), strict=True), strict=True) if None in of]
    what = " and ".join(lacking) or "reference and habit"
    return (
        f"no fraction composed: no generator is {what} of a held-out split; add photographs, habit and stand_ins, or"
        " faithful and memorizer for drawn birds, to generate.generators."
    )


def few_pairs(scores: pd.DataFrame) -> Iterator[str]:
    """Yield a warning if a held-out split has few pairs. ``scores``: rows of ``scores.parquet`` of one composition."""
    main = of_measure(main_rows(scores), "r_precision")
    pairs = main[main["split"].isin(HELDOUT_SPLITS)].groupby("split", sort=False)["pairs"].max()
    few = [f"{SPLIT_NAMES[str(split)]} tests {n}" for split, n in pairs.items() if 0 < n < FEW_PAIRS]
    if few:
        widths = ", ".join(f"{n} pairs ± {points}" for n, points in HALF_WIDTHS.items())
        yield (
            f"few pairs: {' and '.join(few)} held-out pairs, fewer than {FEW_PAIRS}, so intervals are wide."
            f" In simulation (docs/intervals.md) a score near 50 % has these intervals, in points: {widths}."
        )
