"""Record the sha256 of every artifact of results folders, or compare with an earlier record.

The safety net of a refactoring: ``python -m benchmarks.digests --record before.json results``; after a change and a run
from nothing, ``python -m benchmarks.digests --compare before.json results`` names each artifact that differs.
"""

import hashlib
from collections.abc import Iterator, Mapping
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


def artifact_digests(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield each artifact's path below ``folder`` and the sha256 of its content."""
    for file in sorted(folder.rglob("*")):
        parts = file.relative_to(folder).parts
        if file.is_file() and parts[0] not in SKIPPED and not any(part.startswith(".") for part in parts):
            yield "/".join(parts), hashlib.sha256(file.read_bytes()).hexdigest()


def main(command: Digests) -> None:
    def compared(digests: Mapping[str, str]) -> dict[str, str]:
        return {path: digests[path] for path in digests if not any(Path(path).match(p) for p in command.ignore)}

    folders = command.folders
    found = compared({f"{folder.name}/{path}": sha for folder in folders for path, sha in artifact_digests(folder)})
    if command.record:
        write_json(found, command.record)
    if command.compare:
        before = compared(read_json(command.compare))
        different = [path for path in sorted(before | found) if before.get(path) != found.get(path)]
        for path in different:
            kind = "missing" if path not in found else "new" if path not in before else "differs"
            print(f"{kind}: {path}")
        if different:
            raise UserError(f"{len(different)} of {len(before)} artifacts differ from {command.compare}")
    cli.log.info("%d artifacts%s", len(found), ", all equal" if command.compare else "")


if __name__ == "__main__":
    cli.run(main)
