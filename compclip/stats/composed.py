"""What a generator draws of seen and of held-out pairs, from the adjectives that judges choose for
its images.

For a pair p, judges choose its adjective for a fraction a(p) of a generator's images. If x(p) of
these images show the pair, and all others the noun with a usual adjective,

    a(p) = x(p) sensitivity(p) + (1 - x(p)) false_positive_rate(p).

Both rates depend on the generator's style: judges recognize a black bill less often in a blurred
picture, and take a brown one for black more often in a dark picture. They are predicted for each
held-out pair from the generator's own images of seen pairs. On the scale of logits, the sensitivity
is that of the *reference*, whose images show what is asked, plus an effect of the style, of the
adjective and of the noun; the false-positive rate is that of the *usual pair*, whose images show
the noun with another, seen adjective, plus such effects on how often the judges choose an adjective
for images of other pairs. Effects are normal, which shrinks those of few images
(``_Model.predict``).

Solved for x(p), this is the estimator of Rogan and Gladen (1978, American Journal of Epidemiology
107:71-76) of a prevalence. It is pulled to that of all pairs where both rates are close, and
averaged over prompts. A model *composes* the mean of x over held-out pairs, relative to that
over seen pairs of the same frequency: 1 if it draws held-out pairs as well as seen ones. On the
scale of the run, where the usual pair is 0 and the reference 1, *draws seen pairs* is s, and *draws
held-out pairs* is s times what it composes.

Only prompts whose pair the judges *recognize* count: for images of the reference in the other half
of the images, they choose the right adjective more often than all wrong ones together.

The interval for the *same pairs* and judges resamples images, or classes, by the Bayesian bootstrap
(Rubin 1981, Annals of Statistics 9:130), for the generator and its anchors at once. Each resample
also draws the effects' errors from their normal distributions, so that it estimates the whole
posterior (Newton, Polson and Xu 2021, Canadian Journal of Statistics 49:421). The interval for *new
pairs* is in ``Scale._over_new_pairs``.

The *anchors* are the reference and the usual pair. Shapes of arrays: n prompts, J judges, K pairs,
w adjectives and nouns, k effects, and B = 1 + resamples; the first is the data.
"""

import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from compclip.core.artifacts.heldout import split_pair
from compclip.core.seeds import rng
from compclip.core.settings.arguments import require_length
from compclip.core.tables import HELD_OUT
from compclip.stats import crossed
from compclip.stats.interval import LEVEL

if TYPE_CHECKING:
    from scipy.sparse import csr_array

SEEN = "test_seen"

# Edges between the regions of what a model composes: a choice, so that each has a plain name.
REGIONS = (0.1, 0.4, 0.6, 0.9)
REGION_WORDS = ("memorizes", "hardly composes", "half", "mostly composes", "composes")

# Judges recognize a pair if they choose its adjective for more than this fraction of the images
# that show it: more often than all wrong ones together.
LEAST_RECOGNIZED = 0.5
# Fraction of the held-out prompts, and number of held-out pairs, that must be recognized for a
# verdict. Both are choices: most of what was held out, and more than a handful.
LEAST_PROMPTS = 0.5
LEAST_PAIRS = 5
# A generator draws seen pairs if the interval of s is above this: a choice, the same as the first
# edge of ``REGIONS``.
LEAST_DRAWN = 0.1

# Each fits two regressions anew, so they are few; the 2.5 % quantile has 12 of them below it.
RESAMPLES = 500


class RatePrior(NamedTuple):
    """A beta prior of a rate, as pseudo-counts: so many trials, of this rate."""

    trials: float
    rate: float


# Standard deviations on the scale of logits, of the effect of a style, and of that of an adjective,
# a noun or the offset's slope. The first is wide, because a style may hide a part from the judges.
# These and the constants below were chosen by hand, by the errors on the styles and laws of
# `make styles`. So docs/styles.md reports errors where the constants were chosen; no style and no
# law was kept aside.
STYLE_SPREAD = 3.0
EFFECT_SPREAD = 0.5
# The least spread of a pair around its prediction: what adjective and noun leave open even where
# seen pairs agree.
SENSITIVITY_SPREAD = 0.3
FALSE_POSITIVE_SPREAD = 1.0
# Judges choose the asked adjective for few images of the usual pair: they are seldom mistaken.
SENSITIVITY_PRIOR = RatePrior(1.4, 0.5)
FALSE_POSITIVE_PRIOR = RatePrior(4.0, 0.03)
# Images that count at most for a rate of false choices: an image of a noun counts for each other
# pair of that noun, so that pairs of a frequent noun would look far more certain than they are.
MOST_TRIALS = 200
# The evidence of a pair is its sensitivity less its false-positive rate (Youden's index). Its
# fraction is pulled to that of all pairs, ``overall``, by this much more evidence,
# (a - false_positive_rate + SHRINKAGE overall) / (evidence + SHRINKAGE),
# and bounded: noise exceeds 0 and 1.
SHRINKAGE = 0.1
BOUNDS = (-1.0, 1.2)
# Bounds of the fraction of all pairs to which these are pulled, and the least evidence that it is
# divided by.
OVERALL_BOUNDS = (-0.2, 1.2)
LEAST_EVIDENCE = 0.02
# Least fraction of seen pairs, in the generator's own style, that held-out pairs are divided by. In
# that style it is near 1, also for a generator that ignores many prompts, because its sensitivity
# is then as low; the bound keeps single resamples from dividing by almost 0.
LEAST_OF_SEEN = 0.3

# The most spread of a pair around its prediction: with 2 logits, nine of ten pairs of an expected
# rate of 50 % are between 4 and 96 %, so more would say nothing else.
MOST_SPREAD = 2.0
# Rates are kept this far from 0 and 1: half of one image of 250, and most pairs have fewer images.
LEAST_RATE = 0.002
# Least p(1 - p), that of a rate of 0.1 %, so that rates of 0 and 1 still have a curvature and pairs
# of these rates a variance. ``_pair_spread`` needs none, because its result is bounded.
LEAST_VARIANCE = 1e-3

# Steps of Newton's method: from zero, and from the estimate of the data; the longest one, in
# logits.
COLD_STEPS = 25
WARM_STEPS = 4
LONGEST_STEP = 2


def verdict_of(low: float, high: float) -> str:
    """Return the name of the region that contains an interval, or a range of regions such as
    "hardly to half".
    """
    # An end on an edge is in the region that lies in the interval.
    first = int(np.searchsorted(REGIONS, low, side="right"))
    end = int(np.searchsorted(REGIONS, high, side="left"))
    last = max(first, end)
    if first == last:
        return REGION_WORDS[first]
    edges = (REGION_WORDS[first], REGION_WORDS[last])
    return " to ".join(words.removesuffix(" composes") for words in edges)


@dataclass(frozen=True)
class JudgeChoices:
    """What J judges choose for n images of a generator, in the order of the prompts.

    A prompt without an image has 0 and None.
    """

    # (n, J) the chance that the prompt's own adjective is chosen; below 1 also where adjectives tie
    own_chance: np.ndarray
    chosen: np.ndarray  # (n, J) names of the adjectives that are chosen; None where there is none

    @property
    def mean_own_chance(self) -> np.ndarray:
        """Return the chance of the prompt's own adjective, averaged over judges, (n,)."""
        return self.own_chance.mean(axis=1)


@dataclass(frozen=True)
class Fraction:
    """A fraction with its intervals; None where it is not measured."""

    value: float
    same_pairs_low: float | None = None
    same_pairs_high: float | None = None
    new_pairs_low: float | None = None
    new_pairs_high: float | None = None
    n_prompts: int = 0
    n_pairs: int = 0
    # (RESAMPLES,) the values of all resamples, for simultaneous intervals
    resampled: np.ndarray = field(default_factory=lambda: np.empty(0), repr=False)


def _no_pairs() -> pd.DataFrame:
    return pd.DataFrame(columns=["split", "pair", "prompts", "composes"])


@dataclass(frozen=True)
class Skills:
    """What a generator draws: of seen pairs, and by split of held-out pairs, absolutely and
    relative to seen ones.

    Splits are those of the prompts, and ``tables.HELD_OUT`` for all held-out prompts.
    """

    # None if no matched seen pair, or no held-out pair, is recognized
    draws_seen: Fraction | None
    draws_held_out: Mapping[str, Fraction] = field(default_factory=dict)
    composes: Mapping[str, Fraction] = field(default_factory=dict)
    # of each recognized pair; composes: the fraction x, relative to seen pairs
    by_pair: pd.DataFrame = field(default_factory=_no_pairs)
    no_verdict_reason: str | None = None  # None: there is a verdict


class ChoiceRates(NamedTuple):
    """How often a pair's adjective is chosen for images in a generator's style, each (B, K)."""

    sensitivity: np.ndarray  # for images that show the pair, expected
    sensitivity_with_error: np.ndarray  # with the pair's own error
    # for images that show the noun with a usual adjective; with error, because it is predicted from
    # images of other pairs, for seen pairs, too
    false_positive_rate: np.ndarray


class _Drawn(NamedTuple):
    """The fraction of prompts whose pair is drawn."""

    fraction: np.ndarray  # (B,)
    by_pair: np.ndarray  # (B, K)
    weights: np.ndarray  # (B, K) of the pairs in the fraction


class _Regression(NamedTuple):
    """B logistic regressions of the rates of K pairs on k effects; the first is of the data, the
    others are of resamples.
    """

    rates: np.ndarray  # (B, K)
    weights: np.ndarray  # (B, K), as numbers of trials
    design: np.ndarray  # (B, K, k)
    offset: np.ndarray  # (B, K), logits

    def of_data(self) -> "_Regression":
        return _Regression(*(array[:1] for array in self))


def _sigmoid(logits: np.ndarray) -> np.ndarray:
    # Bounded, so that exp does not overflow.
    return 1 / (1 + np.exp(-np.clip(logits, -30, 30)))


def _logit(rates: np.ndarray) -> np.ndarray:
    # Bounded, because rates of 0 and 1 have infinite logits.
    clipped = np.clip(rates, LEAST_RATE, 1 - LEAST_RATE)
    return np.log(clipped / (1 - clipped))


def _shrunk(rates: np.ndarray, trials: np.ndarray, prior: RatePrior) -> np.ndarray:
    """Return rates of so many trials, together with those of the prior."""
    successes = rates * trials + prior.rate * prior.trials
    return successes / (trials + prior.trials)


def _mean(total: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Return total / size, 0 where there is nothing."""
    return np.divide(total, size, out=np.zeros_like(total), where=size > 0)


def _times(matrices: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Return the products of B matrices (B, n, k) with B vectors (B, k)."""
    return (matrices @ vectors[..., None])[..., 0]


def _one_hot(numbers: np.ndarray) -> np.ndarray:
    """Return (n, distinct) with a 1 in the column of each number."""
    return np.eye(int(numbers.max()) + 1)[numbers]


def _fit(
    regression: _Regression,
    spread: np.ndarray,
    *,
    prior_means: np.ndarray,
    start: np.ndarray,
    steps: int,
) -> np.ndarray:
    """Return the effects (B, k) at the mode of their posterior, by Newton's method.

    Effects b have normal priors with the means ``prior_means`` m and the standard deviations
    ``spread`` s. With rates y of expectation p and weights w, the gradient is
    X'w(y - p) - (b - m) / s², and the curvature X'diag(w p (1 - p))X + diag(1 / s²).
    """
    rates, weights, design, offset = regression
    effects = start.copy()
    transposed = design.swapaxes(1, 2)
    diagonal = np.arange(len(spread))
    for _ in range(steps):
        expected = _sigmoid(_times(design, effects) + offset)
        variance = weights * np.maximum(expected * (1 - expected), LEAST_VARIANCE)
        residuals = weights * (rates - expected)
        gradient = _times(transposed, residuals)
        gradient -= (effects - prior_means) / spread**2
        curvature = transposed @ (design * variance[..., None])
        curvature[:, diagonal, diagonal] += 1 / spread**2
        step = np.linalg.solve(curvature, gradient[..., None])[..., 0]
        # A longer step may overshoot where all rates are near 0 or 1.
        length = np.abs(step).max(axis=1, keepdims=True)
        # not divided by 0 where nothing is left to change
        shortening = np.minimum(1, LONGEST_STEP / np.maximum(length, 1e-9))
        effects += step * shortening
    return effects


@dataclass(frozen=True)
class _Model:
    """A regression of the rates of pairs, (B, K), on the rates of an anchor."""

    word_matrix: np.ndarray  # (K, w): 1 for the adjective and for the noun of each pair
    # of a quasi-binomial model of images' means over judges; 1: independent Bernoulli trials
    dispersion: float
    least_spread: float  # of pairs around their prediction
    stream: np.random.Generator

    def _design(self, offset: np.ndarray, center: float) -> np.ndarray:
        """Return (B, K, k), k = w + 2: the style, adjectives and nouns, the slope of the offset.

        The offset itself enters with the coefficient 1; the slope is the deviation from it, so its
        prior has the mean 0.
        """
        # Centered, so that the slope leaves the mean to the style.
        slope = (offset - center)[..., None]
        # Not ones_like: the memory order of the design, and so its rounding, would change.
        style = np.ones(slope.shape)
        shape = (len(offset), *self.word_matrix.shape)
        words = np.broadcast_to(self.word_matrix, shape)
        return np.concatenate([style, words, slope], axis=2)

    def predict(
        self, rates: np.ndarray, trials: np.ndarray, *, fit_at: np.ndarray, predict_at: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Fit the rates of pairs; return predicted ones, expected and with each pair's own error,
        (B, K).

        The first of B resamples has neither errors of effects nor of pairs. Pairs without trials
        are not fitted.

        Args:
            rates, trials: (B, K) of each pair.
            fit_at, predict_at: (B, K) offsets (logits) of ``rates``, and of those to predict.
        """
        center = float(fit_at[0].mean())
        design = self._design(fit_at, center)
        regression = _Regression(rates, trials / self.dispersion, design, fit_at)
        spread = np.full(design.shape[2], EFFECT_SPREAD)
        spread[0] = STYLE_SPREAD
        zero = np.zeros((1, len(spread)))
        effects = _fit(regression.of_data(), spread, prior_means=zero, start=zero, steps=COLD_STEPS)
        data_rates = rates[0]
        logits = (design[0] @ effects[0]) + fit_at[0]
        pair_spread = self._pair_spread(data_rates, trials[0], _sigmoid(logits))
        # Images of one pair share its error, so that many of them tell little about effects: a
        # rate p of n images has the variance p(1 - p) dispersion / n + (p(1 - p) pair_spread)².
        # p is the observed rate, so that only ``pair_spread`` comes from the first fit.
        variance = np.maximum(data_rates * (1 - data_rates), LEAST_VARIANCE)
        shared = trials * variance * pair_spread**2
        weights = trials / (self.dispersion + shared)
        regression = regression._replace(weights=weights)
        effects = _fit(
            regression.of_data(), spread, prior_means=zero, start=effects, steps=COLD_STEPS
        )
        prior_means = self._draw_prior_means(len(rates), spread)
        start = np.repeat(effects, len(rates), axis=0)
        effects = _fit(regression, spread, prior_means=prior_means, start=start, steps=WARM_STEPS)
        # By the center of the fit, to which its slope belongs.
        expected = _times(self._design(predict_at, center), effects) + predict_at
        errors = self.stream.normal(size=predict_at.shape) * pair_spread
        errors[0] = 0
        return _sigmoid(expected), _sigmoid(expected + errors)

    def _draw_prior_means(self, resamples: int, spread: np.ndarray) -> np.ndarray:
        """Return (B, k): prior means drawn anew in each resample, as weights are, so that its mode
        is a draw of the posterior (Newton, Polson and Xu 2021).
        """
        means = self.stream.normal(size=(resamples, len(spread))) * spread
        # That of the style stays 0: its prior is so wide that a drawn mean would move the effect by
        # 0.02 logits, a tenth of its error.
        means[:, 0] = 0
        means[0] = 0
        return means

    def _pair_spread(self, rates: np.ndarray, trials: np.ndarray, expected: np.ndarray) -> float:
        """Return the standard deviation of pairs around their prediction, by the method of
        moments.

        n (rate - p)² / p(1 - p) has the expectation dispersion + n p(1 - p) spread².
        """
        has_trials = trials > 0
        # For example, if each noun of the seen prompts has one adjective, no choice is false.
        if not has_trials.any():
            return self.least_spread
        variance = expected * (1 - expected)
        squares = trials * (rates - expected) ** 2 / variance
        excess = float((squares[has_trials] - self.dispersion).sum())
        spread_squared = excess / (trials * variance).sum()
        bounded = np.clip(spread_squared, self.least_spread**2, MOST_SPREAD**2)
        return float(bounded**0.5)


class Scale:
    """The scale of one composition: its prompts, and what judges choose for images of the reference
    and usual pair.

    Args:
        prompts: n rows with the columns split, pair (``adjective_noun``), cluster (the image, or
            the class of its image), matched (whether a seen pair is as frequent as the held-out
            ones) and eligible (whether a held-out prompt may count: swaps of photographs only if
            the new adjective excludes the original one).
        reference: choices for images that show what is asked.
        usual: choices for images that show the noun with a usual adjective.
        resamples: of the bootstrap.
    """

    def __init__(
        self,
        prompts: pd.DataFrame,
        reference: JudgeChoices,
        usual: JudgeChoices,
        resamples: int = RESAMPLES,
    ) -> None:
        n, self.n_judges = reference.own_chance.shape
        require_length(
            n, "prompts", prompts=prompts, usual=usual.own_chance, chosen=reference.chosen
        )
        self.prompts = prompts
        self._number_pairs()
        cluster, cluster_names = pd.factorize(prompts["cluster"].astype(str), sort=True)
        # Drawn once for all generators, whose intervals are so of the same resamples, as
        # ``shared_level`` needs; by a fixed seed, so that the run's seed changes no interval.
        exponential = rng(0, "composed").exponential(size=(resamples, len(cluster_names)))
        # (B, n): the data, and Bayesian bootstraps of the clusters
        self.weights = np.vstack([np.ones(n), exponential[:, cluster]])

        # By name, so that more images do not move others to the other half.
        halves = np.array([zlib.crc32(name.encode()) % 2 for name in cluster_names])
        half = halves[cluster]
        own_chance = reference.mean_own_chance
        # All (n,) booleans.
        self.is_seen = (prompts["split"] == SEEN).to_numpy()
        self.is_held_out = ~self.is_seen & prompts["eligible"].to_numpy(bool)
        is_matched = self.is_seen & prompts["matched"].to_numpy(bool)
        self.recognized_matched = self._recognized(own_chance, half, is_matched)
        recognized_held_out = self._recognized(own_chance, half, self.is_held_out)
        self.is_recognized = self.recognized_matched | recognized_held_out

        # The offsets of the regressions, (B, K).
        self.reference_logits = self._anchor_logits(reference, SENSITIVITY_PRIOR)
        self.usual_logits = self._anchor_logits(usual, FALSE_POSITIVE_PRIOR)
        false_choices, self.false_choice_trials = self._false_choices(reference.chosen)
        # The trials only weigh these rates against the prior, so they are not limited here.
        false_choices = _shrunk(false_choices, self.false_choice_trials, FALSE_POSITIVE_PRIOR)
        self.false_choice_logits = _logit(false_choices)

    def _number_pairs(self) -> None:
        """Number the pairs of the prompts, and the adjective and noun of each pair."""
        from scipy import sparse  # slow to import

        self.pair, self.pairs = pd.factorize(self.prompts["pair"], sort=True)
        words = np.array([split_pair(pair) for pair in self.pairs], object)
        adjectives, self.noun_names = words.T
        self.adjective, _ = pd.factorize(adjectives, sort=True)
        self.noun, _ = pd.factorize(self.noun_names, sort=True)
        self.word_matrix = np.hstack([_one_hot(self.adjective), _one_hot(self.noun)])
        # (n, K): sums over prompts become sums over pairs
        n = len(self.pair)
        entries = (np.arange(n), self.pair)
        self.pair_matrix = sparse.csr_array((np.ones(n), entries), (n, len(self.pairs)))

    def _recognized(self, own_chance: np.ndarray, half: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return which of the rows (n,) have a pair that is recognized in the other half of the
        images.

        So no image decides whether it counts itself. A pair with images in one half alone is not
        recognized.
        """
        result = np.zeros(len(rows), bool)
        for number in (0, 1):
            deciding = rows & (half != number)
            rates = pd.Series(own_chance[deciding]).groupby(self.pair[deciding]).mean()
            recognized = rates.index[rates > LEAST_RECOGNIZED]
            decided = rows & (half == number)
            result |= decided & np.isin(self.pair, recognized)
        return result

    def _rates(self, values: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the means (B, K) of values (n,) by pair over some rows, and the sums of
        weights.
        """
        weights = self.weights[:, rows]
        pair_matrix = self.pair_matrix[rows]
        size = weights @ pair_matrix
        weighted = weights * values[rows]
        total = weighted @ pair_matrix
        rates = _mean(total, size)
        return rates, size

    def _false_choices(self, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return how often a pair's adjective is chosen for images of seen prompts that ask for its
        noun with another adjective, and the number of these images, (B, K).

        The number follows from the prompts alone, so it is the same for all generators: a missing
        image counts, as one for which no adjective is chosen.
        """
        seen_weights = self.weights[:, self.is_seen]
        pair_sizes = seen_weights @ self.pair_matrix[self.is_seen]
        noun_sizes = pair_sizes @ _one_hot(self.noun)
        # Images of the noun, less those of the pair; not below 0, which rounding can do.
        size = np.maximum(noun_sizes[:, self.noun] - pair_sizes, 0)
        wrong_choices = self._wrong_choices(chosen)
        total = seen_weights @ wrong_choices[self.is_seen]
        return _mean(total, size), size

    def _wrong_choices(self, chosen: np.ndarray) -> "csr_array":
        """Return (n, K): the fraction of judges that choose each pair for a seen image of another
        pair with its noun.
        """
        from scipy import sparse  # slow to import

        is_choice = pd.notna(chosen) & self.is_seen[:, None]
        rows, judges = np.nonzero(is_choice)
        pair = self.pair[rows]
        adjectives = chosen[rows, judges].astype(object)
        names = adjectives + "_" + self.noun_names[pair]
        # -1 for an adjective and a noun that are not a pair of the prompts
        chosen_pair = pd.Index(self.pairs).get_indexer(names)
        is_wrong = (chosen_pair >= 0) & (chosen_pair != pair)
        entries = (rows[is_wrong], chosen_pair[is_wrong])
        fractions = np.full(int(is_wrong.sum()), 1 / self.n_judges)
        return sparse.csr_array((fractions, entries), shape=self.pair_matrix.shape)

    def _anchor_logits(self, anchor: JudgeChoices, prior: RatePrior) -> np.ndarray:
        """Return the logits (B, K) of an anchor's rates."""
        # Over all prompts: an anchor's images show what is known, also those that no score counts.
        rates, size = self._rates(anchor.mean_own_chance, np.ones(len(self.pair), bool))
        return _logit(_shrunk(rates, size, prior))

    def choice_rates(self, generator: JudgeChoices) -> ChoiceRates:
        """Predict the rates in the generator's style from its images of seen pairs."""
        own_chance = generator.mean_own_chance
        # All seen prompts, also those of pairs that are not recognized: they share the style.
        rates, size = self._rates(own_chance, self.is_seen)
        dispersion = self._dispersion(own_chance, rates[0])
        # One stream for both models, in this order: a published interval depends on it. It begins
        # anew for each generator, whose interval must not depend on the others of the run.
        stream = rng(0, "composed", "errors")
        model = _Model(self.word_matrix, dispersion, SENSITIVITY_SPREAD, stream)
        sensitivity, sensitivity_with_error = model.predict(
            rates, size, fit_at=self.reference_logits, predict_at=self.reference_logits
        )
        # Images of the noun with another adjective tell how the style changes the false-positive
        # rate.
        false_choices, _ = self._false_choices(generator.chosen)
        trials = np.minimum(self.false_choice_trials, MOST_TRIALS)
        model = _Model(self.word_matrix, dispersion, FALSE_POSITIVE_SPREAD, stream)
        _, false_positive_rate = model.predict(
            false_choices, trials, fit_at=self.false_choice_logits, predict_at=self.usual_logits
        )
        return ChoiceRates(sensitivity, sensitivity_with_error, false_positive_rate)

    def _dispersion(self, own_chance: np.ndarray, rates: np.ndarray) -> float:
        """Return the variance of seen images around their pairs' rates (K,), relative to that of
        Bernoulli trials.

        No degrees of freedom are subtracted for the rates, so pairs of few images make it smaller.
        """
        expected = rates[self.pair[self.is_seen]]
        errors = own_chance[self.is_seen] - expected
        variance = (expected * (1 - expected)).sum()
        squares = (errors**2).sum()
        dispersion = float(squares / variance) if variance > 0 else 1.0
        # 1 / J is that of J judges that decide independently.
        return max(dispersion, 1 / self.n_judges)

    def _drawn(
        self,
        generator: JudgeChoices,
        rows: np.ndarray,
        *,
        sensitivity: np.ndarray,
        false_positive_rate: np.ndarray,
    ) -> _Drawn:
        """Return the fraction of prompts, rows (n,), whose pair is drawn.

        For a pair it is (a - false_positive_rate) / (sensitivity - false_positive_rate), pulled to
        that of all pairs.
        """
        rates, size = self._rates(generator.mean_own_chance, rows)
        weights = size / size.sum(axis=1, keepdims=True)
        evidence = sensitivity - false_positive_rate
        excess = rates - false_positive_rate
        overall_evidence = np.maximum((weights * evidence).sum(axis=1), LEAST_EVIDENCE)
        overall = (weights * excess).sum(axis=1) / overall_evidence
        overall = np.clip(overall, *OVERALL_BOUNDS)
        pulled = excess + SHRINKAGE * overall[:, None]
        # The least divisor is for pairs whose evidence is far below 0; that it is a half is a
        # choice.
        divisor = np.maximum(evidence + SHRINKAGE, SHRINKAGE / 2)
        fractions = np.clip(pulled / divisor, *BOUNDS)
        fraction = (weights * fractions).sum(axis=1)
        return _Drawn(fraction, fractions, weights)

    def recognized_held_out_by_split(
        self, served: Collection[str] | None = None
    ) -> dict[str, np.ndarray]:
        """Return the recognized rows (n,) of each served held-out split that has some, and of all
        of them.
        """
        split_of_prompt = self.prompts["split"].to_numpy()
        counted = self.is_held_out & self.is_recognized
        if served is not None:
            counted = counted & np.isin(split_of_prompt, list(served))
        # In the order of the prompts, which a set would not keep.
        split_names = dict.fromkeys(split_of_prompt[counted])
        splits = {name: counted & (split_of_prompt == name) for name in split_names}
        if splits:
            splits[HELD_OUT] = counted
        return splits

    @property
    def why_too_few(self) -> str | None:
        """Return why the judges recognize too few held-out pairs for a verdict; None if they
        recognize enough.
        """
        # Of all held-out prompts, whatever splits a generator serves: this is about the judges.
        counted = self.is_held_out & self.is_recognized
        pairs = np.unique(self.pair[counted]).size
        prompts = counted.sum() / max(1, self.is_held_out.sum())
        if pairs >= LEAST_PAIRS and prompts >= LEAST_PROMPTS:
            return None
        total = np.unique(self.pair[self.is_held_out]).size
        return (
            f"the judges recognize too few held-out pairs: {pairs} of {total}, {prompts:.0%} of "
            f"the prompts; at least {LEAST_PAIRS} and {LEAST_PROMPTS:.0%} are needed"
        )

    def draws_seen(self, generator: JudgeChoices) -> Fraction | None:
        """Return the fraction of recognized matched seen prompts whose pair is drawn; None if there
        are none.
        """
        rows = self.recognized_matched
        return self.draws(generator, rows) if rows.any() else None

    def _drawn_on_scale(self, generator: JudgeChoices, rows: np.ndarray) -> _Drawn:
        """Return what is drawn on the scale of the run, where the usual pair is 0 and the reference
        1.
        """
        return self._drawn(
            generator,
            rows,
            sensitivity=_sigmoid(self.reference_logits),
            false_positive_rate=_sigmoid(self.usual_logits),
        )

    def draws(self, generator: JudgeChoices, rows: np.ndarray) -> Fraction:
        """Return the fraction of some prompts, rows (n,), whose pair is drawn, on the scale of the
        run.
        """
        drawn = self._drawn_on_scale(generator, rows)
        pairs = np.unique(self.pair[rows])
        return _fraction(drawn.fraction, n_prompts=int(rows.sum()), n_pairs=len(pairs))

    def _count_prompts(self, rows: np.ndarray) -> np.ndarray:
        """Return the number of prompts of each pair, (K,)."""
        return np.bincount(self.pair[rows], minlength=len(self.pairs))

    def draws_by_pair(self, generator: JudgeChoices, rows: np.ndarray) -> dict[str, Fraction]:
        """Return the same for the prompts of each pair, by its name.

        A pair for which reference and usual pair are close is pulled to the mean of all these rows.
        """
        drawn = self._drawn_on_scale(generator, rows)
        prompts_by_pair = self._count_prompts(rows)
        fractions = {}
        for pair in np.flatnonzero(prompts_by_pair):
            n_prompts = int(prompts_by_pair[pair])
            values = drawn.by_pair[:, pair]
            fractions[self.pairs[pair]] = _fraction(values, n_prompts=n_prompts, n_pairs=1)
        return fractions

    def skills(self, generator: JudgeChoices, served: Collection[str] | None = None) -> Skills:
        """Estimate what a generator draws of seen and of held-out pairs.

        Args:
            generator: choices for its images, in the order of the prompts.
            served: the held-out splits that it serves; None: all.
        """
        require_length(len(self.pair), "prompts", own=generator.own_chance, chosen=generator.chosen)
        splits = self.recognized_held_out_by_split(served)
        seen = self.draws_seen(generator)
        if seen is None or not splits:
            # Then the table has this reason instead of values.
            kind = "matched seen" if seen is None else "held-out"
            return Skills(None, no_verdict_reason=f"the judges recognize no {kind} pair")
        # Only values that are fixed by definition have no interval.
        assert seen.same_pairs_low is not None
        if seen.same_pairs_low <= LEAST_DRAWN:
            reason = "it cannot draw seen pairs well enough to tell"
            return Skills(seen, no_verdict_reason=reason)
        choice_rates = self.choice_rates(generator)
        # The sensitivity was fitted to these very images of seen pairs, so it has no error of its
        # own here; for held-out pairs it is a prediction.
        drawn_seen = self._drawn(
            generator,
            self.recognized_matched,
            sensitivity=choice_rates.sensitivity,
            false_positive_rate=choice_rates.false_positive_rate,
        )
        divisor = np.maximum(drawn_seen.fraction, LEAST_OF_SEEN)
        seen_values = np.append(seen.value, seen.resampled)
        draws_held_out = {}
        composes = {}
        tables = []
        for split, rows in splits.items():
            drawn = self._drawn(
                generator,
                rows,
                sensitivity=choice_rates.sensitivity_with_error,
                false_positive_rate=choice_rates.false_positive_rate,
            )
            relative = drawn.fraction / divisor
            weights = drawn.weights[0]
            has_prompts = weights > 0
            by_pair = drawn.by_pair[0, has_prompts] / divisor[0]
            low, high = self._over_new_pairs(by_pair, weights[has_prompts], has_prompts)
            prompts_by_pair = self._count_prompts(rows)[has_prompts]
            counts = {"n_prompts": int(rows.sum()), "n_pairs": len(prompts_by_pair)}
            composed = _fraction(relative, **counts)
            composes[split] = replace(composed, new_pairs_low=low, new_pairs_high=high)
            # On the scale of the run, it draws held-out pairs as often as seen ones, times what it
            # composes.
            draws_held_out[split] = _fraction(relative * seen_values, **counts)
            names = self.pairs[has_prompts]
            columns = {"pair": names, "prompts": prompts_by_pair, "composes": by_pair}
            tables.append(pd.DataFrame({"split": split, **columns}))
        by_pair_table = pd.concat(tables, ignore_index=True)
        return Skills(seen, draws_held_out, composes, by_pair_table, self.why_too_few)

    def drawn_skills(self, shows_pair: np.ndarray, served: Collection[str]) -> Skills:
        """Return what a generator drew, of the prompts by which ``skills`` estimates it.

        Args:
            shows_pair: (n,) whether the image of each prompt shows its pair.
            served: the held-out splits that it serves.
        """
        seen_rows = self.recognized_matched
        if not seen_rows.any():
            return Skills(None)
        seen = float(shows_pair[seen_rows].mean())
        draws_seen = Fraction(seen, n_prompts=int(seen_rows.sum()))
        draws_held_out = {}
        composes = {}
        for split, rows in self.recognized_held_out_by_split(served).items():
            n_prompts = int(rows.sum())
            held_out = float(shows_pair[rows].mean())
            draws_held_out[split] = Fraction(held_out, n_prompts=n_prompts)
            # Relative to nothing, there is no fraction.
            relative = held_out / seen if seen else np.nan
            composes[split] = Fraction(relative, n_prompts=n_prompts)
        return Skills(draws_seen, draws_held_out, composes)

    def _over_new_pairs(
        self, fractions: np.ndarray, weights: np.ndarray, has_prompts: np.ndarray
    ) -> tuple[float | None, float | None]:
        """Return the interval for other pairs, of other adjectives and nouns, of the weighted mean
        of fractions.

        A model may fail by pair, by adjective or by noun, so each of them is resampled in turn,
        together with one group that was not sampled, whose fraction may be 0 or 1
        (``crossed.over_pairs``); the lowest and the highest end count.

        Args:
            fractions, weights: of the pairs that have prompts.
            has_prompts: (K,) which of all pairs these are.
        """
        lows = []
        highs = []
        pairs = np.flatnonzero(has_prompts)
        for groups in (pairs, self.adjective[pairs], self.noun[pairs]):
            _, number = np.unique(groups, return_inverse=True)
            if number.max() < 1:  # one group alone cannot be resampled
                return None, None
            value = np.bincount(number, weights=weights * fractions)
            size = np.bincount(number, weights=weights)
            interval = crossed.over_pairs(value, size, (0.0, 1.0))
            assert interval is not None  # weights are above 0
            low, high = interval
            lows.append(low)
            highs.append(high)
        # No model composes less than nothing, but one may draw held-out pairs better than seen
        # ones, so only the low end is limited. Noise may put the mean outside of the interval.
        mean = float(weights @ fractions)
        return min(mean, max(0.0, min(lows))), max(mean, *highs)


def _fraction(values: np.ndarray, *, n_prompts: int, n_pairs: int) -> Fraction:
    """Return the fraction whose first value is of the data, and others of resamples."""
    fraction = Fraction(
        float(values[0]), n_prompts=n_prompts, n_pairs=n_pairs, resampled=values[1:]
    )
    return at_level(fraction, LEVEL)


def at_level(fraction: Fraction, level: float) -> Fraction:
    """Return a fraction with the interval of this level for the same pairs."""
    tail = (1 - level) / 2
    low, high = np.quantile(fraction.resampled, [tail, 1 - tail])
    # The interval always contains the value, which has no errors of effects.
    return replace(
        fraction,
        same_pairs_low=min(fraction.value, float(low)),
        same_pairs_high=max(fraction.value, float(high)),
    )


def shared_level(fractions: Sequence[Fraction], level: float = LEVEL) -> float:
    """Return the level that each of several intervals needs for a simultaneous coverage of
    ``level``.

    These are simultaneous credible intervals by ranks (Besag, Green, Higdon and Mengersen 1995,
    Statistical Science 10:3-41). The fractions are of the same resamples. The most extreme rank of
    each resample, among all fractions, has the quantile at which all intervals together miss
    1 - ``level``.
    """
    values = np.stack([fraction.resampled for fraction in fractions])
    resamples = values.shape[1]
    # argsort twice gives ranks from 0; a value is in the middle of its rank.
    ranks = values.argsort(axis=1).argsort(axis=1) + 0.5
    tails = np.minimum(ranks, resamples - ranks) / resamples
    most_extreme = tails.min(axis=0)
    return float(1 - 2 * np.quantile(most_extreme, 1 - level))
