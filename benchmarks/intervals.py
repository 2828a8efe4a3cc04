"""Measure how often the intervals of scores cover the truth, on made-up scores whose truth is known: docs/intervals.md.

Whether a judge retrieves an entry's caption is a probit of effects of its pair, its image, the judge, the entry, and
the entry by judge. Their standard deviations give scores the spread that the default run has: 14 points over pairs
(measured: 4 to 15, docs/seeds.md), 3 points over judges (measured: 2 to 4), and a correlation of 0.25 within an image.
"""

import os
import platform
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np
from scipy.stats import norm
from tqdm import tqdm

from compclip.core.code import ROOT
from compclip.stats import crossed

RESULT_PAGE = ROOT / "docs" / "intervals.md"
INTERVALS_BEGIN = "<!-- measured by `make intervals` -->"
TRIALS = 4000


@dataclass(frozen=True)
class MadeUpWorld:
    """What scores are drawn from; effects are standard deviations. ``other``: the mean of a score to subtract."""

    mean: float
    images: int
    pairs: int
    judges: int = 3
    of_image: int = 2  # entries of an image
    pair: float = 0.35
    image: float = 0.4
    judge: float = 0.08
    entry: float = 0.8
    both: float = 0.3  # of an entry by judge
    other: float | None = None

    @property
    def truth(self) -> float:
        """Return the score, or the difference, with all pairs, images and judges."""
        variances = (self.pair, self.image, self.judge, self.entry, self.both)
        scale = np.sqrt(sum(v**2 for v in variances))
        return float(norm.cdf(self.mean / scale) - (0 if self.other is None else norm.cdf(self.other / scale)))

    def hits(self, mean: float, image: np.ndarray, pair: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return whether each judge retrieves each entry, (n, judges)."""
        effects = rng.normal(0, self.pair, self.pairs)[pair] + rng.normal(0, self.image, self.images)[image]
        effects = mean + effects + rng.normal(0, self.entry, len(image))
        by_judge = rng.normal(0, self.judge, self.judges) + rng.normal(0, self.both, (len(image), self.judges))
        return np.asarray(effects[:, None] + by_judge > 0, float)

    def draw(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the image and the pair of each entry, (n,), and its score, or difference, by judge, (n, judges)."""
        frequency = rng.dirichlet(np.ones(self.pairs))
        image = np.repeat(np.arange(self.images), self.of_image)
        pair = np.repeat(rng.choice(self.pairs, self.images, p=frequency), self.of_image)
        other = rng.random(len(pair)) < 0.3
        pair[other] = rng.choice(self.pairs, other.sum(), p=frequency)
        values = self.hits(self.mean, image, pair, rng)
        return image, pair, values if self.other is None else values - self.hits(self.other, image, pair, rng)


@dataclass(frozen=True)
class Coverage:
    """How often the truth is below and above an interval, and how wide the interval is on average."""

    below: float
    above: float
    width: float

    @property
    def inside(self) -> float:
        return 1 - self.below - self.above


def coverage(world: MadeUpWorld, trials: int, seed: int = 0) -> Coverage:
    """Draw scores and their intervals, with a new choice of pairs, images and judges in each trial."""
    rng = np.random.default_rng(seed)
    ends = []
    for _ in range(trials):
        image, pair, values = world.draw(rng)
        cells = crossed.cells(image, pair, values.mean(axis=1), np.ones(len(image)))
        variance = crossed.variance(cells) + crossed.of_judges(values.mean(axis=0))
        if world.other is None:
            estimate = crossed.fraction(cells.mean, variance, cells.images)
        else:
            estimate = crossed.difference(cells.mean, variance)
        ends.append((estimate.low, estimate.high))
    low, high = np.array(ends, float).T
    return Coverage((world.truth < low).mean(), (world.truth > high).mean(), (high - low).mean())


MIDDLE = MadeUpWorld(0, 600, 10)
# At the floor, entries hardly differ by pair: a generator that ignores captions.
FLOOR = MadeUpWorld(-2.22, 300, 10, pair=0.1, of_image=1)
DIFFERENCE = replace(MIDDLE, other=-1.1)
WORLDS = {
    **{f"{pairs} pairs, 600 images": replace(MIDDLE, pairs=pairs) for pairs in (5, 10, 16, 30)},
    "10 pairs, 600 images, low": replace(MIDDLE, mean=-1.1),
    "16 pairs, 600 images, low": replace(MIDDLE, mean=-1.1, pairs=16),
    **{f"{pairs} pairs, 600 images, difference": replace(DIFFERENCE, pairs=pairs) for pairs in (5, 10, 16)},
    "16 pairs, strong effects of pairs": replace(MIDDLE, pairs=16, pair=0.5),
    "16 pairs, 5 judges": replace(MIDDLE, pairs=16, judges=5),
    "16 pairs, 1 judge": replace(MIDDLE, pairs=16, judges=1),
    "floor, 10 pairs, 300 images": FLOOR,
    "floor, 16 pairs, 300 images": replace(FLOOR, pairs=16),
    "floor, 10 pairs, 300 images, 2 %": replace(FLOOR, mean=-1.96),
}


def main() -> None:
    lines = ["| scores | truth, % | covered, % | truth below, % | truth above, % | mean width, points |"]
    lines.append("|:--|--:|--:|--:|--:|--:|")
    for name, world in tqdm(WORLDS.items(), unit="world"):
        got = coverage(world, TRIALS)
        cells = [world.truth, got.inside, got.below, got.above, got.width]
        lines.append(f"| {name} | " + " | ".join(f"{100 * cell:.1f}" for cell in cells) + " |")
    when = f"`make intervals`, {os.cpu_count()} cores of {platform.machine()}, {datetime.now(UTC):%Y-%m-%d}:"
    when += f" {TRIALS:,} trials a row."
    text = RESULT_PAGE.read_text(encoding="utf-8").split(INTERVALS_BEGIN)[0]
    RESULT_PAGE.write_text("\n".join([text + INTERVALS_BEGIN, "", when, "", *lines, ""]), encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
