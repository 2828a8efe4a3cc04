"""Check each artifact of a finished run against the digests that its step recorded: what ``make verify`` calls.

It also names the files that the run read and no step wrote: nothing tells whether these are as they were.
"""

import os
import shlex
from collections.abc import Collection, Iterator
from pathlib import Path

from pydantic import Field

from workflow_scripts.core import cli, digests
from workflow_scripts.core.cache import damaged
from workflow_scripts.core.code import ROOT
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.progress import track
from workflow_scripts.core.step import PACKAGE, Step
from workflow_scripts.workflow import origin
from workflow_scripts.workflow.config import read_config, runs_of
from workflow_scripts.workflow.graph import jobs
from workflow_scripts.workflow.run import alone

# Artifacts that the error names.
MAX_NAMED = 10


class Verify(Step):
    """Check each artifact of a finished run against the digests that its step recorded."""

    config: Path = Field(Path("config.yaml"), description="config.yaml, a preset's or your own")
    record: bool = Field(False, description="record all artifacts as they are now, damaged ones too: after `dvc pull`")


def recorded_beside(outputs: Collection[Path]) -> Iterator[Path]:
    """Yield the artifacts that exist and have a record in the folders of ``outputs``: also those made on demand."""
    for folder in {output.parent for output in outputs}:
        for record in folder.glob(f"{digests.FOLDER}/[!.]*"):
            if (folder / record.name).exists():
                yield folder / record.name


def differences(path: Path) -> tuple[int, list[str]]:
    """Return how many files an artifact has, and which of them differ from its record, or why it cannot be checked."""
    try:
        recorded = digests.read_record(path)
    except UserError as error:
        return 0, [str(error)]
    if recorded is None:
        return 0, [] if path.exists() else [f"{path}: missing"]
    return len(recorded.files), digests.faults(path, recorded)


def check_caches(config: Path) -> None:
    """Log the caches with damaged values, which no step uses."""
    for folder in {Path(each.cache) for each in runs_of(config).values()}:
        for file in sorted(folder.rglob("*.sqlite")):
            if count := damaged(file):
                cli.log.warning("%s: damaged values: %d; they are computed again when needed", file, count)


def verify(config: Path) -> None:
    """Print each difference, then raise UserError if there is any."""
    check_caches(config)
    planned = jobs(config)
    outputs = {Path(output) for job in planned for output in job.outputs}
    artifacts = sorted(outputs | set(recorded_beside(outputs)))
    strays = origin.strays((job.command, job.outputs) for job in planned)
    damaged: list[str] = []
    unknown: list[Path] = []
    files = others = 0
    for path in track(artifacts, len(artifacts), "artifacts"):
        count, faults = differences(path)
        files += count
        reason = strays.get(path)
        if not faults and (reason == origin.UNKNOWN or not digests.record_file(path).exists()):
            unknown.append(path)
            print(f"{path}: {reason or 'not recorded'}")
        elif faults:
            damaged.append(str(path))
            print("\n".join(faults))
        elif reason:
            others += 1
            print(f"{path}: {reason}")
    given = {name for job in planned for name in job.inputs if Path(name) not in outputs}
    given = {name for name in given if not name.startswith(f"{PACKAGE}/")}
    if given:
        cli.log.info("not checked, because no step wrote them: %s", ", ".join(sorted(given)))
    if damaged or others:
        # A run makes what is not its own again without being asked.
        which = f"--forcerun {shlex.join(damaged)}" if len(damaged) <= MAX_NAMED else "--forceall"
        again = f"python -m workflow_scripts.workflow.run --config {config}{f' -- {which}' if damaged else ''}"
        summary = f"{len(damaged)} damaged or missing, {others} not of this run"
        raise UserError(f"of {len(artifacts)} artifacts, {summary}; make them again: `{again}`")
    if unknown:
        accept = f"python -m workflow_scripts.workflow.verify --config {config} --record"
        raise UserError(
            f"nothing tells whether {len(unknown)} of {len(artifacts)} artifacts are right; if you know that they are,"
            f" for example after `dvc pull`, record them: `{accept}`; otherwise delete them and run again"
        )
    cli.log.info("%d artifacts (%d files) are as their steps recorded them", len(artifacts), files)


def record(config: Path) -> None:
    """Record the artifacts of a run as they are now, as made by this config."""
    makers = {Path(output): job for job in jobs(config) for output in job.outputs}
    for path in track(sorted(makers), len(makers), "artifacts"):
        digests.record(path, makers[path].module)
    # Now that all inputs are recorded, too.
    origin.forget()
    for path, job in makers.items():
        origin.accept(path, origin.made_by(job.command))
    cli.log.info("recorded %d artifacts", len(makers))


def main(step: Verify) -> None:
    read_config(step.config)
    with alone(f"verifying config {step.config}"):
        (record if step.record else verify)(step.config)


if __name__ == "__main__":
    os.chdir(ROOT)
    cli.run(main)
