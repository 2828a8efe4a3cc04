"""Write what generators compose by each judge, and how far judges agree."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from compclip.core.artifacts.files import read_json, write_json, write_text
from compclip.core.artifacts.parquet import read_table
from compclip.core.artifacts.rounding import json_values
from compclip.core.settings.cli import show
from compclip.core.tables import CAPTIONS, CERTIFICATE_ITEMS, TEXT_CHOICES
from compclip.judge.certify import compare_certificates
from compclip.report.judges import (
    JudgedBy,
    agreement,
    compare_judges,
    judged_by,
    leading_judge,
    recognized_pairs,
)
from compclip.report.judges_view import verdict_lines
from compclip.report.make_table import as_csv
from compclip.score.choose_texts import MOST_UNANSWERED
from compclip.split.pools import class_names
from workflow_scripts.job import Job, run_script
from workflow_scripts.layout import Layout
from workflow_scripts.report.artifacts import layouts
from workflow_scripts.report.make_table import read_all_scores
from workflow_scripts.score.section import read_bias_check


def read_judges(job: Job, layout: Layout, classes: pd.Series) -> list[JudgedBy]:
    """Return the scores of a composition by the leading judge, and by each further one."""
    leading = [
        score for score in read_all_scores(layout, job.params, classes) if score.by_all_judges
    ]
    passes = passing_judges(job, layout)
    name = job.params.leading
    # Its verdicts are those of the table, which needs the bias check.
    bias_check = read_bias_check(layout, job.params.judges, job.params.max_bias)
    passes[name] = passes[name] and bias_check.passes is not False
    first = leading_judge(name, leading, job.params.anchors, passes[name])
    judges = [first]
    for name, kind in job.params.further.items():
        choices = read_table(layout.folder / "choices" / f"{name}.parquet", TEXT_CHOICES)
        judges.append(judged_by(name, kind, first, choices, passes.get(name)))
    return judges


def files_of(files: Sequence[Path], layout: Layout) -> dict[str, Path]:
    """Return the files of a composition by their judge."""
    return {file.stem: file for file in files if file.parent.parent == layout.folder}


def read_certificates(job: Job, layout: Layout) -> dict[str, Any]:
    """Return the certificates of a composition by judge and member."""
    files = files_of(job.input.certificates, layout)
    return {judge: read_json(file) for judge, file in files.items()}


def compared_certificates(job: Job, layout: Layout) -> list[dict[str, Any]]:
    """Return how the certificates of each two judges of a composition differ."""
    files = files_of(job.input.items, layout)
    items = {judge: read_table(file, CERTIFICATE_ITEMS) for judge, file in files.items()}
    # A table of answers has none.
    return compare_certificates(items).to_dict("records") if len(items) > 1 else []


def passing_judges(job: Job, layout: Layout) -> dict[str, bool]:
    """Return whether all members of each certified judge pass."""
    return {
        name: all(certificate["passes"] for certificate in members.values())
        for name, members in read_certificates(job, layout).items()
    }


def main(job: Job) -> None:
    params = job.params
    # The oracle is no judge of kind ``clip``.
    params.oracle_generators = []
    classes = class_names(read_table(job.input.captions, CAPTIONS, ["image_id", "class_id"]))
    tables = []
    agreements = {}
    for layout in layouts(job):
        judges = read_judges(job, layout, classes)
        table = compare_judges(judges, params.training_data)
        agreements[layout.composition] = {
            "agreement": agreement(judges, table),
            "recognized": {judge.judge: recognized_pairs(judge) for judge in judges},
            "certificates": read_certificates(job, layout),
            "compared": compared_certificates(job, layout),
        }
        title = f"{layout.dataset}, {layout.composition}: verdicts by judge"
        show("\n".join([title, *verdict_lines(table, MOST_UNANSWERED)]))
        table.insert(0, "composition", layout.composition)
        table.insert(0, "dataset", layout.dataset)
        tables.append(table)
    write_text(as_csv(pd.concat(tables, ignore_index=True)), job.output.csv)
    write_json(json_values(agreements), job.output.json)


if __name__ == "__main__":
    run_script(main)
