"""Put Snakemake's own drawing of the rules into the README, as Mermaid."""

from __future__ import annotations

import argparse
import re
import subprocess
import sys

from workflow_scripts.core import cli
from workflow_scripts.core.code import ROOT
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import write_text

README = ROOT / "README.md"
PLACE = re.compile(r"(<!-- workflow: make picture -->\n).*?(<!-- end of workflow -->)", re.S)


def picture() -> str:
    """The rule graph of the default config, in Mermaid.

    Snakemake numbers and colors the rules anew each time; here they go by their names, in a fixed order.
    """
    command = [sys.executable, "-m", "snakemake", "--quiet", "all", "--rulegraph", "mermaid-js"]
    drawn = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    names = dict(re.findall(r"^\s*(id\d+)\[(.+)\]$", drawn, re.M))
    edges = sorted((names[one], names[other]) for one, other in re.findall(r"(id\d+) --> (id\d+)", drawn))
    return "\n".join(["flowchart TB", *(f"    {one} --> {other}" for one, other in edges)])


def with_picture(readme: str, drawn: str) -> str:
    """``readme`` with the picture in its place; UserError where the place is not marked."""
    if not PLACE.search(readme):
        raise UserError("README.md: the marks of the workflow's picture are missing")
    return PLACE.sub(lambda m: f"{m[1]}\n```mermaid\n{drawn}\n```\n\n{m[2]}", readme)


def main(_: argparse.Namespace) -> None:
    write_text(with_picture(README.read_text(encoding="utf-8"), picture()), README)


if __name__ == "__main__":
    cli.run(main, cli.parser(__doc__))
