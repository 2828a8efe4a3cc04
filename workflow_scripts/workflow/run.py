"""Run the workflow for a config and print its table: what ``make run`` calls.

One run at a time in a checkout, and one line on what to do where a killed run left Snakemake's lock behind.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

import yaml
from filelock import FileLock, Timeout

from workflow_scripts.common import cli
from workflow_scripts.common.code import ROOT
from workflow_scripts.common.config import Config, load_config
from workflow_scripts.common.errors import UserError

STATE = ROOT / ".snakemake"


def read_config(path: Path) -> Config:
    """``config.yaml`` with ``path`` laid over it, as Snakemake's ``--configfile`` does."""

    def overlay(base: dict, top: dict) -> dict:
        both = {
            k: overlay(base[k], v) if isinstance(v, dict) and isinstance(base.get(k), dict) else v
            for k, v in top.items()
        }
        return {**base, **both}

    def read(file: Path) -> dict:
        try:
            values = yaml.safe_load(file.read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise UserError(f"{file}: no such config") from error
        except yaml.YAMLError as error:
            raise UserError(f"{file}: not YAML: {' '.join(str(error).split())}") from error
        if values is not None and not isinstance(values, dict):
            raise UserError(f"{file}: must map keys to values")
        return values or {}

    return load_config(overlay(read(ROOT / "config.yaml"), read(path)), where=str(path))


def main(options: argparse.Namespace) -> None:
    if options.cores < 1:
        raise UserError(f"--cores {options.cores}: needs at least 1")
    settings = read_config(options.config)
    STATE.mkdir(exist_ok=True)
    try:
        with FileLock(STATE / "compclip.lock", timeout=0):
            if any(STATE.joinpath("locks").glob("*")):
                raise UserError("a killed run left Snakemake's lock: if none is running, `make unlock`, then run again")
            # What is wanted first: --configfile would take a file's name behind it for its own.
            command = ["snakemake", *options.snakemake, "--cores", str(options.cores)]
            command += ["--configfile", str(options.config)]
            code = subprocess.run(command, cwd=ROOT).returncode
    except Timeout as error:
        raise UserError("another run is at work in this checkout: wait until it ends") from error
    if code:
        raise UserError(f"the workflow stopped (exit {code}): the first error above says why, logs/ says more")
    for name, page in (("table", "report"), ("specs", "specs"), ("compun", "compun")):
        table = Path(settings.results) / f"{name}.md"
        if table.is_file():
            print(table.read_text(encoding="utf-8"))
            print(f"{settings.results}/{page}.html shows it with figures and examples.")


if __name__ == "__main__":
    os.chdir(ROOT)
    parser = cli.parser(__doc__)
    parser.add_argument("--config", type=Path, default=Path("config.yaml"), help="config.yaml or a preset's")
    parser.add_argument("--cores", type=int, default=os.cpu_count(), help="passed on to Snakemake")
    parser.add_argument("snakemake", nargs="*", help="after --: more arguments for Snakemake")
    sys.stdout.reconfigure(line_buffering=True)
    cli.run(main, parser)
