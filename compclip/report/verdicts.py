"""Verdicts: whether each generator composes what was held out, a line each, from
``report.composed``.

A verdict names the region of the interval for the same held-out pairs and judges, because it is
about these pairs: what the generator composes of them, not of others. There is none for a generator
that cannot draw seen pairs, if the judges recognize too few held-out pairs or fail the bias check,
for a single judge, whose error is unknown, and for a model that was not trained on the train images
of this split.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pandas as pd

from compclip.core.artifacts.heldout import FEW_PAIRS
from compclip.core.tables import HELD_OUT, HELD_OUT_SPLITS, TESTS
from compclip.plot.labels import SPLIT_NAMES, interval, percent
from compclip.report.composed import ANCHOR_NAMES, Anchors
from compclip.report.rows import Place, Row, main_rows, pivot, select_measure
from compclip.stats.composed import LEAST_DRAWN, verdict_of

SEEN_SKILL = TESTS[0], "draws_seen_pairs"
NO_VERDICT = "no verdict"
# The verdict on a generator that draws no seen pair: it shows none, so it can neither memorize nor
# compose.
DRAWS_NOTHING = "does not draw seen pairs"
# What else a model may have been trained on, and why that gives no verdict (``generate.generators:
# training_data``).
OTHER_TRAINING = {
    "other": "it was not trained on this split, so that held-out pairs may not be new to it",
    "unknown": "its training data is unknown: state training_data split if it was trained on the "
    "train images of this split alone",
}
# The marks of such models in tables.
TRAINING_MARKS = {"other": "trained on other data", "unknown": "training data unknown"}
# Half the width of the interval of a score near 50 %, in points, by number of held-out pairs
# (docs/intervals.md).
HALF_WIDTHS = {5: 27, 10: 17, 16: 13}


@dataclass(frozen=True)
class Verdict:
    """The verdict on a generator, such as "composes", and the reason."""

    generator: str
    verdict: str
    reason: str

    @property
    def line(self) -> str:
        return f"{': '.join(filter(None, (self.generator, self.verdict, self.reason)))}."


def composed_of(rows: Mapping[Place, Row], split: str = HELD_OUT) -> Row | None:
    """Return the row of a generator to show: with simultaneous intervals, if there are any."""
    return rows.get((split, "composes_together"), rows.get((split, "composes")))


def _estimate(row: Row) -> str:
    """Return what a generator composes, with its interval, as text."""
    ends = interval(row["same_pairs_low"], row["same_pairs_high"], 0)
    return f"{percent(row['value'], 0)} % {ends}".strip()


def _reason(row: Row, passes_bias_check: bool | None, training_data: str) -> str:
    """Return why a generator gets no verdict, "" if it gets one."""
    if not pd.isna(row["note"]):
        return str(row["note"])
    # None: the bias is unknown, which the notes say.
    if passes_bias_check is False:
        return "the judges fail the bias check"
    if row["judges"] < 2:
        return "one judge, whose error is unknown"
    return OTHER_TRAINING.get(training_data, "")


def _composed_text(rows: Mapping[Place, Row], composed: Row) -> str:
    """Return what a generator composes of all held-out pairs and in each split, as text."""
    details = []
    for split in HELD_OUT_SPLITS:
        row = composed_of(rows, split)
        if row is not None and not pd.isna(row["value"]):
            details.append(f"{SPLIT_NAMES[split]} {_estimate(row)}")
    pairs = composed["pairs"]
    details.append("" if pd.isna(pairs) else f"over {int(pairs)} recognized pairs")
    text = "; ".join(details)
    return f"composes {_estimate(composed)} of held-out pairs ({text})"


def _verdict(
    name: str, rows: Mapping[Place, Row], passes_bias_check: bool | None, training_data: str
) -> Verdict:
    composed = composed_of(rows)
    assert composed is not None, "the caller has checked this"
    seen = rows.get(SEEN_SKILL)
    texts = []
    if seen is not None and not pd.isna(seen["value"]):
        texts.append(f"draws {_estimate(seen)} of seen pairs")
        # Relative to almost nothing, what it composes means nothing.
        if seen["same_pairs_high"] < LEAST_DRAWN:
            return Verdict(name, DRAWS_NOTHING, texts[0])
    if not pd.isna(composed["value"]):
        texts.append(_composed_text(rows, composed))
    reason = _reason(composed, passes_bias_check, training_data)
    if reason:
        return Verdict(name, NO_VERDICT, "; ".join([reason, *texts]))
    verdict = verdict_of(composed["same_pairs_low"], composed["same_pairs_high"])
    return Verdict(name, verdict, "; ".join(texts))


def verdicts(
    scores: pd.DataFrame,
    anchors: Anchors,
    passes_bias_check: bool | None,
    training_data: Mapping[str, str] | None = None,
) -> list[Verdict]:
    """Return a verdict for each generator of one composition with an estimate.

    Args:
        scores: rows of ``scores.parquet``.
        anchors: reference and usual pair of each split.
        passes_bias_check: whether the judges pass the bias check, if known.
        training_data: what each model was trained on, by generator; others on this split.
    """
    # Controls and models without a statement were trained on this split.
    training_data = training_data or {}
    anchor_names = dict[str, str]()
    for split in HELD_OUT_SPLITS:
        for generator, anchor_name in zip(anchors[split], ANCHOR_NAMES, strict=True):
            anchor_names[str(generator)] = anchor_name
    result = []
    for name, rows in pivot(main_rows(scores)).items():
        if composed_of(rows) is None:
            continue
        if name in anchor_names:
            # What an anchor composes is its definition, so there is nothing to judge.
            result.append(Verdict(name, anchor_names[name], ""))
        else:
            trained_on = training_data.get(name, "split")
            result.append(_verdict(name, rows, passes_bias_check, trained_on))
    return result


def none_line(anchors: Anchors) -> str:
    """Return why there are no estimates."""
    lacking = []
    # The references of all splits, and then their usual pairs.
    by_anchor = zip(*anchors.values(), strict=True)
    for name, generators in zip(ANCHOR_NAMES, by_anchor, strict=True):
        if None in generators:
            lacking.append(name)
    names = " and ".join(lacking) or "reference and usual pair"
    return (
        f"no estimate of what is composed: a split has no {names}; add photographs, "
        "usual_photographs and pair_photographs, or faithful, memorizer and usual for drawn birds, "
        "to generate.generators."
    )


def few_pairs(scores: pd.DataFrame) -> Iterator[str]:
    """Yield a warning if a held-out split has few pairs. ``scores``: rows of ``scores.parquet`` of
    one composition.
    """
    rows = select_measure(main_rows(scores), "r_precision")
    rows = rows[rows["split"].isin(HELD_OUT_SPLITS)]
    pairs = rows.groupby("split", sort=False)["pairs"].max()
    few = [
        f"{SPLIT_NAMES[str(split)]} tests {n}" for split, n in pairs.items() if 0 < n < FEW_PAIRS
    ]
    if few:
        widths = ", ".join(f"{n} pairs ± {points}" for n, points in HALF_WIDTHS.items())
        yield (
            f"few pairs: {' and '.join(few)} held-out pairs, fewer than {FEW_PAIRS}, so intervals "
            "are wide."
            " In simulation (docs/intervals.md) a score near 50 % has these intervals, in "
            f"points: {widths}."
        )
