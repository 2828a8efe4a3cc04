"""Write the table of scores, the comparisons and the metrics, and print the table."""

import pandas as pd

from compclip.core import cli
from compclip.divergence.results import read_divergences
from compclip.io import write_json, write_text
from compclip.report import by_pair, comparisons, readable, table
from compclip.report.steps import MakeTable
from compclip.report.table import Row
from compclip.report.values import add_normalized


def main(step: MakeTable) -> None:
    all_rows, all_differences, all_pairs = list[Row](), list[Row](), list[Row]()
    metrics: dict[str, dict[str, dict[str, float]]] = {}
    to_read: dict[str, readable.Readable] = {}
    for composition in step.compositions:
        layout = step.layout.of(composition)
        scores = table.load_all_scores(layout, step.generators, step.oracle, step.judges)
        measured = read_divergences(layout.place)
        rows = [table.table_row(score, measured, step.chunks, step.bootstrap) for score in scores]
        add_normalized(scores, rows, step.reference)
        differences = comparisons.comparisons(scores, step.reference, step.bootstrap)
        to_read[composition] = readable.read(layout, step, pd.DataFrame(rows), pd.DataFrame(differences))
        metrics[composition] = table.metrics(scores, rows)
        all_pairs += by_pair.by_pair(scores)
        all_rows += rows
        all_differences += differences
    write_text(table.as_csv(all_rows, table.COLUMNS), step.csv)
    write_text(table.as_csv(all_differences, comparisons.COLUMNS), step.comparisons)
    write_text(table.as_csv(all_pairs, by_pair.COLUMNS), step.pairs)
    write_json({step.dataset: metrics}, step.metrics)
    write_text(readable.latex(to_read.values()), step.tex)
    markdown = readable.markdown(step.dataset, to_read)
    write_text(markdown, step.md)
    cli.show(markdown)


if __name__ == "__main__":
    cli.run(main)
