"""Write report.html: scores, differences, judge, splits, figures, examples and what was skipped, in one file."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from itertools import chain
from typing import Any

import pandas as pd

from workflow_scripts.core import cli
from workflow_scripts.core.io import read_json, read_table
from workflow_scripts.core.layout import Layout
from workflow_scripts.core.tables import CAPTIONS, MANIFEST, PAIRS, RANKING, SPLIT, SWAPPED
from workflow_scripts.divergence.section import section as divergence_section
from workflow_scripts.plot.examples import PER_PAGE, read_examples
from workflow_scripts.plot.labels import SPLIT_NAMES, WORD_KINDS, swatch
from workflow_scripts.plot.page import show_figures, write_page
from workflow_scripts.report import skipped
from workflow_scripts.report.page_scores import SCORE_COLUMNS, scores_context
from workflow_scripts.report.skipped import MOST_NAMES, Skipped
from workflow_scripts.report.steps import MakePage
from workflow_scripts.score.section import section as judge_section
from workflow_scripts.split.section import section as split_section

FIGURES = ("scores", "gaps", "comparisons", "loss", "swapped_pairs", *WORD_KINDS.values())
DISTRIBUTIONS = tuple(f"{split}_{words}" for split in SPLIT_NAMES for words in WORD_KINDS.values())


def class_line(captions: pd.DataFrame) -> str:
    """Return what to know if images have no class; empty if all have one."""
    without = captions.loc[captions["class_id"].isna(), "image_id"].nunique()
    images = captions["image_id"].nunique()
    if not without:
        return ""
    which = "The images have no class" if without == images else f"{without:,} of {images:,} images have no class"
    return f"{which}: each such image is its own class, and distractors may be true of it."


def flat(value: Any, name: str = "") -> list[tuple[str, str]]:
    """Return a JSON value as (name, text) lines; long lists are counted and their first members named."""
    if isinstance(value, dict):
        if set(value) == {"count", "names"}:
            return [(name, f"{value['count']:,}{_first(value['names'])}")]
        lines = [line for key, inner in value.items() for line in flat(inner, f"{name} › {key}" if name else str(key))]
        return lines or [(name, "none")]
    if isinstance(value, list):
        if len(value) <= 3 and not any(isinstance(member, dict | list) for member in value):
            return [(name, ", ".join(map(str, value)) or "none")]
        texts = [" ".join(f"{k} {v}" for k, v in m.items()) if isinstance(m, dict) else str(m) for m in value]
        return [(name, f"{len(value):,}{_first(texts)}")]
    return [(name, "none" if value is None else f"{value:,}" if type(value) is int else str(value))]


def _first(names: Sequence[Any]) -> str:
    """Return the first names after a colon, dots if there are more."""
    if not names:
        return ""
    return ": " + "; ".join(map(str, names[:MOST_NAMES])) + (" …" if len(names) > MOST_NAMES else "")


def summary_lines(layout: Layout, generators: Sequence[str], divided: bool) -> list[tuple[str, list[tuple[str, str]]]]:
    names = ["splits", "swapped", "prompts", *(["division"] if divided else [])]
    files = [layout.data / "dataset.json", layout.read / "pairs.json", *(layout.place / f"{n}.json" for n in names)]
    for generator in generators:
        files += [layout.generated(generator) / "summary.json", layout.scores(generator) / "summary.json"]
    return [(str(file.relative_to(layout.results)), flat(read_json(file))) for file in files]


def skipped_lines(
    layout: Layout, generators: Sequence[str], captions: pd.DataFrame, ranking: pd.DataFrame, judge: dict[str, Any]
) -> list[Skipped]:
    """Return what of the data is not in the scores of one composition."""
    place = layout.place
    splits, swapped = read_table(place / "splits.parquet", SPLIT), read_table(place / "swapped.parquet", SWAPPED)
    manifests = {name: read_table(layout.generated(name) / "manifest.parquet", MANIFEST) for name in generators}
    lines = chain(
        skipped.in_dataset(read_json(layout.data / "dataset.json")),
        skipped.in_pairs(captions, read_table(layout.read / "pairs.parquet", PAIRS), ranking),
        skipped.in_splits(captions, splits, swapped),
        skipped.in_prompts(read_json(place / "prompts.json")),
        skipped.in_generated(manifests),
        skipped.in_scores([read_json(layout.scores(name) / "summary.json") for name in generators]),
        skipped.by_judge(judge),
    )
    return [line for line in lines if line.count]


def composition_context(layout: Layout, step: MakePage) -> dict[str, Any]:
    divided = step.split.get("method") == "divergence"
    captions = read_table(layout.data / "captions.parquet", CAPTIONS)
    ranking = read_table(layout.place / "ranking.parquet", RANKING)
    judge = read_json(layout.place / "judge" / "manifest.json")
    summaries = [read_json(layout.scores(name) / "summary.json") for name in step.generators]
    swapped, unseen = read_examples(layout, step.generators, step.examples, step.seed)
    return {
        "name": layout.composition,
        "scores": scores_context(layout, summaries, step.oracle, step.fid),
        "class_line": class_line(captions),
        "sections": [divergence_section(layout, divided=divided), judge_section(layout), split_section(layout)],
        "figures": show_figures(map(layout.figure, FIGURES)),
        "distributions": show_figures(map(layout.figure, DISTRIBUTIONS)),
        # A swatch shows a color as it is, also on a dark page.
        "swatches": any(map(swatch, ranking["adjective"])),
        "swapped": [swapped[n : n + PER_PAGE] for n in range(0, len(swapped), PER_PAGE)],
        "unseen": unseen,
        "skipped": skipped_lines(layout, step.generators, captions, ranking, judge),
        "summaries": summary_lines(layout, step.generators, divided),
        "judge_hash": judge["judge_hash"],
    }


def main(step: MakePage) -> None:
    layout = Layout(step.results, step.dataset)
    sections = [import_module(f"workflow_scripts.{stage}.section").section(layout) for stage in step.sections]
    context = {
        "dataset": step.dataset,
        "compositions": [composition_context(layout.of(name), step) for name in step.compositions],
        "sections": [section for section in sections if section],
        "score_columns": [title for title, _, _ in SCORE_COLUMNS],
        "seed": step.seed,
    }
    write_page(step.page, "report.html.j2", context, step.settings)


if __name__ == "__main__":
    cli.run(main)
