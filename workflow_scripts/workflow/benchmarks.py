"""Beside what each rule asks a scheduler for, what its jobs used in a run: from the run's benchmark files.

Where a rule asks for too little or far too much, the last column says so; ``--profile`` prints the lines of a profile
that ask for what was measured instead, with headroom.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path

import pandas as pd

from workflow_scripts.core import cli
from workflow_scripts.core.code import ROOT
from workflow_scripts.core.errors import UserError
from workflow_scripts.workflow.graph import Job, jobs
from workflow_scripts.workflow.run import read_config

# Of a job's memory, in MiB, what Snakemake itself takes there (twice 237); no benchmark of a step counts it.
SNAKEMAKE = 500
# A rule should ask for more than was measured by the first, and not by more than the second.
MEMORY = (1.25, 4)
TIME = (2, 20)
# What is as small as this is never too much: MiB, minutes.
SMALL_MEMORY, SMALL_TIME = 2000, 30


def measured(all_jobs: list[Job], was: Path, results: Path) -> pd.DataFrame:
    """A row for each job whose benchmark file is in ``results``: rule, seconds, rss (MiB), busy (CPU seconds), and
    what it asked for: threads, mem_mb, minutes. ``was`` is the folder of results that the jobs' config names.
    """
    rows = []
    for job in all_jobs:
        if job.benchmark is None:
            continue
        # Of several runs one may have its folder elsewhere.
        inside = Path(job.benchmark).is_relative_to(was)
        file = results / Path(job.benchmark).relative_to(was) if inside else ROOT / job.benchmark
        if not file.is_file():
            continue
        try:
            runs = pd.read_csv(file, sep="\t", na_values=["-", "NA"])[["s", "max_rss", "cpu_time"]].astype(float)
        except (ValueError, KeyError) as error:
            raise UserError(f"{file}: not a benchmark of Snakemake's: remove it, or run its step again") from error
        last = runs.iloc[-1] if len(runs) else pd.Series({"s": 0.0, "max_rss": float("nan"), "cpu_time": float("nan")})
        rows.append(
            {
                "rule": job.rule, "seconds": last["s"], "rss": last["max_rss"], "busy": last["cpu_time"],
                "threads": job.threads, "mem_mb": job.resources.get("mem_mb"), "minutes": job.resources.get("runtime"),
            }
        )  # fmt: skip
    columns = ["rule", "seconds", "rss", "busy", "threads", "mem_mb", "minutes"]
    return pd.DataFrame(rows, columns=columns)


def judged(asked: float, used: float, bounds: tuple[float, float], small: float) -> str:
    """Of what is asked beside what is used: ``too little``, ``much``, or nothing to say; nan of either is nothing."""
    least, most = bounds
    if asked < least * used:
        return "too little"
    return "much" if asked > small and asked > most * used else ""


def by_rule(rows: pd.DataFrame) -> pd.DataFrame:
    """One row a rule: jobs, the longest seconds, the largest rss, the share of its threads that it kept busy, what it
    asks for, and a note on what is too little or much."""
    shares = rows.assign(cpu=rows["busy"] / (rows["seconds"] * rows["threads"]).where(rows["seconds"] > 0))
    table = (
        shares.groupby("rule")
        .agg(
            jobs=("seconds", "size"), seconds=("seconds", "max"), rss=("rss", "max"), cpu=("cpu", "mean"),
            threads=("threads", "max"), mem_mb=("mem_mb", "max"), minutes=("minutes", "max"),
        )
        .reset_index()
    )  # fmt: skip
    notes = []
    for row in table.itertuples():
        said = {
            "memory": judged(float(row.mem_mb), row.rss + SNAKEMAKE, MEMORY, SMALL_MEMORY),
            "time": judged(float(row.minutes), row.seconds / 60, TIME, SMALL_TIME),
        }
        notes.append(", ".join(f"{what} {verdict}" for what, verdict in said.items() if verdict))
    return table.assign(note=notes)


def profile(table: pd.DataFrame) -> str:
    """The lines of a profile that ask for one and a half times the memory, and thrice the time, that was measured;
    more with each retry."""
    lines = ["set-resources:"]
    for row in table.itertuples():
        memory = 1000 if math.isnan(row.rss) else math.ceil(1.5 * (row.rss + SNAKEMAKE) / 500) * 500
        minutes = max(10, math.ceil(3 * row.seconds / 600) * 10)
        lines += [f"  {row.rule}:", f'    mem_mb: "{memory} * attempt"', f'    runtime: "{minutes} * attempt"']
    return "\n".join(lines)


def text(table: pd.DataFrame) -> str:
    """The table to read."""
    shown = pd.DataFrame(
        {
            "rule": table["rule"],
            "jobs": table["jobs"],
            "longest s": table["seconds"].map("{:.0f}".format),
            "asks min": table["minutes"],
            "largest MiB": table["rss"].map("{:.0f}".format),
            "asks MB": table["mem_mb"],
            "busy": table["cpu"].map("{:.0%}".format),
            "of threads": table["threads"],
            "note": table["note"],
        }
    )
    return shown.to_markdown(index=False, disable_numparse=True)


def main(options: argparse.Namespace) -> None:
    was = Path(read_config(options.config).results)
    results = options.results or was
    rows = measured(jobs(options.config), was, results)
    if rows.empty:
        raise UserError(
            f"{results}: no benchmark files of the jobs of {options.config}: run it first, or name the run's --config"
        )
    table = by_rule(rows)
    if options.json:
        print(json.dumps(json.loads(table.to_json(orient="records")), indent=2))
    else:
        print(profile(table) if options.profile else text(table))


if __name__ == "__main__":
    parser = cli.parser(__doc__)
    parser.add_argument("results", type=Path, nargs="?", help="a run's folder (default: the config's)")
    parser.add_argument("--config", type=Path, default=ROOT / "config.yaml", help="of that run")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="the table as JSON")
    form.add_argument("--profile", action="store_true", help="what to paste into a profile")
    cli.run(main, parser)
