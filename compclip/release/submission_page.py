"""The page of a submission: verdicts, figures and tables, beside the controls; a single file."""

from pathlib import Path
from typing import Any

import pandas as pd

from compclip.plot.drawing import save, style
from compclip.plot.page import data_uri, render, write_page
from compclip.release.released import Release, ReleasePart
from compclip.release.submission import Submission, compare_submissions
from compclip.report import verdicts
from compclip.report.draw_scores import draw_composed, draw_pairs
from compclip.report.readable import composed_view, score_views
from compclip.report.rows import main_rows


def figure_uri(figure: Any, title: str, folder: Path) -> str:
    """Return a figure as a data URI."""
    file = folder / "figure.svg"
    save(figure, file, title)
    return data_uri(file.read_bytes())


def part_context(part: ReleasePart, scores: pd.DataFrame, comparisons: pd.DataFrame) -> dict[str, Any]:
    """Return the variables of a page for a composition: verdicts and tables. ``scores``, ``comparisons``: its rows."""
    health = part.health
    given = verdicts.verdicts(scores, part.about.anchors, health.healthy, len(health.unreadable))
    views = {"composed": [composed_view(main_rows(scores))]} | score_views(scores, comparisons, {})
    notes = [health.line, *filter(None, [health.unreadable_line])]
    return {"name": part.name, "verdicts": given, "views": views, "notes": notes}


def write_submission_page(release: Release, submission: Submission, file: Path) -> list[str]:
    """Write the page, and return a line for each composition."""
    from tempfile import TemporaryDirectory

    compositions, lines = [], []
    with TemporaryDirectory() as folder, style():
        for name, part in release.parts.items():
            judges = submission.compositions[name].judges
            scores, comparisons, pairs = compare_submissions(part, [(submission.name, judges)])
            context = part_context(part, scores, comparisons)
            seed, own = release.contents.seed, pairs[pairs["generator"] == submission.name]
            figures = {
                "What is composed of held-out pairs": draw_composed(scores, seed),
                "Adjective accuracy by held-out pair": draw_pairs(own, seed),
            }
            images = submission.compositions[name].images
            context["lacking"] = sum(digest in ("missing", "unreadable") for digest in images.values())
            context["prompts"] = len(images)
            context["figures"] = [(title, figure_uri(of, title, Path(folder))) for title, of in figures.items()]
            compositions.append(context)
            lines += [f"{name}: {of.line}" for of in context["verdicts"] if of.generator == submission.name]
    context = {"release": release, "submission": submission, "compositions": compositions}
    write_page(render("submission.html.j2", context), file)
    return lines
