"""Write report.html: verdicts, scores, differences, examples, judge, splits and what was skipped.

A run of captions alone, or without generators, has no scores and no judge: its page shows the splits.
"""

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pandas as pd

from compclip.core import cli
from compclip.core.layout import Layout
from compclip.core.log import log
from compclip.core.tables import CAPTIONS, MANIFEST, PAIRS, RANKING, SPLIT, SWAPPED
from compclip.divergence.section import section as divergence_section
from compclip.io import read_json, read_table
from compclip.plot.examples import read_examples
from compclip.plot.labels import WORD_KINDS, swatch
from compclip.plot.page import show_figures, write_page
from compclip.report import readable, skipped, verdicts
from compclip.report.measures import MEASURES
from compclip.report.skipped import Skipped
from compclip.report.steps import MakePage
from compclip.score.section import section as judge_section
from compclip.split.section import section as split_section

SCORE_FIGURES = ("scores", "gaps", "pairs")
SPLIT_FIGURES = ("swapped_pairs", *WORD_KINDS.values())
# Swapped examples on the first screen, and in a part that opens.
STRIP, TOGETHER = 3, 6


def skipped_lines(layout: Layout, ranking: pd.DataFrame, step: MakePage) -> Iterator[Skipped]:
    """Yield what of the data is in no split, not prompted for or not scored."""
    place, captions = layout.place, read_table(layout.data / "captions.parquet", CAPTIONS)
    splits, swapped = read_table(place / "splits.parquet", SPLIT), read_table(place / "swapped.parquet", SWAPPED)
    yield from skipped.in_dataset(read_json(layout.data / "dataset.json"))
    yield from skipped.in_pairs(captions, read_table(layout.read / "pairs.parquet", PAIRS), ranking)
    yield from skipped.in_splits(captions, splits, swapped)
    yield from skipped.in_prompts(read_json(place / "prompts.json"))
    if step.generators:
        manifests = {name: layout.generated(name) / "manifest.parquet" for name in step.generators}
        yield from skipped.in_generated({name: read_table(file, MANIFEST) for name, file in manifests.items()})
        # What is skipped, and how, is equal for all judges.
        summaries = [layout.scores(name, step.judges[0]) / "summary.json" for name in step.generators]
        yield from skipped.in_scores([read_json(file) for file in summaries])
        yield from skipped.by_judge(read_json(layout.judge(step.judges[0]) / "manifest.json"))


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
    ranking = read_table(layout.place / "ranking.parquet", RANKING)
    splits = split_section(layout, step.seed, alone=not step.generators)
    return {
        "name": layout.composition,
        "sections": [splits, divergence_section(layout, divided=divided)],
        "of_section": {"splits": show_figures(map(layout.figure, SPLIT_FIGURES))},
        # A swatch shows a color as it is, also on a dark page.
        "swatches": any(map(swatch, ranking["adjective"])),
        "skipped": [line for line in skipped_lines(layout, ranking, step) if line.count],
    }


def scores_and_splits(layout: Layout, step: MakePage) -> dict[str, Any]:
    """Return what the page shows of a composition with scores."""
    context = splits_context(layout, step)
    table, comparisons = (
        rows[(rows["dataset"] == layout.dataset) & (rows["composition"] == layout.composition)]
        for rows in (pd.read_csv(layout.results / f"{name}.csv") for name in ("table", "comparisons"))
    )
    swapped, unseen = read_examples(layout, step.generators, step.judges[0], step.examples, step.seed)
    # The first figure is part of the page, so that the page alone has the result.
    first, *others = map(layout.figure, SCORE_FIGURES)
    figures = show_figures([first], embed=True) + show_figures(others)
    judges = [read_json(layout.judge(name) / "manifest.json") for name in step.judges]
    splits, divergence = context["sections"]
    return context | {
        "trained": judges[0].get("epochs") != 0,
        "of": readable.read(layout, step, table, comparisons),
        "candidates": int(table["candidates"].iloc[0]),
        "deciding": MEASURES[verdicts.deciding_measure(comparisons)].title,
        "sections": [divergence, judge_section(layout, step.generators, step.judges, step.health), splits],
        "figures": dict(zip(SCORE_FIGURES, figures, strict=True)),
        "of_section": context["of_section"] | {"the-judge": show_figures([layout.figure("loss")])},
        "strip": swapped[:STRIP],
        "swapped": [swapped[n : n + TOGETHER] for n in range(0, len(swapped), TOGETHER)],
        "unseen": unseen,
        "judge_hashes": [manifest["judge_hash"] for manifest in judges],
    }


def main(step: MakePage) -> None:
    layout = step.layout
    sections = [import_module(f"compclip.{stage}.section").section(layout) for stage in step.sections]
    of_composition = scores_and_splits if step.generators else splits_context
    context = {
        "dataset": step.dataset,
        "scored": bool(step.generators),
        "ignored": ignored_line(step),
        "reference": step.reference,
        "compositions": [of_composition(layout.of(name), step) for name in step.compositions],
        "sections": [section for section in sections if section],
        "about": step.about,
        "seed": step.seed,
    }
    write_page(step.page, "report.html.j2", context, step.settings)
    if not step.generators:
        log.info(ignored_line(step))


if __name__ == "__main__":
    cli.run(main)
