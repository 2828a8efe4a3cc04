"""Print how long a run would take on any number of cores, from the logs of a finished one.

Each job's CPU time is in its log, and its rule says how many threads it can use. Jobs
wait for those that make their inputs, and start as cores become free, the one with the longest way
to the end first. A job with several threads takes them all, and is divided evenly among them;
scoring itself, after images and captions are embedded, among its judges. Times of a machine with
other work are too long.
"""

import csv
import heapq
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import Field

from benchmarks.speed.default_run import DONE
from compclip.core.errors import require
from compclip.core.settings import cli
from compclip.core.settings.cli import Command
from workflow_scripts.mock_job import load_workflow

# What ``score_images`` logs: its CPU seconds before and after it embeds, and the number of judges.
EMBEDDED = re.compile(r"embedded from CPU second ([\d.]+) to ([\d.]+) for (\d+) judges")
START = 4.0  # seconds until the first job: Snakemake reads rules and files
EACH = 0.25  # seconds of Snakemake for a job


class Schedule(Command):
    """Print the time of a run by the number of cores, and its critical path."""

    config: Path = Field(Path("config.yaml"), description="config of a finished run")
    cores: list[int] = Field([2, 4, 8, 16, 64], min_length=1, description="numbers of cores")


@dataclass
class Step:
    """A job of the run.

    Attributes:
        parts: CPU seconds of each part of it, and the most cores that this can use.
        threads: the cores that it gets, by those of the run.
        torch: units of the resource that keeps two models from sharing cores.
        after: names of the jobs that it waits for.
    """

    name: str
    parts: list[tuple[float, int]] = field(default_factory=list)
    threads: dict[int, int] = field(default_factory=dict)
    torch: int = 0
    after: set[str] = field(default_factory=set)

    @property
    def seconds(self) -> float:
        """The CPU time of the job and its children."""
        return sum(seconds for seconds, _ in self.parts)

    def on(self, cores: int) -> tuple[float, int]:
        """Return seconds and cores that it takes."""
        taken = min(self.threads.get(cores, 1), cores)
        return EACH + sum(seconds / min(taken, most) for seconds, most in self.parts), taken


def read_summary(config: Path) -> list[dict[str, str]]:
    """Return Snakemake's row for each artifact: its rule, log and inputs."""
    command = ["snakemake", "--cores", "1", "--configfile", str(config), "--detailed-summary"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("output_file\t"))
    return list(csv.DictReader(lines[first:], delimiter="\t"))


def read_steps(config: Path, cores: Sequence[int]) -> dict[str, Step]:
    """Return the jobs of a finished run by their names, with the threads on each number of
    cores.
    """
    rows = read_summary(config)
    maker = {row["output_file"]: row["log-file(s)"] or row["rule"] for row in rows}
    steps: dict[str, Step] = {}
    for row in rows:
        name = maker[row["output_file"]]
        step = steps.setdefault(name, Step(name))
        for file in row["input-file(s)"].split(","):
            # Inputs may be inside a folder that is an artifact.
            path = Path(file)
            makers = [maker[str(place)] for place in (path, *path.parents) if str(place) in maker]
            step.after.update(makers[:1])
        step.after.discard(name)
    workflows = {number: load_workflow(config, cores=number) for number in cores}
    for step in steps.values():
        read_times(step, workflows)
    return steps


def read_times(step: Step, workflows: Mapping[int, Any]) -> None:
    """Read what a job took; rules without a benchmark take no time worth counting."""
    file = Path(step.name).with_suffix(".benchmark.tsv")
    if not file.is_file():
        return
    with file.open(newline="") as lines:
        (row,) = csv.DictReader(lines, delimiter="\t")
    # Snakemake's ``cpu_time`` misses processes that end between two of its samples.
    log = Path(step.name).read_text(encoding="utf-8")
    done = float(DONE.findall(log)[-1])
    step.parts = [(done, max(workflows))]
    for before, after, judges in EMBEDDED.findall(log):
        start, end = float(before), float(after)
        # Scoring is divided among judges.
        step.parts = [(start, 1), (end - start, max(workflows)), (done - end, int(judges))]
    # The run had as many as its cores allowed; the rule says how many a job can use.
    for cores, workflow in workflows.items():
        step.threads[cores] = int(workflow.get_rule(row["rule_name"]).resources["_cores"].value)
    step.torch = int("'torch': 1" in row["resources"])


def simulate(steps: Mapping[str, Step], cores: int) -> tuple[float, list[str]]:
    """Return the seconds of the run, and the jobs on its longest way to the end."""
    followers: dict[str, list[str]] = {name: [] for name in steps}
    for step in steps.values():
        for other in step.after:
            followers[other].append(step.name)

    @cache
    def tail(name: str) -> float:
        """Return the seconds from the start of a job to the end, on enough cores."""
        return steps[name].on(cores)[0] + max(map(tail, followers[name]), default=0.0)

    waiting = {name: set(step.after) for name, step in steps.items()}
    ready = [name for name, after in waiting.items() if not after]
    running: list[tuple[float, str]] = []
    free, free_torch, now = cores, 1, START
    while ready or running:
        for name in sorted(ready, key=lambda job: (-tail(job), job)):
            seconds, taken = steps[name].on(cores)
            if taken <= free and steps[name].torch <= free_torch:
                free -= taken
                free_torch -= steps[name].torch
                ready.remove(name)
                heapq.heappush(running, (now + seconds, name))
        now, done = heapq.heappop(running)
        free += steps[done].on(cores)[1]
        free_torch += steps[done].torch
        for name in followers[done]:
            waiting[name].discard(done)
            if not waiting[name]:
                ready.append(name)
    path = []
    name = max(steps, key=tail)
    while name:
        path.append(name)
        name = max(followers[name], key=tail, default="")
    return now, path


def main(command: Schedule) -> None:
    steps = read_steps(command.config, command.cores)
    total = sum(step.seconds for step in steps.values())
    require(total, command.config, "no benchmark files", "run it, then ask again")
    print(f"{len(steps)} jobs, {total:.0f} CPU seconds")
    for cores in command.cores:
        seconds, path = simulate(steps, cores)
        print(f"{cores:>3} cores: {seconds:.0f} s")
    print("longest way to the end on the most cores:")
    for name in path:
        step = steps[name]
        print(f"  {step.on(max(command.cores))[0]:6.1f} s  {name}")


if __name__ == "__main__":
    cli.run(main)
