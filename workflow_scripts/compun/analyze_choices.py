"""How often is the compound's image chosen, by which model and prompt, and what do the wrong answers have in common?

Writes tables (CSV): accuracy, a row a model and prompt, with a bootstrap interval over compounds; comparisons, of
two prompts of a model and of two models under a prompt, on the compounds that both have (McNemar; Holm's correction
within each model for prompts, over all prompts for models); kinds, by what the compound's picture shows of its nouns,
if the list says so; retrieval, among all images; and beside, the paper's figures and ours, each line saying whose it
is.

Source: Kumar et al., "Do Vision-Language Models Understand Compound Nouns?" (NAACL 2024), sections 3, 5, 6, A.1.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from workflow_scripts.compun import published
from workflow_scripts.compun.choices import is_tied
from workflow_scripts.compun.retrieval import found
from workflow_scripts.core import cli
from workflow_scripts.core.cli import log
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import atomic_folder, read_json, read_table, write_json
from workflow_scripts.core.rounding import DECIMALS as DIGITS
from workflow_scripts.core.seeds import rng
from workflow_scripts.core.tables import CHOICES, COMPOUNDS, NOUNS_SEEN, RETRIEVAL
from workflow_scripts.dataset.source import named
from workflow_scripts.stats import interval
from workflow_scripts.stats.paired import holm, mcnemar

BASES = ("template", "reversed", "descriptions", "examples")
PROMPT = re.compile(rf"({'|'.join(BASES)})(?:_(\d+))?(_ensemble)?")
# Captions a compound, in the paper's table 1.
USUAL = 5
PAPER, OURS = "paper", "ours"


class Prompt(NamedTuple):
    """A prompt's name taken apart. captions: how many examples; None where the prompt has none."""

    base: str
    captions: int | None
    ensemble: bool


def read_prompt(name: str) -> Prompt:
    """``examples_5_ensemble`` as its parts. Raises UserError for a name of another form."""
    parts = PROMPT.fullmatch(name)
    if parts is None or (parts[1] == "examples") != (parts[2] is not None):
        raise UserError(f"prompt {name!r}: must be template, reversed, descriptions or examples_N, perhaps _ensemble")
    return Prompt(parts[1], int(parts[2]) if parts[2] else None, parts[3] is not None)


def in_order(choices: pd.DataFrame) -> pd.DataFrame:
    """Models as they come; of each the prompts in the order of BASES and of captions, those of ensembles last."""

    def place(name: str) -> tuple[bool, int, int]:
        base, captions, ensemble = read_prompt(name)
        return ensemble, BASES.index(base), captions or 0

    model = pd.factorize(choices["model"])[0]
    prompts = {name: at for at, name in enumerate(sorted(choices["prompt"].unique(), key=place))}
    return choices.iloc[np.lexsort((choices["prompt"].map(prompts), model))]


def usual_prompts(prompts: Sequence[str]) -> list[str]:
    """``prompts`` with examples by one number of captions alone: the paper's, or else the greatest there is."""
    counts = [count for _, count, _ in map(read_prompt, prompts) if count is not None]
    usual = USUAL if USUAL in counts else max(counts, default=None)
    return [name for name in prompts if read_prompt(name).captions in (None, usual)]


def estimate(
    table: pd.DataFrame, values: np.ndarray, resamples: int, seed: int, *keys: str | int
) -> dict[str, float | None]:
    """``value``, ``low``, ``high`` of the mean of ``values`` (n >= 1), its compounds resampled.

    Of truths it is the share that is true. No ends where all values are the same numbers.
    """
    of = interval.share if values.dtype == bool else interval.mean
    own = of(table["compound"].to_numpy(str), values, np.ones(len(table)), resamples, rng(seed, *keys))
    if values.dtype != bool and len(np.unique(values)) == 1:
        return {"value": own.value, "low": None, "high": None}
    return {"value": own.value, "low": own.low, "high": own.high}


def accuracies(choices: pd.DataFrame, resamples: int, seed: int) -> pd.DataFrame:
    """A row a model and prompt, in their order: accuracy with low and high, n, similarity (mean of the right ones).

    Of n are right, n1 and n2 (wrong, by the distractor that was chosen), and ties, which are not right either.
    """
    rows = []
    for (model, prompt), own in choices.groupby(["model", "prompt"], sort=False):
        right = own["right"].to_numpy(bool)
        about = estimate(own, right, resamples, seed, "accuracy", model, prompt)
        tied = is_tied(own)
        wrong = own.loc[~right & ~tied, "answer"].value_counts()
        rows.append(
            {
                "model": model, "prompt": prompt, "accuracy": about["value"], "low": about["low"],
                "high": about["high"], "n": len(own), "right": int(right.sum()), "n1": int(wrong.get("n1", 0)),
                "n2": int(wrong.get("n2", 0)), "ties": int(tied.sum()),
                "similarity": own.loc[right, "similarity_compound"].mean(),
            }
        )  # fmt: skip
    return pd.DataFrame(rows)


COMPARED = [
    "between", "model", "prompt", "a", "b", "difference", "low", "high", "n", "both", "a_only", "b_only", "neither",
    "p_exact", "chi_square", "p_chi_square", "p_holm",
]  # fmt: skip


def compare(choices: pd.DataFrame, between: str, resamples: int, seed: int) -> pd.DataFrame:
    """Every two prompts of each model (between: prompt), or every two models under each prompt (model): COMPARED.

    A row is a minus b on the compounds that both answered, with the paired interval. p_holm corrects p_exact: of two
    prompts, for all tests of the same model; of two models, for all tests under all prompts. a is the later of the two:
    against the template, what one gains. Two that have no compound in common are left out.
    """
    within = {"prompt": "model", "model": "prompt"}[between]
    rows = []
    for fixed, part in choices.groupby(within, sort=False):
        of = {name: rows.set_index("compound")["right"] for name, rows in part.groupby(between, sort=False)}
        for b, a in combinations(of, 2):
            both = pd.concat([of[a], of[b]], axis=1, join="inner", keys=["a", "b"]).reset_index()
            if both.empty:
                continue
            values = both["a"].astype(float) - both["b"].astype(float)
            about = estimate(both, values.to_numpy(), resamples, seed, "comparison", between, fixed, a, b)
            test = vars(mcnemar(both["a"].to_numpy(), both["b"].to_numpy()))
            row = {"between": between, "model": None, "prompt": None, within: fixed, "a": a, "b": b, "n": len(both)}
            rows.append(row | {"difference": about["value"], "low": about["low"], "high": about["high"]} | test)
    table = pd.DataFrame(rows, columns=COMPARED)
    if between == "prompt":
        table["p_holm"] = table.groupby("model")["p_exact"].transform(holm)
    else:
        table["p_holm"] = holm(table["p_exact"])
    return table


OF_KINDS = ["model", "prompt", "kind", "n", "wrong", "wrong_share", "wrong_low", "wrong_high", "right", "similarity",
            "similarity_low", "similarity_high"]  # fmt: skip


def by_kind(choices: pd.DataFrame, kinds: pd.Series, resamples: int, seed: int) -> pd.DataFrame:
    """OF_KINDS: the wrong answers (the paper's figure 3), and the mean similarity of the right ones (figure 4).

    kinds: of each compound; those without one are in no row. The paper counts the wrong ones: their share, beside,
    does not grow with the size of the kind.
    """
    table = choices.assign(kind=choices["compound"].map(kinds))
    rows = []
    for (model, prompt), own in table.groupby(["model", "prompt"], sort=False):
        for kind in NOUNS_SEEN:
            part = own[own["kind"] == kind]
            if part.empty:
                continue
            right = part[part["right"]]
            share = estimate(part, (~part["right"]).to_numpy(bool), resamples, seed, "wrong", model, prompt, kind)
            mean: dict[str, float | None] = {"value": None, "low": None, "high": None}
            if len(right):
                values = right["similarity_compound"].to_numpy(float)
                mean = estimate(right, values, resamples, seed, "similarity", model, prompt, kind)
            rows.append(
                {
                    "model": model, "prompt": prompt, "kind": kind, "n": len(part), "wrong": len(part) - len(right),
                    "wrong_share": share["value"], "wrong_low": share["low"], "wrong_high": share["high"],
                    "right": len(right), "similarity": mean["value"], "similarity_low": mean["low"],
                    "similarity_high": mean["high"],
                }
            )  # fmt: skip
    return pd.DataFrame(rows, columns=OF_KINDS)


RETRIEVED = ["model", "prompt", "found", "low", "high", "n", "images", "ties", "median_rank"]


def retrieved(table: pd.DataFrame, resamples: int, seed: int) -> pd.DataFrame:
    """RETRIEVED: how often the compound's image is the first of all images. table: columns of ``RETRIEVAL``."""
    rows = []
    for (model, prompt), own in table.groupby(["model", "prompt"], sort=False):
        about = estimate(own, found(own), resamples, seed, "retrieval", model, prompt)
        rows.append(
            {
                "model": model, "prompt": prompt, "found": about["value"], "low": about["low"], "high": about["high"],
                "n": len(own), "images": int(own["images"].max()), "ties": int((own["tied"] > 0).sum()),
                "median_rank": float((own["above"] + own["tied"] + 1).median()),
            }
        )  # fmt: skip
    return pd.DataFrame(rows, columns=RETRIEVED)


BESIDE = ["table", "whose", "model", "prompt", "value", "low", "high", "n", "note"]


def beside(
    accuracy: pd.DataFrame,
    retrieval: pd.DataFrame | None,
    people: dict[str, Any] | None,
    failed: dict[str, str],
) -> pd.DataFrame:
    """BESIDE: the lines of the paper's tables 1 and 2 and of its retrieval, then ours; whose: PAPER or OURS.

    people: ``value``, ``low``, ``high``, ``n`` and ``note`` of human accuracy here. failed: why a model could not be
    loaded.
    """
    rows: list[dict[str, Any]] = []

    def add(table: str, whose: str, model: str, prompt: str | None, note: str | None = None, **values: Any) -> None:
        rows.append({"table": table, "whose": whose, "model": model, "prompt": prompt, "note": note} | values)

    def of(row: Any, name: str) -> dict[str, Any]:
        return {"value": getattr(row, name), "low": row.low, "high": row.high, "n": row.n}

    for line in published.TABLE_1:
        add("1", PAPER, line.model, line.prompt, value=line.accuracy, n=published.COMPOUNDS)
    if people is not None:
        add("1", OURS, published.PEOPLE, None, **people)
    usual = usual_prompts(list(accuracy["prompt"].drop_duplicates()))
    for row in accuracy[accuracy["prompt"].isin(usual)].itertuples():
        add("1", OURS, row.model, row.prompt, **of(row, "accuracy"))
    for model, reason in failed.items():
        add("1", OURS, model, None, f"not loaded: {reason}")
    for count, value in published.TABLE_2.items():
        add("2", PAPER, "CLIP", f"examples_{count}", value=value, n=published.COMPOUNDS)
    for row in accuracy[accuracy["prompt"].str.startswith("examples_")].itertuples():
        add("2", OURS, row.model, row.prompt, **of(row, "accuracy"))
    line = published.RETRIEVAL
    add("retrieval", PAPER, line.model, line.prompt, value=line.accuracy, n=published.COMPOUNDS)
    ranks = pd.DataFrame(columns=RETRIEVED) if retrieval is None else retrieval
    for row in ranks[ranks["prompt"].isin(usual)].itertuples():
        add("retrieval", OURS, row.model, row.prompt, **of(row, "found"))
    return pd.DataFrame(rows, columns=BESIDE).astype({"n": "Int64"})


def people_of(found: dict[str, Any]) -> dict[str, Any] | None:
    """Of what ``analyze_people`` found, accuracy and how many people it is of; None where nobody chose a picture."""
    workers = found["workers"]
    kept = workers["answered"] - workers["left_out"]
    return found["accuracy"] and found["accuracy"] | {"note": f"{kept} kept, {workers['left_out']} left out"}


def check_choices(choices: pd.DataFrame, compounds: pd.DataFrame, where: Path) -> None:
    """Raises UserError for choices of other compounds, of none, and for prompts of an unknown name."""
    if choices.empty:
        raise UserError(f"{where}: no choice in it: were there a model that loads and a complete compound?")
    other = sorted(set(choices["compound"]) - set(compounds["compound"]))
    if other:
        raise UserError(f"{where}: {other[0]!r} is none of the compounds: make the choices again")
    for name in choices["prompt"].unique():
        read_prompt(name)


def analyze(
    compounds: pd.DataFrame,
    choices: pd.DataFrame,
    retrieval: pd.DataFrame | None = None,
    people: dict[str, Any] | None = None,
    failed: dict[str, str] | None = None,
    *,
    resamples: int = 2000,
    seed: int = 0,
) -> tuple[dict[str, pd.DataFrame], dict[str, Any]]:
    """The tables by name, and the summary. compounds, choices, retrieval: columns of their schemas."""
    choices = in_order(choices)
    kinds = compounds.dropna(subset="kind").set_index("compound")["kind"]
    usual = choices[choices["prompt"].isin(usual_prompts(list(choices["prompt"].unique())))]
    accuracy = accuracies(choices, resamples, seed)
    ranks = None if retrieval is None else retrieved(in_order(retrieval), resamples, seed)
    tables = {
        "accuracy": accuracy,
        "comparisons": pd.concat(
            [part for part in (compare(usual, of, resamples, seed) for of in ("prompt", "model")) if len(part)]
            or [pd.DataFrame(columns=COMPARED)]
        ),
        "kinds": by_kind(choices, kinds, resamples, seed),
        "retrieval": pd.DataFrame(columns=RETRIEVED) if ranks is None else ranks,
        "beside": beside(accuracy, ranks, people, failed or {}),
    }
    judged = compounds[compounds["compound"].isin(choices["compound"])]
    summary = {
        "seed": seed,
        "resamples": resamples,
        "level": interval.LEVEL,
        "compounds": len(compounds),
        "judged": len(judged),
        "incomplete": named(sorted(compounds.loc[~compounds["complete"], "compound"])),
        "kinds": {kind: int((judged["kind"] == kind).sum()) for kind in NOUNS_SEEN},
        "judged_without_kind": int(judged["kind"].isna().sum()),
        "models": list(choices["model"].drop_duplicates()),
        "prompts": list(choices["prompt"].drop_duplicates()),
        "not_loaded": failed or {},
        "answers": len(choices),
        "ties": int(accuracy["ties"].sum()),
        "people": people,
    }
    return tables, summary


def main(options: argparse.Namespace) -> None:
    compounds, choices = read_table(options.compounds, COMPOUNDS), read_table(options.choices, CHOICES)
    check_choices(choices, compounds, options.choices)
    failed = {one["model"]: one["reason"] for one in read_json(options.models)["not_loaded"]}
    tables, summary = analyze(
        compounds,
        choices,
        read_table(options.retrieval, RETRIEVAL) if options.retrieval else None,
        people_of(read_json(options.people)) if options.people else None,
        failed,
        resamples=options.bootstrap,
        seed=options.seed,
    )
    with atomic_folder(options.output) as folder:
        for name, table in tables.items():
            table.to_csv(folder / f"{name}.csv", index=False, float_format=f"%.{DIGITS}f", lineterminator="\n")
        write_json(summary, folder / "summary.json")
    if not sum(summary["kinds"].values()):
        log.warning("warning: %s: no compound has a kind: no figures by kind", options.compounds)
    for model, reason in failed.items():
        log.warning("warning: %s was not loaded: %s", model, reason)
    for row in tables["accuracy"].itertuples():
        log.info(
            "%s, %s: %.1f %% [%.1f, %.1f] of %d",
            *(row.model, row.prompt, 100 * row.accuracy, 100 * row.low, 100 * row.high, row.n),
        )


def arguments() -> argparse.ArgumentParser:
    parser = cli.parser(__doc__)
    parser.add_argument("--compounds", type=Path, required=True, help="compounds.parquet")
    parser.add_argument("--choices", type=Path, required=True, help="choices.parquet")
    parser.add_argument("--models", type=Path, required=True, help="models.json")
    parser.add_argument("--retrieval", type=Path, help="retrieval.parquet, where all images were candidates")
    parser.add_argument("--people", type=Path, help="people.json, where people were asked")
    parser.add_argument("--bootstrap", type=cli.resamples, default=2000, help="resamples of the intervals")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, required=True, metavar="FOLDER", help="for the tables and summary.json")
    return parser


if __name__ == "__main__":
    cli.run(main, arguments())
