"""Measure how often intervals cover the truth, on made-up scores whose truth is known:
docs/intervals.md.

Whether a judge is right about an entry is a probit of effects of its pair, its image, the judge,
the entry, and the entry by judge. By default their standard deviations give scores the spread that
the default run has: 14 points over pairs, 3 points over judges, and a correlation of 0.25 within an
image. Pairs are unequally frequent: log-normal.
"""

import os
import platform
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import norm
from tqdm import tqdm

from compclip.core.identity.code import ROOT
from compclip.stats.estimates import ScoreDifference, ScoreEstimate, compare_scores, estimate_score

DOCUMENT = ROOT / "docs" / "intervals.md"
EACH_WORLD = ROOT / "docs" / "intervals.csv"
BEGIN = "<!-- measured by `make intervals` -->"
TRIALS = 2000
Interval = tuple[float | None, float | None]  # None: the trial has none


class Trial(NamedTuple):
    """The intervals of one trial, the estimate, and the truth for its own pairs and judges."""

    value: float | None
    other: Interval
    these: Interval
    truth: float


@dataclass(frozen=True)
class World:
    """What a score, or a difference of two, is drawn from; effects are standard deviations.

    Args:
        score: mean over all pairs that do not fail.
        failing: fraction of pairs whose score is 0.
        other: the mean of a score to subtract.
        sizes: standard deviation of the log of the frequencies of pairs.
        classes: number of classes of images, which are then clusters; effects of classes are as
            large as of images.
    """

    pairs: int = 10
    score: float = 0.5
    failing: float = 0.0
    other: float | None = None
    images: int = 600
    judges: int = 3
    of_image: int = 2  # entries of an image
    sizes: float = 1.0
    classes: int = 0
    pair: float = 0.35
    image: float = 0.4
    judge: float = 0.08
    entry: float = 0.8
    both: float = 0.3  # of an entry by judge

    @property
    def truth(self) -> float:
        """Return the score, or the difference, with all pairs, images and judges."""
        return self.score * (1 - self.failing) - (self.other or 0.0)

    @property
    def inner(self) -> float:
        """Return the standard deviation of effects within a pair by one judge."""
        return float(
            np.sqrt(self.image**2 * (1 + (self.classes > 0)) + self.entry**2 + self.both**2)
        )

    def entries(self, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        """Return the pair, and the cluster and the effect of the image, of each entry, (n,)."""
        frequency = np.exp(rng.normal(0, self.sizes, self.pairs))
        frequency /= frequency.sum()
        image = np.repeat(np.arange(self.images), self.of_image)
        pair = np.repeat(rng.choice(self.pairs, self.images, p=frequency), self.of_image)
        moved = rng.random(len(pair)) < 0.3
        pair[moved] = rng.choice(self.pairs, moved.sum(), p=frequency)
        effect = rng.normal(0, self.image, self.images)[image]
        if not self.classes:
            return pair, image, effect
        cluster = rng.integers(self.classes, size=self.images)[image]
        return pair, cluster, effect + rng.normal(0, self.image, self.classes)[cluster]

    def effects(self, score: float, rng: np.random.Generator) -> np.ndarray:
        """Return effects of pairs by judge, (pairs, judges), with this mean score."""
        scale = np.sqrt(self.inner**2 + self.pair**2 + self.judge**2)
        return (
            norm.ppf(score) * scale
            + rng.normal(0, self.pair, (self.pairs, 1))
            + rng.normal(0, self.judge, self.judges)
        )

    def hits(
        self, effects: np.ndarray, of: Sequence[np.ndarray], rng: np.random.Generator
    ) -> np.ndarray:
        """Return whether each judge is right about each entry, (n, judges)."""
        pair, entry = of[0], (of[2] + rng.normal(0, self.entry, len(of[0])))[:, None]
        return np.asarray(
            effects[pair] + entry + rng.normal(0, self.both, (len(pair), self.judges)) > 0, float
        )

    def expected(self, effects: np.ndarray) -> np.ndarray:
        """Return the mean score of each pair by these judges, (pairs,)."""
        return np.asarray(norm.cdf(effects / self.inner).mean(axis=1))

    def trial(self, rng: np.random.Generator) -> Trial:
        of, effects = self.entries(rng), self.effects(self.score, rng)
        effects[rng.random(self.pairs) < self.failing] = -np.inf
        values, expected = self.hits(effects, of, rng), self.expected(effects)
        pair, cluster, _ = of
        found: ScoreEstimate | ScoreDifference
        if self.other is None:
            found = estimate_score(values, cluster, pair)
        else:
            effects = self.effects(self.other, rng)
            found = compare_scores(values, self.hits(effects, of, rng), cluster, pair)
            expected = expected - self.expected(effects)
        these = found.same_pairs_low, found.same_pairs_high
        return Trial(
            found.value,
            (found.new_pairs_low, found.new_pairs_high),
            these,
            float(expected[pair].mean()),
        )


class Coverage(NamedTuple):
    """How often the truth is inside, below and above an interval, its mean width, and the error of
    ``inside``.
    """

    inside: float
    below: float
    above: float
    width: float
    error: float


def coverage(ends: Sequence[Interval], truths: Sequence[float]) -> Coverage:
    low, high = np.array(ends, float).T
    has, truth = ~np.isnan(low), np.asarray(truths)
    below, above = (truth < low - 1e-9)[has].mean(), (truth > high + 1e-9)[has].mean()
    inside = 1 - below - above
    return Coverage(
        inside, below, above, (high - low)[has].mean(), np.sqrt(inside * (1 - inside) / has.sum())
    )


def measure_coverage(
    world: World, trials: int, seed: int = 0
) -> tuple[list[Trial], Coverage, Coverage]:
    """Return trials with new pairs, images and judges, and the coverage for new and for the same
    pairs and judges.
    """
    rng = np.random.default_rng(seed)
    of = [world.trial(rng) for _ in range(trials)]
    others = coverage([trial.other for trial in of], [world.truth] * trials)
    return of, others, coverage([trial.these for trial in of], [trial.truth for trial in of])


def with_pairs(name: str, world: World, *counts: int) -> dict[str, World]:
    return {f"{count} pairs, {name}": replace(world, pairs=count) for count in counts}


SCORE, DIFFERENCE = World(), World(score=0.611, other=0.5)
SCORE_WORLDS = {
    **with_pairs("50 %", SCORE, 3, 5, 10, 16, 20),
    **with_pairs("equally frequent", replace(SCORE, sizes=0.0), 5, 10, 20),
    **with_pairs("weak effects of pairs", replace(SCORE, pair=0.08), 3, 5, 10, 20),
    **with_pairs("ceiling, strong effects", replace(SCORE, score=0.975, pair=0.5), 5, 10, 20),
    **with_pairs("floor, strong effects", replace(SCORE, score=0.025, pair=0.5), 5, 10, 20),
    **with_pairs("one pair in ten at 0", replace(SCORE, score=0.91, failing=0.1), 5, 10, 16, 20),
    **with_pairs("one pair in four at 0", replace(SCORE, score=0.91, failing=0.25), 5, 10),
    **with_pairs("nine pairs in ten at 0", replace(SCORE, score=0.91, failing=0.9), 5, 10, 16, 20),
    **with_pairs("40 images", replace(SCORE, images=40), 5, 10),
    **with_pairs("60 classes", replace(SCORE, classes=60), 10),
    **with_pairs("1 judge", replace(SCORE, judges=1), 16),
    **with_pairs("strong effects of judges", replace(SCORE, judge=0.24), 16),
    **with_pairs("strong effects of 1 judge", replace(SCORE, judges=1, judge=0.24), 16),
    **with_pairs("difference", DIFFERENCE, 5, 10, 16),
    **with_pairs(
        "difference, one pair in ten lost", World(score=0.91, failing=0.1, other=0.91), 5, 10, 16
    ),
}


# The rows of the page; docs/intervals.csv has all.
SHOWN = (
    "5 pairs, 50 %",
    "10 pairs, 50 %",
    "20 pairs, 50 %",
    "10 pairs, ceiling, strong effects",
    "10 pairs, floor, strong effects",
    "10 pairs, one pair in ten at 0",
    "10 pairs, nine pairs in ten at 0",
    "10 pairs, 40 images",
    "16 pairs, 1 judge",
    "16 pairs, strong effects of judges",
    "16 pairs, strong effects of 1 judge",
    "10 pairs, difference",
    "10 pairs, difference, one pair in ten lost",
)


def measure_worlds(worlds: dict[str, World]) -> Iterator[dict[str, Any]]:
    """Yield a row for each world, in %, with the coverage, the misses on both sides and the width
    of both intervals.
    """
    for name, world in tqdm(worlds.items(), unit="world"):
        trials, new_pairs, same_pairs = measure_coverage(world, TRIALS)
        values = [trial.value for trial in trials if trial.value is not None]
        row = {"scores": name, "truth": 100 * world.truth, "mean": 100 * np.mean(values)}
        for kind, measured in (("new_pairs", new_pairs), ("same_pairs", same_pairs)):
            row[f"{kind}_covered"] = 100 * measured.inside
            row[f"{kind}_covered_error"] = 100 * measured.error
            row[f"{kind}_below"] = 100 * measured.below
            row[f"{kind}_above"] = 100 * measured.above
            row[f"{kind}_width"] = 100 * measured.width
        yield row


def short_table(table: pd.DataFrame) -> Iterator[str]:
    """Yield the lines of the page's table."""
    yield "| scores | truth | new pairs: covered | width | same pairs: covered | width |"
    yield "|:--|--:|--:|--:|--:|--:|"
    for row in table.to_dict("records"):
        numbers = [
            row["truth"],
            row["new_pairs_covered"],
            row["new_pairs_width"],
            row["same_pairs_covered"],
            row["same_pairs_width"],
        ]
        yield " | ".join([f"| {row['scores']}", *(f"{number:.1f}" for number in numbers)]) + " |"


def main() -> None:
    table = pd.DataFrame(measure_worlds(SCORE_WORLDS)).round(1)
    table.to_csv(EACH_WORLD, index=False, lineterminator="\n")
    when = (
        f"`make intervals`, {os.cpu_count()} cores of {platform.machine()}, "
        f"{datetime.now(UTC):%Y-%m-%d}: {TRIALS:,} trials a row; in %, widths in points."
    )
    shown = table[table["scores"].isin(SHOWN)]
    text = DOCUMENT.read_text(encoding="utf-8").split(BEGIN)[0]
    lines = [text + BEGIN, "", when, "", *short_table(shown), ""]
    DOCUMENT.write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
