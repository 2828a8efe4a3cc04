"""Record the sha256 of every artifact of results folders, or compare with an earlier record.

The safety net of a refactoring: ``python -m benchmarks.digests --record before.json results``; after a change and a run
from nothing, ``python -m benchmarks.digests --compare before.json results`` names each artifact that differs.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path

from pydantic import Field
from pydantic_settings import CliPositionalArg

from compclip.core import cli
from compclip.core.cli import Command
from compclip.core.errors import UserError
from compclip.io import read_json, write_json

# Logs contain times; hidden files belong to tools.
SKIPPED = ("logs", "presets")


class Digests(Command):
    """Record the sha256 of every artifact of results folders, or compare with an earlier record."""

    folders: CliPositionalArg[list[Path]] = Field(description="results folders")
    record: Path | None = Field(None, description="write the digests to this file")
    compare: Path | None = Field(None, description="name the artifacts that differ from this file")
    ignore: list[str] = Field([], description="patterns of paths to skip: */report.html")


def digests(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield each artifact's path below ``folder`` and the sha256 of its content."""
    for file in sorted(folder.rglob("*")):
        parts = file.relative_to(folder).parts
        if file.is_file() and parts[0] not in SKIPPED and not any(part.startswith(".") for part in parts):
            yield "/".join(parts), hashlib.sha256(file.read_bytes()).hexdigest()


def main(step: Digests) -> None:
    found = {f"{folder.name}/{path}": digest for folder in step.folders for path, digest in digests(folder)}
    found = {path: digest for path, digest in found.items() if not any(Path(path).match(p) for p in step.ignore)}
    if step.record:
        write_json(found, step.record)
    if step.compare:
        before = {p: d for p, d in read_json(step.compare).items() if not any(Path(p).match(i) for i in step.ignore)}
        for path in sorted(before.keys() | found.keys()):
            if before.get(path) != found.get(path):
                kind = "missing" if path not in found else "new" if path not in before else "differs"
                print(f"{kind}: {path}")
        different = sum(before.get(path) != found.get(path) for path in before.keys() | found.keys())
        if different:
            raise UserError(f"{different} of {len(before)} artifacts differ from {step.compare}")
    cli.log.info("%d artifacts%s", len(found), ", all equal" if step.compare else "")


if __name__ == "__main__":
    cli.run(main)
