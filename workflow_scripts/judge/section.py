"""The page's section on several judges of the same images."""

import pandas as pd

from compclip.core.artifacts.files import read_json
from compclip.core.tables import HELD_OUT
from compclip.plot.page import PageSection
from compclip.report.judges_view import (
    CERTIFICATE_COLUMNS,
    COMPARISON_COLUMNS,
    agreement_view,
    certificate_lines,
    comparison_lines,
    judge_lines,
    judged_generators,
    recognized_lines,
    verdict_lines,
)
from compclip.score.choose_texts import MOST_UNANSWERED
from workflow_scripts.layout import Layout


def section(layout: Layout) -> PageSection:
    # Only empty cells are missing values: a generator may be named NA.
    table = pd.read_csv(layout.results / "judges.csv", keep_default_na=False, na_values=[""])
    content_by_composition = read_json(layout.results / "judges.json")
    compositions = []
    for name, rows in table.groupby("composition", sort=False):
        generators = judged_generators(rows)
        leading = str(rows["judge"].iloc[0])
        content = content_by_composition[name]
        compositions.append(
            {
                "name": name,
                "generators": generators,
                "lines": judge_lines(rows, generators, HELD_OUT, "composes"),
                "following": judge_lines(rows, generators, "test_unseen", "prompt_following"),
                "verdicts": verdict_lines(rows, MOST_UNANSWERED),
                "agreements": agreement_view(content["agreement"]),
                "certificates": certificate_lines(content["certificates"]),
                "columns": CERTIFICATE_COLUMNS,
                "comparisons": comparison_lines(content["compared"], leading),
                "comparison_columns": COMPARISON_COLUMNS,
                "recognized": recognized_lines(content["recognized"]),
            }
        )
    return PageSection("Judges", "judge_section.html.j2", {"compositions": compositions})
