"""Summarize the answers, the agreement of the workers, and the correlation of the scores with the answers."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from compclip.core import cli
from compclip.core.log import log
from compclip.core.rounding import DECIMALS, json_values
from compclip.core.seeds import rng
from compclip.human.correlation import correlations, other_scores, run_scores
from compclip.human.opinions import TIE, majorities, preferences, screen
from compclip.human.people_figure import draw_people
from compclip.human.steps import Analyze
from compclip.human.tasks import KINDS, PROMPT
from compclip.io import atomic_folder, spreadsheet_safe, write_json
from compclip.plot.drawing import save, style
from compclip.stats.agreement import agreement


def kind_summary(kind: str, rows: pd.DataFrame, opinions: pd.DataFrame, resamples: int, seed: int) -> dict[str, Any]:
    """Return counts, majorities, agreement and times of one kind.

    ``rows`` are as from ``majorities``; ``opinions`` are those of kept workers, checks included.
    """
    majority_counts = rows["majority"].value_counts()
    ones = np.round(rows["share"].fillna(0) * rows["answers"]).to_numpy(int)
    answers = np.stack([ones, rows["answers"].to_numpy(int) - ones], axis=1)
    return {
        "tasks": len(rows),
        "answered": int((rows["answers"] > 0).sum()),
        "answers": int(rows["answers"].sum()),
        "majorities": {str(name): int(n) for name, n in sorted(majority_counts.items()) if name != TIE},
        "ties": int(majority_counts.get(TIE, 0)),
        "agreement": agreement(answers, rows["image_id"].to_numpy(), resamples, rng(seed, "agreement", kind)),
        "seconds_mean": opinions["seconds"].mean(),
        "seconds_median": opinions["seconds"].median(),
    }


def main(step: Analyze) -> None:
    screened = screen(step.tasks, step.answers, step.keep)
    kept, resamples = screened.kept, step.bootstrap
    tasks = majorities(kept, screened.tasks)
    preferred = preferences(kept, resamples, step.seed)
    scores = run_scores(screened.tasks, step.scores)
    scores |= {name: other_scores(Path(path)) for name, path in step.other_scores.items()}
    correlated = correlations(tasks, scores, resamples, step.seed)
    kinds = {
        kind: kind_summary(kind, tasks[tasks["kind"] == kind], kept[kept["kind"] == kind], resamples, step.seed)
        for kind in KINDS
        if (tasks["kind"] == kind).any()
    }
    workers = screened.worker_counts()
    people = workers["answered"] - workers["excluded"]
    summary = {
        "seed": step.seed, "records": dict(sorted(screened.records.items())), "answers": len(screened.opinions),
        "workers": {**workers, "keep": step.keep, "answers_excluded": len(screened.opinions) - len(kept)},
        "kinds": kinds,
        "preferences": preferred.to_dict("records"),
        "correlations": correlated.to_dict("records"),
    }  # fmt: skip
    count = (kept["check"] == "none").sum()
    about = f"n = {count:,} answers of {people} people; lines: 95 % intervals over images; seed {step.seed}"
    tables = {
        "tasks": tasks[["task_id", "kind", *PROMPT, "a", "b", "answers", "share", "majority"]],
        "workers": screened.numbered_workers(),
        "preferences": preferred,
        "correlations": correlated,
    }
    with atomic_folder(step.analysis) as folder, style():
        for name, table in tables.items():
            spreadsheet_safe(table.round(DECIMALS)).to_csv(folder / f"{name}.csv", index=False, lineterminator="\n")
        save(draw_people(preferred, correlated, about), folder / "people.svg", "What people answered", about)
    write_json(json_values(summary), step.summary)
    for kind, of_kind in kinds.items():
        alpha, counts = of_kind["agreement"]["alpha"], (of_kind["answers"], of_kind["answered"], of_kind["tasks"])
        agreed = "undefined" if alpha is None else f"{alpha:.2f}"
        log.info("%s: %d answers to %d of %d tasks, %d ties, alpha %s", kind, *counts, of_kind["ties"], agreed)


if __name__ == "__main__":
    cli.run(main)
