"""The finished default run: its CPU time by rule, and how much of its cores it used.

CPU seconds are those that each step logs at its end, of itself and its children; times are of
Snakemake's benchmark files. The use of the cores means something only if nothing else ran.
"""

import os
import re
from pathlib import Path
from typing import Any

import pandas as pd

from compclip.core.errors import require
from compclip.core.identity.code import ROOT

DONE = re.compile(r"done in ([\d.]+) CPU seconds$", re.MULTILINE)  # the last line of a step's log


def read_jobs(results: Path) -> pd.DataFrame:
    """Return a row of each job's benchmark file, with its rule, end (seconds since 1970) and CPU
    seconds.
    """
    jobs = []
    for file in sorted(results.glob("logs/**/*.benchmark.tsv")):
        log = file.with_name(file.name.replace(".benchmark.tsv", ".log")).read_text(
            encoding="utf-8"
        )
        about = {
            "rule": file.name.split(".")[0],
            "ended": file.stat().st_mtime,
            "cpu": float(DONE.findall(log)[-1]),
        }
        jobs.append(pd.read_csv(file, sep="\t").tail(1).assign(**about))
    require(jobs, results, "no benchmark files", "run `make run` first")
    return pd.concat(jobs)


def measure(results: Path = ROOT / "results") -> dict[str, Any]:
    """Return the figures of the finished run in ``results``."""
    jobs = read_jobs(results)
    wall = jobs["ended"].max() - (jobs["ended"] - jobs["s"]).min()
    by_rule = jobs.groupby("rule")["cpu"].sum().sort_values(ascending=False)
    cores, total = os.cpu_count() or 1, by_rule.sum()
    return {
        "ratio": total / wall,
        "ours": wall,
        "baseline": total,
        "unit": "s against CPU seconds",
        "n": len(jobs),
        "bound": cores,
        "CPU seconds": {rule: round(total, 1) for rule, total in by_rule.items()},
    }
