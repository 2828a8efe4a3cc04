"""Record a finished run that DVC did not start, for example one of a cluster, as ``dvc repro`` would have.

``dvc commit`` writes the hashes of all artifacts to the dvc.lock beside the config's dvc.yaml, and the artifacts to its
cache. Snakemake's lock is set meanwhile, so that no run starts in between.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import Field

from workflow_scripts.core import cli
from workflow_scripts.core.code import ROOT
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.step import Step
from workflow_scripts.workflow import origin
from workflow_scripts.workflow.config import read_config
from workflow_scripts.workflow.graph import Job, jobs
from workflow_scripts.workflow.make_dvc import dvc_file, dvc_text
from workflow_scripts.workflow.run import STATE, alone

# Jobs that an error names.
MAX_NAMED = 3


class Record(Step):
    """Record a finished run that DVC did not start in the dvc.lock of its config."""

    config: Path = Field(ROOT / "config.yaml", description="config.yaml or a preset's")


@contextmanager
def snakemake_lock(files: list[str], state: Path = STATE) -> Iterator[None]:
    """Set Snakemake's own lock on ``files``; raise UserError if it is set already."""
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
            "Snakemake's lock is set; wait until its run ends or, if it was killed, `make unlock` and run again"
        ) from None
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)


def check_complete(config: Path, planned: list[Job]) -> None:
    """Raise UserError if a job of a run is to be done, or an output is empty or not this run's own."""
    left = jobs(config, everything=False)
    if left:
        first = "; ".join(
            f"{job.rule} ({job.outputs[0]}: {job.reason.split(':')[0].lower()})" for job in left[:MAX_NAMED]
        )
        more = f"; {len(left) - MAX_NAMED} more" if len(left) > MAX_NAMED else ""
        raise UserError(f"the run is not complete, nothing was recorded; still to do: {first}{more}")
    for path, reason in origin.strays((job.command, job.outputs) for job in planned).items():
        if reason != origin.UNKNOWN:
            raise UserError(f"{path}: {reason}; `make run CONFIG={config}`, then record again")
    for output in (output for job in planned for output in job.outputs):
        place = ROOT / output
        for file in sorted(place.rglob("*")) if place.is_dir() else [place]:
            # Hidden files are Snakemake's marks.
            if file.is_file() and not file.name.startswith(".") and not file.stat().st_size:
                raise UserError(f"{os.path.relpath(file, ROOT)}: empty file; delete {output} and run again")


def check_stages(config: Path) -> Path:
    """Return the dvc.yaml of ``config``; raise UserError if it is not what would be generated now."""
    file = dvc_file(config)
    if not file.is_file() or file.read_text(encoding="utf-8") != dvc_text(config):
        fault = "outdated" if file.is_file() else "missing"
        name = os.path.relpath(config, ROOT)
        raise UserError(f"{os.path.relpath(file, ROOT)}: {fault}; `make dvc CONFIG={name}`, then record again")
    return file


def main(step: Record) -> None:
    read_config(step.config)
    with alone("recording a run"):
        planned = jobs(step.config)
        with snakemake_lock([output for job in planned for output in job.outputs]):
            check_complete(step.config, planned)
            file = check_stages(step.config)
            # A new link would have a new time, and Snakemake compares large files by time.
            command = [sys.executable, "-m", "dvc", "commit", "--force", "--no-relink", os.path.relpath(file, ROOT)]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        lines = done.stderr.splitlines()
        errors = [line for line in lines if line.startswith("ERROR")] or lines[-1:]
        raise UserError(f"dvc commit failed: {errors[0].removeprefix('ERROR: ') if errors else done.returncode}")
    lock = os.path.relpath(file.with_name("dvc.lock"), ROOT)
    cli.log.info("wrote %s; commit it with the JSON files of the results, then `dvc push`", lock)


if __name__ == "__main__":
    cli.run(main)
