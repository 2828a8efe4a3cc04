"""Write the tables of the default run's scores into documents, between their marks."""

import re
import textwrap
from pathlib import Path

import pandas as pd
from pydantic import Field

from compclip.core.artifacts.files import write_text
from compclip.core.artifacts.parquet import read_table
from compclip.core.errors import require
from compclip.core.identity.code import ROOT
from compclip.core.settings import cli
from compclip.core.settings.cli import Command
from compclip.core.tables import MEASUREMENTS, TESTS
from compclip.report.measures import COMPARED, MEASURES
from compclip.report.rows import main_rows, pivot
from compclip.report.summary import composed_view
from workflow_scripts.workflow.run import HEADLINES_PATTERN

README, RESULTS = (ROOT / name for name in ("README.md", "docs/results.md"))


class WriteScores(Command):
    """Write the tables of a finished default run's scores into the documents."""

    results: Path = Field(Path("results"), description="folder of a finished default run")


def table_of_scores(scores: pd.DataFrame, columns: list[tuple[str, str, str]]) -> str:
    """Return a table in Markdown, a row a generator.

    Args:
        scores: ``scores.parquet``.
        columns: composition, measure and title of each group of three.
    """
    groups = [f"{title}: seen | unseen | swapped" for _, _, title in columns]
    lines = [f"| | {' | '.join(groups)} |", "|---" * (1 + 3 * len(columns)) + "|"]
    tables = {name: pivot(main_rows(rows)) for name, rows in scores.groupby("composition")}
    for generator in dict.fromkeys(generator for table in tables.values() for generator in table):
        cells = [generator]
        for composition, measure, _ in columns:
            for split in TESTS:
                row = tables[composition].get(generator, {}).get((split, measure))
                ends = (
                    f" [{100 * row['new_pairs_low']:.1f},\u00a0{100 * row['new_pairs_high']:.1f}]"
                    if row
                    else ""
                )
                cells.append(f"{100 * row['value']:.1f}{ends}" if row else "–")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def measure_table() -> str:
    """Return the list of measures as a table in Markdown."""
    rows = [f"| `{of.name}` | {of.definition} |" for of in MEASURES.values()]
    return "\n".join(["| measure | what it is |", "|---|---|", *rows])


def ending_lines(results: Path) -> str:
    """Return the first of what a run ends with, as a block of code; raise UserError if table.md has
    no headlines.
    """
    headlines = HEADLINES_PATTERN.findall((results / "table.md").read_text(encoding="utf-8"))
    require(
        headlines, results / "table.md", "no headlines", "make the table again with this version"
    )
    return textwrap.indent(re.split(r"\n\n(?=\S+, )", headlines[0].strip())[0], "    ")


def write_tables(document: Path, tables: dict[str, str]) -> None:
    """Replace the tables between the marks of their names; raise UserError if marks are missing."""
    text = document.read_text(encoding="utf-8")
    for name, table in tables.items():
        head, mark, rest = text.partition(f"<!-- scores {name}: make readme -->\n")
        require(mark, document, f"the marks of the scores {name} are missing")
        text = f"{head}{mark}\n{table}\n\n<!-- end{rest.partition('<!-- end')[2]}"
    write_text(text, document)


def score_tables(scores: pd.DataFrame) -> dict[str, str]:
    """Return the tables of each composition and each score. scores: ``scores.parquet``."""
    of_each = dict(iter(scores.groupby("composition")))
    tables = {f"composed {name}": composed_view(rows).markdown for name, rows in of_each.items()}
    return tables | {
        of: table_of_scores(scores, [(name, of, name) for name in of_each]) for of in COMPARED
    }


def main(command: WriteScores) -> None:
    write_tables(README, {"ending": ending_lines(command.results)})
    scores = read_table(command.results / "scores.parquet", MEASUREMENTS)
    write_tables(RESULTS, score_tables(scores) | {"measures": measure_table()})


if __name__ == "__main__":
    cli.run(main)
