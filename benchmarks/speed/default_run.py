"""The finished default run: its CPU time by rule, and how much of its cores it used.

Reads Snakemake's benchmark files. They are sampled, so the CPU time of jobs with several processes is a lower bound;
the use of the cores means something only if nothing else ran.
"""

import os
from pathlib import Path
from typing import Any

import pandas as pd

from compclip.core.code import ROOT
from compclip.core.errors import require


def measure(results: Path = ROOT / "results") -> dict[str, Any]:
    """Return the figures of the finished run in ``results``."""
    files = sorted(results.glob("logs/**/*.benchmark.tsv"))
    require(files, results, "no benchmark files", "run `make run` first")
    jobs = pd.concat(
        pd.read_csv(file, sep="\t").tail(1).assign(rule=file.name.split(".")[0], ended=file.stat().st_mtime)
        for file in files
    )
    # Jobs that end before the first sample have none.
    cpu = pd.to_numeric(jobs["cpu_time"], errors="coerce").fillna(jobs["s"])
    wall = jobs["ended"].max() - (jobs["ended"] - jobs["s"]).min()
    by_rule = cpu.groupby(jobs["rule"]).sum().sort_values(ascending=False)
    cores = os.cpu_count() or 1
    return {
        "ratio": cpu.sum() / wall, "ours": wall, "baseline": cpu.sum(), "unit": "s against CPU seconds",
        "n": len(jobs), "bound": cores, "CPU seconds": {rule: round(total, 1) for rule, total in by_rule.items()},
    }  # fmt: skip
