"""Record a finished run that DVC did not start, one of a cluster say, as ``dvc repro`` would have.

Snakemake must find nothing left to do for the config, no file may be empty, and no run may be at work: what is not
complete is named, and nothing is recorded. Then ``dvc commit`` writes the hashes of all artifacts into the dvc.lock
beside the config's dvc.yaml, and the artifacts into DVC's cache. Snakemake's lock is held meanwhile, so that no run
begins in between.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from workflow_scripts.core import cli
from workflow_scripts.core.code import ROOT
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.lock import Held, held
from workflow_scripts.workflow.graph import jobs, unfinished
from workflow_scripts.workflow.make_dvc import dvc_file, dvc_text
from workflow_scripts.workflow.run import STATE, read_config

# Of the jobs that are left, as many are named.
NAMED = 3


@contextmanager
def snakemakes_lock(files: list[str], state: Path = STATE) -> Iterator[None]:
    """Snakemake's own lock on ``files``, in its words; UserError where it is set already."""
    folder = state / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    lock = folder / "0.output.lock"
    try:
        if any(folder.iterdir()):
            raise FileExistsError
        with lock.open("x") as file:
            file.writelines(f"{name}\n" for name in files)
    except FileExistsError:
        raise UserError(
            "Snakemake's lock is set: wait until its run ends; was it killed, `make unlock` and run again"
        ) from None
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)


def check_complete(config: Path, outputs: list[str]) -> None:
    """UserError where Snakemake would still run a job for ``config``, or a file of ``outputs`` is empty: it names the
    first ones, and why.
    """
    left = unfinished(config)
    if left:
        first = "; ".join(f"{rule} ({file}: {why})" for rule, file, why in left[:NAMED])
        more = f"; {len(left) - NAMED} more" if len(left) > NAMED else ""
        raise UserError(f"the run is not complete, nothing is recorded; still to do: {first}{more}")
    for output in outputs:
        place = ROOT / output
        for file in sorted(place.rglob("*")) if place.is_dir() else [place]:
            # Hidden ones are Snakemake's marks.
            if file.is_file() and not file.name.startswith(".") and not file.stat().st_size:
                name = os.path.relpath(file, ROOT)
                raise UserError(f"{name}: is empty, nothing is recorded: delete {output}, then run again")


def check_stages(config: Path) -> Path:
    """The dvc.yaml of ``config``; UserError where it is not what the workflow's graph says now."""
    file = dvc_file(config)
    if not file.is_file() or file.read_text(encoding="utf-8") != dvc_text(config):
        said = "is not the workflow's" if file.is_file() else "is missing"
        name = os.path.relpath(config, ROOT)
        raise UserError(f"{os.path.relpath(file, ROOT)}: {said}: `make dvc CONFIG={name}`, then record again")
    return file


def main(options: argparse.Namespace) -> None:
    read_config(options.config)
    try:
        with held(STATE / "compclip.lock", "which records a run"):
            outputs = [output for job in jobs(options.config) for output in job.outputs]
            with snakemakes_lock(outputs):
                check_complete(options.config, outputs)
                file = check_stages(options.config)
                # A new link would be a new time, and Snakemake goes by the times of what is large.
                command = [sys.executable, "-m", "dvc", "commit", "--force", "--no-relink", os.path.relpath(file, ROOT)]
                done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    except Held as holder:
        raise UserError(f"a run is at work in this checkout ({holder}): wait until it ends, then record it") from holder
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or done.stderr.splitlines()[-1:]
        raise UserError(f"dvc commit failed: {said[0].removeprefix('ERROR: ') if said else done.returncode}")
    lock = os.path.relpath(file.with_name("dvc.lock"), ROOT)
    cli.log.info("%s written: commit it with the JSON files of the results, then `dvc push`", lock)


if __name__ == "__main__":
    parser = cli.parser(__doc__)
    parser.add_argument("--config", type=Path, default=ROOT / "config.yaml", help="config.yaml or a preset's")
    cli.run(main, parser)
