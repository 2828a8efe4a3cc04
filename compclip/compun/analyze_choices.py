"""Compute how often each model chooses the compound's image, by prompt, and test the differences.

Source: Kumar et al., "Do Vision-Language Models Understand Compound Nouns?" (NAACL 2024), sections 3, 5, 6, A.1.
"""

from collections.abc import Callable, Iterator
from functools import partial
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

# right: fraction of compounds whose image is chosen. tied: not right because of a tie. first: whose image ranks first
# among all. wrong, <kind>: fraction of wrong answers among compounds of a kind (the paper's figure 3). similarity,
# <kind>: mean of right answers (figure 4). minus template, minus <model>: difference of right on common compounds, in
# the usual prompts; p is of McNemar's exact test with Holm's correction, for the prompts of a model or all of models.
RIGHT, TIED, FIRST, MINUS, WRONG, SIMILARITY = "right", "tied", "first", "minus ", "wrong, ", "similarity, "
COLUMNS = ["model", "prompt", "measure", "value", "low", "high", "n", "p"]
PEOPLE = "people"
Row = dict[str, Any]


def estimate_mean(
    table: pd.DataFrame, values: pd.Series, measure: str, model: str, prompt: str, *, resamples: int, seed: int
) -> Row:
    """Return a row: the mean of ``values`` (n >= 1), of booleans the fraction that is true, and its interval.

    If all other values are equal, there is no interval.
    """
    of = interval.share if values.dtype == bool else interval.mean
    drawn = rng(seed, measure, model, prompt)
    mean = of(table["compound"].to_numpy(str), values.to_numpy(), np.ones(len(table)), resamples, drawn)
    constant = values.dtype != bool and values.nunique() == 1
    low, high = (None, None) if constant else (mean.low, mean.high)
    return dict(zip(COLUMNS, (model, prompt, measure, mean.value, low, high, len(table), None), strict=True))


def measures(choices: pd.DataFrame, kinds: pd.Series, estimate: Callable[..., Row]) -> Iterator[Row]:
    """Yield the rows of each model and prompt by itself; ``kinds`` are those of compounds that have one."""
    for (model, prompt), answers in choices.groupby(["model", "prompt"], sort=False):
        right, rival = answers["right"], answers[["similarity_n1", "similarity_n2"]].max(axis=1)
        yield estimate(answers, right, RIGHT, model, prompt)
        yield estimate(answers, ~right & (answers["similarity_compound"] == rival), TIED, model, prompt)
        yield estimate(answers, answers["rank"] == 1, FIRST, model, prompt)
        for kind in NOUNS_SEEN:
            of_kind = answers[answers["compound"].map(kinds) == kind]
            if len(of_kind):
                yield estimate(of_kind, ~of_kind["right"], f"{WRONG}{kind}", model, prompt)
            if of_kind["right"].any():
                chosen = of_kind[of_kind["right"]]
                yield estimate(chosen, chosen["similarity_compound"], f"{SIMILARITY}{kind}", model, prompt)


def differences(choices: pd.DataFrame, estimate: Callable[..., Row]) -> Iterator[Row]:
    """Yield the differences of the usual prompts from the template, and of every two models under each prompt."""
    usual = usual_prompts(list(choices["prompt"].unique()))
    models = list(choices["model"].unique())
    answers = choices.set_index(["model", "prompt", "compound"])["right"].unstack(["model", "prompt"])
    pairs = [((model, prompt), (model, "template")) for model in models for prompt in usual if prompt != "template"]
    between = [((b, prompt), (a, prompt)) for prompt in usual for a, b in combinations(models, 2)]
    families: dict[str, list[Row]] = {}
    for one, other in pairs + between:
        if not {one, other} <= set(answers):
            continue
        both = answers[[one, other]].dropna().astype(bool).reset_index()
        if both.empty:
            continue
        a, b = both[one], both[other]
        same_model = one[0] == other[0]
        measure = f"{MINUS}{other[1] if same_model else other[0]}"
        table = pd.DataFrame({"compound": both["compound"].to_numpy()})
        row = estimate(table, a.astype(float) - b.astype(float), measure, *one)
        p = mcnemar(a.to_numpy(), b.to_numpy())
        families.setdefault(one[0] if same_model else "", []).append(row | {"p": p})
    for family in families.values():
        for row, p in zip(family, holm([row["p"] for row in family]), strict=True):
            yield row | {"p": float(p)}


def analyze_choices(
    choices: pd.DataFrame, compounds: pd.DataFrame, people: Row | None = None, *, resamples: int = 2000, seed: int = 0
) -> pd.DataFrame:
    """Return measures of the choices, and their differences.

    Args:
        choices: ``CHOICES``.
        compounds: ``COMPOUNDS``.
        people: value, low, high and n of human accuracy, if people were asked.
        resamples: resamples of the 95 % intervals, over compounds.
        seed: seed of every random choice.

    Returns:
        ``COLUMNS``: a row for each model, prompt and measure; p for differences only.
    """
    require(len(choices), "choices", "there are none", "at least one model and one complete compound are needed")
    others = set(choices["compound"]) - set(compounds["compound"])
    require(not others, "choices", f"{len(others)} compounds are not in the table of compounds", "run classify again")
    kinds = compounds.dropna(subset="kind").set_index("compound")["kind"]
    estimate = partial(estimate_mean, resamples=resamples, seed=seed)
    if kinds.empty:
        log.warning("warning: compounds: no compound has a kind; there is no figure by kind")
    rows = [*measures(choices, kinds, estimate), *differences(choices, estimate)]
    if people:
        rows.append({"model": PEOPLE, "measure": RIGHT, **people})
    table = pd.DataFrame(rows, columns=COLUMNS)
    for row in table[table["measure"] == RIGHT].itertuples():
        values = (row.model, row.prompt, 100 * row.value, 100 * row.low, 100 * row.high, row.n)
        log.info("%s, %s: %.1f %% [%.1f, %.1f] of %d", *values)
    return table
