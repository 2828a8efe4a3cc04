"""Does a generator compose? One line each, decided by the interval of its fall beyond the reference's.

The score is adjective accuracy, which tests the pair itself; R-precision if no prompt has variants. A generator that
always draws what is usual reaches some adjective accuracy on seen pairs and loses it on held-out ones, like one that
memorizes. R-precision on seen captions tells them apart: it is at chance for images that do not show their captions.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd

from compclip.plot.labels import SPLIT_NAMES, interval, percent
from compclip.report.comparisons import HELDOUT_SPLITS
from compclip.report.measures import MEASURES
from compclip.report.rows import Place, Row, against_seen, main_rows, of_kind, of_measure, pivot

# A generator composes if the interval excludes a loss of this much more than the reference's. It does not follow
# prompts if the interval excludes this fraction of the reference's R-precision on seen captions.
MARGIN = 0.10
# A generator that may have less than this fraction of the reference's score on seen captions has little to lose.
LEAST_SEEN = 0.5
FEW_PAIRS = 10
Seen = Mapping[str, Mapping[Place, Row]]  # as ``rows.pivot`` returns them
# Half the width of an interval of a score near 50 % by the number of held-out pairs, in points: docs/intervals.md.
HALF_WIDTHS = {5: 24, 10: 16, 16: 12}


@dataclass(frozen=True)
class Verdict:
    """What is said of a generator: a word, as "composes", and why."""

    generator: str
    word: str
    why: str

    @property
    def line(self) -> str:
        return f"{self.generator}: {self.word}{self.why}."


def deciding_measure(comparisons: pd.DataFrame) -> str:
    rows = of_measure(comparisons, "adjective_accuracy")
    return "adjective_accuracy" if rows["low"].notna().any() else "r_precision"


def _by_split(rows: pd.DataFrame, value: Callable[[Any], str], unit: str) -> str:
    """Return the value of each split, the first with its unit."""
    first, *others = [(value(row), SPLIT_NAMES[row.split]) for row in rows.itertuples()]
    return ", ".join(
        [f"{first[0]} {unit} on held-out pairs ({first[1]})", *(f"{text} ({name})" for text, name in others)]
    )


def _lost(row: Any) -> str:
    return f"{percent(-row.difference)} {interval(-row.high, -row.low)}"


def _of_seen(seen: Seen, generator: str, reference: str, measure: str) -> str:
    """Return a score on seen captions, with those that it is normalized by."""
    own, of = (seen[name]["test_seen", measure] for name in (generator, reference))
    blind = seen[reference]["test_seen", MEASURES[measure].blind]["value"]
    others = f"without the image: {percent(blind)}; {reference}: {percent(of['value'])}"
    score = f"{percent(own['value'])} {interval(own['low'], own['high'])}"
    return f"{MEASURES[measure].title} on seen captions is {score} ({others})"


def _verdict(rows: pd.DataFrame, seen: Seen, generator: str, reference: str, measure: str) -> Verdict:
    """Return the verdict of a generator by ``rows``, its falls beyond the reference's, with intervals."""
    inconclusive, of_seen = partial(Verdict, generator, "inconclusive"), partial(_of_seen, seen, generator, reference)
    follows = seen[generator].get(("test_seen", "r_precision_normalized"))
    if rows.empty:
        return inconclusive(f": no fall can be compared with that of {reference}")
    if follows is None:
        return inconclusive(f": R-precision of {reference} on seen captions is no better than without the image")
    if follows["high"] < MARGIN:
        return Verdict(generator, "does not follow prompts", f": {of_seen('r_precision')}")
    if follows["low"] <= 0:
        return inconclusive(f": may not follow prompts: {of_seen('r_precision')}")
    more = f"points more than {reference}"
    if (rows["high"] < 0).any():
        return Verdict(generator, "memorizes", f": loses {_by_split(rows.sort_values('difference'), _lost, more)}")
    of_reference = seen[generator].get(("test_seen", f"{measure}_normalized"))
    if of_reference is None or of_reference["low"] < LEAST_SEEN:
        return inconclusive(f": may have little to lose: {of_seen(measure)}")
    if (rows["low"] > -MARGIN).all():
        most = _by_split(rows, lambda row: percent(max(0.0, -row.low)), more)
        return Verdict(generator, "composes", f": loses at most {most}")
    between = _by_split(rows, lambda row: f"{percent(-row.high)} to {percent(-row.low)}", more)
    return inconclusive(f": loses {between}")


def verdicts(
    scores: pd.DataFrame, comparisons: pd.DataFrame, reference: str | None, healthy: bool | None
) -> list[Verdict]:
    """Return a verdict for each generator of one composition that serves a held-out split.

    ``scores`` and ``comparisons`` are rows of these files; ``healthy``: whether the judge is fit to tell, if known.
    """
    measure = deciding_measure(comparisons)
    falls = against_seen(of_measure(comparisons, measure)).dropna(subset="low")
    if reference is None or reference not in set(falls["generator"]):
        return []
    beyond = of_kind(of_measure(comparisons, measure), "beyond").dropna(subset="low")
    seen, result = pivot(main_rows(scores)), []
    for generator in falls["generator"].drop_duplicates():
        own = falls[falls["generator"] == generator]
        if generator == reference:
            result.append(Verdict(generator, "reference", f": loses {_by_split(own, _lost, 'points')}"))
        elif healthy is False:
            why = ": withheld, because falls cannot be distinguished from the bias of this judge"
            result.append(Verdict(generator, "inconclusive", why))
        else:
            result.append(_verdict(beyond[beyond["a"] == generator], seen, generator, reference, measure))
    return result


def none_line(reference: str | None) -> str:
    """Return why there is no verdict."""
    why = "the reference" if reference is None else f"{reference}, the reference,"
    return f"no verdict: {why} has no falls; name a generator of seen and held-out pairs in score.reference."


def few_pairs(scores: pd.DataFrame) -> Iterator[str]:
    """Yield a warning if a held-out split has few pairs. scores: rows of ``scores.parquet`` of one composition."""
    main = of_measure(main_rows(scores), "r_precision")
    pairs = main[main["split"].isin(HELDOUT_SPLITS)].groupby("split", sort=False)["pairs"].max()
    few = [f"{SPLIT_NAMES[str(split)]} tests {n}" for split, n in pairs.items() if 0 < n < FEW_PAIRS]
    if few:
        widths = ", ".join(f"{n} pairs ± {points}" for n, points in HALF_WIDTHS.items())
        yield (
            f"few pairs: {' and '.join(few)} held-out pairs, fewer than {FEW_PAIRS}, so intervals are wide."
            f" In simulation (docs/intervals.md) a score near 50 % has these intervals, in points: {widths}."
        )
