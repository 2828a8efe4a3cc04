"""Write the table of scores, the comparisons and the metrics, and print the table."""

import pandas as pd

from workflow_scripts.core import cli
from workflow_scripts.core.heldout import heldout_note
from workflow_scripts.core.io import read_json, write_json, write_text
from workflow_scripts.divergence.results import divergence_note, read_divergences
from workflow_scripts.report import by_pair, comparisons, normalized, readable, table, verdicts
from workflow_scripts.report.readable import Readable
from workflow_scripts.report.steps import MakeTable
from workflow_scripts.report.table import Row
from workflow_scripts.score.fid import fid_note, read_fids
from workflow_scripts.score.health import read_health


def main(step: MakeTable) -> None:
    all_rows, all_differences, all_pairs = list[Row](), list[Row](), list[Row]()
    metrics: dict[str, dict[str, dict[str, float]]] = {}
    tables, latex = list[Readable](), list[str]()
    headlines: dict[str, tuple[readable.Main, list[verdicts.Verdict]]] = {}
    for composition in step.compositions:
        layout = step.layout.of(composition)
        scores = table.load_all_scores(layout, step.generators, step.oracle, step.judges)
        measured, fids = read_divergences(layout.place), read_fids(layout, step.fid)
        rows = [table.table_row(score, measured, step.chunks, step.bootstrap) for score in scores]
        normalized.add_normalized(scores, rows, step.reference)
        differences = comparisons.comparisons(scores, step.reference, step.bootstrap)
        health = read_health(layout, step.judges, step.health)
        judged = pd.DataFrame(rows), pd.DataFrame(differences), step.reference, health.healthy
        main_scores = readable.main_scores(scores, rows)
        headlines[composition] = main_scores, verdicts.verdicts(*judged)
        all_pairs += by_pair.by_pair(scores)
        all_rows += rows
        all_differences += differences
        metrics[composition] = table.metrics(scores, rows)
        notes, about_divergences = readable.notes(scores), divergence_note(measured)
        latex.append(readable.latex_table(f"{step.dataset}, {composition}", main_scores, notes[0]))
        origin = heldout_note(read_json(layout.place / "heldout.json"))
        tables.append(
            Readable(
                f"{step.dataset}, {composition}",
                verdicts.lines(*judged),
                readable.score_table(scores, rows, fids),
                readable.divergence_table(measured),
                readable.gap_lines(differences),
                [*notes, health.line, *filter(None, [origin, about_divergences, fid_note(fids)])],
            )
        )
    markdown = "\n".join([readable.headlines(step.dataset, headlines), *(one.markdown() for one in tables)])
    write_text(table.as_csv(all_rows, table.COLUMNS), step.csv)
    write_text(table.as_csv(all_differences, comparisons.COLUMNS), step.comparisons)
    write_text(table.as_csv(all_pairs, by_pair.COLUMNS), step.pairs)
    write_json({step.dataset: metrics}, step.metrics)
    write_text("\n".join(latex), step.tex)
    write_text(markdown, step.md)
    cli.show(markdown)


if __name__ == "__main__":
    cli.run(main)
