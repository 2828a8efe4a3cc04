"""Say what people answered, how far they agree, and how far the scores agree with them.

Workers who miss too many tasks with a known answer are left out, and counted. Artifacts name workers by number, in
the order of their names: whoever needs the names has the files of answers. Intervals are of 95 %, over images.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from workflow_scripts.core import cli
from workflow_scripts.core.cli import log
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import atomic_folder, read_table, write_json
from workflow_scripts.core.records import read_records
from workflow_scripts.core.section import read_settings
from workflow_scripts.core.seeds import rng
from workflow_scripts.core.tables import SCORES
from workflow_scripts.human.answers import collect
from workflow_scripts.human.config import HumanConfig
from workflow_scripts.human.correlation import correlations
from workflow_scripts.human.cost import hourly
from workflow_scripts.human.opinions import (
    ALL,
    TIE,
    agreement,
    majorities,
    opinions_of,
    preferences,
    prompt_key,
    workers_of,
)
from workflow_scripts.human.tasks import KINDS, PROMPT, read_tasks
from workflow_scripts.plot.drawing import WIDTH, name_rows, note, save, style
from workflow_scripts.plot.labels import SPLIT_COLORS, SPLIT_MARKS, SPLIT_NAMES

DIGITS = 6
# Scores of the run, and what they are called.
OURS = {"expected_top1": "R-precision", "similarity": "similarity"}
# Files with something wrong in them: this many lines are said on the screen, all in the log.
SAID = 5
COLUMNS_OF_TASK = ["task_id", "kind", *PROMPT, "a", "b", "answers", "share", "majority"]
ALL_COLOR = "#222222"

Known = dict[tuple[Any, ...], float]


def run_scores(tasks: pd.DataFrame, folder: Path) -> dict[str, Known]:
    """The run's own scores of the images in ``tasks``, by name, generator and prompt."""
    shown = tasks[tasks["check"] == "none"]
    names = sorted({*shown["generator_1"], *shown["generator_2"].dropna()})
    found: dict[str, Known] = {name: {} for name in OURS}
    for generator in names:
        for split in sorted(shown["split"].unique()):
            path = folder / generator / f"{split}.parquet"
            if not path.is_file():
                continue
            for row in read_table(path, SCORES).assign(split=split).to_dict("records"):
                for name in OURS:
                    found[name][generator, *prompt_key(row)] = row[name]
    return found


def other_score(path: Path) -> Known:
    """A score from a file with the columns generator, split, image_id, caption_id, score and, if need be, draw.

    Raises UserError for a row without a number, and for a second score of one image.
    """
    table, bad = read_records(path, ["generator", "split", "image_id", "caption_id", "score"], ["draw"])
    if bad:
        raise UserError(f"{path}: {bad[0]}: mend it")
    found: Known = {}
    for row in table.to_dict("records"):
        try:
            key = (row["generator"], *prompt_key({"draw": 0, **row}))
            score = float(row["score"])
        except (TypeError, ValueError):
            raise UserError(f"{path}: {row['where']}: caption_id, draw and score must be numbers") from None
        if not np.isfinite(score):
            raise UserError(f"{path}: {row['where']}: score is {row['score']}: leave rows without a score out")
        if key in found:
            raise UserError(f"{path}: {row['where']}: a second score of this image; draws are told apart by draw")
        found[key] = round(score, DIGITS)
    return found


def rounded(value: Any) -> Any:
    """Floats with six decimals, None for NaN, all the way down."""
    if isinstance(value, Mapping):
        return {key: rounded(v) for key, v in value.items()}
    if isinstance(value, list):
        return [rounded(v) for v in value]
    if isinstance(value, float | np.floating):
        return None if np.isnan(value) else round(float(value), DIGITS) + 0.0
    return value.item() if isinstance(value, np.generic) else value


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    return rounded(table.astype(object).where(table.notna(), None).to_dict("records"))


def kind_summary(
    kind: str, rows: pd.DataFrame, opinions: pd.DataFrame, pay: float, resamples: int, seed: int
) -> dict[str, Any]:
    """How much was answered, majorities, agreement and pay of one kind.

    rows: as ``majorities`` gives them; opinions: of kept workers, checks included.
    """
    counts = rows["majority"].value_counts()
    seconds = opinions["seconds"]
    return {
        "tasks": len(rows),
        "answered": int((rows["answers"] > 0).sum()),
        "answers": int(rows["answers"].sum()),
        "majorities": {str(name): int(n) for name, n in sorted(counts.items()) if name != TIE},
        "ties": int(counts.get(TIE, 0)),
        "agreement": agreement(rows, resamples, rng(seed, "analyze", "agreement", kind)),
        "seconds_mean": seconds.mean() if len(seconds) else None,
        "seconds_median": seconds.median() if len(seconds) else None,
        "hourly_at_median": hourly(pay, seconds.median()) if len(seconds) and seconds.median() > 0 else None,
    }


SHARES = {
    "perceptual": "preferred to other generators' image",
    "match": "image said to match its caption",
    "caption": "own caption chosen of two",
}


def draw_people(shares: pd.DataFrame, correlation: pd.DataFrame, about: str) -> Figure:
    """Shares by generator and split, a panel a kind; below, Kendall's tau-b of each score with the answers."""
    kinds = [kind for kind in KINDS if (shares["kind"] == kind).any()]
    tau = correlation[
        (correlation["statistic"] == "kendall")
        & (correlation["level"] == "image")
        & correlation["value"].notna()
        & correlation["low"].notna()
    ]
    panels = [shares[(shares["kind"] == kind) & shares["against"].isin([np.nan, None, ALL])] for kind in kinds]
    lines = [panel["generator"].nunique() for panel in panels]
    below = tau[["kind", "score"]].drop_duplicates()
    heights = [n + 0.8 for n in [*lines, *([len(below)] if len(below) else [])]]
    figure = Figure(figsize=(WIDTH, 0.42 * sum(heights) + 1.6))
    axes_of = figure.subplots(len(heights), 1, squeeze=False, height_ratios=heights)[:, 0]
    splits = ["test_seen", "test_unseen", "test_swapped"]
    for axes, kind, panel in zip(axes_of, kinds, panels, strict=False):
        names = list(panel["generator"].drop_duplicates())
        for split, offset in zip(splits, (-0.22, 0.0, 0.22), strict=True):
            part = panel[panel["split"] == split]
            y = np.array([names.index(name) for name in part["generator"]]) + offset
            axes.hlines(y, 100 * part["low"], 100 * part["high"], color=SPLIT_COLORS[split], linewidth=1.6)
            axes.plot(
                100 * part["share"], y, SPLIT_MARKS[split], color=SPLIT_COLORS[split], markersize=4.5,
                linestyle="none", label=SPLIT_NAMES[split],
            )  # fmt: skip
        if kind != "match":
            axes.axvline(50, color="#555555", linewidth=1, linestyle=":")
        axes.set_xlim(-2, 102)
        axes.set_title(f"{SHARES[kind]}, %")
        name_rows(axes, names)
    if len(below):
        axes = axes_of[-1]
        names = [tuple(pair) for pair in below.itertuples(index=False)]
        for split, offset in zip([ALL, *splits], (-0.27, -0.09, 0.09, 0.27), strict=True):
            part = tau[tau["split"] == split]
            y = np.array([names.index(pair) for pair in zip(part["kind"], part["score"], strict=True)]) + offset
            color, mark = SPLIT_COLORS.get(split, ALL_COLOR), SPLIT_MARKS.get(split, "o")
            axes.hlines(y, part["low"], part["high"], color=color, linewidth=1.6)
            label = "all splits" if split == ALL else "_"
            axes.plot(part["value"], y, mark, color=color, markersize=4.5, linestyle="none", label=label)
        axes.axvline(0, color="#333333", linewidth=1)
        axes.set_title("score and answers: Kendall's tau-b")
        name_rows(axes, [f"{kind}: {OURS.get(score, score)}" for kind, score in names])
    handles = {label: h for axes in axes_of for h, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles.keys(), loc="outside upper left", ncols=4, fontsize=9, handletextpad=0.2)
    note(figure, about)
    return figure


def main(options: argparse.Namespace) -> None:
    config = read_settings(HumanConfig, options.settings)
    tasks = read_tasks(options.tasks)
    answers, counts, problems = collect(options.answers, dict(zip(tasks["task_id"], tasks["kind"], strict=True)))
    for problem in problems:
        log.debug("left out: %s", problem)
    for problem in problems[:SAID]:
        log.warning("warning: %s", problem)
    if len(problems) > SAID:
        log.warning(
            "warning: %d more records are left out%s", len(problems) - SAID, ": see the log" * bool(options.log)
        )
    if answers.empty:
        raise UserError(
            f"{options.answers[0]}: no answer to the tasks of {options.tasks}: are these the answers to these pages?"
        )
    opinions = opinions_of(answers, tasks)
    workers = workers_of(opinions, config.keep)
    out = workers.loc[~workers["kept"], "worker"].tolist()
    if out:
        log.warning("warning: left out, for too many wrong gold tasks: %s", ", ".join(out))
    kept = opinions[~opinions["worker"].isin(out)]
    if (kept["check"] == "none").sum() == 0:
        raise UserError(
            f"{options.answers[0]}: no answer to the study is left: {len(out)} of {len(workers)} workers missed too"
            f" many tasks with a known answer; ask more people, or lower human.keep ({config.keep:g})"
        )
    by_task = majorities(kept, tasks)
    shares = preferences(kept, options.bootstrap, options.seed)
    known = run_scores(tasks, options.scores)
    for name, path in (pair.partition("=")[::2] for pair in options.other):
        known[name] = other_score(Path(path))
    correlation = correlations(by_task, known, options.bootstrap, options.seed)
    kinds = [kind for kind in KINDS if (by_task["kind"] == kind).any()]
    summary = {
        "seed": options.seed,
        "records": dict(sorted(counts.items())),
        "answers": len(answers),
        "workers": {
            "answered": len(workers),
            "kept": len(workers) - len(out),
            "left_out": len(out),
            "met_no_gold_task": int((workers["gold"] == 0).sum()),
            "rule": f"at least {config.keep:g} of a worker's gold tasks are right, or none was met",
            "answers_left_out": len(opinions) - len(kept),
        },
        "kinds": {
            kind: kind_summary(
                kind, by_task[by_task["kind"] == kind], kept[kept["kind"] == kind],
                getattr(config, kind).pay, options.bootstrap, options.seed,
            )
            for kind in kinds
        },
        "preferences": records(shares),
        "correlations": records(correlation),
    }  # fmt: skip
    about = (
        f"n = {len(kept[kept['check'] == 'none']):,} answers of {len(workers) - len(out)} people;"
        f" lines: 95 % intervals over images; seed {options.seed}"
    )
    with atomic_folder(options.output) as folder, style():
        tables = {
            "tasks": by_task[COLUMNS_OF_TASK],
            "workers": workers.assign(worker=np.arange(1, len(workers) + 1)),
            "preferences": shares,
            "correlations": correlation,
        }
        for name, table in tables.items():
            table = table.round(DIGITS)
            table.to_csv(folder / f"{name}.csv", index=False, lineterminator="\n")
        save(draw_people(shares, correlation, about), folder / "people.svg", "What people answered", about)
    write_json(rounded(summary), options.summary)
    for kind in kinds:
        told = summary["kinds"][kind]
        found = told["agreement"]["alpha"]
        why = "everybody answered the same" if told["agreement"]["tasks"] else "no task has two answers"
        median = told["seconds_median"]
        log.info(
            "%s: %d answers to %d of %d tasks, %d ties, alpha %s%s", kind, told["answers"], told["answered"],
            told["tasks"], told["ties"], f"undefined ({why})" if found is None else f"{found:.2f}",
            "" if median is None else f", median {median:.1f} s",
        )  # fmt: skip
    if twice := counts["contradicts another"]:
        log.warning("warning: %d answers contradict another of the same person, and the first counts", twice)


def arguments() -> argparse.ArgumentParser:
    result = cli.parser(__doc__)
    result.add_argument("--tasks", type=Path, required=True, help="tasks.parquet")
    result.add_argument(
        "--answers", nargs="+", type=Path, required=True, metavar="FILE", help=".jsonl, or the site's results .csv"
    )
    result.add_argument("--scores", type=Path, required=True, help="the run's folder of scores, a folder a generator")
    result.add_argument("--other", nargs="*", default=[], metavar="NAME=FILE", help="other scores of the same images")
    result.add_argument("--settings", default="{}", metavar="JSON", help="the config's section human, as JSON")
    result.add_argument("--bootstrap", type=cli.resamples, default=2000, help="resamples of an interval")
    result.add_argument("--seed", type=int, default=0)
    result.add_argument("--output", type=Path, required=True, help="folder of the tables and the figure")
    result.add_argument("--summary", type=Path, required=True, help="analysis.json")
    return result


if __name__ == "__main__":
    cli.run(main, arguments())
