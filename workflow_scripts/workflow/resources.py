"""Compare what rules request from a scheduler with what their jobs used, from the benchmark files of a run."""

import ast
import math
from pathlib import Path

import pandas as pd
from pydantic import Field

from workflow_scripts.core import cli
from workflow_scripts.core.code import ROOT
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.step import Step
from workflow_scripts.workflow.config import read_config

# Memory that Snakemake itself takes in a job, in MiB (twice 237); benchmarks of steps do not include it.
SNAKEMAKE = 500
# A rule should request at least the first multiple of what was measured, and at most the second.
MEMORY = (1.25, 4)
TIME = (2, 20)
# Requests up to these are never too much: MiB, minutes.
SMALL_MEMORY, SMALL_TIME = 2000, 30
COLUMNS = ["rule_name", "s", "max_rss", "cpu_time", "threads", "resources"]


HEADER = {
    "rule": "rule", "jobs": "jobs", "seconds": "longest s", "minutes": "requested min", "rss": "largest MiB",
    "mem_mb": "requested MB", "cpu": "busy", "threads": "of threads", "note": "note",
}  # fmt: skip


class Resources(Step):
    """Compare what rules request from a scheduler with what their jobs used in a run."""

    results: Path | None = Field(None, description="results folder of the run; default: the config's")
    config: Path = Field(ROOT / "config.yaml", description="config of the run")
    as_json: bool = Field(False, alias="json", description="print the table as JSON")
    profile: bool = Field(False, description="print lines to paste into a profile")


def measured(results: Path) -> pd.DataFrame:
    """Return a row for each benchmark file below ``results``: rule, seconds, rss (MiB), busy (CPU seconds), threads,
    and the requested mem_mb and minutes.
    """
    rows = []
    for file in sorted(results.glob("**/*.benchmark.tsv")):
        try:
            last = pd.read_csv(file, sep="\t", na_values=["-", "NA"])[COLUMNS].iloc[-1]
            requested = ast.literal_eval(last["resources"])
            row = {
                "rule": last["rule_name"], "seconds": float(last["s"]), "rss": float(last["max_rss"]),
                "busy": float(last["cpu_time"]), "threads": int(last["threads"]),
                "mem_mb": requested.get("mem_mb"), "minutes": requested.get("runtime"),
            }  # fmt: skip
        except (ValueError, KeyError, IndexError, SyntaxError) as error:
            raise UserError(
                f"{file}: not an extended benchmark of Snakemake; delete it or run its step again"
            ) from error
        rows.append(row)
    return pd.DataFrame(rows, columns=["rule", "seconds", "rss", "busy", "threads", "mem_mb", "minutes"])


def verdict(requested: float, used: float, bounds: tuple[float, float], small: float) -> str:
    """Return ``too little``, ``much`` or, for a request that fits or is unknown, nothing."""
    least, most = bounds
    if requested < least * used:
        return "too little"
    return "much" if requested > small and requested > most * used else ""


def by_rule(jobs: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each rule: jobs, the longest seconds, the largest rss, the fraction of its threads that was
    busy, its requests, and a note on requests that do not fit.
    """
    busy = jobs.assign(cpu=jobs["busy"] / (jobs["seconds"] * jobs["threads"]).where(jobs["seconds"] > 0))
    table = (
        busy.groupby("rule")
        .agg(
            jobs=("seconds", "size"), seconds=("seconds", "max"), rss=("rss", "max"), cpu=("cpu", "mean"),
            threads=("threads", "max"), mem_mb=("mem_mb", "max"), minutes=("minutes", "max"),
        )
        .reset_index()
    )  # fmt: skip
    notes = []
    for row in table.itertuples():
        verdicts = {
            "memory": verdict(float(row.mem_mb), row.rss + SNAKEMAKE, MEMORY, SMALL_MEMORY),
            "time": verdict(float(row.minutes), row.seconds / 60, TIME, SMALL_TIME),
        }
        notes.append(", ".join(f"{what} {text}" for what, text in verdicts.items() if text))
    return table.assign(note=notes)


def profile(table: pd.DataFrame) -> str:
    """Return lines of a profile that request 1.5 times the measured memory and 3 times the time, more with each
    retry.
    """
    lines = ["set-resources:"]
    for row in table.itertuples():
        memory = 1000 if math.isnan(row.rss) else math.ceil(1.5 * (row.rss + SNAKEMAKE) / 500) * 500
        minutes = max(10, math.ceil(3 * row.seconds / 600) * 10)
        lines += [f"  {row.rule}:", f'    mem_mb: "{memory} * attempt"', f'    runtime: "{minutes} * attempt"']
    return "\n".join(lines)


def text(table: pd.DataFrame) -> str:
    """Return the table in Markdown."""
    formats = {"seconds": "{:.0f}", "rss": "{:.0f}", "cpu": "{:.0%}"}
    shown = table.assign(**{name: table[name].map(form.format) for name, form in formats.items()})
    return shown[[*HEADER]].rename(columns=HEADER).to_markdown(index=False, disable_numparse=True)


def main(step: Resources) -> None:
    results = step.results or Path(read_config(step.config).results)
    jobs = measured(results)
    if jobs.empty:
        raise UserError(f"{results}: no benchmark files; run the workflow first or name another folder")
    table = by_rule(jobs)
    if step.as_json:
        print(table.to_json(orient="records", indent=2))
    else:
        print(profile(table) if step.profile else text(table))


if __name__ == "__main__":
    cli.run(main)
