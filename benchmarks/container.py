"""Write envs/Dockerfile, an image with all conda environments, with ``snakemake --containerize``."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from workflow_scripts.core import cli
from workflow_scripts.core.code import ROOT
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import write_text
from workflow_scripts.core.step import Step

FILE = ROOT / "envs" / "Dockerfile"
# Sections that bring the rules of every stage.
SECTIONS = "specs: {}\ncompun: {}\nhuman: {}\n"
# Answers to what Snakemake asks conda, which need not be installed: it looks for pins for the platform.
CONDA = """#!/bin/sh
case "$*" in
  *info*) echo '{"conda_prefix": "/opt/conda", "platform": "linux-64"}' ;;
  *config*) echo '{"get": {"channel_priority": "strict"}}' ;;
  *) echo conda 99.0.0 ;;
esac
"""
# Inserted after the first line, which names the base image.
INDEX = """# Another build of torch: --build-arg PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu
ARG PIP_EXTRA_INDEX_URL
"""


def dockerfile() -> str:
    """Return the Dockerfile that Snakemake makes of the rules' environments, with an index for pip."""
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


class Container(Step):
    """Write envs/Dockerfile, an image with all conda environments."""


def main(_: Container) -> None:
    write_text(dockerfile(), FILE)


if __name__ == "__main__":
    cli.run(main)
