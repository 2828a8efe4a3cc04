"""The page of a submission: verdicts, figures and tables, beside the controls; a single file."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from compclip.plot.drawing import save, style
from compclip.plot.page import data_uri, render, write_page
from compclip.release.open_release import Release, ReleasedTables
from compclip.release.submission import FAILED, Submission, compare_submissions
from compclip.report import verdicts
from compclip.report.draw_scores import draw_composed, draw_pairs
from compclip.report.make_table import Tables
from compclip.report.summary import score_views


def part_context(
    composition: ReleasedTables, submission: Submission, folder: Path
) -> dict[str, Any]:
    """Return the variables of a page for a composition; figures are written to a temporary
    ``folder``.
    """
    submitted = submission.compositions[composition.name]
    bias_check = composition.bias_check
    tables = compare_submissions(composition, [(submission.name, submitted.judges)])
    # The judges' bias check is part of the release, so all submissions have the same notes.
    notes = [bias_check.note]
    if bias_check.unrecognized_note:
        notes.append(bias_check.unrecognized_note)
    training_data = {submission.name: submission.training_data}
    anchors = composition.contents.anchors
    return {
        "name": composition.name,
        "verdicts": verdicts.verdicts(tables.scores, anchors, bias_check.passes, training_data),
        "views": score_views(tables.scores, tables.comparisons, {}),
        "notes": notes,
        # They count as wrong.
        "lacking": sum(digest in FAILED for digest in submitted.images.values()),
        "prompts": len(submitted.images),
        "figures": _figures(composition, submission, tables, folder),
    }


def _figures(
    composition: ReleasedTables, submission: Submission, tables: Tables, folder: Path
) -> list[tuple[str, str]]:
    """Return the title and the data URI of each figure."""
    seed = composition.release.contents.seed
    is_submitted = tables.pairs["generator"] == submission.name
    pairs = tables.pairs[is_submitted]
    figures = {
        "What is composed of held-out pairs": draw_composed(tables.scores, seed),
        "Adjective accuracy by held-out pair": draw_pairs(pairs, seed),
    }
    file = folder / "figure.svg"
    embedded = []
    for title, figure in figures.items():
        save(figure, file, title)
        # The page is a single file.
        uri = data_uri(file.read_bytes())
        embedded.append((title, uri))
    return embedded


def write_submission_page(release: Release, submission: Submission, file: Path) -> list[str]:
    """Write the page, and return a line for each composition."""
    with TemporaryDirectory() as folder, style():
        compositions = [
            part_context(composition, submission, Path(folder))
            for composition in release.parts.values()
        ]
    context = {"release": release, "submission": submission, "compositions": compositions}
    write_page(render("submission.html.j2", context), file)
    lines = []
    for composition in compositions:
        for verdict in composition["verdicts"]:
            # The others are of controls.
            if verdict.generator == submission.name:
                lines.append(f"{composition['name']}: {verdict.line}")
    return lines
