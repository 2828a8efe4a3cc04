"""Kill runs at random moments, resume them, and compare with an undisturbed run; then flip bits of
its artifacts.

Then a run is disturbed without kills: a full disk, a second run, clocks that jump, flipped bits in
its cache.

``make faults`` does so in a copy of the checkout, with the tests' small config, for docs/faults.md.
"""

import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
from pydantic import Field

from compclip.core.errors import UserError
from compclip.core.settings import cli
from compclip.core.settings.cli import Command
from tests.core.test_digests import flip
from tests.project import Project

# What is killed (signal 9), each as often as the others, and what marks its command line.
VICTIMS = {"Snakemake": "/snakemake ", "a step": "/.snakemake/scripts/", "all processes": ""}
LOOK = 0.2  # seconds between two looks for a process to kill
# Runs after a kill, until it is done; those that are refused while steps of the killed one still
# run do not count.
ATTEMPTS = 6
FULL = 40_000  # bytes of a file at which the disk is full
YEARS = 10  # a clock jumps by at most so many


class Faults(Command):
    """Kill runs at random moments, resume them, compare with an undisturbed run, and flip bits of
    its artifacts.
    """

    moments: int = Field(20, ge=0, description="kills in all")
    each: int = Field(5, ge=1, description="kills of a run")
    flips: int = Field(3, ge=0, description="flipped bits of each artifact, one a round")
    seed: int = 0


def run_command(project: Project, name: str, *more: str) -> list[str]:
    """Return the command of ``make run`` for the small config with results in ``name``."""
    config = project.config(f"{name}.yaml", name, cache=f".cache_{name}")
    return [
        sys.executable,
        "-m",
        "workflow_scripts.workflow.run",
        "--config",
        config,
        "--cores",
        "2",
        *more,
    ]


def victims(run: int, kind: str) -> list[psutil.Process]:
    """Return the processes below ``run`` of a kind."""
    with suppress(psutil.Error):
        parent = psutil.Process(run)
        below = parent.children(recursive=True)
        found = [process for process in below if VICTIMS[kind] in " ".join(process.cmdline())]
        return (
            [parent, *below]
            if kind == "all processes" and below
            else found[:1]
            if kind == "Snakemake"
            else found
        )
    return []


def disturbed(
    project: Project, name: str, kills: list[tuple[float, str]], draw: random.Random
) -> list[str]:
    """Run, kill at each moment (seconds of work) what is named, resume, to the end; return what was
    killed and said.
    """
    rows, pending, worked, attempts = [], sorted(kills), 0.0, 0
    while attempts < ATTEMPTS:
        output = project.root / f"{name}.txt"
        with output.open("wb") as file:
            run = subprocess.Popen(
                run_command(project, name),
                cwd=project.root,
                env=project.environment,
                stdout=file,
                stderr=file,
            )
        begun = time.monotonic()
        killed = ""
        while run.poll() is None:
            time.sleep(LOOK)
            if pending and worked + time.monotonic() - begun >= pending[0][0] and not killed:
                chosen = victims(run.pid, pending[0][1])
                for process in (
                    chosen
                    if pending[0][1] == "all processes"
                    else draw.sample(chosen, min(1, len(chosen)))
                ):
                    with suppress(psutil.NoSuchProcess):
                        process.kill()
                    killed = pending[0][1]
        worked += time.monotonic() - begun
        error = [
            line
            for line in output.read_text(errors="replace").splitlines()
            if "error" in line.lower()
        ][-1:]
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
    """Flip a bit of each artifact of a finished run; return how many, and those that ``verify``
    does not name.
    """
    whole = {
        file: file.read_bytes()
        for file in (project.root / name / path for path in project.artifacts(name))
    }
    for file, content in whole.items():
        if content:
            flip(file, draw)
    verify = [sys.executable, "-m", "workflow_scripts.workflow.verify", "--config", f"{name}.yaml"]
    done = project.call(*verify, check=False)
    named = done.stdout + done.stderr
    for file, content in whole.items():
        file.write_bytes(content)
    missed = [str(file.relative_to(project.root)) for file, content in whole.items() if content]
    return len(missed), [path for path in missed if path not in named]


def limit_files() -> None:
    """Let no file of this process and of those that it starts grow past ``FULL`` bytes."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (FULL, FULL))


def last_line(
    project: Project, command: list[str], before: Callable[[], None] | None = None
) -> tuple[int, str]:
    """Run a command; show and return its exit code and the last line that it printed."""
    done = subprocess.run(
        command,
        cwd=project.root,
        env=project.environment,
        preexec_fn=before,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    code, line = done.returncode, (done.stdout.splitlines() or [""])[-1]
    print(f"\nExit code {code}, `{line}`")
    return code, line


def full_disk(project: Project, name: str) -> str:
    """Run on a full disk, which must end with one line; return what went wrong, "" if nothing
    did.
    """
    code, line = last_line(project, run_command(project, name), limit_files)
    return "" if code and "disk space" in line else f"full disk: exit code {code}, {line}"


def second_run(project: Project, name: str) -> str:
    """Start a run and, while it works, a second one, which must be refused; both resume what is
    there.
    """
    with subprocess.Popen(
        run_command(project, name),
        cwd=project.root,
        env=project.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as first:
        while first.poll() is None and not victims(first.pid, "a step"):
            time.sleep(LOOK)
        code, line = last_line(project, run_command(project, name))
    refused = code == 1 and "locked by another run" in line and first.returncode == 0
    return "" if refused else f"second run: {line}; the first ended with {first.returncode}"


def jump_clocks(project: Project, name: str, draw: random.Random) -> str:
    """Give each artifact a time of the past or the future, and run again."""
    for path in project.artifacts(name):
        moment = time.time() + draw.uniform(-YEARS, YEARS) * 365 * 86400
        os.utime(project.root / name / path, (moment, moment))
    code, line = last_line(project, run_command(project, name))
    if code and (remedy := re.search("`(find .*?)`", line)):
        subprocess.run(remedy[1], cwd=project.root, shell=True, check=True)
        code, line = last_line(project, run_command(project, name))
    return "" if code == 0 else f"clocks: {line}"


def flip_cache(project: Project, name: str, draw: random.Random) -> str:
    """Flip a bit of each file of the cache and run again without results; delete what an error
    names, as it asks.
    """
    cache = project.root / f".cache_{name}"
    files = [file for file in sorted(cache.rglob("*")) if file.is_file() and file.stat().st_size]
    for file in files:
        flip(file, draw)
    shutil.rmtree(project.root / name)
    for refused in range(len(files)):
        code, line = last_line(project, run_command(project, name))
        if code == 0:
            print(
                f"\n{len(files)} files of the cache with flipped bits: {refused} ended a step and "
                "were named."
            )
            return ""
        named = [
            file for file in files if f"{file.relative_to(project.root)}:" in line and file.exists()
        ]
        if not named:
            break
        named[0].unlink()
    return f"cache: {line}"


def other_faults(project: Project, draw: random.Random) -> list[str]:
    """Disturb one run without kills; return what went wrong, and after what it had other bytes."""
    name, wrong = "others", list[str]()
    disturbances = {
        "a full disk": lambda: full_disk(project, name),
        "a second run": lambda: second_run(project, name),
        "jumping clocks": lambda: jump_clocks(project, name, draw),
        "flipped bits in the cache": lambda: flip_cache(project, name, draw),
    }
    for what, disturb in disturbances.items():
        wrong += filter(None, [disturb()])
        if what != "a full disk":
            same = project.artifacts(name) == project.artifacts("whole")
            print(f"\nAfter {what}: {'the same' if same else 'OTHER'} bytes.", flush=True)
            wrong += [] if same else [f"other bytes after {what}"]
    return wrong


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
            kills = [
                (draw.uniform(0, seconds), [*VICTIMS][i % len(VICTIMS)])
                for i in range(command.each)
            ]
            print("\n".join(disturbed(project, f"run{number}", kills, draw)), flush=True)
            if project.artifacts(f"run{number}") != project.artifacts("whole"):
                wrong.append(f"run{number} has other bytes than the undisturbed run")
        for _ in range(command.flips):
            count, missed = flipped(project, "whole", draw)
            print(
                f"\n{count - len(missed)} of {count} flipped bits were named by `make verify`.",
                flush=True,
            )
            wrong += [f"{path}: a flipped bit was not named" for path in missed]
        wrong += other_faults(project, draw)
    if wrong:
        raise UserError("\n".join(wrong))


if __name__ == "__main__":
    cli.run(main)
