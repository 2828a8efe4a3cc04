"""Write a Label Studio project for each kind of task: a labeling configuration and the tasks."""

from pathlib import Path
from typing import Any

import pandas as pd

from workflow_scripts.core import cli
from workflow_scripts.core.cli import log
from workflow_scripts.core.io import atomic_folder, write_json, write_text
from workflow_scripts.human.answers import CHOICE
from workflow_scripts.human.config import Notice
from workflow_scripts.human.steps import WriteLabelStudio
from workflow_scripts.human.tasks import ALL_KINDS, read_tasks, shown_columns
from workflow_scripts.plot.page import data_uri, render


def labeling_config(kind: str, notice: Notice) -> str:
    return render("label_studio.xml.j2", {"kind": ALL_KINDS[kind], "control": CHOICE, "notice": bool(notice.texts())})


def project_tasks(tasks: pd.DataFrame, pictures: Path, notice: Notice) -> list[dict[str, Any]]:
    """Return the tasks of one kind, in the order of pages; they contain only what is shown, and the task's name.

    The notice is in each task's data, because Label Studio replaces a ``$`` in the configuration.
    """
    columns = shown_columns(tasks["kind"].iloc[0])
    texts = {"notice": "\n".join(notice.texts())} if notice.texts() else {}
    return [
        {
            "data": {"task_id": row["task_id"], **texts}
            | {
                name: data_uri((pictures / row[name]).read_bytes()) if name.startswith("picture") else row[name]
                for name in columns
            }
        }
        for row in tasks.sort_values(["batch", "place"]).to_dict("records")
    ]


def main(step: WriteLabelStudio) -> None:
    with atomic_folder(step.label_studio) as folder:
        for kind, rows in read_tasks(step.tasks).groupby("kind", sort=False):
            write_text(labeling_config(kind, step.notice), folder / f"{kind}.xml")
            write_json(project_tasks(rows, step.pictures, step.notice), folder / f"{kind}.json")
            log.info("%s: %s: %d tasks", step.label_studio, kind, len(rows))
    log.info("in Label Studio, create a project for each kind with its .xml, and import its .json")


if __name__ == "__main__":
    cli.run(main)
