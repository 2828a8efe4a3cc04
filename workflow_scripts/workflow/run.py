"""Run the workflow for a config and print its table: what ``make run`` and ``make unlock`` call.

One run at a time works in a checkout. A second one is refused and told which process is running; if none is, it is told
how to remove the lock that a killed Snakemake left behind.
"""

import os
import platform
import re
import stat
import subprocess
import sys
import time
from collections.abc import Collection
from contextlib import AbstractContextManager
from itertools import takewhile
from pathlib import Path

import psutil
from pydantic import Field
from pydantic_settings import CliPositionalArg

from workflow_scripts.core import cli, digests
from workflow_scripts.core.code import ROOT
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.lock import locked
from workflow_scripts.core.step import Step
from workflow_scripts.workflow import origin
from workflow_scripts.workflow.check import check_writable, report
from workflow_scripts.workflow.config import read_config, runs_of
from workflow_scripts.workflow.graph import Job, jobs
from workflow_scripts.workflow.kept import recover
from workflow_scripts.workflow.screen import PLUGINS

STATE = ROOT / ".snakemake"
LOCK = STATE / "compclip.lock"
# What the screen shows of table.md.
HEADLINES = re.compile("<!-- headlines -->\n```text\n(.*?)```\n<!-- /headlines -->\n", re.DOTALL)
MOST_LINES = 12
# Options of Snakemake with which steps run on other machines or in other environments.
ELSEWHERE = re.compile(r"--(executor|profile|workflow-profile|sdm|software-deployment|use-)|(^| )-e ")


class Run(Step):
    """Run the workflow for a config and print its table."""

    config: Path = Field(Path("config.yaml"), description="config.yaml, a preset's or your own")
    cores: int = Field(os.cpu_count() or 1, ge=1, description="cores that Snakemake may use")
    unlock: bool = Field(False, description="remove the lock that a killed run left behind")
    snakemake: CliPositionalArg[list[str]] = Field([], description="after --: more arguments for Snakemake")


def alone(about: str) -> AbstractContextManager[None]:
    """Hold the lock of the checkout; UserError if another run, record or check holds it."""

    def refuse(holder: str) -> None:
        raise UserError(f"another run is active in this checkout ({holder}); wait until it ends")

    return locked(LOCK, refuse, about)


def works_in(process: psutil.Process, folder: Path) -> bool | None:
    """Return whether a process works in ``folder``; None if another user's process might, because others may write
    there.
    """
    try:
        return process.cwd() == str(folder)
    except psutil.AccessDenied:
        return None if folder.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH) else False


def running_snakemake() -> str | None:
    """Return a description of a Snakemake process that runs, or may run, in this checkout on this machine."""
    for process in psutil.process_iter():
        try:
            words = process.cmdline()
            is_snakemake = any(Path(word).name == "snakemake" for word in words[:3])
            here = works_in(process, ROOT) if is_snakemake else False
            if here is not False:
                since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(process.create_time()))
                about = f"process {process.pid} on {platform.node()}, since {since}, {' '.join(words[1:])[:100]}"
                return about if here else f"{about}; another user's: if it works elsewhere, run `snakemake --unlock`"
        except (psutil.Error, OSError):
            continue  # it has ended
    return None


def wait_for(process: subprocess.Popen[bytes]) -> tuple[int, bool]:
    """Return the exit code and whether Ctrl-C was pressed: the process receives it too and is given time to end."""
    interrupted = False
    while True:
        try:
            return process.wait(), interrupted
        except KeyboardInterrupt:
            interrupted = True


def check_lock() -> None:
    """Raise UserError if Snakemake's lock is set: by a running process, or left by a killed one."""
    if any(STATE.joinpath("locks").glob("*")):
        if (process := running_snakemake()) is not None:
            raise UserError(f"Snakemake is running in this checkout ({process}); wait until it ends")
        raise UserError(
            "a killed run left Snakemake's lock; if no run is active on another machine, `make unlock` and run again"
        )


def needed(planned: list[Job], targets: list[str]) -> list[Job]:
    """Return the jobs that make ``targets``, files or rules, and their inputs; without targets, all jobs."""
    wanted = {path for job in planned if job.rule in targets for path in job.outputs} | set(targets)
    if not targets:
        return planned
    makers = {path: job for job in planned for path in job.outputs}
    chosen: dict[Job, None] = {}
    while wanted:
        if (job := makers.get(wanted.pop())) and job not in chosen:
            chosen[job] = None
            wanted |= set(job.inputs)
    return [*chosen]


def counted(paths: Collection[Path], what: str) -> str:
    """Return how many artifacts are what, and the first."""
    return f"{len(paths)} artifact{'s' if len(paths) > 1 else ''} {what}, first: {next(iter(paths))}"


def look_ahead(config: Path, words: list[str]) -> list[str] | None:
    """Log what has to be made again though Snakemake does not notice; return its arguments, None if all is done."""
    if any(word.startswith(("--config", "-C")) for word in words):
        return words  # what these change is unknown here
    try:
        planned, left = jobs(config), jobs(config, everything=False)
    except Exception:  # of any class: Snakemake itself reports what it finds
        return words
    asked = needed(planned, [*takewhile(lambda word: not word.startswith("-"), words)])
    waiting = {output for job in left for output in job.outputs}
    done = [(job.command, [path for path in job.outputs if path not in waiting]) for job in asked]
    outputs = [Path(path) for _, paths in done for path in paths]
    # A step recorded them, and nothing that follows asks for them.
    missing = [path for path in outputs if digests.record_file(path).is_file() and not os.path.lexists(path)]
    found = origin.strays(done)
    strays = {path: reason for path, reason in found.items() if reason != origin.UNKNOWN}
    if missing:
        cli.log.warning("%s; made again", counted(missing, "missing"))
    if strays:
        reason = next(iter(strays.values()))
        cli.log.warning("%s (%s); made again", counted(strays, "not of this run"), reason)
    if unknown := [path for path in found if path not in strays]:
        hint = "recorded by an older version or made by hand; see `make verify`"
        cli.log.warning("warning: %s (%s)", counted(unknown, origin.UNKNOWN), hint)
    again = [str(path) for path in (*missing, *strays)]
    if not again:
        return words if words or waiting else None
    for flag in ("--forcerun", "-R"):
        if flag in words:  # of two, Snakemake would take the last
            place = words.index(flag) + 1
            return [*words[:place], *again, *words[place:]]
    return [*words, "--forcerun", *again]


def print_results(folders: list[str]) -> None:
    """Print the headlines of results folders, whose tables must be as recorded; name pages, tables, Snakemake's log."""
    places: list[tuple[str, object]] = []
    for folder in folders:
        for name, page in (("table", "report"), ("specs", "specs"), ("compun", "compun")):
            table, shown = Path(folder, f"{name}.md"), Path(folder, f"{page}.html")
            # The common table comes first and contains those of the runs.
            if table.is_file() and not (name == "table" and folder != folders[0]):
                digests.check([table])
                text = table.read_text(encoding="utf-8")
                # Of a table without headlines, the beginning.
                lines = ["\n".join(HEADLINES.findall(text))] if "<!-- headlines" in text else text.splitlines()
                print("\n".join(lines[:MOST_LINES] + ["…"] * (len(lines) > MOST_LINES)))
            places += [(kind, path) for kind, path in (("page", shown), ("table", table)) if path.is_file()]
    places += [("log", path.relative_to(ROOT)) for path in sorted(STATE.glob("log/*.log"))[-1:]]
    for kind, path in places:
        print(f"{kind + ':':6} {path}")


def run_snakemake(command: list[str]) -> None:
    """Run Snakemake to its end, with ``screen.py`` as its logger; raise UserError if it is killed."""
    python_path = os.pathsep.join([str(PLUGINS), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": python_path, cli.UNDER_RUN: "1"}
    with subprocess.Popen([*command, "--logger", "compclip"], cwd=ROOT, env=environment) as snakemake:
        code, interrupted = wait_for(snakemake)
    if interrupted:
        raise KeyboardInterrupt
    if code < 0:
        raise UserError(f"Snakemake was killed (signal {-code}); `make unlock`, then run again to resume")
    if code:
        sys.exit(1)  # the errors are on the screen already


def main(step: Run) -> None:
    config = read_config(step.config)
    runs = runs_of(step.config)
    with alone(f"config {step.config}"):
        if step.unlock:
            if (process := running_snakemake()) is not None:
                raise UserError(f"Snakemake is running in this checkout ({process}); wait until it ends")
            unlock = ["snakemake", "--unlock", "--configfile", str(step.config)]
            sys.exit(subprocess.run(unlock, cwd=ROOT).returncode)
        check_writable(STATE)
        check_lock()
        report(
            step.config,
            here=not ELSEWHERE.search(" ".join(step.snakemake)),
            strict=all(word.startswith("-") for word in step.snakemake),
        )
        recover([Path(each.results) for each in (config, *runs.values())])
        words = look_ahead(step.config, step.snakemake)
        if words is None:
            cli.log.info("Nothing to do: all results are up to date.")
        else:
            # Targets first: --configfile would take a file name behind it as another config.
            run_snakemake(["snakemake", *words, "--cores", str(step.cores), "--configfile", str(step.config)])
    print_results([config.results, *(run.results for name, run in runs.items() if name)])


if __name__ == "__main__":
    os.chdir(ROOT)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    cli.run(main)
