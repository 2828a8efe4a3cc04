"""Compute how often each model chooses the compound's image, by prompt, and test the differences.

Source: Kumar et al., "Do Vision-Language Models Understand Compound Nouns?" (NAACL 2024), sections
3, 5, 6, A.1.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from compclip.compun.prompts import usual_prompts
from compclip.core.errors import require
from compclip.core.log import log
from compclip.core.seeds import rng
from compclip.core.tables import NOUNS_SEEN
from compclip.stats import interval
from compclip.stats.paired import holm, mcnemar

# The measures.
RIGHT = "right"  # fraction of compounds whose image is chosen
TIED = "tied"  # fraction that a tie makes wrong
RANKED_FIRST = "first"  # fraction whose image ranks first among all
# followed by a kind: fraction of wrong answers among compounds of this kind (the paper's figure 3)
WRONG = "wrong, "
# followed by `template` or a model: difference of right on common compounds, for the usual prompts.
# p is of McNemar's exact test, with Holm's correction over the prompts of a model or over all pairs
# of models.
MINUS = "minus "
ANALYSIS_COLUMNS = ["model", "prompt", "measure", "value", "low", "high", "n", "p"]
PEOPLE = "people"


class MeasuredCompounds(NamedTuple):
    """A measure of a model with a prompt, before it is summarized."""

    model: str
    prompt: str
    measure: str
    values: pd.Series  # for each compound, by name; booleans, or differences of two of them


class Comparison(NamedTuple):
    """A difference of accuracies."""

    minuend: tuple[str, str]  # model and prompt
    subtrahend: tuple[str, str]
    name: str  # of the subtrahend: its model, or `template`


def estimate_measure(measured: MeasuredCompounds, resamples: int, seed: int) -> dict[str, Any]:
    """Return a row: the mean of n >= 1 values (the fraction of true booleans) and its interval.

    If all other values are equal, there is no interval.
    """
    model, prompt, measure, values = measured
    is_fraction = values.dtype == bool
    estimator = interval.bootstrap_fraction if is_fraction else interval.bootstrap_mean
    names = values.index.to_numpy(str)
    weights = np.ones(len(values))
    generator = rng(seed, measure, model, prompt)
    mean = estimator(names, values.to_numpy(), weights, resamples, generator)
    row = {"model": model, "prompt": prompt, "measure": measure, "value": mean.value}
    # Equal fractions have Clopper and Pearson's interval; resampling equal differences gives none.
    if is_fraction or values.nunique() > 1:
        row |= {"low": mean.low, "high": mean.high}
    return row | {"n": len(values)}


def measure_choices(choices: pd.DataFrame, kinds: pd.Series) -> Iterator[MeasuredCompounds]:
    """Yield the measures of each model and prompt; ``kinds`` has the kinds of the compounds with a
    known one.
    """
    grouped = choices.set_index("compound").groupby(["model", "prompt"], sort=False)
    for (model, prompt), answers in grouped:
        right = answers["right"]
        rival = answers[["similarity_n1", "similarity_n2"]].max(axis=1)
        # A wrong answer whose image is as similar as the better distractor was decided by a tie.
        is_tie = answers["similarity_compound"] == rival
        values = {RIGHT: right, TIED: ~right & is_tie, RANKED_FIRST: answers["rank"] == 1}
        for kind in NOUNS_SEEN:
            names = kinds.index[kinds == kind]
            values[f"{WRONG}{kind}"] = ~right[right.index.isin(names)]
        for measure, compounds in values.items():
            if len(compounds):
                yield MeasuredCompounds(model, prompt, measure, compounds)


def _comparison_families(
    models: Sequence[str], prompts: Sequence[str]
) -> Iterator[list[Comparison]]:
    """Yield the comparisons whose p-values are corrected together."""
    for model in models:
        template = (model, "template")
        compared = [prompt for prompt in prompts if prompt != "template"]
        yield [Comparison((model, prompt), template, "template") for prompt in compared]
    between_models = []
    for prompt in prompts:
        for first, second in combinations(models, 2):
            between_models.append(Comparison((second, prompt), (first, prompt), first))
    yield between_models


def compare_choices(choices: pd.DataFrame) -> Iterator[tuple[MeasuredCompounds, float]]:
    """Yield the differences of the usual prompts from the template, and of each pair of models
    under each prompt.

    Each has a p-value, corrected over its family of tests: those of its model, or those between all
    models.
    """
    prompts = usual_prompts(list(choices["prompt"].unique()))
    models = list(choices["model"].unique())
    answers = choices.set_index(["model", "prompt", "compound"])["right"]
    answers = answers.unstack(["model", "prompt"])  # a row per compound, NaN without the texts
    for family in _comparison_families(models, prompts):
        differences = []
        p_values = []
        for comparison in family:
            pair = [comparison.minuend, comparison.subtrahend]
            # only compounds that have the texts of both prompts
            common = answers.reindex(columns=pair).dropna().astype(bool)
            if common.empty:
                continue
            minuend = common[comparison.minuend]
            subtrahend = common[comparison.subtrahend]
            values = minuend.astype(float) - subtrahend.astype(float)
            measure = f"{MINUS}{comparison.name}"
            differences.append(MeasuredCompounds(*comparison.minuend, measure, values))
            p_values.append(mcnemar(minuend.to_numpy(), subtrahend.to_numpy()))
        yield from zip(differences, map(float, holm(p_values)), strict=True)


def analyze_choices(
    choices: pd.DataFrame,
    compounds: pd.DataFrame,
    people: dict[str, Any] | None = None,
    *,
    resamples: int = 2000,
    seed: int = 0,
) -> pd.DataFrame:
    """Return measures of the choices, and their differences.

    Args:
        choices: ``CHOICES``.
        compounds: ``COMPOUNDS``.
        people: value, low, high and n of human accuracy, if people were asked.
        resamples: resamples of the 95 % intervals, over compounds.
        seed: seed of every random choice.

    Returns:
        ``ANALYSIS_COLUMNS``: a row for each model, prompt and measure; p for differences only.
    """
    remedy = "at least one model and one complete compound are needed"
    require(len(choices), "choices", "there are none", remedy)
    unknown = set(choices["compound"]) - set(compounds["compound"])
    fault = f"{len(unknown)} compounds are not in the table of compounds"
    require(not unknown, "choices", fault, "run classify again")
    kinds = compounds.dropna(subset="kind").set_index("compound")["kind"]
    if kinds.empty:
        log.warning("warning: compounds: no compound has a kind; there is no figure by kind")
    rows = []
    for measured in measure_choices(choices, kinds):
        rows.append(estimate_measure(measured, resamples, seed))
    for difference, p_value in compare_choices(choices):
        rows.append(estimate_measure(difference, resamples, seed) | {"p": p_value})
    if people:  # as one more model, without a prompt
        rows.append({"model": PEOPLE, "measure": RIGHT, **people})
    table = pd.DataFrame(rows, columns=ANALYSIS_COLUMNS)
    for row in table[table["measure"] == RIGHT].itertuples():
        percentages = (100 * row.value, 100 * row.low, 100 * row.high)
        log.info("%s, %s: %.1f %% [%.1f, %.1f] of %d", row.model, row.prompt, *percentages, row.n)
    return table
