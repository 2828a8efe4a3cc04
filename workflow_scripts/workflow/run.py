"""Run the workflow for a config and print its table: what ``make run`` calls; with ``--unlock``, ``make unlock``.

One run at a time in a checkout: another is told who is at work, and where nobody is, what to do about the lock that
a killed run of Snakemake leaves behind.
"""

from __future__ import annotations

import argparse
import os
import platform
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil

from workflow_scripts.core import cli
from workflow_scripts.core.code import ROOT
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.lock import Held, held, tell
from workflow_scripts.workflow.config import Config, load_config, overlay, read_values, run_values

STATE = ROOT / ".snakemake"


def read_over_default(path: Path) -> dict[str, Any]:
    """What ``path`` says, laid over ``config.yaml`` as Snakemake's ``--configfile`` is."""
    return overlay(read_values(ROOT / "config.yaml"), read_values(path))


def read_config(path: Path) -> Config:
    """The same, checked."""
    return load_config(read_over_default(path), where=str(path))


def check_writable(folder: Path) -> None:
    """Make ``folder`` if it is not there; UserError where nothing can be written there."""
    probe = folder / f".{os.getpid()}.tmp"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise UserError(
            f"{folder}: cannot be written ({(error.strerror or '').lower()}): mend that, or name another"
        ) from error


def works_in(process: psutil.Process, folder: Path) -> bool | None:
    """Whether it does; None where that cannot be known of another user's, and others may write in ``folder``."""
    try:
        return process.cwd() == str(folder)
    except psutil.AccessDenied:
        return None if folder.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH) else False


def working_snakemake() -> str | None:
    """Who runs Snakemake in this checkout on this machine, by itself and not through ``make run``; or may do so."""
    for process in psutil.process_iter():
        try:
            words = process.cmdline()
            is_snakemake = any(Path(word).name == "snakemake" for word in words[:3])
            here = works_in(process, ROOT) if is_snakemake else False
            if here is not False:
                since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(process.create_time()))
                who = f"process {process.pid} on {platform.node()}, since {since}, {' '.join(words[1:])[:100]}"
                return who if here else f"{who}; another user's: if it works elsewhere, `snakemake --unlock`"
        except (psutil.Error, OSError):
            continue  # ended meanwhile
    return None


def wait_for(process: subprocess.Popen[bytes]) -> tuple[int, bool]:
    """Its exit code, and whether Ctrl-C was pressed: it gets that too, and is given the time to end, each time."""
    interrupted = False
    while True:
        try:
            return process.wait(), interrupted
        except KeyboardInterrupt:
            interrupted = True


def main(options: argparse.Namespace) -> None:
    if options.cores < 1:
        raise UserError(f"--cores {options.cores}: needs at least 1")
    settings = read_config(options.config)
    values = run_values(read_over_default(options.config))
    runs = [run["results"] for run in values.values()]
    if not options.unlock:
        caches = {settings.cache, *(load_config(run).cache for run in values.values())}
        for folder in map(Path, (STATE, settings.results, *sorted(caches), *runs)):
            check_writable(folder)
    about = f"config {options.config}"
    try:
        with held(STATE / "compclip.lock", about) as lock:
            if any(STATE.joinpath("locks").glob("*")):
                if (at_work := working_snakemake()) is not None:
                    raise UserError(f"Snakemake is at work in this checkout ({at_work}): wait until it ends")
                if not options.unlock:
                    raise UserError(
                        "a killed run left Snakemake's lock: if none is at work on another machine, `make unlock`,"
                        " then run again"
                    )
            if options.unlock:
                unlock = ["snakemake", "--unlock", "--configfile", str(options.config)]
                sys.exit(subprocess.run(unlock, cwd=ROOT).returncode)
            # What is wanted first: --configfile would take a file's name behind it for its own.
            command = ["snakemake", *options.snakemake, "--cores", str(options.cores)]
            command += ["--configfile", str(options.config)]
            # Snakemake goes on where this process is killed: so it holds the lock too.
            with subprocess.Popen(command, cwd=ROOT, pass_fds=[lock]) as snakemake:
                tell(lock, snakemake.pid, about)
                code, interrupted = wait_for(snakemake)
                if interrupted:
                    raise KeyboardInterrupt
    except Held as holder:
        raise UserError(f"another run is at work in this checkout ({holder}): wait until it ends") from holder
    if code < 0:
        raise UserError(
            f"Snakemake was killed (signal {-code}): `make unlock`, then run again: it goes on where it was"
        )
    if code:
        raise UserError(f"the workflow stopped (exit {code}): the first error above says why, logs/ says more")
    for folder in [settings.results, *runs]:
        for name, page in (("table", "report"), ("specs", "specs"), ("compun", "compun")):
            table, shown = Path(folder, f"{name}.md"), Path(folder, f"{page}.html")
            # The table of several runs stands first, and holds each one's.
            if table.is_file() and not (name == "table" and folder in runs):
                print(table.read_text(encoding="utf-8"))
            if table.is_file() and shown.is_file():
                print(f"{shown} shows it with figures and examples.")


if __name__ == "__main__":
    os.chdir(ROOT)
    parser = cli.parser(__doc__)
    parser.add_argument("--config", type=Path, default=Path("config.yaml"), help="config.yaml or a preset's")
    parser.add_argument("--cores", type=int, default=os.cpu_count(), help="passed on to Snakemake")
    parser.add_argument("--unlock", action="store_true", help="remove the lock that a killed run left behind")
    parser.add_argument("snakemake", nargs="*", help="after --: more arguments for Snakemake")
    sys.stdout.reconfigure(line_buffering=True)
    cli.run(main, parser)
