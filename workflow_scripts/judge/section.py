"""The page's section on several judges of the same images."""

import pandas as pd

from compclip.core.artifacts.files import read_json
from compclip.plot.page import PageSection
from compclip.report.judges_view import agreement_view, judge_lines, verdict_lines
from compclip.score.choose_texts import MOST_UNANSWERED
from workflow_scripts.layout import Layout


def section(layout: Layout) -> PageSection:
    # Only empty cells are missing values: a generator may be named NA.
    table = pd.read_csv(layout.results / "judges.csv", keep_default_na=False, na_values=[""])
    agreements = read_json(layout.results / "judges.json")
    compositions = []
    for name, rows in table.groupby("composition", sort=False):
        generators, lines = judge_lines(rows)
        compositions.append(
            {
                "name": name,
                "generators": generators,
                "lines": lines,
                "verdicts": verdict_lines(rows, MOST_UNANSWERED),
                "agreements": agreement_view(agreements[name]),
            }
        )
    return PageSection("Judges", "judge_section.html.j2", {"compositions": compositions})
