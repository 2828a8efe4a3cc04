"""Write the table of scores, the comparisons and the metrics, and print the table."""

from collections.abc import Iterator
from typing import Any

from compclip.core.cli import show
from compclip.core.tables import ORACLE
from compclip.divergence.results import read_divergences
from compclip.io import read_frame, write_json, write_text
from compclip.report.make_table import make_table, metrics
from compclip.report.readable import latex, markdown
from compclip.report.rows import of_composition
from compclip.report.table import Scored, all_scores, as_csv, scores_of
from workflow_scripts.job import Job, run
from workflow_scripts.layout import Layout
from workflow_scripts.report.artifacts import layouts, read_readable, read_scores


def read_all_scores(layout: Layout, params: Any) -> Iterator[Scored]:
    """Yield the scores of a composition by generator."""
    swapped = read_frame(layout.place / "swapped.parquet", columns=["image_id", "caption_id"])
    for name in params.generators:
        judges = [*params.judges, *([ORACLE] if name in params.oracle else [])]
        scores = {judge: scores_of(*read_scores(layout.scores(name, judge)), swapped) for judge in judges}
        oracle = scores.pop(ORACLE, [])
        yield from all_scores(scores, oracle)


def main(job: Job) -> None:
    params, places = job.params, layouts(job)
    compositions = (([*read_all_scores(place, params)], read_divergences(place.place)) for place in places)
    tables = make_table(compositions, params.reference, chunks=params.chunks, bootstrap=params.bootstrap)
    for path, table in zip((job.output.csv, job.output.comparisons, job.output.pairs), tables, strict=True):
        write_text(as_csv(table), path)
    to_read, compared = {}, {}
    for place in places:
        rows = [of_composition(table, place.dataset, place.composition) for table in tables[:2]]
        to_read[place.composition] = read_readable(place, rows, params)
        compared[place.composition] = metrics(rows[0])
    write_json({params.dataset: compared}, job.output.metrics)
    write_text(latex(to_read.values()), job.output.tex)
    text = markdown(params.dataset, to_read)
    write_text(text, job.output.md)
    show(text)


if __name__ == "__main__":
    run(main)
