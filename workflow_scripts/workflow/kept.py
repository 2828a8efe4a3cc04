"""Keep what jobs will replace, and restore it if they fail.

Snakemake removes a job's outputs before it runs the job, and again if the job fails. Its flag ``update`` also restores
them, but records the failed job's params as theirs and gives them a new time, so that they count as up to date. Here
they come back with their times and with Snakemake's records of them: the next run finds what it would have found
before this one.
"""

import os
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from workflow_scripts.core import digests
from workflow_scripts.core.errors import UserError

# Inside a results folder, because hard links do not reach other file systems.
FOLDER = ".kept"


class Kept:
    """The outputs, as hard links, of the jobs that a run repeats."""

    def __init__(self, workflow: Any, results: Iterable[str]) -> None:
        self.workflow = workflow
        # Of nested folders, the inner one.
        self.results = sorted(map(Path, results), key=lambda folder: len(folder.parts), reverse=True)
        # By job, its outputs with Snakemake's records of them.
        self.jobs: dict[Any, list[tuple[Any, Any]]] = {}

    def keep(self) -> None:
        """Keep the outputs of finished jobs that are about to run again."""
        recover(self.results)
        persistence = self.workflow.persistence
        for job in self.workflow.dag.needrun_jobs():
            outputs = [(file, persistence.metadata(file)) for file in job.output if not file.is_storage]
            if not all(os.path.exists(file) for file, _ in outputs):
                continue
            # What a killed run left may be in pieces, unless it is as recorded.
            if self.workflow.async_run(persistence.incomplete(job)) and not all(
                as_recorded(file) for file, _ in outputs
            ):
                continue
            with suppress(OSError):  # no hard links here, or no space: the job runs as it would without this
                for file, _ in outputs:
                    for path in with_digests(Path(file)):
                        if path.exists():
                            link(path, self.place(path))
                self.jobs[job] = outputs

    def restore(self) -> None:
        """Restore the outputs of jobs that have not finished."""
        persistence = self.workflow.persistence
        for job, outputs in self.jobs.items():
            if not self.workflow.dag.finished(job):
                for file, record in outputs:
                    for path in with_digests(Path(file)):
                        remove(path)
                        if self.place(path).exists():
                            os.replace(self.place(path), path)
                    persistence.cleanup_metadata(file)
                    if record:
                        # Private, because nothing public writes a given record: `finished` writes the failed job's,
                        # as the flag `update` does. Without a record Snakemake, run by itself, would not notice that
                        # the params differ; marked as incomplete (`started`), the job would run again even if the
                        # change that made it fail is undone.
                        persistence._write_record(str(file), record)
        self.discard()

    def discard(self) -> None:
        for folder in self.results:
            shutil.rmtree(folder / FOLDER, ignore_errors=True)

    def place(self, path: Path) -> Path:
        """Return where ``path`` is kept."""
        root = next(folder for folder in self.results if path.is_relative_to(folder))
        return root / FOLDER / path.relative_to(root)


def recover(results: Iterable[Path]) -> None:
    """Restore what a killed run kept and its jobs had removed; Snakemake repeats these jobs, which it marked."""
    for folder in results:
        kept = folder / FOLDER
        for record in sorted(kept.glob(f"**/{digests.FOLDER}/[!.]*")):
            place = record.parent.parent / record.name
            path = folder / place.relative_to(kept)
            if place.exists() and not os.path.lexists(path):
                for source, target in zip(with_digests(place), with_digests(path), strict=True):
                    target.parent.mkdir(parents=True, exist_ok=True)
                    os.replace(source, target)
        shutil.rmtree(kept, ignore_errors=True)


def as_recorded(file: str) -> bool:
    """Return whether an artifact has a record and agrees with it."""
    try:
        return bool(digests.check([Path(file)]))
    except UserError:
        return False


def with_digests(path: Path) -> tuple[Path, Path]:
    """Return an artifact and the record of its digests."""
    return path, digests.record_file(path)


def link(path: Path, place: Path) -> None:
    """Link a file, or a folder's files, to ``place``."""
    place.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir() and not path.is_symlink():
        shutil.copytree(path, place, symlinks=True, copy_function=os.link)
    else:
        os.link(path, place, follow_symlinks=False)


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
