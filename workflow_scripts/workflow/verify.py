"""Check each artifact of a run against its record and those of its inputs: what ``make verify``
calls.
"""

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from pydantic import Field

from compclip.core import cli, digests
from compclip.core.cli import Command
from compclip.core.code import ROOT
from compclip.core.errors import UserError, require
from compclip.core.fingerprint import REREAD
from compclip.core.progress import track
from workflow_scripts.workflow.config import Config, read_config, runs_of
from workflow_scripts.workflow.run import check_alone

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
    # The results folder itself may contain the results of other configs.
    below = (results / (config.dataset.name or config.dataset.source), results / "figures")
    records = [
        *results.glob(RECORDS),
        *(record for place in below for record in place.rglob(RECORDS)),
    ]
    return {record.parents[1] / record.name for record in records}


read_once = cache(digests.read_record)


def artifact_faults(path: Path) -> Iterator[tuple[str, Path]]:
    """Yield what is wrong with an artifact, its record or the artifacts it was made from, and what
    to make again.
    """
    try:
        recorded = read_once(path)
        for fault in digests.faults(path, recorded) if recorded else ():
            yield fault, path
        for name, digest in recorded.inputs.items() if recorded else ():
            source = Path(os.path.normpath(path.parent / name))
            now = read_once(source)
            if now is None or now.digest != digest:
                yield (
                    f"{path}: made from another {source}, or its record is missing",
                    path if now else source,
                )
    except UserError as error:
        yield str(error), path


def read_inputs_again(config: Path) -> None:
    """Raise UserError if files of the user have other bytes than when they were first read."""
    # Fingerprints of all of them are params of rules.
    graph = ["snakemake", "--dry-run", "--quiet", "all", "--forceall", "--configfile", str(config)]
    done = subprocess.run(graph, env={**os.environ, REREAD: "1"}, stdout=subprocess.PIPE, text=True)
    fault = re.search(r"^ *UserError: (.+)$", done.stdout, re.MULTILINE)
    if done.returncode:
        raise UserError(fault[1] if fault else f"{config}: {done.stdout.strip()}")


def main(command: Verify) -> None:
    if command.inputs:
        read_inputs_again(command.config)
    configs = [read_config(command.config), *runs_of(command.config).values()]
    check_alone()
    artifacts = sorted({path for config in configs for path in recorded_below(config)})
    wrong = dict(
        fault
        for path in track(artifacts, len(artifacts), "artifacts")
        for fault in artifact_faults(path)
    )
    for line in wrong:
        print(line)
    again = sorted({*map(str, wrong.values())})
    run = f"python -m workflow_scripts.workflow.run --config {command.config}"
    which = shlex.join(["--forcerun", *again]) if len(again) <= MAX_NAMED else "--forceall"
    remedy = f"make them again: `{run} -- {which}`"
    require(artifacts, command.config, "not run yet", f"`make run CONFIG={command.config}` first")
    require(
        not wrong,
        command.config,
        f"{len(again)} of {len(artifacts)} artifacts are not as recorded",
        remedy,
    )
    cli.log.info("%d artifacts are as their steps recorded them", len(artifacts))


if __name__ == "__main__":
    os.chdir(ROOT)
    cli.run(main)
