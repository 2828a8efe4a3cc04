"""Check each artifact of a run against its record and those of its inputs: what ``make verify`` calls."""

import os
import shlex
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import Field

from compclip.core import cli, digests
from compclip.core.cli import Command
from compclip.core.code import ROOT
from compclip.core.errors import UserError, require
from compclip.core.fingerprint import unnoticed_changes
from compclip.core.progress import track
from workflow_scripts.workflow.config import Config, read_config, runs_of
from workflow_scripts.workflow.run import alone

# Artifacts that the remedy names.
MAX_NAMED = 10


class Verify(Command):
    """Check each artifact of a run against the digests that its step recorded."""

    config: Path = Field(Path("config.yaml"), description="config.yaml, a preset's or your own")
    inputs: bool = Field(False, description="also read the files that the config names, to find damage below the disk")


def recorded_below(config: Config) -> set[Path]:
    """Return the artifacts of a config that have a record."""
    results, recorded = Path(config.results), set[Path]()
    pending = [results, results / (config.dataset.name or config.dataset.source), results / "figures"]
    while pending:
        place = pending.pop()
        recorded |= {place / record.name for record in place.glob(f"{digests.FOLDER}/[!.]*")}
        if place != results:  # which may contain the results of other configs
            pending += [path for path in place.glob("[!.]*") if path.is_dir() and path not in recorded]
    return recorded


read_record = cache(digests.read_record)


def artifact_faults(path: Path) -> Iterator[tuple[str, Path]]:
    """Yield what is wrong with an artifact, its record or the artifacts it was made from, and what to make again."""
    try:
        recorded = read_record(path)
        for fault in digests.faults(path, recorded) if recorded else ():
            yield fault, path
        for name, digest in recorded.inputs.items() if recorded else ():
            source = Path(os.path.normpath(path.parent / name))
            now = read_record(source)
            if now is None or now.digest != digest:
                yield f"{path}: made from another {source}, or its record is missing", path if now else source
    except UserError as error:
        yield str(error), path


def named_in(value: Any) -> Iterator[Path]:
    """Yield the files and folders whose paths are values of a config."""
    if isinstance(value, str | Path):
        with suppress(OSError, ValueError):  # a text that is not a path
            if Path(value).exists():
                yield Path(value)
    elif isinstance(value, dict | list | tuple):
        for each in value.values() if isinstance(value, dict) else value:
            yield from named_in(each)


def check_inputs(config: Config) -> None:
    """Raise UserError if a file that the config names changed since a run read it, but not its size and times."""
    read, changed = 0, list[Path]()
    places = {*named_in(config.model_dump(exclude={"results", "cache"}))}
    for place in sorted(place for place in places if places.isdisjoint(place.parents)):
        count, different = unnoticed_changes(place, config.cache)
        read, changed = read + count, changed + different
    for file in changed:
        print(f"{file}: changed, but not its size and times")
    remedy = f"restore them or, if they are right, delete {config.cache / 'files.sqlite'} and run again"
    require(not changed, "files named in the config", f"{len(changed)} of {read} are damaged", remedy)
    cli.log.info("%d files named in the config are as they were read", read)


def main(command: Verify) -> None:
    configs = [read_config(command.config), *runs_of(command.config).values()]
    with alone(f"verifying config {command.config}"):
        artifacts = sorted({path for config in configs for path in recorded_below(config)})
        wrong = dict(fault for path in track(artifacts, len(artifacts), "artifacts") for fault in artifact_faults(path))
    for line in wrong:
        print(line)
    again = sorted({*map(str, wrong.values())})
    run = f"python -m workflow_scripts.workflow.run --config {command.config}"
    which = shlex.join(["--forcerun", *again]) if len(again) <= MAX_NAMED else "--forceall"
    remedy = f"make them again: `{run} -- {which}`"
    require(artifacts, command.config, "not run yet", f"`make run CONFIG={command.config}` first")
    require(not wrong, command.config, f"{len(again)} of {len(artifacts)} artifacts are not as recorded", remedy)
    cli.log.info("%d artifacts are as their steps recorded them", len(artifacts))
    for config in runs_of(command.config).values() if command.inputs else ():
        check_inputs(config)


if __name__ == "__main__":
    os.chdir(ROOT)
    cli.run(main)
