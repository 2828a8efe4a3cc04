"""Write envs/Dockerfile, of an image with all conda environments, by ``snakemake --containerize``."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from workflow_scripts.core import cli
from workflow_scripts.core.code import ROOT
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import write_text

FILE = ROOT / "envs" / "Dockerfile"
# So that the rules of every stage are there.
SECTIONS = "specs: {}\ncompun: {}\nhuman: {}\n"
# What Snakemake asks of conda, which need not be here: it looks for files of pins for the platform, and there are none.
CONDA = """#!/bin/sh
case "$*" in
  *info*) echo '{"conda_prefix": "/opt/conda", "platform": "linux-64"}' ;;
  *config*) echo '{"get": {"channel_priority": "strict"}}' ;;
  *) echo conda 99.0.0 ;;
esac
"""
# The first line is that which names the image to begin with.
INDEX = """# Another build of torch: --build-arg PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu
ARG PIP_EXTRA_INDEX_URL
"""


def dockerfile() -> str:
    """What Snakemake makes of the rules' environments, and where pip may look for torch besides."""
    with tempfile.TemporaryDirectory() as folder:
        config, conda = Path(folder, "config.yaml"), Path(folder, "conda")
        config.write_text(SECTIONS)
        conda.write_text(CONDA)
        conda.chmod(0o755)
        command = [sys.executable, "-m", "snakemake", "--containerize", "dockerfile", "--configfile", str(config)]
        path = f"{folder}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(command, cwd=ROOT, env={**os.environ, "PATH": path}, capture_output=True, text=True)
    if done.returncode:
        raise UserError(f"snakemake --containerize: {done.stderr.strip().splitlines()[-1]}")
    first, rest = done.stdout.split("\n", 1)
    return f"# Generated: `make container`. How to build and use it: docs/cluster.md.\n{first}\n{INDEX}{rest}"


def main(_: argparse.Namespace) -> None:
    write_text(dockerfile(), FILE)


if __name__ == "__main__":
    cli.run(main, cli.parser(__doc__))
