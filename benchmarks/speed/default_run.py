"""The default run: its CPU time by rule, its critical path, and how long it takes on more cores.

Reads the benchmark files of a finished run and the graph of its jobs, and schedules these jobs on idle cores, those
with the most work behind them first. The run's own use of its cores means something only if nothing else ran.
"""

import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from workflow_scripts.core.code import ROOT
from workflow_scripts.core.errors import UserError
from workflow_scripts.workflow.graph import Job, jobs

CONFIG = ROOT / "config.yaml"
FEW_CORES, MANY_CORES = 2, 8
# When Snakemake samples the CPU time of a job: each half second at first, then rarely, and never at its end.
OFTEN, UNTIL, RARELY = 0.5, 15.5, 30.0


@dataclass(frozen=True)
class Ran:
    """A job that ran."""

    name: str  # rule and wildcards
    cpu: float  # seconds
    threads: int
    after: tuple[int, ...]  # numbers of the jobs whose outputs it reads
    started: float = 0.0  # seconds since the epoch, as ``ended``
    ended: float = 0.0

    @property
    def alone(self) -> float:
        """Return the seconds that it takes on idle cores."""
        return self.cpu / self.threads


def cpu_seconds(seconds: float, sampled: float) -> float:
    """Return the CPU time of a job that took ``seconds``, from what had been used at the last sample."""
    last = seconds // OFTEN * OFTEN if seconds < UNTIL else UNTIL + (seconds - UNTIL) // RARELY * RARELY
    return sampled * seconds / last if last else seconds


def read_run(graph: Sequence[Job], root: Path = ROOT) -> list[Ran]:
    """Return the jobs of ``graph`` as their benchmark files describe them; UserError if one has none."""
    maker = {output: number for number, job in enumerate(graph) for output in job.outputs}
    ran = []
    for job in graph:
        file = (root / job.log).with_suffix(".benchmark.tsv")
        if not file.is_file():
            raise UserError(f"{file}: not found; run `make run` first")
        row = pd.read_csv(file, sep="\t").iloc[-1]
        seconds, ended = float(row["s"]), file.stat().st_mtime
        after = sorted({maker[path] for path in job.inputs if path in maker})
        name = Path(job.log).with_suffix("").as_posix().partition("logs/")[2]
        cpu = cpu_seconds(seconds, float(row["cpu_time"]))
        ran.append(Ran(name, cpu, int(row["threads"]), tuple(after), ended - seconds, ended))
    return ran


def path_after(ran: Sequence[Ran]) -> list[float]:
    """Return for each job the seconds from its start to the end of the last job that waits for it, on idle cores."""
    readers: list[list[int]] = [[] for _ in ran]
    for number, job in enumerate(ran):
        for earlier in job.after:
            readers[earlier].append(number)
    lengths: dict[int, float] = {}

    def length(number: int) -> float:
        if number not in lengths:
            lengths[number] = ran[number].alone + max(map(length, readers[number]), default=0.0)
        return lengths[number]

    return [length(number) for number in range(len(ran))]


def critical_path(ran: Sequence[Ran]) -> list[Ran]:
    """Return the longest chain of jobs that wait for each other."""
    lengths = path_after(ran)
    path, next_jobs = list[Ran](), list(range(len(ran)))
    while next_jobs:
        number = max(next_jobs, key=lengths.__getitem__)
        path.append(ran[number])
        next_jobs = [other for other, job in enumerate(ran) if number in job.after]
    return path


def makespan(ran: Sequence[Ran], cores: int) -> float:
    """Return the seconds that the jobs take on ``cores`` idle cores by list scheduling, longest path first."""
    order = sorted(range(len(ran)), key=[-length for length in path_after(ran)].__getitem__)
    ends: dict[int, float] = {}
    running: dict[int, float] = {}
    now, free = 0.0, cores
    while len(ends) < len(ran):
        for number in order:
            threads = min(ran[number].threads, cores)
            waits = number in ends or number in running or any(earlier not in ends for earlier in ran[number].after)
            if not waits and threads <= free:
                running[number] = now + ran[number].cpu / threads
                free -= threads
        done = min(running, key=running.__getitem__)
        now = ends[done] = running.pop(done)
        free += min(ran[done].threads, cores)
    return now


def figures(ran: Sequence[Ran]) -> dict[str, Any]:
    """Return the figures of the benchmark; ``bound`` is the CPU time over the cores, or the critical path."""
    total, path = sum(job.cpu for job in ran), critical_path(ran)
    longest = sum(job.alone for job in path)
    few, many = makespan(ran, FEW_CORES), makespan(ran, MANY_CORES)
    rules: dict[str, float] = defaultdict(float)
    for job in ran:
        rules[job.name.split("/")[-1].partition(".")[0]] += job.cpu
    wall = max(job.ended for job in ran) - min(job.started for job in ran)

    def scheduled(took: float, cores: int, slower: float, fewer: int) -> dict[str, Any]:
        unit, bound = f"s on {cores} cores and {fewer}", max(total / cores, longest)
        return {
            "ratio": slower / took, "ours": took, "baseline": slower, "unit": unit, "n": len(ran), "bound": bound,
        }  # fmt: skip

    return {
        **scheduled(few, FEW_CORES, total, 1),
        "more cores": scheduled(many, MANY_CORES, few, FEW_CORES),
        "this run": {"wall": round(wall), "cores used": round(total / wall, 2), "cores": os.cpu_count()},
        "CPU seconds": {rule: round(seconds, 1) for rule, seconds in sorted(rules.items(), key=lambda item: -item[1])},
        "critical path": {**{job.name: round(job.alone, 1) for job in path}, "sum": round(longest, 1)},
    }


def measure(config: Path = CONFIG) -> dict[str, Any]:
    """Return the figures of the finished run of ``config``."""
    return figures(read_run(jobs(config)))
