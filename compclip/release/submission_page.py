"""The page of a submission: verdicts, figures and tables, beside the controls; a single file."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from compclip.plot.drawing import save, style
from compclip.plot.page import data_uri, render, write_page
from compclip.release.released import Release, ReleasePart
from compclip.release.submission import Submission, compare_submissions
from compclip.report import verdicts
from compclip.report.draw_scores import draw_composed, draw_pairs
from compclip.report.readable import score_views


def part_context(part: ReleasePart, submission: Submission, folder: Path) -> dict[str, Any]:
    """Return the variables of a page for a composition; figures are written to a temporary
    ``folder``.
    """
    of, health, seed = submission.compositions[part.name], part.health, part.release.contents.seed
    scores, comparisons, pairs = compare_submissions(part, [(submission.name, of.judges)])
    figures, file = [], folder / "figure.svg"
    for title, figure in (
        ("What is composed of held-out pairs", draw_composed(scores, seed)),
        (
            "Adjective accuracy by held-out pair",
            draw_pairs(pairs[pairs["generator"] == submission.name], seed),
        ),
    ):
        save(figure, file, title)
        figures.append((title, data_uri(file.read_bytes())))
    return {
        "name": part.name,
        "verdicts": verdicts.verdicts(
            scores, part.about.anchors, health.is_fit, {submission.name: submission.training_data}
        ),
        "views": score_views(scores, comparisons, {}),
        "notes": [health.line, *filter(None, [health.unrecognized_line])],
        "lacking": sum(digest in ("missing", "unreadable") for digest in of.images.values()),
        "prompts": len(of.images),
        "figures": figures,
    }


def write_submission_page(release: Release, submission: Submission, file: Path) -> list[str]:
    """Write the page, and return a line for each composition."""
    with TemporaryDirectory() as folder, style():
        compositions = [
            part_context(part, submission, Path(folder)) for part in release.parts.values()
        ]
    context = {"release": release, "submission": submission, "compositions": compositions}
    write_page(render("submission.html.j2", context), file)
    given = ((of["name"], verdict) for of in compositions for verdict in of["verdicts"])
    return [
        f"{name}: {verdict.line}" for name, verdict in given if verdict.generator == submission.name
    ]
