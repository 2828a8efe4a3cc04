"""Kill runs at random moments, run again as the README says, and compare with a run that nobody disturbed.

``make faults`` does so in a copy of the checkout, for docs/faults.md, and then flips bits of what the undisturbed run
stored. A moment is in seconds of the run; a training's and a worker's in seconds after it has begun, for they are there
for a while only.
"""

import datetime
import itertools
import os
import platform
import random
import re
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import yaml
from pydantic import Field
from tests.workflow.conftest import Project

from benchmarks.flips import flip_all
from workflow_scripts.core import cli
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import write_text
from workflow_scripts.core.step import Step
from workflow_scripts.workflow.config import read_values

# Every stage, as small as possible.
SMALL = """
results: {results}
cache: {cache}
compositions: [color]
dataset: {{source: sketch, sketch: {{images: 250, species: 20, captions: 6}}}}
pairs: {{nouns: birds, selection: {{min_count: 1}}}}
split: {{per_image: 2}}
divergence: {{shuffles: 2, subgraphs: null}}
judge:
  {{model: sketch, pretrained: null, trainable: ["*"], epochs: 6, captions: 2, batch: 64, lr: 0.005, train_on: half}}
generate: {{generators: [photographs, faithful]}}
score: {{bootstrap: 200}}
report: {{examples: 2}}
"""
# Who is killed; each is drawn as often as the others.
VICTIMS = {
    "Snakemake": "Snakemake alone; its steps go on",
    "a step": "the process of a step",
    "a training": "the process of a training",
    "a worker": "one of a step's own processes",
    "run": "what `make run` starts; Snakemake goes on, and is then asked to end",
    "all": "every process of the run at once, as when a machine dies",
}
# Runs after a kill, until it is done; those that are refused while another is at work do not count.
ATTEMPTS = 4
WAITED = "is still running this step"
# Those that are there for a while only, and the latest moment after they have begun.
PASSING = {"a training": 12.0, "a worker": 3.0}
# Seconds between two looks for somebody to kill.
LOOK = 0.2


@dataclass
class Kill:
    """What was killed, when, and what the run said of it, or the next one before it went on."""

    victim: str
    moment: float
    what: str = ""
    said: list[str] = field(default_factory=list)


@dataclass
class Disturbed:
    """A run from nothing to its end, with the kills on the way."""

    kills: list[Kill]
    seconds: float
    faults: list[str] = field(default_factory=list)


class Trial:
    """A config that is run in a copy of the checkout; ``{results}`` and ``{cache}`` stand in its text.

    targets: what is made, below the results; none: all.
    """

    def __init__(self, project: Project, text: str, cores: int, targets: tuple[str, ...] = ()) -> None:
        self.project, self.text, self.cores, self.targets = project, text, cores, targets

    def command(self, name: str, *more: str) -> list[str]:
        (self.project.root / f"{name}.yaml").write_text(self.text.format(results=name, cache=f".cache_{name}"))
        run = [sys.executable, "-m", "workflow_scripts.workflow.run", "--config", f"{name}.yaml"]
        wanted = ["--", *(f"{name}/{target}" for target in self.targets)] if self.targets else []
        return [*run, "--cores", str(self.cores), *more, *wanted]

    def start(self, name: str, output: Path) -> subprocess.Popen[bytes]:
        with output.open("wb") as file:
            return subprocess.Popen(
                self.command(name), cwd=self.project.root, env=self.project.environment, stdout=file, stderr=file
            )

    def undisturbed(self, name: str) -> float:
        """Seconds that the run takes."""
        begun = time.monotonic()
        self.project.call(*self.command(name))
        return time.monotonic() - begun

    def disturbed(self, name: str, kills: list[Kill], seed: random.Random) -> Disturbed:
        """Run, kill, run again, until it is done; those of ``kills`` for which there was no occasion are left out."""
        begun, worked, attempts = time.monotonic(), 0.0, 0
        pending = list(kills)
        done: list[Kill] = []
        for number in itertools.count():
            # What was left of an earlier run may still print to its own.
            output = self.project.root / f"{name}.{number}.txt"
            started = time.monotonic()
            run = self.start(name, output)
            killed = strike(run, pending, worked, seed)
            run.wait()
            worked += time.monotonic() - started
            printed = output.read_text(errors="replace")
            if done and WAITED in printed:
                done[-1].said.append("a step waited for the one that was left")
            if killed:
                pending.remove(killed)
                done.append(killed)
            if run.returncode == 0:
                break
            said = [line for line in printed.splitlines() if line.startswith("error:")][-1:]
            last = said[0] if said else ""
            if done:
                done[-1].said += said
            attempts = (
                0
                if killed
                else attempts + ("running in this checkout" not in last and "active in this checkout" not in last)
            )
            if attempts > ATTEMPTS or not done:
                raise UserError(f"{name}: does not go on: {last or printed[-300:]}")
            if "make unlock" in last:
                self.project.call(*self.command(name, "--unlock"))
            elif "in this checkout" in last:
                # As a user ends a run: without it the moments to come would find nothing to do.
                for process in inside(self.project.root):
                    if described(process) == "Snakemake":
                        process.terminate()
                time.sleep(2)
        return Disturbed(done, time.monotonic() - begun)

    def faults(self, name: str, whole: str) -> list[str]:
        """What is wrong with a finished run: other bytes than those of ``whole``, things left lying about."""
        place = self.project.root
        mine, others = self.project.artifacts(name), self.project.artifacts(whole)
        everything = sorted(mine.keys() | others.keys())
        found = [f"{path} differs" for path in everything if mine.get(path) != others.get(path)]
        found += [f"{path} is left" for path in sorted(left(place, name))]
        kept, expected = (names(place / f".cache_{run}") for run in (name, whole))
        found += [f"cache: {path} is left or missing" for path in sorted(kept ^ expected)]
        found += [f"{path} is damaged" for path in place.glob(f".cache_{name}/**/*.sqlite") if not is_whole(path)]
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline and any(inside(place)):
            time.sleep(0.5)
        found += [f"process {process.pid} goes on: {described(process)}" for process in inside(place)]
        if not self.targets and self.project.planned(f"{name}.yaml"):
            found.append("a further run would not find everything done")
        return found


def strike(run: subprocess.Popen[bytes], pending: list[Kill], worked: float, seed: random.Random) -> Kill | None:
    """Do the first of the kills that comes to its moment; None where the run ended before. worked: seconds before."""
    started = time.monotonic()
    begun: dict[int, float] = {}
    while pending and run.poll() is None:
        time.sleep(LOOK)
        there = {victim: victims(run.pid, victim) for victim in {kill.victim for kill in pending}}
        now = time.monotonic()
        for kill in pending:
            found = there[kill.victim]
            if kill.victim in PASSING:
                found = [process for process in found if now - begun.setdefault(process.pid, now) >= kill.moment]
            elif now - started + worked < kill.moment:
                continue
            if not found:
                continue
            chosen = found if kill.victim == "all" else [seed.choice(found)]
            kill.what = "everything" if kill.victim == "all" else described(chosen[0])
            for process in chosen:
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            return kill
    return None


def victims(run: int, victim: str) -> list[psutil.Process]:
    """The processes below ``run`` that may be killed."""
    try:
        parent = psutil.Process(run)
        below = parent.children(recursive=True)
        if victim == "run":
            # Not before Snakemake is there.
            return [parent] if below else []
        if victim == "all":
            return [parent, *below] if below else []
        if victim == "Snakemake":
            # Not what asks whether a Slurm is here.
            return [process for process in parent.children() if "snakemake" in " ".join(process.cmdline())]
        steps = [process for process in below if re.search(r"-m( --)? workflow_scripts\.", " ".join(process.cmdline()))]
        if victim == "a training":
            return [process for process in steps if "train_judge" in " ".join(process.cmdline())]
        ids = {process.pid for process in steps}
        workers = [process for process in steps if process.ppid() in ids and is_fork(process)]
        return workers if victim == "a worker" else [process for process in steps if process not in workers]
    except psutil.NoSuchProcess:
        return []


def is_fork(process: psutil.Process) -> bool:
    """Whether it runs what its parent runs."""
    parent = process.parent()
    return parent is not None and parent.cmdline() == process.cmdline()


def described(process: psutil.Process) -> str:
    """The module that it runs."""
    try:
        words = process.cmdline()
    except psutil.Error:
        return "ended"
    modules = [word for word in words if word.startswith("workflow_scripts.")]
    wanted = [word for word in words if re.fullmatch(r".*/(color|shape)/\w+\.parquet", word)]
    of = f" ({Path(wanted[0]).parts[-2]})" if wanted and modules else ""
    return (modules[0].removeprefix("workflow_scripts.") if modules else "Snakemake") + of


def left(root: Path, name: str) -> Iterator[str]:
    """Locks, marks and temporary files that nobody needs any more."""
    state = root / ".snakemake"
    places = [*state.glob("locks/*"), *state.glob("incomplete/*"), *state.glob("compclip.lock")]
    for folder in (root / name, root / f".cache_{name}"):
        places += [path for path in folder.rglob(".*") if path.suffix in (".tmp", ".old", ".lock")]
    return (str(path.relative_to(root)) for path in places)


def names(folder: Path) -> set[str]:
    # What SQLite keeps beside a file is its own affair.
    paths = (path for path in folder.rglob("*") if not path.name.endswith(("-wal", "-shm")))
    return {str(path.relative_to(folder)) for path in paths}


def is_whole(file: Path) -> bool:
    with sqlite3.connect(file) as db:
        return db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def inside(root: Path) -> Iterator[psutil.Process]:
    """Processes at work in a folder."""
    for process in psutil.process_iter():
        try:
            if process.status() != psutil.STATUS_ZOMBIE and process.cwd() == str(root):
                yield process
        except (psutil.Error, OSError):
            continue


def draw(seed: random.Random, number: int, seconds: float) -> list[Kill]:
    """``number`` kills at random moments of runs that take ``seconds``."""
    kinds = (list(VICTIMS) * (number // len(VICTIMS) + 1))[:number]
    seed.shuffle(kinds)
    return [Kill(kind, seed.uniform(0, PASSING.get(kind, seconds))) for kind in kinds]


class Faults(Step):
    """Kill runs at random moments, run again, and compare with an undisturbed run."""

    config: Path | None = Field(None, description="a config; default: a small one")
    moments: int = Field(20, ge=1, description="kills in all")
    each: int = Field(7, ge=1, description="kills of a run")
    seed: int = 0
    cores: int = Field(os.cpu_count() or 1, ge=1, description="cores that Snakemake may use")
    folder: Path | None = Field(None, description="folder for the copy; default: the system's temporary one")
    flips: int = Field(100, ge=1, description="flipped bits of each kind of artifact and cache")
    output: Path | None = Field(None, description="file for the tables")


def main(step: Faults) -> None:
    seed = random.Random(step.seed)
    text = SMALL
    if step.config is not None:
        values = {**read_values(step.config), "results": "RESULTS", "cache": "CACHE"}
        text = yaml.safe_dump(values).replace("{", "{{").replace("}", "}}")
        text = text.replace("RESULTS", "{results}").replace("CACHE", "{cache}")
    with tempfile.TemporaryDirectory(dir=step.folder, ignore_cleanup_errors=True) as folder:
        trial = Trial(Project(Path(folder).resolve()).copy(), text, step.cores)
        seconds = trial.undisturbed("whole")
        cli.log.info("undisturbed: %.0f s", seconds)
        waiting = draw(seed, step.moments, seconds)
        runs: list[Disturbed] = []
        while waiting and len(runs) < step.moments:
            name = f"run{len(runs) + 1}"
            run = trial.disturbed(name, sorted(waiting[: step.each], key=lambda kill: kill.moment), seed)
            run.faults = trial.faults(name, "whole")
            runs.append(run)
            waiting = [kill for kill in waiting if kill not in run.kills]
            for kill in waiting:
                # It may have come too late.
                kill.moment *= 0.8
            cli.log.info("%s: %.0f s, %d kills, %s", name, run.seconds, len(run.kills), run.faults or "as undisturbed")
            lines = report(step, seconds, runs)
            if step.output:
                write_text("\n".join(lines) + "\n", step.output)
        flipped, undetected = flip_all(
            trial.project.root / "whole", trial.project.root / ".cache_whole", step.flips, step.seed
        )
        lines += ["", *flipped]
        if step.output:
            write_text("\n".join(lines) + "\n", step.output)
    print("\n".join([*lines, *undetected]))
    if undetected:
        raise UserError(f"{len(undetected)} flipped bits were undetected: the last lines above name them")
    if any(run.faults for run in runs):
        raise UserError("a run did not end as the undisturbed one: the lines above say how")


def report(step: Faults, seconds: float, runs: list[Disturbed]) -> list[str]:
    """A paragraph and a table, a row a kill."""
    kills = sum(len(run.kills) for run in runs)
    good = sum(not run.faults for run in runs)
    command = f"make faults MOMENTS={step.moments} SEED={step.seed}"
    command += f" CONFIG={step.config}" if step.config else ""
    lines = [
        f"`{command}` on {datetime.date.today()}, {step.cores} cores, {platform.machine()}, {platform.system()}. An"
        f" undisturbed run took {seconds:.0f} s; {kills} kills; runs from nothing: {len(runs)}. {good} of {len(runs)}"
        " ended with the bytes of the undisturbed run, and left no lock, temporary file, process or damaged cache.",
        "",
        "| run | killed | which | at, s | message |",
        "|---|---|---|---|---|",
    ]
    for number, run in enumerate(runs, 1):
        for kill in run.kills:
            said = "; ".join(dict.fromkeys(kill.said))
            # Of this machine and moment.
            said = re.sub(r"process \d+ on \S+, since [-\d]+ [:\d]+", "process …", said)
            lines.append(f"| {number} | {kill.victim} | {kill.what} | {kill.moment:.0f} | {said} |")
        lines += [f"| {number} | | | {run.seconds:.0f} | **{fault}** |" for fault in run.faults[:20]]
    return lines


if __name__ == "__main__":
    cli.run(main)
