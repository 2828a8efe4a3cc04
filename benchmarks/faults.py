"""Kill runs at random moments, resume them, and compare with an undisturbed run; then flip bits of its artifacts.

``make faults`` does so in a copy of the checkout, with the tests' small config, for docs/faults.md.
"""

import random
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import psutil
from pydantic import Field

from compclip.core import cli
from compclip.core.cli import Command
from compclip.core.errors import UserError
from tests.project import Project

# What is killed (signal 9); each is drawn as often as the others.
VICTIMS = ("Snakemake", "a step", "all processes")
LOOK = 0.2  # seconds between two looks for a process to kill
# Runs after a kill, until it is done; those that are refused while steps of the killed one still run do not count.
ATTEMPTS = 6


class Faults(Command):
    """Kill runs at random moments, resume them, compare with an undisturbed run, and flip bits of its artifacts."""

    moments: int = Field(20, ge=1, description="kills in all")
    each: int = Field(5, ge=1, description="kills of a run")
    flips: int = Field(3, ge=0, description="flipped bits of each artifact, one a round")
    seed: int = 0


def run_command(project: Project, name: str, *more: str) -> list[str]:
    """Return the command of ``make run`` for the small config with results in ``name``."""
    config = project.config(f"{name}.yaml", name, cache=f".cache_{name}")
    return [sys.executable, "-m", "workflow_scripts.workflow.run", "--config", config, "--cores", "2", *more]


def victims(run: int, kind: str) -> list[psutil.Process]:
    """Return the processes below ``run`` of a kind."""
    with suppress(psutil.Error):
        parent = psutil.Process(run)
        below = parent.children(recursive=True)
        if kind == "all processes":
            return [parent, *below] if below else []
        lines = {process: " ".join(process.cmdline()) for process in below}
        if kind == "Snakemake":
            return [process for process, line in lines.items() if "/snakemake " in line][:1]
        return [process for process, line in lines.items() if "/.snakemake/scripts/" in line]
    return []


def disturbed(project: Project, name: str, kills: list[tuple[float, str]], draw: random.Random) -> list[str]:
    """Run, kill at each moment (seconds of work) what is named, resume, to the end; return what was killed and said."""
    rows, pending, worked, attempts = [], sorted(kills), 0.0, 0
    while attempts < ATTEMPTS:
        output = project.root / f"{name}.txt"
        with output.open("wb") as file:
            run = subprocess.Popen(
                run_command(project, name), cwd=project.root, env=project.environment, stdout=file, stderr=file
            )
        begun = time.monotonic()
        killed = ""
        while run.poll() is None:
            time.sleep(LOOK)
            if pending and worked + time.monotonic() - begun >= pending[0][0] and not killed:
                chosen = victims(run.pid, pending[0][1])
                for process in chosen if pending[0][1] == "all processes" else draw.sample(chosen, min(1, len(chosen))):
                    with suppress(psutil.NoSuchProcess):
                        process.kill()
                    killed = pending[0][1]
        worked += time.monotonic() - begun
        error = [line for line in output.read_text(errors="replace").splitlines() if "error" in line.lower()][-1:]
        if killed:
            moment, _ = pending.pop(0)
            rows.append(f"| {name} | {killed} | {moment:.0f} | {' '.join(error)[:150]} |")
        if run.returncode == 0:
            return rows
        if "make unlock" in " ".join(error):
            project.snakemake(f"{name}.yaml", "--unlock")
        time.sleep(1)
        attempts = 0 if killed else attempts + 1
    raise UserError(f"{name}: does not resume: {' '.join(error)}")


def flipped(project: Project, name: str, draw: random.Random) -> tuple[int, list[str]]:
    """Flip a bit of each artifact of a finished run; return how many, and those that ``verify`` does not name."""
    folder = project.root / name
    whole = {folder / path: (folder / path).read_bytes() for path in project.artifacts(name)}
    for file, content in whole.items():
        raw = bytearray(content)
        if raw:
            raw[draw.randrange(len(raw))] ^= 1 << draw.randrange(8)
        file.write_bytes(raw)
    verify = [sys.executable, "-m", "workflow_scripts.workflow.verify", "--config", f"{name}.yaml"]
    done = project.call(*verify, check=False)
    named = done.stdout + done.stderr
    for file, content in whole.items():
        file.write_bytes(content)
    missed = [str(file.relative_to(project.root)) for file, content in whole.items() if content]
    return len(missed), [path for path in missed if path not in named]


def main(command: Faults) -> None:
    draw = random.Random(command.seed)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        project = Project(Path(folder).resolve()).copy()
        begun = time.monotonic()
        project.call(*run_command(project, "whole"))
        seconds = time.monotonic() - begun
        print("| run | killed | at, s | message |\n|---|---|---|---|")
        wrong = []
        for number in range(-(-command.moments // command.each)):
            kills = [(draw.uniform(0, seconds), VICTIMS[i % len(VICTIMS)]) for i in range(command.each)]
            print("\n".join(disturbed(project, f"run{number}", kills, draw)), flush=True)
            if project.artifacts(f"run{number}") != project.artifacts("whole"):
                wrong.append(f"run{number} has other bytes than the undisturbed run")
        for _ in range(command.flips):
            count, missed = flipped(project, "whole", draw)
            print(f"\n{count - len(missed)} of {count} flipped bits were named by `make verify`.", flush=True)
            wrong += [f"{path}: a flipped bit was not named" for path in missed]
    if wrong:
        raise UserError("\n".join(wrong))


if __name__ == "__main__":
    cli.run(main)
