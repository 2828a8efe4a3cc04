"""Check each artifact of a run against its record and those of its inputs: ``compclip run
verify``.
"""

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from pydantic import Field

from compclip.core.errors import UserError, require
from compclip.core.identity import digests
from compclip.core.identity.fingerprint import REREAD
from compclip.core.progress import track
from compclip.core.settings import cli
from compclip.core.settings.cli import Command
from workflow_scripts.root import run_command
from workflow_scripts.workflow.config import Config, read_config
from workflow_scripts.workflow.run import SNAKEMAKE, check_alone

# Artifacts that the remedy names.
MAX_NAMED = 10
RECORDS = f"{digests.FOLDER}/[!.]*"


class Verify(Command):
    """Check each artifact of a run against the digests that its step recorded."""

    config: Path = Field(Path("config.yaml"), description="config.yaml, a preset's or your own")
    inputs: bool = Field(
        False,
        description="read the user's files again, too, and compare them with their first reading",
    )


def recorded_below(config: Config) -> set[Path]:
    """Return the artifacts of a config that have a record."""
    results = Path(config.results)
    figures = results / "figures"
    records = list(results.glob(RECORDS))
    # Not all folders: the results folder may contain the results of other configs.
    for folder in (config.data_folder, figures):
        records += folder.rglob(RECORDS)
    # An artifact's record has its name and lies in a folder beside it.
    return {record.parents[1] / record.name for record in records}


# Many artifacts are made from the same ones, whose records are then read once.
read_once = cache(digests.read_record)


def artifact_faults(path: Path) -> Iterator[tuple[str, Path]]:
    """Yield what is wrong with an artifact, its record or the artifacts it was made from, and what
    to make again; a record that is damaged is that of the artifact or of one of these.
    """
    try:
        record = read_once(path)
    except UserError as error:
        yield str(error), path
        return
    if record is None:
        return
    for fault in digests.faults(path, record):
        yield fault, path
    for name, digest in record.inputs.items():
        # Inputs are named relative to the folder of the artifact.
        source = Path(os.path.normpath(path.parent / name))
        try:
            source_record = read_once(source)
        except UserError as error:
            yield str(error), source
            continue
        if source_record is None or source_record.digest != digest:
            fault = f"{path}: made from another {source}, or its record is missing"
            # Without a record, only making the source again gives it one.
            yield fault, path if source_record else source


def read_inputs_again(config: Path) -> None:
    """Raise UserError if files of the user have other bytes than when they were first read."""
    # Fingerprints of all of them are params of rules, which a dry run computes.
    command = [*SNAKEMAKE, "--dry-run", "--quiet", "all", "--forceall"]
    command += ["--configfile", str(config)]
    environment = {**os.environ, REREAD: "1"}
    run = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True)
    if run.returncode:
        printed = run.stdout
        fault = re.search(r"^ *UserError: (.+)$", printed, re.MULTILINE)
        raise UserError(fault[1] if fault else f"{config}: {printed.strip()}")


def main(command: Verify) -> None:
    if command.inputs:
        read_inputs_again(command.config)
    config = read_config(command.config)
    # A run that is going on changes artifacts and their records.
    check_alone()
    artifacts = sorted(recorded_below(config))
    remedy = f"`{run_command(config=command.config)}` first"
    require(artifacts, command.config, "not run yet", remedy)
    # A source without a record is found once for each artifact that is made from it.
    to_repeat: dict[str, Path] = {}
    for path in track(artifacts, len(artifacts), "artifacts"):
        to_repeat.update(artifact_faults(path))
    for line in to_repeat:
        print(line)
    names = sorted({str(path) for path in to_repeat.values()})
    run = f"python -m compclip run {shlex.quote(str(command.config))}"
    options = shlex.join(["--forcerun", *names]) if len(names) <= MAX_NAMED else "--forceall"
    fault = f"{len(names)} of {len(artifacts)} artifacts are not as recorded"
    require(not to_repeat, command.config, fault, f"make them again: `{run} -- {options}`")
    cli.log.info("%d artifacts are as their steps recorded them", len(artifacts))


if __name__ == "__main__":
    cli.run(main)
