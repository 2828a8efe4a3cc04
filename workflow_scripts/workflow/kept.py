"""Keep what jobs will replace, and restore it if they fail.

Snakemake removes a job's outputs before it runs the job, and again if the job fails. Its flag ``update`` also restores
them, but records the failed job's params as theirs and gives them a new time, so that they count as up to date. Here
they come back with their times and with Snakemake's records of them: the next run finds what it would have found
before this one.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from workflow_scripts.core.digests import FOLDER as DIGESTS

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
        self.discard()  # what a killed run kept
        persistence = self.workflow.persistence
        for job in self.workflow.dag.needrun_jobs():
            outputs = [(file, persistence.metadata(file)) for file in job.output if not file.is_storage]
            if not all(os.path.exists(file) for file, _ in outputs):
                continue
            if self.workflow.async_run(persistence.incomplete(job)):
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
                        persistence._write_record(persistence._get_key(file), record)
        self.discard()

    def discard(self) -> None:
        for folder in self.results:
            shutil.rmtree(folder / FOLDER, ignore_errors=True)

    def place(self, path: Path) -> Path:
        """Return where ``path`` is kept."""
        root = next(folder for folder in self.results if path.is_relative_to(folder))
        return root / FOLDER / path.relative_to(root)


def with_digests(path: Path) -> tuple[Path, Path]:
    """Return an artifact and the record of its digests."""
    return path, path.parent / DIGESTS / path.name


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
