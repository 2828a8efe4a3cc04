"""Write the page of all results, with a gallery; it loads figures and images from its folder.

A run of only captions, or without generators, has no scores and no judge: its page shows the
splits.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from typing import Any

import pandas as pd

from compclip.core.artifacts.files import read_json
from compclip.core.artifacts.parquet import blocks_of, read_table
from compclip.core.log import log
from compclip.core.reading.pictures import BrokenImage
from compclip.core.seeds import rng
from compclip.core.tables import CAPTION_KEY, CAPTIONS, MEASUREMENTS, PAIRS, SWAPPED
from compclip.plot.page import show_figures, thumbnail, write_page
from compclip.report import skipped
from compclip.report.gallery import MOST_COMPARED, GalleryPair, choose_gallery
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


def gallery(layout: Layout, by_pair: pd.DataFrame, params: Any) -> list[GalleryPair]:
    """Return the gallery. ``by_pair``: rows of pairs.csv."""
    tables = artifacts.read_composition(layout, "prompts")
    # The other tables may be large.
    prompted = tables["prompts"]["image_id"].unique().tolist()
    tables |= artifacts.read_composition(layout, "pairs", "swapped", images=prompted)
    # Only pairs that the judges recognize have an estimate.
    recognized = set(by_pair.loc[by_pair["drawn"].notna(), "pair"])
    return choose_gallery(
        artifacts.read_generated(layout, params.generators, params.judges),
        tables,
        anchors=params.anchors,
        recognized=recognized,
        judges=len(params.judges),
        n=params.examples,
        stream=rng(params.seed, "gallery", layout.dataset, layout.composition),
    )


def thumbnails(layout: Layout, pair: GalleryPair) -> dict[str, str]:
    """Return the images of a pair as data URIs by path, except those that are gone since."""
    embedded = {}
    images = [image for prompt in pair.prompts for image in prompt.images]
    for image in images:
        if image.path is not None:
            with suppress(FileNotFoundError, BrokenImage):
                embedded[image.path] = thumbnail(layout.results / image.path)
    return embedded


def with_scores(layout: Layout, tables: Mapping[str, pd.DataFrame], params: Any) -> dict[str, Any]:
    """Return the page's variables for a composition with scores. ``tables``: scores, comparisons
    and by_pair.
    """
    context = with_splits(layout, params)
    names = (layout.dataset, layout.composition)
    # The tables have the rows of all compositions.
    rows = {name: select_composition(table, *names) for name, table in tables.items()}
    scores = rows["scores"]
    pairs = gallery(layout, rows["by_pair"], params)
    # The first figure is embedded, so that the page file alone shows the result.
    first_file, *more_files = map(layout.figure, SCORE_FIGURES)
    figures = show_figures([first_file], embed=True) + show_figures(more_files)
    manifests = [read_json(layout.judge(name) / "manifest.json") for name in params.judges]
    # The order of the page: what is measured, by which judge, on which data.
    splits, divergence = context["sections"]
    judge = judge_section(layout, params.judges, params.max_bias)
    summary = artifacts.read_summary(layout, scores, rows["comparisons"], params)
    return context | {
        # A pretrained judge may be used unchanged.
        "trained": manifests[0].get("epochs") != 0,
        "of": summary,
        "candidates": int(scores["candidates"].iloc[0]),
        "sections": [divergence, judge, splits],
        "figures": dict(zip(SCORE_FIGURES, figures, strict=True)),
        "of_section": {"the-judge": show_figures([layout.figure("loss")])},
        "gallery": pairs,
        "compared": MOST_COMPARED,
        # Like the first figure.
        "embedded": thumbnails(layout, pairs[0]) if pairs else {},
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
        tables = {"scores": read_table(job.input.scores, MEASUREMENTS)}
        tables["comparisons"] = pd.read_csv(job.input.comparisons)
        tables["by_pair"] = pd.read_csv(job.input.by_pair)
        compositions = [with_scores(layout, tables, params) for layout in layouts]
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
