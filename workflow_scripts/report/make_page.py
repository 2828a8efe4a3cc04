"""Write report.html: verdicts, scores, differences, examples, judge, splits and what was skipped.

A run of captions alone, or without generators, has no scores and no judge: its page shows the splits.
"""

from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

import pandas as pd

from workflow_scripts.core import cli
from workflow_scripts.core.cli import log
from workflow_scripts.core.io import read_json, read_table
from workflow_scripts.core.layout import Layout
from workflow_scripts.core.tables import CAPTIONS, MANIFEST, PAIRS, RANKING, SPLIT, SWAPPED
from workflow_scripts.divergence.section import section as divergence_section
from workflow_scripts.plot.examples import PER_PAGE, read_examples
from workflow_scripts.plot.labels import WORD_KINDS, swatch
from workflow_scripts.plot.page import show_figures, write_page
from workflow_scripts.report import skipped
from workflow_scripts.report.page_scores import (
    ADJECTIVE_COLUMNS,
    SCORE_COLUMNS,
    scores_context,
)  # fmt: skip
from workflow_scripts.report.skipped import MOST_NAMES, Skipped
from workflow_scripts.report.steps import MakePage
from workflow_scripts.score.health import read_health
from workflow_scripts.score.section import section as judge_section
from workflow_scripts.split.section import section as split_section

SCORE_FIGURES = ("gaps", "drops", "comparisons", "pairs")
SPLIT_FIGURES = ("swapped_pairs", *WORD_KINDS.values())
# Swapped examples on the first screen.
STRIP = 3


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


def summary_lines(
    layout: Layout, generators: Sequence[str], judges: Sequence[str], divided: bool
) -> list[tuple[str, list[tuple[str, str]]]]:
    names = ["splits", "swapped", "prompts", *(["division"] if divided else [])]
    files = [layout.data / "dataset.json", layout.read / "pairs.json", *(layout.place / f"{n}.json" for n in names)]
    for generator in generators:
        files.append(layout.generated(generator) / "summary.json")
        files += [layout.scores(generator, judge) / "summary.json" for judge in judges]
    return [(str(file.relative_to(layout.results)), flat(read_json(file))) for file in files]


def skipped_lines(layout: Layout, captions: pd.DataFrame, ranking: pd.DataFrame) -> Iterator[Skipped]:
    """Yield what of the data is in no split or not prompted for."""
    place = layout.place
    splits, swapped = read_table(place / "splits.parquet", SPLIT), read_table(place / "swapped.parquet", SWAPPED)
    yield from skipped.in_dataset(read_json(layout.data / "dataset.json"))
    yield from skipped.in_pairs(captions, read_table(layout.read / "pairs.parquet", PAIRS), ranking)
    yield from skipped.in_splits(captions, splits, swapped)
    yield from skipped.in_prompts(read_json(place / "prompts.json"))


def skipped_scores(
    layout: Layout, generators: Sequence[str], summaries: Sequence[dict[str, Any]], judge: dict[str, Any]
) -> Iterator[Skipped]:
    """Yield what was prompted for and is not in the scores."""
    manifests = {name: read_table(layout.generated(name) / "manifest.parquet", MANIFEST) for name in generators}
    yield from skipped.in_generated(manifests)
    yield from skipped.in_scores(summaries)
    yield from skipped.by_judge(judge)


def ignored_line(step: MakePage) -> str:
    """Return one line on why there are no scores, which names the judge and the generators."""
    judge, names = step.judge.get("model"), [generator["name"] for generator in step.generate.get("generators", ())]
    if not names:
        return f"No generators are configured (generate.generators), so the judge ({judge}) is ignored."
    ignored = f"the judge ({judge}) and the generators ({', '.join(names)}) are ignored"
    return (
        f"The data set has no images, so {ignored}; to score images, name their folder in dataset.{step.source}.images."
    )


def splits_context(layout: Layout, step: MakePage) -> dict[str, Any]:
    """Return what the page shows of a composition without scores."""
    divided = step.split.get("method") == "divergence"
    captions = read_table(layout.data / "captions.parquet", CAPTIONS)
    ranking = read_table(layout.place / "ranking.parquet", RANKING)
    lines = skipped_lines(layout, captions, ranking)
    return {
        "name": layout.composition,
        "sections": [
            split_section(layout, step.seed, alone=not step.generators),
            divergence_section(layout, divided=divided),
        ],
        "of_section": {"splits": show_figures(map(layout.figure, SPLIT_FIGURES))},
        # A swatch shows a color as it is, also on a dark page.
        "swatches": any(map(swatch, ranking["adjective"])),
        "skipped": [line for line in lines if line.count],
        "summaries": summary_lines(layout, step.generators, step.judges, divided),
        "class_line": class_line(captions),
    }


def scores_and_splits(layout: Layout, step: MakePage) -> dict[str, Any]:
    """Return what the page shows of a composition with scores."""
    context = splits_context(layout, step)
    # What is skipped, and how, is equal for all judges.
    judges = [read_json(layout.judge(name) / "manifest.json") for name in step.judges]
    summaries = [read_json(layout.scores(name, step.judges[0]) / "summary.json") for name in step.generators]
    swapped, unseen = read_examples(layout, step.generators, step.judges[0], step.examples, step.seed)
    lines = skipped_scores(layout, step.generators, summaries, judges[0])
    splits, divergence = context["sections"]
    health = read_health(layout, step.judges, step.health)
    of_judge = [*(["by_judge"] if len(step.judges) > 1 else []), "health", "loss"]
    # The first figure is part of the page, so that the page alone has the result.
    figures = show_figures([layout.figure("scores")], embed=True) + show_figures(map(layout.figure, SCORE_FIGURES))
    return context | {
        "trained": judges[0].get("epochs") != 0,
        "strip": swapped[:STRIP],
        "scores": scores_context(layout, summaries, step.oracle, step.fid, step.reference, health.healthy),
        "sections": [divergence, judge_section(layout, step.generators, step.judges, step.health), splits],
        "figures": dict(zip(("scores", *SCORE_FIGURES), figures, strict=True)),
        "of_section": context["of_section"] | {"the-judge": show_figures(map(layout.figure, of_judge))},
        "swapped": [swapped[n : n + PER_PAGE] for n in range(0, len(swapped), PER_PAGE)],
        "unseen": unseen,
        "skipped": context["skipped"] + [line for line in lines if line.count],
        "judge_hashes": [manifest["judge_hash"] for manifest in judges],
    }


def main(step: MakePage) -> None:
    layout = step.layout
    sections = [import_module(f"workflow_scripts.{stage}.section").section(layout) for stage in step.sections]
    of_composition = scores_and_splits if step.generators else splits_context
    context = {
        "dataset": step.dataset,
        "scored": bool(step.generators),
        "ignored": ignored_line(step),
        "compositions": [of_composition(layout.of(name), step) for name in step.compositions],
        "sections": [section for section in sections if section],
        "about": step.about,
        "score_columns": [title for title, _, _ in SCORE_COLUMNS],
        "adjective_columns": [title for title, _, _ in ADJECTIVE_COLUMNS],
        "seed": step.seed,
    }
    write_page(step.page, "report.html.j2", context, step.settings)
    if not step.generators:
        log.info(ignored_line(step))


if __name__ == "__main__":
    cli.run(main)
