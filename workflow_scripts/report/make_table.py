"""Write the scores, the comparisons, the tables for readers and the metrics, and print the
table.
"""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from compclip.core.artifacts.files import read_json, write_json, write_text
from compclip.core.artifacts.heldout import matched_pairs, read_heldout
from compclip.core.artifacts.parquet import read_table, write_table
from compclip.core.settings.cli import show
from compclip.core.tables import CAPTION_KEY, CAPTIONS, MEASUREMENTS, ORACLE, RANKING, SWAPPED
from compclip.divergence.results import read_divergences
from compclip.report.make_table import (
    CompositionResults,
    Tables,
    as_csv,
    dvc_metrics,
    make_table,
    paper_table,
)
from compclip.report.rows import select_composition
from compclip.report.scored import Scored, all_scores, read_score_folder, scores_of
from compclip.report.summary import table_latex, table_markdown
from compclip.split.pools import class_names
from workflow_scripts.job import Job, run_script
from workflow_scripts.layout import Layout
from workflow_scripts.report.artifacts import layouts, read_fids, read_summary


def read_all_scores(layout: Layout, params: Any, classes: pd.Series) -> Iterator[Scored]:
    """Yield the scores of a composition by generator, of each judge, of their mean and of the
    oracle.

    Args:
        classes: the class (species) of each image, which intervals resample as one.
    """
    # Only swaps to an adjective that excludes the original one count in what is composed.
    swapped_file = layout.folder / "swapped.parquet"
    swapped = read_table(swapped_file, SWAPPED, columns=[*CAPTION_KEY, "exclusive"])
    ranking = read_table(layout.folder / "ranking.parquet", RANKING)
    matched = matched_pairs(ranking, read_heldout(layout.folder / "heldout.json"))

    def read_scores(generator: str, judge: str) -> list[Scored]:
        summary, tables = read_score_folder(layout.scores(generator, judge))
        return scores_of(summary, tables, swapped, classes, matched)

    for generator in params.generators:
        by_judge = {judge: read_scores(generator, judge) for judge in params.judges}
        oracle = read_scores(generator, ORACLE) if generator in params.oracle_generators else []
        yield from all_scores(by_judge, oracle)


def read_composition(layout: Layout, params: Any, classes: pd.Series) -> CompositionResults:
    """Read all that the rows of a composition are computed from."""
    return CompositionResults(
        scores=[*read_all_scores(layout, params, classes)],
        divergence=read_divergences(layout.folder),
        fids=read_fids(layout, params),
        variants=read_json(layout.folder / "variants.json")["splits"],
    )


def write_rows(tables: Tables, output: Any) -> None:
    """Write all rows, as data: scores, comparisons, what is composed by pair, the paper's table."""
    scores = tables.scores
    write_table(scores, output.scores, MEASUREMENTS)
    # A CSV file has no metadata, so each row names the version of its columns; the other tables
    # have no versions.
    write_text(as_csv(scores.assign(schema_version=MEASUREMENTS.version)), output.csv)
    write_text(as_csv(tables.comparisons), output.comparisons)
    write_text(as_csv(tables.pairs), output.pairs)
    write_text(as_csv(paper_table(scores)), output.table)


def main(job: Job) -> None:
    params = job.params
    compositions = layouts(job)
    classes = class_names(read_table(job.input.captions, CAPTIONS, ["image_id", "class_id"]))
    # Read when their rows are made, so that not the entries of all compositions are in memory.
    results = (read_composition(layout, params, classes) for layout in compositions)
    tables = make_table(
        results, anchors=params.anchors, controls=params.controls, chunks=params.chunks
    )
    write_rows(tables, job.output)
    summaries = {}
    main_scores = {}
    for layout in compositions:
        scores = select_composition(tables.scores, layout.dataset, layout.composition)
        comparisons = select_composition(tables.comparisons, layout.dataset, layout.composition)
        summaries[layout.composition] = read_summary(layout, scores, comparisons, params)
        main_scores[layout.composition] = dvc_metrics(scores)
    write_json({params.dataset: main_scores}, job.output.metrics)
    write_text(table_latex(summaries.values()), job.output.tex)
    text = table_markdown(params.dataset, summaries)
    write_text(text, job.output.md)
    show(text)


if __name__ == "__main__":
    run_script(main)
