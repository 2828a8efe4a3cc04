"""Read scores, and write tasks for people: their table, pictures and Label Studio projects.

A project is a labeling configuration (XML) and tasks (JSON, with their pictures as data URIs).
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, product
from pathlib import Path

import pandas as pd

from compclip.core.artifacts.files import atomic_folder, write_json, write_text
from compclip.core.artifacts.parquet import read_table, write_table
from compclip.core.identity.cache import key
from compclip.core.log import log
from compclip.core.progress import track
from compclip.core.tables import SCORES, TESTS
from compclip.human.study import Page, Picture, project_tasks, task_table
from compclip.human.task_pictures import encode_picture
from compclip.human.tasks import ALL_KINDS, TASKS, read_tasks
from compclip.plot.page import render
from workflow_scripts.job import Job


def read_scores(folders: Iterable[Path]) -> pd.DataFrame:
    """Return the scores of all generators; each judge has a folder for each generator."""
    tables = []
    for folder, split in product(folders, TESTS):
        file = folder / f"{split}.parquet"
        # Not every generator serves every split.
        if file.is_file():
            scores = read_table(file, SCORES)
            tables.append(scores.assign(generator=folder.name, split=split))
    return pd.concat(tables)


def write_pictures(
    job: Job, pages: Mapping[str, Sequence[Page]], study: Sequence[str | int], images: Path
) -> dict[Picture, str]:
    """Write the output pictures, and return the name of each picture's file."""
    # Tasks share pictures; each is encoded once, in the order of the tasks.
    pictures: dict[Picture, None] = {}
    for page in chain.from_iterable(pages.values()):
        for task in page:
            pictures |= dict.fromkeys(task.pictures)
    names = {}
    with atomic_folder(job.output.pictures) as folder:
        for picture in track(pictures, len(pictures), "pictures"):
            raw, suffix = encode_picture(picture.image(images, job.params.seed))
            # The same content gets the same name, so that a repeated run writes the same files.
            names[picture] = f"{key(*study, raw).hex()[:16]}.{suffix}"
            (folder / names[picture]).write_bytes(raw)
    return names


def write_study(
    job: Job, pages: Mapping[str, Sequence[Page]], study: Sequence[str | int], images: Path
) -> None:
    """Write the outputs tasks, pictures and label_studio.

    ``study`` distinguishes these tasks from another run's; ``images`` is the folder of the
    pictures' paths.
    """
    names = write_pictures(job, pages, study, images)
    write_table(task_table(pages, names, study), job.output.tasks, TASKS)
    # The text is in the tasks; the configuration only makes a place for it.
    consent = job.params.consent
    with atomic_folder(job.output.label_studio) as folder:
        # Read back, so that a project shows the tasks as ``analyze`` will read them.
        for kind, tasks in read_tasks(job.output.tasks).groupby("kind", sort=False):
            context = {"kind": ALL_KINDS[kind], "consent": consent is not None}
            write_text(render("label_studio.xml.j2", context), folder / f"{kind}.xml")
            project = project_tasks(tasks, job.output.pictures, consent)
            write_json(project, folder / f"{kind}.json")
    log.info("in Label Studio, create a project for each kind with its .xml, and import its .json")
