"""Write the page of all results, with examples; it loads figures and images from its folder.

A run of only captions, or without generators, has no scores and no judge: its page shows the
splits.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any

import pandas as pd

from compclip.core.artifacts.files import read_json
from compclip.core.artifacts.parquet import blocks_of, read_table
from compclip.core.log import log
from compclip.core.seeds import rng
from compclip.core.tables import CAPTION_KEY, CAPTIONS, MEASUREMENTS, PAIRS, SWAPPED
from compclip.plot.examples import ShownExample, choose_examples
from compclip.plot.page import show_figures, write_page
from compclip.report import skipped
from compclip.report.make_page import RunOnPage, ignored_line, make_page
from compclip.report.rows import select_composition
from workflow_scripts.divergence.section import section as divergence_section
from workflow_scripts.inputs import BLOCK
from workflow_scripts.job import Job, run_script
from workflow_scripts.layout import Layout
from workflow_scripts.report import artifacts
from workflow_scripts.score.section import section as judge_section
from workflow_scripts.split.section import section as split_section

# In the order of the page.
SCORE_FIGURES = ("composed", "scores", "pairs")
# Numbers of swapped examples on the first screen, and in each part below it.
STRIP, TOGETHER = 3, 6


def skipped_lines(layout: Layout) -> Iterator[skipped.SkippedLine]:
    """Yield the data that are in no split or have no prompt."""
    yield from skipped.in_dataset(read_json(layout.data / "dataset.json"))
    images = read_table(artifacts.table_file(layout, "captions"), CAPTIONS, ["image_id"])
    pairs_file = artifacts.table_file(layout, "pairs")
    columns = [*CAPTION_KEY, "adjective", "noun", "relation"]
    # Lazy, so that one block of a large table is in memory at once.
    pairs = (
        read_table(pairs_file, PAIRS, columns, block) for block in blocks_of(pairs_file, BLOCK)
    )
    ranking, splits = artifacts.read_composition(layout, "ranking", "splits").values()
    yield from skipped.in_pairs(len(images), pairs, ranking)
    swapped = read_table(artifacts.table_file(layout, "swapped"), SWAPPED, ["image_id"])
    yield from skipped.in_splits(images, splits, swapped)
    yield from skipped.in_prompts(read_json(layout.folder / "prompts.json"))


def with_splits(layout: Layout, params: Any) -> dict[str, Any]:
    """Return the page's variables for a composition without scores."""
    splits = split_section(layout, params.seed, alone=not params.generators)
    return {
        "name": layout.composition,
        "sections": [splits, divergence_section(layout)],
        "of_section": {},
        # Kinds of which nothing was skipped are not listed.
        "skipped": [line for line in skipped_lines(layout) if line.count],
    }


def examples(layout: Layout, params: Any) -> tuple[list[ShownExample], list[ShownExample]]:
    """Return swapped examples, and unseen ones."""
    tables = artifacts.read_composition(layout, "prompts")
    # Examples are prompts; the other tables may be large.
    prompted = tables["prompts"]["image_id"].unique().tolist()
    tables |= artifacts.read_composition(
        layout, "captions", "images", "pairs", "swapped", images=prompted
    )
    # Lazy: the scores of one generator are in memory at once.
    generated = artifacts.read_generated(layout, params.generators, params.judges)
    stream = rng(params.seed, "examples", layout.dataset, layout.composition)
    return choose_examples(generated, params.examples, stream, tables)


def with_scores(layout: Layout, rows: Sequence[pd.DataFrame], params: Any) -> dict[str, Any]:
    """Return the page's variables for a composition with scores. ``rows``: of scores.parquet and
    comparisons.csv.
    """
    context = with_splits(layout, params)
    names = (layout.dataset, layout.composition)
    # The tables have the rows of all compositions.
    all_scores, all_comparisons = rows
    scores = select_composition(all_scores, *names)
    comparisons = select_composition(all_comparisons, *names)
    swapped, unseen = examples(layout, params)
    # The first figure is embedded, so that the page file alone shows the result.
    first_file, *more_files = map(layout.figure, SCORE_FIGURES)
    figures = show_figures([first_file], embed=True) + show_figures(more_files)
    manifests = [read_json(layout.judge(name) / "manifest.json") for name in params.judges]
    # The order of the page: what is measured, by which judge, on which data.
    splits, divergence = context["sections"]
    judge = judge_section(layout, params.judges, params.max_bias)
    summary = artifacts.read_summary(layout, scores, comparisons, params)
    groups = [swapped[start : start + TOGETHER] for start in range(0, len(swapped), TOGETHER)]
    return context | {
        # A pretrained judge may be used unchanged.
        "trained": manifests[0].get("epochs") != 0,
        "of": summary,
        "candidates": int(scores["candidates"].iloc[0]),
        "sections": [divergence, judge, splits],
        "figures": dict(zip(SCORE_FIGURES, figures, strict=True)),
        "of_section": {"the-judge": show_figures([layout.figure("loss")])},
        "strip": swapped[:STRIP],
        "swapped": groups,
        "unseen": unseen,
        "judge_hashes": [manifest["judge_hash"] for manifest in manifests],
    }


def main(job: Job) -> None:
    params = job.params
    layouts = artifacts.layouts(job)
    run = RunOnPage(
        params.dataset,
        params.source,
        params.about,
        params.seed,
        params.settings,
        scored=bool(job.input.scores),
    )
    if run.scored:
        rows = [read_table(job.input.scores, MEASUREMENTS), pd.read_csv(job.input.comparisons)]
        compositions = [with_scores(layout, rows, params) for layout in layouts]
    else:
        compositions = [with_splits(layout, params) for layout in layouts]
        log.info(ignored_line(run))
    # These stages have one section for the whole data set.
    whole = replace(layouts[0], composition="")
    stages = [import_module(f"workflow_scripts.{stage}.section") for stage in params.sections]
    sections = [stage.section(whole) for stage in stages]
    write_page(make_page(run, compositions, sections), job.output.page)


if __name__ == "__main__":
    run_script(main)
