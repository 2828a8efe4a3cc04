"""Compute how often each model chooses the compound's image, by prompt, and test the differences.

Source: Kumar et al., "Do Vision-Language Models Understand Compound Nouns?" (NAACL 2024), sections 3, 5, 6, A.1.
"""

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from workflow_scripts.compun import published
from workflow_scripts.compun.choices import is_tied
from workflow_scripts.compun.prompt_names import in_order, usual_prompts
from workflow_scripts.compun.published import OURS, PAPER
from workflow_scripts.compun.steps import AnalyzeChoices
from workflow_scripts.core import cli
from workflow_scripts.core.cli import log
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import atomic_folder, read_json, read_table, spreadsheet_safe, write_json, write_text
from workflow_scripts.core.rounding import DECIMALS
from workflow_scripts.core.seeds import rng
from workflow_scripts.core.tables import CHOICES, COMPOUNDS, NOUNS_SEEN, RETRIEVAL
from workflow_scripts.dataset.source import named
from workflow_scripts.stats import interval
from workflow_scripts.stats.paired import holm, mcnemar

# The columns of the tables.
COMPARED = [
    "between", "model", "prompt", "a", "b", "difference", "low", "high", "n", "both", "a_only", "b_only", "neither",
    "p_exact", "chi_square", "p_chi_square", "p_holm",
]  # fmt: skip
OF_KINDS = ["model", "prompt", "kind", "n", "wrong", "wrong_share", "wrong_low", "wrong_high", "right", "similarity",
            "similarity_low", "similarity_high"]  # fmt: skip
RETRIEVED = ["model", "prompt", "found", "low", "high", "n", "images", "ties", "median_rank"]
BESIDE = ["table", "whose", "model", "prompt", "value", "low", "high", "n", "note"]


class Estimator(NamedTuple):
    """Means with bootstrap intervals over compounds."""

    resamples: int
    seed: int

    def __call__(
        self, table: pd.DataFrame, values: np.ndarray, names: Sequence[str], *keys: str | int
    ) -> dict[str, float | None]:
        """Return the mean of ``values`` (n >= 1) and the ends of its interval, under three ``names``.

        The mean of booleans is the fraction that is true. If all other values are equal, there is no interval. Random
        numbers derive from the seed and ``keys``.
        """
        of = interval.share if values.dtype == bool else interval.mean
        mean = of(table["compound"].to_numpy(str), values, np.ones(len(table)), self.resamples, rng(self.seed, *keys))
        constant = values.dtype != bool and len(np.unique(values)) == 1
        ends = (None, None) if constant else (mean.low, mean.high)
        return dict(zip(names, (mean.value, *ends), strict=True))


def accuracies(choices: pd.DataFrame, estimate: Estimator) -> pd.DataFrame:
    """Return accuracy by model and prompt, in their order, and the mean similarity of the right answers.

    Of n answers, count those that are right, wrong (n1 and n2, by the distractor that was chosen), and ties.
    """
    rows = []
    for (model, prompt), answers in choices.groupby(["model", "prompt"], sort=False):
        right, tied = answers["right"].to_numpy(bool), is_tied(answers)
        wrong = answers.loc[~right & ~tied, "answer"].value_counts()
        rows.append(
            {"model": model, "prompt": prompt}
            | estimate(answers, right, ("accuracy", "low", "high"), "accuracy", model, prompt)
            | {"n": len(answers), "right": int(right.sum())}
            | {role: int(wrong.get(role, 0)) for role in ("n1", "n2")}
            | {"ties": int(tied.sum()), "similarity": answers.loc[right, "similarity_compound"].mean()}
        )
    return pd.DataFrame(rows)


def compare(choices: pd.DataFrame, between: str, estimate: Estimator) -> pd.DataFrame:
    """Compare every two prompts of each model, or every two models under each prompt, on common compounds.

    Returns COMPARED: a minus b, with the paired interval. ``p_holm`` corrects ``p_exact``: of prompts, for all tests of
    the same model; of models, for all tests under all prompts. ``a`` is the later of the two, so that differences from
    the template are gains. Pairs without a common compound are skipped.
    """
    within = {"prompt": "model", "model": "prompt"}[between]
    rows = []
    for fixed, answers in choices.groupby(within, sort=False):
        of = {name: rows.set_index("compound")["right"] for name, rows in answers.groupby(between, sort=False)}
        for b, a in combinations(of, 2):
            both = pd.concat([of[a], of[b]], axis=1, join="inner", keys=["a", "b"]).reset_index()
            if both.empty:
                continue
            difference = (both["a"].astype(float) - both["b"].astype(float)).to_numpy()
            row = {"between": between, within: fixed, "a": a, "b": b, "n": len(both)}
            names = ("difference", "low", "high")
            row |= estimate(both, difference, names, "comparison", between, fixed, a, b)
            rows.append(row | vars(mcnemar(both["a"].to_numpy(), both["b"].to_numpy())))
    table = pd.DataFrame(rows, columns=COMPARED)
    family = "model" if between == "prompt" else "between"
    table["p_holm"] = table.groupby(family)["p_exact"].transform(holm)
    return table


def by_kind(choices: pd.DataFrame, kinds: pd.Series, estimate: Estimator) -> pd.DataFrame:
    """Return OF_KINDS: wrong answers (the paper's figure 3) and the mean similarity of right ones (figure 4).

    The paper counts wrong answers; their fraction does not grow with the size of the kind. Compounds without a kind are
    skipped.
    """
    table = choices.assign(kind=pd.Categorical(choices["compound"].map(kinds), NOUNS_SEEN))
    rows = []
    for (model, prompt), answers in table.groupby(["model", "prompt"], sort=False):
        for kind, part in answers.groupby("kind", observed=True):
            wrong, right = (~part["right"]).to_numpy(bool), part[part["right"]]
            row = {"model": model, "prompt": prompt, "kind": kind, "n": len(part), "wrong": int(wrong.sum())}
            row |= estimate(part, wrong, ("wrong_share", "wrong_low", "wrong_high"), "wrong", model, prompt, kind)
            row["right"] = len(right)
            if len(right):
                values, names = right["similarity_compound"].to_numpy(float), OF_KINDS[-3:]
                row |= estimate(right, values, names, "similarity", model, prompt, kind)
            rows.append(row)
    return pd.DataFrame(rows, columns=OF_KINDS)


def retrieved(table: pd.DataFrame, estimate: Estimator) -> pd.DataFrame:
    """Return RETRIEVED: how often the compound's image is the first of all; ``table`` has columns of ``RETRIEVAL``.

    As in the benchmark, a tie does not count (the paper finds 12 %).
    """
    rows = []
    for (model, prompt), ranks in table.groupby(["model", "prompt"], sort=False):
        rank = ranks["above"] + ranks["tied"] + 1
        first = (rank == 1).to_numpy()
        rows.append(
            {"model": model, "prompt": prompt, "n": len(ranks), "images": int(ranks["images"].max())}
            | estimate(ranks, first, ("found", "low", "high"), "retrieval", model, prompt)
            | {"ties": int((ranks["tied"] > 0).sum()), "median_rank": float(rank.median())}
        )
    return pd.DataFrame(rows, columns=RETRIEVED)


def beside(
    accuracy: pd.DataFrame, retrieval: pd.DataFrame, people: dict[str, Any] | None, failed: dict[str, str]
) -> pd.DataFrame:
    """Return BESIDE: the lines of the paper's tables 1 and 2 and of its retrieval, each followed by ours.

    ``people`` has ``value``, ``low``, ``high``, ``n`` and ``note`` of human accuracy here; ``failed`` has the reasons
    why models could not be loaded.
    """

    def theirs(table: str, lines: Sequence[published.Result]) -> pd.DataFrame:
        rows = [(table, PAPER, line.model, line.prompt, line.accuracy, published.COMPOUNDS) for line in lines]
        return pd.DataFrame(rows, columns=["table", "whose", "model", "prompt", "value", "n"])

    def ours(table: str, rows: pd.DataFrame, value: str) -> pd.DataFrame:
        return rows.rename(columns={value: "value"}).assign(table=table, whose=OURS)

    def usual(rows: pd.DataFrame) -> pd.DataFrame:
        return rows[rows["prompt"].isin(usual_prompts(list(accuracy["prompt"].drop_duplicates())))]

    asked = [{"model": published.PEOPLE} | people] if people else []
    notes = [{"model": model, "note": f"not loaded: {reason}"} for model, reason in failed.items()]
    counts = [published.Result("CLIP", f"examples_{n}", value) for n, value in published.TABLE_2.items()]
    tables = [
        theirs("1", published.TABLE_1),
        ours("1", pd.DataFrame(asked), "value"),
        ours("1", usual(accuracy), "accuracy"),
        ours("1", pd.DataFrame(notes), "value"),
        theirs("2", counts),
        ours("2", accuracy[accuracy["prompt"].str.startswith("examples_")], "accuracy"),
        theirs("retrieval", [published.RETRIEVAL]),
        ours("retrieval", usual(retrieval), "found"),
    ]
    rows = [row for table in tables for row in table.to_dict("records")]
    return pd.DataFrame(rows, columns=BESIDE).astype({"n": "Int64"})


def people_of(result: dict[str, Any]) -> dict[str, Any] | None:
    """Return the accuracy in people.json and the number of workers; None if nobody chose a picture."""
    workers = result["workers"]
    kept = workers["answered"] - workers["excluded"]
    return result["accuracy"] and result["accuracy"] | {"note": f"{kept} kept, {workers['excluded']} excluded"}


def check_choices(choices: pd.DataFrame, compounds: pd.DataFrame, where: Path) -> None:
    """Raise UserError for choices of other compounds, and for no choices."""
    if choices.empty:
        raise UserError(f"{where}: no choices; at least one model and one complete compound are needed")
    other = sorted(set(choices["compound"]) - set(compounds["compound"]))
    if other:
        raise UserError(f"{where}: {other[0]!r} is not among the compounds; run classify again")


def analyze(
    compounds: pd.DataFrame, choices: pd.DataFrame, retrieval: pd.DataFrame, people: dict[str, Any] | None,
    failed: dict[str, str], estimate: Estimator,
) -> tuple[dict[str, pd.DataFrame], dict[str, Any]]:  # fmt: skip
    """Return the tables by name, and the summary; the arguments are those of ``beside`` and tables of their schemas."""
    choices = in_order(choices)
    kinds = compounds.dropna(subset="kind").set_index("compound")["kind"]
    usual = choices[choices["prompt"].isin(usual_prompts(list(choices["prompt"].unique())))]
    accuracy, ranks = accuracies(choices, estimate), retrieved(in_order(retrieval), estimate)
    comparisons = [compare(usual, between, estimate) for between in ("prompt", "model")]
    tables = {
        "accuracy": accuracy,
        "comparisons": pd.concat([part for part in comparisons if len(part)] or comparisons[:1]),
        "kinds": by_kind(choices, kinds, estimate),
        "retrieval": ranks,
        "beside": beside(accuracy, ranks, people, failed),
    }
    judged = compounds[compounds["compound"].isin(choices["compound"])]
    summary = {
        "seed": estimate.seed, "resamples": estimate.resamples, "level": interval.LEVEL, "compounds": len(compounds),
        "judged": len(judged),
        "incomplete": named(sorted(compounds.loc[~compounds["complete"], "compound"])),
        "kinds": {kind: int((judged["kind"] == kind).sum()) for kind in NOUNS_SEEN},
        "judged_without_kind": int(judged["kind"].isna().sum()),
        "models": list(choices["model"].drop_duplicates()),
        "prompts": list(choices["prompt"].drop_duplicates()),
        "not_loaded": failed, "answers": len(choices), "ties": int(accuracy["ties"].sum()), "people": people,
    }  # fmt: skip
    return tables, summary


def main(step: AnalyzeChoices) -> None:
    compounds, choices = read_table(step.compounds, COMPOUNDS), read_table(step.choices / "choices.parquet", CHOICES)
    check_choices(choices, compounds, step.choices)
    failed = {model["model"]: model["reason"] for model in read_json(step.choices / "models.json")["not_loaded"]}
    retrieval = read_table(step.choices / "retrieval.parquet", RETRIEVAL)
    people = people_of(read_json(step.people)) if step.people else None
    tables, summary = analyze(compounds, choices, retrieval, people, failed, Estimator(step.bootstrap, step.seed))
    with atomic_folder(step.analysis) as folder:
        for name, table in tables.items():
            text = spreadsheet_safe(table).to_csv(index=False, float_format=f"%.{DECIMALS}f", lineterminator="\n")
            write_text(text, folder / f"{name}.csv")
        write_json(summary, folder / "summary.json")
    if not sum(summary["kinds"].values()):
        log.warning("warning: %s: no compound has a kind; there are no figures by kind", step.compounds)
    for model, reason in failed.items():
        log.warning("warning: %s was not loaded: %s", model, reason)
    for row in tables["accuracy"].itertuples():
        values = (row.model, row.prompt, 100 * row.accuracy, 100 * row.low, 100 * row.high, row.n)
        log.info("%s, %s: %.1f %% [%.1f, %.1f] of %d", *values)


if __name__ == "__main__":
    cli.run(main)
