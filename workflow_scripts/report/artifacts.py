"""Read the artifacts of all compositions for the steps of stage report."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from compclip.core.artifacts.files import read_json
from compclip.core.artifacts.parquet import ImageRange, read_table
from compclip.core.tables import MANIFEST
from compclip.divergence.results import read_divergences
from compclip.plot.examples import GeneratedImages, of_all_judges
from compclip.report.scored import read_score_folder
from compclip.report.summary import Results, Summary, summarize
from workflow_scripts.inputs import SCHEMAS
from workflow_scripts.job import Job
from workflow_scripts.layout import Layout
from workflow_scripts.score.section import read_bias_check


def layouts(job: Job) -> list[Layout]:
    """Return the layout of each composition's artifacts."""
    params = job.params
    results = Path(params.results)
    return [Layout(results, params.dataset, name, params.shared) for name in params.compositions]


def table_file(layout: Layout, name: str) -> Path:
    folders = {"captions": layout.data, "images": layout.data, "pairs": layout.read}
    # All other tables are the composition's own.
    return folders.get(name, layout.folder) / f"{name}.parquet"


def read_composition(
    layout: Layout, *names: str, images: ImageRange | None = None
) -> dict[str, pd.DataFrame]:
    return {
        name: read_table(table_file(layout, name), SCHEMAS[name], images=images) for name in names
    }


def read_generated(
    layout: Layout, generators: Sequence[str], judges: Sequence[str]
) -> Iterator[GeneratedImages]:
    for name in generators:
        folders = [read_score_folder(layout.scores(name, judge)) for judge in judges]
        # The first judge stands for all in what does not depend on the judge.
        summary, first_tables = folders[0]
        scores = []
        for split in first_tables:
            split_tables = [tables[split] for _, tables in folders]
            scores.append(of_all_judges(split_tables).assign(split=split))
        manifest = read_table(layout.generated(name) / "manifest.parquet", MANIFEST)
        yield GeneratedImages(name, manifest, pd.concat(scores), summary)


def read_fids(layout: Layout, params: Any) -> dict[str, Any]:
    """Return the Fréchet distances by split of each generator that has them."""
    return {name: read_json(layout.fid(name))["splits"] for name in params.fid}


def read_summary(
    layout: Layout, scores: pd.DataFrame, comparisons: pd.DataFrame, params: Any
) -> Summary:
    """Return a composition's results for readers, from its rows of scores.parquet and
    comparisons.csv.
    """
    summaries = []
    unchecked = []
    for name in params.generators:
        score_folder = layout.scores(name, params.judges[0])
        summaries.append(read_json(score_folder / "summary.json"))
        generated = read_json(layout.generated(name) / "summary.json")
        # Only a folder of images may lack the texts that its images were made from.
        if generated["kind"] == "folder" and not generated["texts_checked"]:
            unchecked.append(name)
    results = Results(
        title=f"{layout.dataset}, {layout.composition}",
        scores=scores,
        comparisons=comparisons,
        anchors=params.anchors,
        summaries=summaries,
        divergence=read_divergences(layout.folder),
        fids=read_fids(layout, params),
        bias_check=read_bias_check(layout, params.judges, params.max_bias),
        heldout=read_json(layout.folder / "heldout.json"),
        training_data=params.training_data,
        unchecked=unchecked,
    )
    return summarize(results)
