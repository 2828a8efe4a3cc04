"""What a generator draws of seen and of held-out pairs, from the adjectives that judges choose for
its images.

For a pair p, judges choose its adjective for a fraction a(p) of a generator's images. If x(p) of
these images show the pair, and all others the noun with a usual adjective,

    a(p) = x(p) up(p) + (1 - x(p)) low(p).

up and low depend on the generator's style: judges recognize a black bill less often in a blurred
picture, and take a brown one for black more often in a dark picture. Both are predicted for each
held-out pair from the generator's own images of seen pairs. On the scale of logits, up(p) is that
of the *reference*, whose images show what is asked, plus an effect of the style, of the adjective
and of the noun; low(p) is that of the *usual pair*, whose images show the noun with another, seen
adjective, plus such effects on how often the judges choose an adjective for images of other pairs.
Effects are normal, which shrinks those of few images (``_predict``).

The fraction x(p) is estimated from these ends, pulled to that of all pairs where they are close,
and averaged over prompts. A model *composes* the mean of x over held-out pairs, relative to that
over seen pairs of the same frequency: 1 if it draws held-out pairs as well as seen ones. On the
scale of the run, where the usual pair is 0 and the reference 1, *draws seen pairs* is s, and *draws
held-out pairs* is s times what it composes.

Only prompts whose pair the judges *recognize* count: for images of the reference in the other half
of the images, they choose the right adjective more often than all wrong ones together.

The interval for the *same pairs* and judges resamples images, or classes, by the Bayesian bootstrap
(Rubin 1981, Annals of Statistics 9:130), for the generator and its anchors at once. Each resample
also draws the effects' errors from their normal distributions, so that it estimates the whole
posterior (Newton, Polson and Xu 2021, Canadian Journal of Statistics 49:421). The interval for *new
pairs* is in ``_over_new_pairs``.
"""

import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from compclip.core.heldout import split_pair
from compclip.core.inputs import require_length
from compclip.core.seeds import rng
from compclip.core.tables import HELD_OUT
from compclip.stats import crossed
from compclip.stats.interval import LEVEL

SEEN = "test_seen"

REGIONS = (0.1, 0.4, 0.6, 0.9)
REGION_WORDS = ("memorizes", "hardly composes", "half", "mostly composes", "composes")

# Judges recognize a pair if they choose its adjective for more than this fraction of the images
# that show it.
LEAST_RECOGNIZED = 0.5
# Held-out prompts and pairs that must be recognized for an estimate.
LEAST_PROMPTS, LEAST_PAIRS = 0.5, 5
# A generator draws seen pairs if the interval of s is above this.
LEAST_DRAWN = 0.1

RESAMPLES = 500
# Standard deviations on the scale of logits, of the effect of a style, and of that of an adjective,
# a noun or the offset's slope. They are wide for the styles of `make styles`: a judge that is sure
# of all pairs gives small effects.
STYLE_SPREAD, EFFECT_SPREAD = 3.0, 0.5
# The least spread of a pair around its prediction: what adjective and noun leave open even where
# seen pairs agree.
UP_SPREAD, LOW_SPREAD = 0.3, 1.0
# Prior of a rate: as many images, with this rate. Usual pairs are seldom mistaken.
UP_PRIOR, LOW_PRIOR = (1.4, 0.5), (4.0, 0.03)
MOST_TRIALS = 200  # images that count for a rate of ``low``, whose entries serve several pairs
# A pair's fraction is pulled to that of all pairs with this much evidence, and bounded: noise
# exceeds 0 and 1.
EVIDENCE, BOUNDS = 0.1, (-1.0, 1.2)
# Bounds of the fraction of all pairs to which these are pulled, and the least evidence that it is
# divided by.
OVERALL_BOUNDS, LEAST_EVIDENCE = (-0.2, 1.2), 0.02
LEAST_OF_SEEN = (
    0.3  # of seen pairs, in the generator's own style, that held-out pairs are relative to
)


def verdict_of(low: float, high: float) -> str:
    """Return the name of the region that contains an interval, or a range of regions such as
    "hardly to half".
    """
    first = int(np.searchsorted(REGIONS, low, side="right"))
    last = max(first, int(np.searchsorted(REGIONS, high, side="left")))
    if first == last:
        return REGION_WORDS[first]
    return " to ".join(REGION_WORDS[region].removesuffix(" composes") for region in (first, last))


@dataclass(frozen=True)
class Choices:
    """What J judges choose for n images of a generator, in the order of the prompts.

    A prompt without an image has 0 and None.
    """

    first: np.ndarray  # (n, J) the chance that the prompt's own adjective is chosen
    chosen: np.ndarray  # (n, J) names of the adjectives that are chosen; None where there is none


@dataclass(frozen=True)
class Fraction:
    """A fraction with its intervals; None where it is not measured."""

    value: float
    same_pairs_low: float | None = None
    same_pairs_high: float | None = None
    new_pairs_low: float | None = None
    new_pairs_high: float | None = None
    prompts: int = 0
    pairs: int = 0
    # (RESAMPLES,) the values of all resamples, for simultaneous intervals
    resampled: np.ndarray = field(default_factory=lambda: np.empty(0), repr=False)


@dataclass(frozen=True)
class Skills:
    """What a generator draws: of seen pairs, and by split of held-out pairs, absolutely and
    relative to seen ones.

    Splits are those of the prompts, and ``tables.HELD_OUT`` for all held-out prompts.
    """

    seen: Fraction | None  # None if no seen pair is recognized
    held_out: Mapping[str, Fraction] = field(default_factory=dict)
    composes: Mapping[str, Fraction] = field(default_factory=dict)
    # of each recognized pair; drawn: the fraction x, relative to seen pairs
    by_pair: pd.DataFrame = field(
        default_factory=lambda: pd.DataFrame(columns=["split", "pair", "prompts", "drawn"])
    )
    why: str | None = None  # why there is no verdict


def _sigmoid(logits: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-np.clip(logits, -30, 30)))


def _logit(rates: np.ndarray) -> np.ndarray:
    clipped = np.clip(rates, 0.002, 0.998)
    return np.log(clipped / (1 - clipped))


def _shrunk(rates: np.ndarray, trials: np.ndarray, prior: tuple[float, float]) -> np.ndarray:
    """Return rates of so many trials, with as many trials of the prior more."""
    more, rate = prior
    return (rates * trials + rate * more) / (trials + more)


def _fit(
    rates: np.ndarray,
    weights: np.ndarray,
    design: np.ndarray,
    offset: np.ndarray,
    spread: np.ndarray,
    center: np.ndarray,
    start: np.ndarray,
    steps: int,
) -> np.ndarray:
    """Return the effects (B, k) of B logistic regressions with normal priors around ``center``, by
    Newton's method.
    """
    effects = start.copy()
    transposed = design.swapaxes(1, 2)
    diagonal = np.arange(len(spread))
    for _ in range(steps):
        expected = _sigmoid((design @ effects[..., None])[..., 0] + offset)
        variance = weights * np.maximum(expected * (1 - expected), 1e-3)
        gradient = (transposed @ (weights * (rates - expected))[..., None])[..., 0]
        gradient -= (effects - center) / spread**2
        curvature = transposed @ (design * variance[..., None])
        curvature[:, diagonal, diagonal] += 1 / spread**2
        step = np.linalg.solve(curvature, gradient[..., None])[..., 0]
        # A longer step may overshoot where all rates are near 0 or 1.
        length = np.abs(step).max(axis=1, keepdims=True)
        effects += step * np.minimum(1, 2 / np.maximum(length, 1e-9))
    return effects


@dataclass(frozen=True)
class _Model:
    """A regression of the rates of pairs, (B, K), on the rates of an anchor."""

    names: np.ndarray  # (K, k) which adjective and which noun each pair has
    dispersion: float  # variance of an image's mean over judges, relative to that of a coin
    least_spread: float  # of pairs around their prediction
    stream: np.random.Generator

    def _design(self, offset: np.ndarray, center: float) -> np.ndarray:
        """Return (B, K, 2 + k): the style, adjectives and nouns, and the slope of the offset."""
        resamples, pairs = offset.shape
        style = np.ones((resamples, pairs, 1))
        names = np.broadcast_to(self.names, (resamples, *self.names.shape))
        return np.concatenate([style, names, (offset - center)[..., None]], axis=2)

    def predict(
        self, rates: np.ndarray, trials: np.ndarray, offset: np.ndarray, target: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Fit rates at ``offset``; return those at ``target``, expected and with each pair's own
        error, (B, K).

        The first of B resamples has neither errors of effects nor of pairs. Pairs without trials
        are not fitted.
        """
        center = float(offset[0].mean())
        design = self._design(offset, center)
        spread = np.full(design.shape[2], EFFECT_SPREAD)
        spread[0] = STYLE_SPREAD
        none = np.zeros((1, len(spread)))
        one = slice(0, 1)
        first = _fit(
            rates[one],
            trials[one] / self.dispersion,
            design[one],
            offset[one],
            spread,
            none,
            none,
            25,
        )
        pair_spread = self._pair_spread(
            rates[0], trials[0], _sigmoid((design[0] @ first[0]) + offset[0])
        )
        # Images of one pair share its error, so that many of them tell little about effects.
        variance = np.maximum(rates[0] * (1 - rates[0]), 1e-3)
        weights = trials / (self.dispersion + trials * variance * pair_spread**2)
        first = _fit(rates[one], weights[one], design[one], offset[one], spread, none, first, 25)
        center_of_effects = self.stream.normal(size=(len(rates), len(spread))) * spread
        center_of_effects[:, 0] = 0
        center_of_effects[0] = 0
        start = np.repeat(first, len(rates), axis=0)
        effects = _fit(rates, weights, design, offset, spread, center_of_effects, start, 4)
        expected = (self._design(target, center) @ effects[..., None])[..., 0] + target
        errors = self.stream.normal(size=target.shape) * pair_spread
        errors[0] = 0
        return _sigmoid(expected), _sigmoid(expected + errors)

    def _pair_spread(self, rates: np.ndarray, trials: np.ndarray, expected: np.ndarray) -> float:
        """Return the standard deviation of pairs around their prediction, by the method of
        moments.
        """
        variance = expected * (1 - expected)
        squares = trials * (rates - expected) ** 2 / variance
        known = trials > 0
        excess = float((squares[known] - self.dispersion).sum())
        return float(np.clip(excess / (trials * variance).sum(), self.least_spread**2, 4.0) ** 0.5)


class Scale:
    """The scale of one composition: its prompts, and what judges choose for images of the reference
    and usual pair.

    Args:
        prompts: n rows with the columns split, pair (``adjective_noun``), cluster (the image, or
            the class of its image), matched (whether a seen pair is as frequent as the held-out
            ones) and counts (whether a held-out prompt may count).
        reference: choices for images that show what is asked.
        usual: choices for images that show the noun with a usual adjective.
        resamples: of the bootstrap.
    """

    def __init__(
        self, prompts: pd.DataFrame, reference: Choices, usual: Choices, resamples: int = RESAMPLES
    ) -> None:
        from scipy import sparse  # slow to import

        self.prompts, self.reference, self.usual = prompts, reference, usual
        n, self.judges = reference.first.shape
        require_length(n, "prompts", prompts=prompts, usual=usual.first, chosen=reference.chosen)
        pair, self.pairs = pd.factorize(prompts["pair"], sort=True)
        adjectives, nouns = zip(*map(split_pair, self.pairs), strict=True)
        self.adjective, self.adjectives = pd.factorize(np.array(adjectives, object), sort=True)
        self.noun, self.nouns = pd.factorize(np.array(nouns, object), sort=True)
        self.names = np.hstack(
            [np.eye(len(self.adjectives))[self.adjective], np.eye(len(self.nouns))[self.noun]]
        )
        self.pair = pair
        self.of_pair = sparse.csr_array(
            (np.ones(n), (np.arange(n), pair)), shape=(n, len(self.pairs))
        )
        self.is_seen = (prompts["split"] == SEEN).to_numpy()
        cluster, names = pd.factorize(prompts["cluster"].astype(str), sort=True)
        weights = rng(0, "composed").exponential(size=(resamples, len(names)))
        self.weights = np.vstack([np.ones(n), weights[:, cluster]])
        # By name, so that more images do not move others to the other half.
        half = np.array([zlib.crc32(name.encode()) % 2 for name in names])[cluster]
        matched = self.is_seen & prompts["matched"].to_numpy(bool)
        held_out = ~self.is_seen & prompts["counts"].to_numpy(bool)
        self.is_recognized = self._recognized(half, matched) | self._recognized(half, held_out)
        self.held_out = held_out
        self.up_offset = self._offset(reference, UP_PRIOR)
        self.low_offset = self._offset(usual, LOW_PRIOR)
        mistaken, self.trials = self._mistaken(reference.chosen)
        self.mistaken_offset = _logit(_shrunk(mistaken, self.trials, LOW_PRIOR))

    def _recognized(self, half: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return which of the rows (n,) have a pair that is recognized in the other half of the
        images.
        """
        result = np.zeros(len(rows), bool)
        right = self.reference.first.mean(axis=1)
        for number in (0, 1):
            other = (
                pd.Series(right[rows & (half != number)])
                .groupby(self.pair[rows & (half != number)])
                .mean()
            )
            recognized = other.index[other > LEAST_RECOGNIZED]
            result |= rows & (half == number) & np.isin(self.pair, recognized)
        return result

    def _rates(self, values: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the means (B, K) of values (n,) by pair over some rows, and the sums of
        weights.
        """
        weights, of_pair = self.weights[:, rows], self.of_pair[rows]
        size = weights @ of_pair
        total = (weights * values[rows]) @ of_pair
        return np.divide(total, size, out=np.zeros_like(total), where=size > 0), size

    def _mistaken(self, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return how often a pair's adjective is chosen for seen images of its noun with another
        one, (B, K).
        """
        from scipy import sparse  # slow to import

        rows, judges = np.nonzero((pd.notna(chosen)) & self.is_seen[:, None])
        adjective = pd.Index(self.adjectives).get_indexer(chosen[rows, judges])
        number = {key: pair for pair, key in enumerate(zip(self.adjective, self.noun, strict=True))}
        noun = self.noun[self.pair[rows]]
        pair = np.array(
            [number.get(key, -1) for key in zip(adjective, noun, strict=True)], dtype=int
        )
        wrong = (pair >= 0) & (pair != self.pair[rows])
        share = np.full(int(wrong.sum()), 1 / self.judges)
        counts = sparse.csr_array((share, (rows[wrong], pair[wrong])), shape=self.of_pair.shape)
        seen = self.weights[:, self.is_seen]
        of_pair = seen @ self.of_pair[self.is_seen]
        of_noun = of_pair @ np.eye(len(self.nouns))[self.noun]
        size = np.maximum(of_noun[:, self.noun] - of_pair, 0)
        total = seen @ counts[self.is_seen]
        return np.divide(total, size, out=np.zeros_like(total), where=size > 0), size

    def _offset(self, anchor: Choices, prior: tuple[float, float]) -> np.ndarray:
        """Return the logits (B, K) of an anchor's rates."""
        rates, size = self._rates(anchor.first.mean(axis=1), np.ones(len(self.pair), bool))
        return _logit(_shrunk(rates, size, prior))

    def ends(self, generator: Choices) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return how often a pair's adjective is chosen for images in the generator's style, (B,
        K).

        Returns:
            up, expected and with the pair's own error, and low.
        """
        right = generator.first.mean(axis=1)
        rates, size = self._rates(right, self.is_seen)
        expected = rates[0][self.pair]
        variance = (expected * (1 - expected))[self.is_seen].sum()
        dispersion = (
            float(((right - expected)[self.is_seen] ** 2).sum() / variance) if variance > 0 else 1.0
        )
        dispersion = max(dispersion, 1 / self.judges)
        stream = rng(0, "composed", "errors")
        upper = _Model(self.names, dispersion, UP_SPREAD, stream)
        up, up_with_error = upper.predict(rates, size, self.up_offset, self.up_offset)
        mistaken, _ = self._mistaken(generator.chosen)
        lower = _Model(self.names, dispersion, LOW_SPREAD, stream)
        trials = np.minimum(self.trials, MOST_TRIALS)
        _, low = lower.predict(mistaken, trials, self.mistaken_offset, self.low_offset)
        return up, up_with_error, low

    def _drawn(
        self, right: np.ndarray, rows: np.ndarray, up: np.ndarray, low: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the fraction of prompts (B,), and of each pair (B, K), whose pair is drawn, and
        weights (B, K).
        """
        rates, size = self._rates(right, rows)
        weights = size / size.sum(axis=1, keepdims=True)
        evidence = up - low
        above = rates - low
        whole = np.maximum((weights * evidence).sum(axis=1), LEAST_EVIDENCE)
        overall = np.clip((weights * above).sum(axis=1) / whole, *OVERALL_BOUNDS)[:, None]
        fractions = (above + EVIDENCE * overall) / np.maximum(evidence + EVIDENCE, EVIDENCE / 2)
        fractions = np.clip(fractions, *BOUNDS)
        return (weights * fractions).sum(axis=1), fractions, weights

    def recognized(self, served: Collection[str] | None = None) -> dict[str, np.ndarray]:
        """Return the recognized rows (n,) of each served held-out split that has some, and of all
        of them.
        """
        names = self.prompts["split"].to_numpy()
        counted = self.held_out & self.is_recognized
        if served is not None:
            counted = counted & np.isin(names, list(served))
        splits = {name: counted & (names == name) for name in dict.fromkeys(names[counted])}
        return splits | ({HELD_OUT: counted} if counted.any() else {})

    @property
    def too_few(self) -> str | None:
        """Return why the judges recognize too few held-out pairs for a verdict; None if they
        recognize enough.
        """
        counted = self.held_out & self.is_recognized
        pairs = len(np.unique(self.pair[counted]))
        prompts = counted.sum() / max(1, self.held_out.sum())
        if pairs >= LEAST_PAIRS and prompts >= LEAST_PROMPTS:
            return None
        total = len(np.unique(self.pair[self.held_out]))
        return (
            f"the judges recognize too few held-out pairs: {pairs} of {total}, {prompts:.0%} of "
            "the prompts;"
            f" at least {LEAST_PAIRS} and {LEAST_PROMPTS:.0%} are needed"
        )

    def draws_seen(self, generator: Choices) -> Fraction | None:
        """Return the fraction of matched seen prompts whose pair is drawn; None if no such pair is
        recognized.
        """
        rows = self.is_seen & self.is_recognized
        return self.draws(generator, rows) if rows.any() else None

    def draws(self, generator: Choices, rows: np.ndarray) -> Fraction:
        """Return the fraction of some prompts, rows (n,), whose pair is drawn, on the scale of the
        run.
        """
        ends = _sigmoid(self.up_offset), _sigmoid(self.low_offset)
        drawn, _, _ = self._drawn(generator.first.mean(axis=1), rows, *ends)
        return _fraction(drawn, int(rows.sum()), len(np.unique(self.pair[rows])))

    def draws_by_pair(self, generator: Choices, rows: np.ndarray) -> dict[str, Fraction]:
        """Return the same for the prompts of each pair, by its name.

        A pair for which reference and usual pair are close is pulled to the mean of all these rows.
        """
        ends = _sigmoid(self.up_offset), _sigmoid(self.low_offset)
        _, fractions, _ = self._drawn(generator.first.mean(axis=1), rows, *ends)
        prompts = np.bincount(self.pair[rows], minlength=len(self.pairs))
        asked = np.flatnonzero(prompts)
        return {
            self.pairs[pair]: _fraction(fractions[:, pair], int(prompts[pair]), 1) for pair in asked
        }

    def skills(self, generator: Choices, served: Collection[str] | None = None) -> Skills:
        """Estimate what a generator draws of seen and of held-out pairs.

        Args:
            generator: choices for its images, in the order of the prompts.
            served: the held-out splits that it serves; None: all.
        """
        require_length(len(self.pair), "prompts", first=generator.first, chosen=generator.chosen)
        splits = self.recognized(served)
        seen = self.draws_seen(generator)
        if seen is None or not splits:
            kind = "matched seen" if seen is None else "held-out"
            return Skills(None, why=f"the judges recognize no {kind} pair")
        if seen.same_pairs_low is None or seen.same_pairs_low <= LEAST_DRAWN:
            return Skills(seen, why="it cannot draw seen pairs well enough to tell")
        right = generator.first.mean(axis=1)
        up, up_with_error, low = self.ends(generator)
        of_seen, _, _ = self._drawn(right, self.is_seen & self.is_recognized, up, low)
        # A resample in which hardly a seen pair is drawn would divide by almost 0.
        of_seen = np.maximum(of_seen, LEAST_OF_SEEN)
        absolute = np.append(seen.value, seen.resampled)
        held_out, composes, tables = {}, {}, []
        for split, rows in splits.items():
            drawn, fractions, weights = self._drawn(right, rows, up_with_error, low)
            ratio = drawn / of_seen
            known = weights[0] > 0
            counts = int(rows.sum()), int(known.sum())
            of_pairs = fractions[0, known] / of_seen[0]
            low_end, high_end = self._over_new_pairs(of_pairs, weights[0, known], known)
            composes[split] = replace(
                _fraction(ratio, *counts), new_pairs_low=low_end, new_pairs_high=high_end
            )
            held_out[split] = _fraction(ratio * absolute, *counts)
            prompts = np.bincount(self.pair[rows], minlength=len(self.pairs))[known]
            table = {
                "split": split,
                "pair": self.pairs[known],
                "prompts": prompts,
                "drawn": of_pairs,
            }
            tables.append(pd.DataFrame(table))
        return Skills(seen, held_out, composes, pd.concat(tables, ignore_index=True), self.too_few)

    def _over_new_pairs(
        self, fractions: np.ndarray, weights: np.ndarray, known: np.ndarray
    ) -> tuple[float | None, float | None]:
        """Return the interval for other pairs, of other adjectives and nouns, of the weighted mean
        of fractions.

        A model may fail by pair, by adjective or by noun, so each of them is resampled in turn,
        with one more of each, as bad or as good as can be (``crossed.over_pairs``); the widest
        interval counts.
        """
        lows, highs = [], []
        for group in (np.arange(known.sum()), self.adjective[known], self.noun[known]):
            number = np.unique(group, return_inverse=True)[1]
            if number.max() < 1:
                return None, None
            value = np.bincount(number, weights=weights * fractions)
            size = np.bincount(number, weights=weights)
            low, high = crossed.over_pairs(value, size, (0.0, 1.0)) or (-np.inf, np.inf)
            lows.append(low)
            highs.append(high)
        return max(0.0, min(lows)), max(*highs, float(weights @ fractions))


def _fraction(values: np.ndarray, prompts: int, pairs: int) -> Fraction:
    """Return the fraction whose first value is of the data, and others of resamples."""
    fraction = Fraction(float(values[0]), prompts=prompts, pairs=pairs, resampled=values[1:])
    return at_level(fraction, LEVEL)


def at_level(fraction: Fraction, level: float) -> Fraction:
    """Return a fraction with the interval of this level for the same pairs."""
    tail = (1 - level) / 2
    low, high = np.quantile(fraction.resampled, [tail, 1 - tail])
    low, high = min(fraction.value, float(low)), max(fraction.value, float(high))
    return replace(fraction, same_pairs_low=low, same_pairs_high=high)


def shared_level(fractions: Sequence[Fraction], level: float = LEVEL) -> float:
    """Return the level that each of several intervals needs for a simultaneous coverage of
    ``level``.

    The fractions are of the same resamples. The most extreme rank of each resample, among all
    fractions, has the quantile at which all intervals together miss 1 - ``level``.
    """
    values = np.stack([fraction.resampled for fraction in fractions])
    ranks = values.argsort(axis=1).argsort(axis=1) + 0.5
    tails = np.minimum(ranks, values.shape[1] - ranks) / values.shape[1]
    return float(1 - 2 * np.quantile(tails.min(axis=0), 1 - level))
