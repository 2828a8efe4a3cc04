"""Record a finished run that DVC did not start, one of a cluster say, as ``dvc repro`` would have.

Snakemake must find nothing left to do for the config, and no run may be at work: what is not complete is named, and
nothing is recorded. Then ``dvc commit`` writes the hashes of all artifacts into the dvc.lock beside the config's
dvc.yaml, and the artifacts into DVC's cache.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from workflow_scripts.common import cli
from workflow_scripts.common.code import ROOT
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.lock import Held, held
from workflow_scripts.workflow.graph import unfinished
from workflow_scripts.workflow.make_dvc import dvc_file, dvc_text
from workflow_scripts.workflow.run import STATE, read_config

# Of the jobs that are left, as many are named.
NAMED = 3


def check_complete(config: Path) -> None:
    """UserError where Snakemake would still run a job for ``config``: it names the first ones, and why."""
    left = unfinished(config)
    if left:
        first = "; ".join(f"{rule} ({file}: {why})" for rule, file, why in left[:NAMED])
        more = f"; {len(left) - NAMED} more" if len(left) > NAMED else ""
        raise UserError(f"the run is not complete, nothing is recorded; still to do: {first}{more}")


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
            if any(STATE.joinpath("locks").glob("*")):
                raise UserError(
                    "Snakemake's lock is set: wait until its run ends; was it killed, `make unlock` and run again"
                )
            check_complete(options.config)
            file = check_stages(options.config)
            command = [sys.executable, "-m", "dvc", "commit", "--force", os.path.relpath(file, ROOT)]
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
