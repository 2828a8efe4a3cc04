"""The page of a submission: verdicts, figures and tables, beside the controls; a single file."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from compclip.plot.drawing import save, style
from compclip.plot.page import data_uri, render, write_page
from compclip.release.open_release import Release
from compclip.release.submission import FAILED, ComparedSubmissions, Submission
from compclip.report import verdicts
from compclip.report.draw_scores import draw_composed, draw_pairs
from compclip.report.summary import score_views, scores_for_screen


def part_context(
    submission: Submission, tables: ComparedSubmissions, folder: Path
) -> dict[str, Any]:
    """Return the variables of a page for a composition; figures are written to a temporary
    ``folder``.
    """
    composition = tables.composition
    submitted = submission.compositions[composition.name]
    bias_check = composition.bias_check
    # The judges' bias check is part of the release, so all submissions have the same notes.
    notes = [bias_check.note]
    if bias_check.unrecognized_note:
        notes.append(bias_check.unrecognized_note)
    training_data = {submission.name: submission.training_data}
    anchors = composition.contents.anchors
    all_verdicts = verdicts.verdicts(tables.scores, anchors, bias_check.passes, training_data)
    # The others are of controls.
    line_of = {verdict.generator: verdict.line for verdict in all_verdicts}
    verdict = line_of.get(submission.name, verdicts.none_line(anchors))
    return {
        "name": composition.name,
        "verdicts": all_verdicts,
        "views": score_views(tables.scores, training_data=training_data),
        "screen": f"{scores_for_screen(tables.scores, submission.name)}\n\n{verdict}",
        "notes": notes,
        # They count as wrong.
        "lacking": sum(digest in FAILED for digest in submitted.images.values()),
        "prompts": len(submitted.images),
        "figures": _figures(tables, folder),
    }


def _figures(tables: ComparedSubmissions, folder: Path) -> list[tuple[str, str]]:
    """Return the title and the data URI of each figure."""
    seed = tables.composition.release.contents.seed
    figures = {
        "What is composed of held-out pairs": draw_composed(tables.scores, seed),
        "Adjective accuracy by held-out pair": draw_pairs(tables.pairs, seed),
    }
    file = folder / "figure.svg"
    embedded = []
    for title, figure in figures.items():
        save(figure, file, title)
        # The page is a single file.
        uri = data_uri(file.read_bytes())
        embedded.append((title, uri))
    return embedded


def write_submission_page(
    release: Release, submission: Submission, tables: Sequence[ComparedSubmissions], file: Path
) -> list[str]:
    """Write the page, and return the scores and the verdict of each composition as text.

    Args:
        tables: those of each composition.
    """
    with TemporaryDirectory() as folder, style():
        compositions = [part_context(submission, compared, Path(folder)) for compared in tables]
    context = {"release": release, "submission": submission, "compositions": compositions}
    write_page(render("submission.html.j2", context), file)
    return [f"{composition['name']}\n\n{composition['screen']}\n" for composition in compositions]
