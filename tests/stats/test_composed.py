"""What is composed: by a made-up world whose truth is known, in styles that judges recognize less
well.
"""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest

from compclip.core.errors import UserError
from compclip.core.tables import HELD_OUT
from compclip.stats import crossed
from compclip.stats.composed import (
    LEAST_DRAWN,
    LEAST_PAIRS,
    Fraction,
    JudgeChoices,
    Scale,
    Skills,
    shared_level,
    verdict_of,
)

ADJECTIVES = ["black", "blue", "gray", "green", "pink", "red", "tan", "white"]
NOUNS = ["bill", "crown", "tail", "wing", "belly", "eye"]
JUDGES = 3


@dataclass(frozen=True)
class Style:
    """On the scale of logits, what a style adds to how often an adjective that is shown is chosen,
    and one that is not.

    Args:
        shown, mistaken: for all adjectives.
        of: more for some adjectives.
    """

    shown: float = 0.0
    mistaken: float = 0.0
    of: tuple[tuple[str, float], ...] = ()


PLAIN = Style()


class World:
    """Prompts of all pairs, a third of which are held out, and judges that choose adjectives of
    images.
    """

    def __init__(self, seed: int = 0, images: int = 400) -> None:
        rng = np.random.default_rng(seed)
        pairs = [f"{a}_{n}" for a in ADJECTIVES for n in NOUNS]
        held_out = set(rng.permutation(pairs)[:16].tolist())
        rows = []
        for split, kinds in (("test_seen", set(pairs) - held_out), ("test_unseen", held_out)):
            names = rng.choice(sorted(kinds), 2 * images)
            rows.append(
                pd.DataFrame(
                    {"split": split, "pair": names, "cluster": np.repeat(range(images), 2)}
                )
            )
            rows[-1]["cluster"] = split + rows[-1]["cluster"].astype(str)
        self.prompts = pd.concat(rows, ignore_index=True).assign(matched=True, eligible=True)
        self.recognized = dict(zip(pairs, rng.uniform(0.6, 0.9, len(pairs)), strict=True))
        self.held_out = (self.prompts["split"] != "test_seen").to_numpy()

    def choices(self, shows: np.ndarray, style: Style = PLAIN, seed: int = 0) -> JudgeChoices:
        """Return what judges choose for images, some of which show the pair, and others a usual
        adjective.
        """
        rng = np.random.default_rng(seed)
        own = self.prompts["pair"].str.partition("_")[0].to_numpy(object)
        more = np.array([dict(style.of).get(name, 0.0) for name in own])
        shown = np.array([self.recognized[pair] for pair in self.prompts["pair"]])
        up = 1 / (1 + np.exp(-(np.log(shown / (1 - shown)) + style.shown + more)))
        low = 1 / (1 + np.exp(-(np.log(0.04 / 0.96) + style.mistaken + more)))
        chance = np.where(shows, up, low)
        first = rng.random((len(own), JUDGES)) < chance[:, None]
        weights = np.exp([style.mistaken + dict(style.of).get(name, 0.0) for name in ADJECTIVES])
        other = rng.choice(np.array(ADJECTIVES, object), first.shape, p=weights / weights.sum())
        other = np.where(other == own[:, None], "none", other)
        return JudgeChoices(first.astype(float), np.where(first, own[:, None], other))

    def scale(self, resamples: int = 100) -> Scale:
        n = len(self.prompts)
        anchors = self.choices(np.ones(n, bool), seed=1), self.choices(np.zeros(n, bool), seed=2)
        return Scale(self.prompts, *anchors, resamples)


@pytest.fixture(scope="module")
def world() -> World:
    return World()


@pytest.fixture(scope="module")
def scale(world: World) -> Scale:
    return world.scale()


def composes(scale: Scale, choices: JudgeChoices) -> Fraction:
    skills = scale.skills(choices)
    assert skills.no_verdict_reason is None
    return skills.composes[HELD_OUT]


@pytest.mark.parametrize("fraction", [0.0, 0.25, 0.5, 0.75, 1.0])
@pytest.mark.parametrize(
    "style",
    [
        PLAIN,
        Style(shown=-1.0, mistaken=0.5),
        Style(shown=0.7),
        Style(shown=-0.5, of=(("black", 1.5), ("white", -1.0), ("pink", -1.0))),
    ],
)
@pytest.mark.parametrize("by_pair", [False, True])
def test_mixtures_are_estimated_in_every_style(
    world: World, scale: Scale, fraction: float, style: Style, by_pair: bool
) -> None:
    keys = world.prompts["pair"] if by_pair else pd.Series(range(len(world.prompts)))
    rng = np.random.default_rng(3)
    draws = {key: rng.random() < fraction for key in sorted(set(keys))}
    shows = ~world.held_out | keys.map(draws).to_numpy()
    truth = shows[scale.recognized_held_out_by_split()[HELD_OUT]].mean()
    found = composes(scale, world.choices(shows, style))
    assert min(1, found.value) == pytest.approx(truth, abs=0.1)
    assert found.same_pairs_low is not None and found.same_pairs_high is not None
    assert found.same_pairs_low - 0.02 <= truth <= found.same_pairs_high + 0.02


def test_a_generator_that_draws_fewer_of_all_pairs_composes_as_much(
    world: World, scale: Scale
) -> None:
    """Seen and held-out pairs are drawn in half of the images: s is a half, and what is composed is
    1.
    """
    shows = np.random.default_rng(5).random(len(world.prompts)) < 0.5
    skills = scale.skills(world.choices(shows))
    assert skills.draws_seen is not None and skills.draws_seen.value == pytest.approx(0.5, abs=0.05)
    assert skills.composes[HELD_OUT].value == pytest.approx(1, abs=0.12)
    product = skills.draws_seen.value * skills.composes[HELD_OUT].value
    assert skills.draws_held_out[HELD_OUT].value == pytest.approx(product)


def test_a_generator_that_draws_no_seen_pair_has_no_estimate(world: World, scale: Scale) -> None:
    skills = scale.skills(world.choices(np.zeros(len(world.prompts), bool)))
    assert skills.draws_seen is not None and skills.draws_seen.same_pairs_low is not None
    assert skills.draws_seen.same_pairs_low <= LEAST_DRAWN
    assert (
        not skills.composes
        and skills.no_verdict_reason == "it cannot draw seen pairs well enough to tell"
    )


def test_pairs_that_judges_do_not_recognize_do_not_count(world: World) -> None:
    """A generator that draws unrecognized pairs alone, better than the reference, composes
    nothing.
    """
    other = World()
    for pair in sorted(set(other.prompts["pair"][other.held_out]))[:6]:
        other.recognized[pair] = 0.1
    scale = other.scale()
    unrecognized = other.prompts["pair"].map(other.recognized) < 0.5
    assert not (scale.recognized_held_out_by_split()[HELD_OUT] & unrecognized).any()
    other.recognized = {
        pair: max(0.95 * (chance < 0.5), chance) for pair, chance in other.recognized.items()
    }
    shows = ~other.held_out | unrecognized.to_numpy()
    assert composes(scale, other.choices(shows)).value == pytest.approx(0, abs=0.05)


def test_too_few_recognized_pairs_give_no_verdict() -> None:
    other = World()
    kept = sorted(set(other.prompts["pair"][other.held_out]))[: LEAST_PAIRS - 1]
    for pair in set(other.prompts["pair"][other.held_out]) - set(kept):
        other.recognized[pair] = 0.1
    skills = other.scale().skills(other.choices(np.ones(len(other.prompts), bool)))
    assert skills.no_verdict_reason is not None
    assert skills.no_verdict_reason.startswith(
        f"the judges recognize too few held-out pairs: {LEAST_PAIRS - 1} of 16, "
    )
    for pair in other.recognized:
        other.recognized[pair] = 0.1
    none = other.scale().skills(other.choices(np.ones(len(other.prompts), bool)))
    assert (
        none.no_verdict_reason == "the judges recognize no matched seen pair"
        and none.draws_seen is None
    )


def test_drawn_skills_are_counted_over_recognized_prompts(world: World, scale: Scale) -> None:
    random = np.random.default_rng(5)
    shows = random.random(len(world.prompts)) < np.where(world.held_out, 0.3, 0.6)
    drawn = scale.drawn_skills(shows, ["test_unseen"])
    held_out = shows[world.held_out & scale.is_recognized].mean()
    seen = shows[~world.held_out & scale.is_recognized].mean()
    assert drawn.draws_seen is not None
    assert drawn.draws_seen.value == pytest.approx(seen)
    assert drawn.draws_held_out[HELD_OUT].value == pytest.approx(held_out)
    assert drawn.composes["test_unseen"].value == pytest.approx(held_out / seen)


def test_nothing_is_composed_relative_to_nothing(world: World, scale: Scale) -> None:
    drawn = scale.drawn_skills(world.held_out, ["test_unseen"])
    assert np.isnan(drawn.composes[HELD_OUT].value)


def test_missing_images_count_as_wrong(world: World, scale: Scale) -> None:
    choices = world.choices(np.ones(len(world.prompts), bool))
    missing = world.held_out & (np.random.default_rng(2).random(len(world.prompts)) < 0.3)
    first = np.where(missing[:, None], 0.0, choices.own_chance)
    chosen = np.where(missing[:, None], None, choices.chosen)
    found = composes(scale, JudgeChoices(first, chosen))
    assert found.value == pytest.approx(0.7, abs=0.05)


def test_excluded_prompts_do_not_count(world: World) -> None:
    held_out = sorted(set(world.prompts["pair"][world.held_out]))[:3]
    excluded = world.prompts["pair"].isin(held_out)
    n = len(world.prompts)
    anchors = world.choices(np.ones(n, bool)), world.choices(np.zeros(n, bool))
    scale = Scale(world.prompts.assign(eligible=~excluded), *anchors, resamples=20)
    assert not (scale.recognized_held_out_by_split()[HELD_OUT] & excluded.to_numpy()).any()
    skills = scale.skills(anchors[0])
    assert not set(skills.by_pair["pair"]) & set(held_out)


def test_the_same_input_gives_the_same_values_and_ties_are_refused(world: World) -> None:
    choices = world.choices(np.ones(len(world.prompts), bool))
    anchors = choices, world.choices(np.zeros(len(world.prompts), bool))
    skills = [Scale(world.prompts, *anchors, resamples=20).skills(choices) for _ in range(2)]
    assert skills[0].composes[HELD_OUT].value == skills[1].composes[HELD_OUT].value
    assert (
        skills[0].composes[HELD_OUT].same_pairs_low == skills[1].composes[HELD_OUT].same_pairs_low
    )
    with pytest.raises(UserError, match="expected one row for each"):
        Scale(world.prompts.iloc[1:], *anchors)


def test_by_pair_and_splits_add_up(world: World, scale: Scale) -> None:
    skills: Skills = scale.skills(world.choices(np.ones(len(world.prompts), bool)))
    assert list(skills.composes) == ["test_unseen", HELD_OUT]
    of_split = skills.by_pair[skills.by_pair["split"] == "test_unseen"]
    mean = np.average(of_split["composes"], weights=of_split["prompts"])
    assert mean == pytest.approx(skills.composes["test_unseen"].value)
    assert of_split["prompts"].sum() == skills.composes["test_unseen"].n_prompts
    assert skills.composes[HELD_OUT].n_pairs == len(of_split)


@pytest.mark.parametrize("by", ["pair", "adjective", "noun"])
@pytest.mark.parametrize("chance", [0.2, 0.5, 0.8])
def test_intervals_for_new_pairs_cover_failures_by_pair_adjective_and_noun(
    scale: Scale, by: str, chance: float
) -> None:
    """Of 16 pairs of these adjectives and nouns; standard error 2 points."""
    known = (
        np.bincount(
            scale.pair[scale.recognized_held_out_by_split()[HELD_OUT]], minlength=len(scale.pairs)
        )
        > 0
    )
    group = {"pair": np.arange(len(scale.pairs)), "adjective": scale.adjective, "noun": scale.noun}[
        by
    ][known]
    rng = np.random.default_rng(0)
    weights = rng.dirichlet(np.full(known.sum(), 4.0))
    covered = 0
    for _ in range(150):
        composed = rng.random(group.max() + 1) < chance
        low, high = scale._over_new_pairs(composed[group].astype(float), weights, known)
        assert low is not None and high is not None
        covered += low <= chance <= high
    assert covered / 150 >= 0.88


def test_one_pair_has_no_interval_for_new_pairs(scale: Scale) -> None:
    known = np.zeros(len(scale.pairs), bool)
    known[0] = True
    assert scale._over_new_pairs(np.ones(1), np.ones(1), known) == (None, None)


def test_intervals_cover_over_worlds() -> None:
    """Half of the prompts, in a style; four standard errors are 9 points."""
    covered = 0
    for seed in range(40):
        world = World(seed, images=200)
        scale = world.scale(60)
        shows = ~world.held_out | (np.random.default_rng(seed).random(len(world.prompts)) < 0.5)
        found = composes(scale, world.choices(shows, Style(shown=-0.7, mistaken=0.3)))
        assert found.same_pairs_low is not None and found.same_pairs_high is not None
        covered += (
            found.same_pairs_low
            <= shows[scale.recognized_held_out_by_split()[HELD_OUT]].mean()
            <= found.same_pairs_high
        )
    assert covered >= 35


def test_simultaneous_levels() -> None:
    """Independent errors have Šidák's level, equal errors that of one."""
    rng = np.random.default_rng(0)
    values = [Fraction(0.5, resampled=rng.normal(size=20_000)) for _ in range(3)]
    assert shared_level(values) == pytest.approx(0.95 ** (1 / 3), abs=0.004)
    assert shared_level([values[0], replace(values[0])]) == pytest.approx(0.95, abs=0.001)


def test_verdicts_name_regions() -> None:
    for low, high, expected in (
        (-0.05, 0.1, "memorizes"),
        (0.1, 0.4, "hardly composes"),
        (0.41, 0.59, "half"),
        (0.6, 0.9, "mostly composes"),
        (0.9, 1.2, "composes"),
        (0.3, 0.5, "hardly to half"),
        (0.05, 0.95, "memorizes to composes"),
        (0.85, 0.95, "mostly to composes"),
        (0.4, 0.4, "half"),
    ):
        assert verdict_of(low, high) == expected


def test_newton_finds_the_posterior_mode() -> None:
    """Against a general minimizer, from scipy."""
    from scipy.optimize import minimize

    from compclip.stats.composed import _fit, _Regression

    rng = np.random.default_rng(1)
    design = rng.normal(size=(1, 30, 4))
    rates, weights, offset = (
        rng.random((1, 30)),
        rng.integers(1, 40, (1, 30)).astype(float),
        rng.normal(size=(1, 30)),
    )
    spread = np.array([3.0, 0.5, 0.5, 0.5])
    zero = np.zeros((1, 4))

    def loss(effects: np.ndarray) -> float:
        logits = design[0] @ effects + offset[0]
        likelihood = weights[0] * (np.logaddexp(0, logits) - rates[0] * logits)
        return float(likelihood.sum() + 0.5 * (effects**2 / spread**2).sum())

    expected = minimize(loss, np.zeros(4), method="BFGS").x
    regression = _Regression(rates, weights, design, offset)
    assert _fit(regression, spread, prior_means=zero, start=zero, steps=25)[0] == pytest.approx(
        expected, abs=1e-4
    )


def test_new_pairs_use_the_same_bound_as_scores() -> None:
    """All pairs at 1: the lower end is that of ``crossed.over_pairs`` for the scarcer of adjectives
    and nouns.
    """
    scale = World().scale(20)
    known = np.ones(len(scale.pairs), bool)
    weights = np.full(known.sum(), 1 / known.sum())
    low, high = scale._over_new_pairs(np.ones(known.sum()), weights, known)
    sizes = np.bincount(scale.noun, weights=weights)
    ends = crossed.over_pairs(sizes, sizes, (0.0, 1.0))
    assert ends is not None and low == pytest.approx(ends[0]) and high == 1


@pytest.mark.parametrize("fraction", [-0.4, 1.6])
def test_the_interval_for_new_pairs_contains_values_that_noise_puts_outside(
    fraction: float,
) -> None:
    scale = World().scale(20)
    known = np.ones(len(scale.pairs), bool)
    weights = np.full(known.sum(), 1 / known.sum())
    low, high = scale._over_new_pairs(np.full(known.sum(), fraction), weights, known)
    assert low is not None and high is not None
    mean = float(weights @ np.full(known.sum(), fraction))
    assert low <= mean <= high


def test_estimates_are_finite_if_no_choice_can_be_false(world: World) -> None:
    """Each seen noun has one adjective, and held-out pairs have other nouns."""
    words = world.prompts["pair"].str.partition("_")
    is_seen_noun = words[2].isin(NOUNS[:3])
    seen_adjective = words[~world.held_out].groupby(2)[0].first()
    is_only_adjective = words[0] == words[2].map(seen_adjective)
    rows = np.where(world.held_out, ~is_seen_noun, is_seen_noun & is_only_adjective)
    n = len(world.prompts)

    def choices(shows: bool, seed: int) -> JudgeChoices:
        everything = world.choices(np.full(n, shows), seed=seed)
        return JudgeChoices(everything.own_chance[rows], everything.chosen[rows])

    prompts = world.prompts[rows].reset_index(drop=True)
    scale = Scale(prompts, choices(True, 1), choices(False, 2), resamples=50)
    assert not scale.false_choice_trials.any()
    found = composes(scale, choices(True, 3))
    assert found.value == pytest.approx(1, abs=0.15)
    assert found.same_pairs_low is not None and np.isfinite(found.same_pairs_low)
