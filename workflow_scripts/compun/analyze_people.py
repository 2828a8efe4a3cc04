"""How often do people choose the compound's picture, how far do they agree, and which compounds confuse them?

Writes people.json, items.csv (a row a compound and kind: votes, majority) and workers.csv. Workers who miss too many
tasks with a known answer are left out, and counted; artifacts name nobody. Human accuracy is the mean of the workers'
own, as in the paper's table 1; beside it stands that of the majority. Source: Kumar et al., "Do Vision-Language Models
Understand Compound Nouns?" (NAACL 2024), section 5 and appendix A.6.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from workflow_scripts.core import cli
from workflow_scripts.core.cli import log
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import write_json, write_text
from workflow_scripts.core.seeds import rng
from workflow_scripts.human.analyze import rounded
from workflow_scripts.human.answers import collect
from workflow_scripts.human.opinions import TIE, agreement_of, opinions_of, workers_of
from workflow_scripts.human.tasks import COMPOUND_KINDS, read_tasks
from workflow_scripts.stats import interval

ITEMS = ["kind", "compound", "answers", "share", "majority", "right"]


def votes(opinions: pd.DataFrame, kind: str) -> pd.DataFrame:
    """(compounds, answers of the kind) how often each was given; repeats and gold do not count."""
    own = opinions[(opinions["check"] == "none") & (opinions["kind"] == kind)]
    table = pd.crosstab(own["image_id"], own["answer"]).reindex(
        columns=list(COMPOUND_KINDS[kind].answers), fill_value=0
    )
    return table.sort_index()


def majority(counts: np.ndarray, answers: tuple[str, ...]) -> list[str]:
    """Of (tasks, answers) counts the most frequent answer, or TIE."""
    best = counts.max(axis=1, keepdims=True)
    first = counts.argmax(axis=1)
    return [TIE if alone > 1 else answers[at] for alone, at in zip((counts == best).sum(axis=1), first, strict=True)]


def items(opinions: pd.DataFrame, tasks: pd.DataFrame, kind: str) -> pd.DataFrame:
    """ITEMS of the compounds that have an answer. share: of answers that chose the compound's picture (compound) or
    find it confusing (confusing); majority: an answer or TIE; right: the majority's, None where there is no right."""
    counts = votes(opinions, kind)
    study = tasks[(tasks["check"] == "none") & (tasks["kind"] == kind)].set_index("image_id")["right"]
    wanted = study.reindex(counts.index) if kind == "compound" else pd.Series("yes", index=counts.index)
    places = [list(counts.columns).index(answer) for answer in wanted]
    own = np.take_along_axis(counts.to_numpy(), np.array(places, int)[:, None], axis=1)[:, 0]
    table = pd.DataFrame({"kind": kind, "compound": counts.index, "answers": counts.sum(axis=1).to_numpy()})
    table["share"] = own / table["answers"]
    table["majority"] = majority(counts.to_numpy(), COMPOUND_KINDS[kind].answers)
    table["right"] = (table["majority"] == wanted.to_numpy()) if kind == "compound" else None
    return table[ITEMS]


def human_accuracy(opinions: pd.DataFrame, resamples: int, seed: int) -> dict[str, Any] | None:
    """``value``: the mean over workers of each one's share of right answers, and its interval over compounds; n.

    The interval weighs answers so that each worker counts the same. None where nobody answered.
    """
    own = opinions[(opinions["check"] == "none") & (opinions["kind"] == "compound")]
    if own.empty:
        return None
    weights = 1 / own.groupby("worker")["worker"].transform("size").to_numpy(float)
    found = interval.share(
        own["image_id"].to_numpy(str), own["value"].to_numpy(bool), weights, resamples, rng(seed, "analyze_people")
    )
    return {"value": found.value, "low": found.low, "high": found.high, "n": int(own["image_id"].nunique())}


def main(options: argparse.Namespace) -> None:
    tasks = read_tasks(options.tasks)
    answers, counts, problems = collect(options.answers, dict(zip(tasks["task_id"], tasks["kind"], strict=True)))
    for problem in problems:
        log.warning("warning: %s", problem)
    if answers.empty:
        raise UserError(
            f"{options.answers[0]}: no answer to the tasks of {options.tasks}: are these the answers to these pages?"
        )
    opinions = opinions_of(answers, tasks)
    workers = workers_of(opinions, options.keep)
    out = workers.loc[~workers["kept"], "worker"].tolist()
    if out:
        log.warning("warning: left out, for too many wrong gold tasks: %s", ", ".join(out))
    kept = opinions[~opinions["worker"].isin(out)]
    if (kept["check"] == "none").sum() == 0:
        raise UserError(f"{options.answers[0]}: every worker missed too many tasks with a known answer: see --keep")
    asked = [kind for kind in COMPOUND_KINDS if (tasks["kind"] == kind).any()]
    found = {kind: items(kept, tasks, kind) for kind in asked}
    summary: dict[str, Any] = {
        "seed": options.seed,
        "records": dict(sorted(counts.items())),
        "workers": {
            "answered": len(workers),
            "left_out": len(out),
            "met_no_gold_task": int((workers["gold"] == 0).sum()),
        },
        "rule": f"at least {options.keep:g} of a worker's gold tasks are right, or none was met",
        "accuracy": human_accuracy(kept, options.bootstrap, options.seed),
        "kinds": {},
    }
    for kind, table in found.items():
        several = votes(kept, kind)
        several = several[several.sum(axis=1) > 1]
        agreed = agreement_of(
            several.to_numpy(), several.index.to_numpy(str), options.bootstrap, rng(options.seed, "people", kind)
        )
        wanted = int((tasks["kind"].eq(kind) & tasks["check"].eq("none")).sum())
        about = {"tasks": wanted, "answered": len(table), "answers": int(table["answers"].sum()),
                 "ties": int((table["majority"] == TIE).sum()), "agreement": agreed}  # fmt: skip
        if kind == "compound":
            about["majority_right"] = float(table["right"].mean()) if len(table) else None
        else:
            about["confusing"] = table.loc[table["majority"] == "yes", "compound"].tolist()
        summary["kinds"][kind] = about
    everything = pd.concat(found.values()).round(6)
    write_text(everything.to_csv(index=False, lineterminator="\n"), options.output / "items.csv")
    numbered = workers.assign(worker=np.arange(1, len(workers) + 1)).round(6)
    write_text(numbered.to_csv(index=False, lineterminator="\n"), options.output / "workers.csv")
    write_json(rounded(summary), options.output / "people.json")
    if summary["accuracy"]:
        log.info(
            "people are right in %.1f %%, mean of %d", 100 * summary["accuracy"]["value"], kept["worker"].nunique()
        )
    for name in summary["kinds"].get("confusing", {}).get("confusing", []):
        log.info("confusing: %s", name)


def arguments() -> argparse.ArgumentParser:
    parser = cli.parser(__doc__)
    parser.add_argument("--tasks", type=Path, required=True, help="tasks.parquet")
    parser.add_argument(
        "--answers", nargs="+", type=Path, required=True, metavar="FILE", help=".jsonl, or the site's results .csv"
    )
    parser.add_argument("--keep", type=float, default=0.75, help="share of a worker's gold tasks that must be right")
    parser.add_argument("--bootstrap", type=cli.resamples, default=2000, help="resamples of an interval")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, required=True, metavar="FOLDER", help="for the tables and people.json")
    return parser


if __name__ == "__main__":
    cli.run(main, arguments())
