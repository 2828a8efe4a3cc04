"""Compute how often each model chooses the compound's image, by prompt, and test the differences.

Source: Kumar et al., "Do Vision-Language Models Understand Compound Nouns?" (NAACL 2024), sections
3, 5, 6, A.1.
"""

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from compclip.compun.prompts import usual_prompts
from compclip.core.errors import require
from compclip.core.log import log
from compclip.core.seeds import rng
from compclip.core.tables import NOUNS_SEEN
from compclip.stats import interval
from compclip.stats.paired import holm, mcnemar

# right: fraction of compounds whose image is chosen. tied: fraction that a tie makes wrong. first:
# fraction whose image ranks first among all. wrong, <kind>: fraction of wrong answers among
# compounds of a kind (the paper's figure 3). minus template, minus <model>: difference of right on
# common compounds, for the usual prompts; p is of McNemar's exact test, with Holm's correction over
# the prompts of a model or over all pairs of models.
RIGHT, TIED, RANKED_FIRST, MINUS, WRONG = "right", "tied", "first", "minus ", "wrong, "
ANALYSIS_COLUMNS = ["model", "prompt", "measure", "value", "low", "high", "n", "p"]
PEOPLE = "people"
# Model, prompt, measure, and its value for each compound, by the compound's name.
MeasuredCompounds = tuple[str, str, str, pd.Series]


def estimate_measure(measured: MeasuredCompounds, resamples: int, seed: int) -> dict[str, Any]:
    """Return a row: the mean of n >= 1 values (the fraction of true booleans) and its interval.

    If all other values are equal, there is no interval.
    """
    model, prompt, measure, values = measured
    estimator = interval.share if values.dtype == bool else interval.mean
    drawn, weights = rng(seed, measure, model, prompt), np.ones(len(values))
    mean = estimator(values.index.to_numpy(str), values.to_numpy(), weights, resamples, drawn)
    constant = values.dtype != bool and values.nunique() == 1
    low, high = (None, None) if constant else (mean.low, mean.high)
    return dict(
        zip(
            ANALYSIS_COLUMNS,
            (model, prompt, measure, mean.value, low, high, len(values)),
            strict=False,
        )
    )


def measure_choices(choices: pd.DataFrame, kinds: pd.Series) -> Iterator[MeasuredCompounds]:
    """Yield the measures of each model and prompt; ``kinds`` has the kinds of the compounds with a
    known one.
    """
    for (model, prompt), answers in choices.set_index("compound").groupby(
        ["model", "prompt"], sort=False
    ):
        right, rival = answers["right"], answers[["similarity_n1", "similarity_n2"]].max(axis=1)
        tied = ~right & (answers["similarity_compound"] == rival)
        values = {RIGHT: right, TIED: tied, RANKED_FIRST: answers["rank"] == 1}
        for kind in NOUNS_SEEN:
            values[f"{WRONG}{kind}"] = ~right[right.index.isin(kinds.index[kinds == kind])]
        yield from (
            (model, prompt, measure, of_compounds)
            for measure, of_compounds in values.items()
            if len(of_compounds)
        )


def compare_choices(choices: pd.DataFrame) -> Iterator[tuple[MeasuredCompounds, float]]:
    """Yield the differences of the usual prompts from the template, and of each pair of models
    under each prompt.

    Each has a p-value, corrected over its family of tests: those of its model, or those between all
    models.
    """
    usual = usual_prompts(list(choices["prompt"].unique()))
    models = list(choices["model"].unique())
    answers = choices.set_index(["model", "prompt", "compound"])["right"].unstack(
        ["model", "prompt"]
    )
    families = [
        [
            ((model, prompt), (model, "template"), "template")
            for prompt in usual
            if prompt != "template"
        ]
        for model in models
    ]
    families.append(
        [((b, prompt), (a, prompt), a) for prompt in usual for a, b in combinations(models, 2)]
    )
    for family in families:
        differences, p_values = [], []
        for one, other, name in family:
            both = answers.reindex(columns=[one, other]).dropna().astype(bool)
            if len(both):
                a, b = both[one], both[other]
                differences.append((*one, f"{MINUS}{name}", a.astype(float) - b.astype(float)))
                p_values.append(mcnemar(a.to_numpy(), b.to_numpy()))
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
    require(
        len(choices),
        "choices",
        "there are none",
        "at least one model and one complete compound are needed",
    )
    others = set(choices["compound"]) - set(compounds["compound"])
    require(
        not others,
        "choices",
        f"{len(others)} compounds are not in the table of compounds",
        "run classify again",
    )
    kinds = compounds.dropna(subset="kind").set_index("compound")["kind"]
    if kinds.empty:
        log.warning("warning: compounds: no compound has a kind; there is no figure by kind")
    rows = [
        estimate_measure(measured, resamples, seed) for measured in measure_choices(choices, kinds)
    ]
    rows += [
        estimate_measure(difference, resamples, seed) | {"p": p}
        for difference, p in compare_choices(choices)
    ]
    if people:
        rows.append({"model": PEOPLE, "measure": RIGHT, **people})
    table = pd.DataFrame(rows, columns=ANALYSIS_COLUMNS)
    for row in table[table["measure"] == RIGHT].itertuples():
        values = (row.model, row.prompt, 100 * row.value, 100 * row.low, 100 * row.high, row.n)
        log.info("%s, %s: %.1f %% [%.1f, %.1f] of %d", *values)
    return table
