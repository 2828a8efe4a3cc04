"""Write the tables of the default run's scores into README.md and docs/results.md, between their marks."""

import re
import textwrap
from pathlib import Path

import pandas as pd
from pydantic import Field

from compclip.core import cli
from compclip.core.cli import Command
from compclip.core.code import ROOT
from compclip.core.errors import UserError
from compclip.core.tables import MEASUREMENTS, TESTS
from compclip.io import read_table, write_text
from compclip.report.measures import COMPARED, MEASURES
from compclip.report.readable import composed_view
from compclip.report.rows import main_rows, pivot
from workflow_scripts.workflow.run import HEADLINES_PATTERN

README = ROOT / "README.md"
RESULTS = ROOT / "docs" / "results.md"


class WriteScores(Command):
    """Write the tables of a finished default run's scores into README.md and docs/results.md."""

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
                ends = f" [{100 * row['low']:.1f},\u00a0{100 * row['high']:.1f}]" if row else ""
                cells.append(f"{100 * row['value']:.1f}{ends}" if row else "–")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def measure_table() -> str:
    """Return the list of measures as a table in Markdown."""
    rows = [f"| `{of.name}` | {of.unit} | {of.definition} |" for of in MEASURES.values()]
    return "\n".join(["| measure | unit | what it is |", "|---|---|---|", *rows])


def composed_table(scores: pd.DataFrame, composition: str) -> str:
    """Return what each generator composes as a table in Markdown. scores: ``scores.parquet``."""
    return composed_view(main_rows(scores[scores["composition"] == composition])).markdown


def ending_lines(results: Path) -> str:
    """Return the first of what a run ends with, as a block of code; raise UserError if table.md has no headlines."""
    headlines = HEADLINES_PATTERN.findall((results / "table.md").read_text(encoding="utf-8"))
    if not headlines:
        raise UserError(f"{results / 'table.md'}: no headlines; make the table again with this version")
    return textwrap.indent(re.split(r"\n\n(?=\S+, )", headlines[0].strip())[0], "    ")


def with_table(text: str, name: str, table: str) -> str:
    """Return ``text`` with the table between the marks of that name; raise UserError if they are missing."""
    place = re.compile(rf"(<!-- scores {name}: make readme -->\n).*?(<!-- end of scores -->)", re.S)
    if not place.search(text):
        raise UserError(f"the marks of the scores {name} are missing")
    return place.sub(lambda m: f"{m[1]}\n{table}\n\n{m[2]}", text)


def main(command: WriteScores) -> None:
    scores = read_table(command.results / "scores.parquet", MEASUREMENTS)
    text = README.read_text(encoding="utf-8")
    write_text(with_table(text, "ending", ending_lines(command.results)), README)
    text = RESULTS.read_text(encoding="utf-8")
    for name in ("color", "shape"):
        text = with_table(text, f"composed {name}", composed_table(scores, name))
    for measure in COMPARED:
        table = table_of_scores(scores, [(name, measure, name) for name in ("color", "shape")])
        text = with_table(text, measure, table)
    text = with_table(text, "measures", measure_table())
    write_text(text, RESULTS)


if __name__ == "__main__":
    cli.run(main)
