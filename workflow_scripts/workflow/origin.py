"""Find artifacts that were not made from the config, the code and the inputs that a run would make them from.

Snakemake compares settings by path with those of the last run in this checkout: it does not notice that a folder of
results was replaced by one of another config. The records of digests move with their artifacts and say what these were
made of.
"""

import os
import shlex
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from workflow_scripts.core import digests
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.step import PACKAGE, Step, declaration, parse

UNKNOWN = "of unknown origin"
OTHER = "made with other settings, code or files of yours"


def made_by(command: str) -> Step:
    """Return the step that a job's command runs."""
    words = shlex.split(command)
    start = next(number for number, word in enumerate(words) if word.startswith(f"{PACKAGE}."))
    return parse(declaration(words[start].removeprefix(f"{PACKAGE}.")), words[start + 1 :], words[start])


def identity(command: str) -> str | None:
    """Return the identity that a job's command passes to its step."""
    words = command.split()
    return words[words.index("--identity") + 1] if "--identity" in words else None


@cache
def _read(path: Path) -> digests.Record | None:
    try:
        return digests.read_record(path)
    except UserError:  # `make verify`, and the step that reads the artifact, name it
        return None


forget = _read.cache_clear  # records have changed


def strays(made: Iterable[tuple[str, Iterable[str]]]) -> dict[Path, str]:
    """Return the artifacts that are not a run's own, each with the reason; what is missing or has no record is not.

    ``made`` has the command of each job and its outputs.
    """
    forget()
    found, sources = {}, {}
    for command, outputs in made:
        for path in map(Path, outputs):
            if path.exists() and (recorded := _read(path)):
                inputs = {
                    Path(os.path.normpath(path.parent / name)): digest for name, digest in recorded.inputs.items()
                }
                sources[path] = inputs.keys()
                if reason := _reason(recorded, identity(command), inputs):
                    found[path] = reason
    wrong = {path for path, reason in found.items() if reason != UNKNOWN}
    while wrong:  # what was made from them, and so on
        follow = {path: read & wrong for path, read in sources.items() if read & wrong and path not in found}
        found |= {path: f"made from {min(read)}, which is not of this run" for path, read in follow.items()}
        wrong = set(follow)
    return found


def _reason(recorded: digests.Record, expected: str | None, inputs: Mapping[Path, str]) -> str | None:
    """Return why an artifact, by its record, is not the run's; its other inputs are not looked at."""
    if recorded.identity is None:
        return UNKNOWN
    if recorded.identity != expected:
        return OTHER
    others = [path for path, digest in inputs.items() if (now := _read(path)) and now.digest != digest]
    return f"made from another {others[0]}" if others else None


def accept(path: Path, step: Step) -> None:
    """Record that ``step`` made an artifact from the inputs that are there now."""
    if path.exists() and (recorded := _read(path)):
        inputs = {name: read.digest for name in step.paths("input") if name.exists() and (read := _read(name))}
        digests.relabel(path, recorded, step.identity, inputs)
