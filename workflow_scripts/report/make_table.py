"""Write the scores, the comparisons, the tables for readers and the metrics, and print the
table.
"""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from compclip.core.cli import show
from compclip.core.heldout import matched_pairs, read_heldout
from compclip.core.tables import CAPTION_KEY, CAPTIONS, MEASUREMENTS, ORACLE, RANKING
from compclip.divergence.results import read_divergences
from compclip.io import read_frame, read_json, read_table, write_json, write_table, write_text
from compclip.report.make_table import as_csv, make_table, metrics, paper_table
from compclip.report.readable import latex, table_markdown
from compclip.report.rows import of_composition
from compclip.report.table import Scored, all_scores, read_score_folder, scores_of
from compclip.split.pools import class_names
from workflow_scripts.job import Job, run_script
from workflow_scripts.layout import Layout
from workflow_scripts.report.artifacts import layouts, read_fids, read_readable


def read_all_scores(layout: Layout, params: Any, classes: pd.Series) -> Iterator[Scored]:
    """Yield the scores of a composition by generator. ``classes``: the class of each image."""
    swapped = read_frame(layout.place / "swapped.parquet", columns=[*CAPTION_KEY, "exclusive"])
    ranking = read_table(layout.place / "ranking.parquet", RANKING)
    matched = matched_pairs(ranking, read_heldout(layout.place / "heldout.json"))
    for name in params.generators:
        judges = [*params.judges, *([ORACLE] if name in params.oracle else [])]
        read = {judge: read_score_folder(layout.scores(name, judge)) for judge in judges}
        scores = {
            judge: scores_of(*folder, swapped, classes, matched) for judge, folder in read.items()
        }
        oracle = scores.pop(ORACLE, [])
        yield from all_scores(scores, oracle)


def main(job: Job) -> None:
    params, output, places = job.params, job.output, layouts(job)
    classes = class_names(read_table(job.input.captions, CAPTIONS, ["image_id", "class_id"]))
    compositions = (
        (
            [*read_all_scores(place, params, classes)],
            read_divergences(place.place),
            read_fids(place, params),
            read_json(place.place / "variants.json")["splits"],
        )
        for place in places
    )
    settings = params.anchors, params.controls, params.chunks
    scores, differences, pairs = make_table(compositions, *settings)
    write_table(scores, output.scores, MEASUREMENTS)
    write_text(as_csv(scores.assign(schema_version=MEASUREMENTS.version)), output.csv)
    for path, table in (
        (output.comparisons, differences),
        (output.pairs, pairs),
        (output.table, paper_table(scores)),
    ):
        write_text(as_csv(table), path)
    to_read, compared = {}, {}
    for place in places:
        rows = [
            of_composition(table, place.dataset, place.composition)
            for table in (scores, differences)
        ]
        to_read[place.composition] = read_readable(place, rows, params)
        compared[place.composition] = metrics(rows[0])
    write_json({params.dataset: compared}, output.metrics)
    write_text(latex(to_read.values()), output.tex)
    text = table_markdown(params.dataset, to_read)
    write_text(text, output.md)
    show(text)


if __name__ == "__main__":
    run_script(main)
