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
    judges_of,
    leading_judge,
    passing,
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
    params = job.params
    # The oracle is no judge of kind ``clip``.
    params.oracle_generators = []
    scores = [score for score in read_all_scores(layout, params, classes) if score.by_all_judges]
    passes = passing(read_certificates(job, layout))
    # Its verdicts are those of the table, which the bias check decides.
    bias_check = read_bias_check(layout, params.judges, params.max_bias)
    may_judge = bias_check.passes is not False
    leading = leading_judge(params.leading, scores, params.anchors, may_judge)
    return judges_of(leading, read_choices(layout, params), params.further, passes)


def read_choices(layout: Layout, params: Any) -> dict[str, pd.DataFrame]:
    """Return what each further judge chose for the generators of ``params``."""
    choices = {}
    for name in params.further:
        table = read_table(layout.folder / "choices" / f"{name}.parquet", TEXT_CHOICES)
        # A release has the control generators alone.
        is_listed = table["generator"].isin(params.generators)
        choices[name] = table[is_listed].reset_index(drop=True)
    return choices


def files_of(files: Sequence[Path], layout: Layout) -> dict[str, Path]:
    """Return the files of a composition by their judge."""
    return {file.stem: file for file in files if file.parent.parent == layout.folder}


def read_certificates(job: Job, layout: Layout) -> dict[str, Any]:
    """Return the certificates of a composition by judge and member."""
    files = files_of(job.input.certificates, layout)
    return {judge: read_json(file) for judge, file in files.items()}


def compared_certificates(job: Job, layout: Layout) -> list[dict[str, Any]]:
    """Return how the certificates of each two judges of a composition differ."""
    files = files_of(job.input.certified, layout)
    items = {judge: read_table(file, CERTIFICATE_ITEMS) for judge, file in files.items()}
    # A table of answers has none.
    return compare_certificates(items).to_dict("records") if len(items) > 1 else []


def main(job: Job) -> None:
    params = job.params
    classes = class_names(read_table(job.input.captions, CAPTIONS, ["image_id", "class_id"]))
    tables = []
    agreements = {}
    for layout in layouts(job):
        judges = read_judges(job, layout, classes)
        table = compare_judges(judges, params.training_data)
        # Only among judges of one composition, which saw the same images.
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
