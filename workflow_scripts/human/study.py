"""Read scores, and write tasks for people: their table, pictures and Label Studio projects.

A project is a labeling configuration (XML) and tasks (JSON, with their pictures as data URIs).
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pandas as pd

from compclip.core.cache import key
from compclip.core.log import log
from compclip.core.progress import track
from compclip.core.tables import SCORES, TESTS
from compclip.human.pictures import encode_picture
from compclip.human.study import Page, Picture, project_tasks, task_table
from compclip.human.tasks import ALL_KINDS, TASKS, read_tasks
from compclip.io import atomic_folder, read_table, write_json, write_table, write_text
from compclip.plot.page import render
from workflow_scripts.job import Job


def read_scores(folders: Iterable[Path]) -> pd.DataFrame:
    """Return the scores of all generators; each judge has a folder for each generator."""
    files = [
        (folder / f"{split}.parquet", folder.name, split) for folder in folders for split in TESTS
    ]
    tables = [
        read_table(file, SCORES).assign(generator=of, split=split)
        for file, of, split in files
        if file.is_file()
    ]
    return pd.concat(tables)


def write_study(
    job: Job, pages: Mapping[str, Sequence[Page]], study: Sequence[str | int], images: Path
) -> None:
    """Write the outputs tasks, pictures and label_studio.

    ``study`` distinguishes these tasks from another run's; ``images`` is the folder of the
    pictures' paths.
    """
    wanted = dict.fromkeys(
        p for of_kind in pages.values() for page in of_kind for task in page for p in task.pictures
    )
    files: dict[Picture, str] = {}
    with atomic_folder(job.output.pictures) as folder:
        for picture in track(wanted, len(wanted), "pictures"):
            raw, suffix = encode_picture(picture.image(images, job.params.seed))
            files[picture] = f"{key(*study, raw).hex()[:16]}.{suffix}"
            (folder / files[picture]).write_bytes(raw)
    write_table(task_table(pages, files, study), job.output.tasks, TASKS)
    with atomic_folder(job.output.label_studio) as folder:
        for kind, tasks in read_tasks(job.output.tasks).groupby("kind", sort=False):
            context = {"kind": ALL_KINDS[kind], "consent": job.params.consent is not None}
            write_text(render("label_studio.xml.j2", context), folder / f"{kind}.xml")
            write_json(
                project_tasks(tasks, job.output.pictures, job.params.consent),
                folder / f"{kind}.json",
            )
    log.info("in Label Studio, create a project for each kind with its .xml, and import its .json")
