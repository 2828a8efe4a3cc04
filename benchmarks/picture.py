"""Put Snakemake's rule graph into docs/workflow.md, as a table: a picture would need a script from
another server.
"""

import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Sequence
from functools import cache

from compclip.core.artifacts.files import write_text
from compclip.core.errors import UserError
from compclip.core.identity.code import ROOT
from compclip.core.settings import cli
from compclip.core.settings.cli import Command

WORKFLOW_PAGE = ROOT / "docs" / "workflow.md"
PICTURE_PLACE = re.compile(
    r"(<!-- workflow: make picture -->\n).*?(<!-- end of workflow -->)", re.S
)


def picture() -> str:
    """Return the rule graph of the default config as a table in Markdown, rules by name, without
    arrows that follow from others.
    """
    command = [sys.executable, "-m", "snakemake", "--quiet", "all", "--rulegraph", "mermaid-js"]
    drawn = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    names = dict(re.findall(r"^\s*(id\d+)\[(.+)\]$", drawn, re.M))
    edges = sorted(
        (names[one], names[other]) for one, other in re.findall(r"(id\d+) --> (id\d+)", drawn)
    )
    readers: dict[str, list[str]] = defaultdict(list)
    for one, other in drop_implied(edges):
        readers[one].append(other)
    rows = [f"| `{rule}` | {', '.join(readers[rule])} |" for rule in readers]
    return "\n".join(["| rule | its outputs are read by |", "|---|---|", *rows])


def drop_implied(edges: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the edges of a graph without cycles that no longer path implies."""
    readers: dict[str, list[str]] = defaultdict(list)
    for one, other in edges:
        readers[one].append(other)

    @cache
    def reached(name: str) -> frozenset[str]:
        nearest = readers.get(name, [])
        return frozenset(nearest).union(*map(reached, nearest))

    return [
        (one, other)
        for one, other in edges
        if not any(other in reached(reader) for reader in readers[one])
    ]


def with_picture(page: str, drawn: str) -> str:
    """Return ``page`` with the picture between its marks; raise UserError if they are missing."""
    if not PICTURE_PLACE.search(page):
        raise UserError("docs/workflow.md: the marks of the workflow's picture are missing")
    return PICTURE_PLACE.sub(lambda m: f"{m[1]}\n{drawn}\n\n{m[2]}", page)


class WorkflowPicture(Command):
    """Put Snakemake's rule graph into docs/workflow.md."""


def main(_: WorkflowPicture) -> None:
    write_text(with_picture(WORKFLOW_PAGE.read_text(encoding="utf-8"), picture()), WORKFLOW_PAGE)


if __name__ == "__main__":
    cli.run(main)
