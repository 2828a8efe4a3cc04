"""Write a release of a run: its artifacts, and the adjustment of each judge's similarities."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd

from compclip.clip.embed import items_of, open_embedder
from compclip.core.artifacts.files import read_json
from compclip.core.artifacts.parquet import read_table
from compclip.core.tables import CAPTIONS, IMAGES
from compclip.release.config import ReleaseConfig
from compclip.release.file_models import Contents, ReleasedComposition, ReleasedJudge
from compclip.release.make_release import RecordedJudges, make_release
from compclip.release.open_release import package_version
from compclip.report.judges import compare_judges
from compclip.score.adjust import choose_adjustment
from compclip.score.choices import Adjustment
from compclip.score.config import Scoring
from compclip.score.score_images import embed_once
from compclip.split.pools import class_names
from workflow_scripts.job import Job, run_script
from workflow_scripts.layout import Layout
from workflow_scripts.report.artifacts import layouts, read_composition
from workflow_scripts.report.compare_judges import read_choices, read_judges

# The artifacts of a data set and of a composition that a release contains.
OF_DATASET = ("captions.parquet", "images.parquet")
OF_COMPOSITION = (
    "prompts.parquet",
    "prompts.jsonl",
    "variants.parquet",
    "variants.json",
    "swapped.parquet",
    "splits.parquet",
    "ranking.parquet",
    "heldout.json",
    "divergence.parquet",
    "audit.json",
)

# The params that decide scores: images of others are scored by the same.
RELEASED_SETTINGS = (
    "dataset",
    "reference",
    "seed",
    "judge_half",
    "train_on",
    "prompts",
    "max_bias",
    "batch",
    "threads",
)


def judge_folder(layout: Layout, judge: str) -> str:
    """Return the folder of a judge in the release."""
    return layout.judge(judge).relative_to(layout.data).as_posix()


def files_of(layout: Layout, params: Any) -> dict[str, Path]:
    """Return the files of a composition by their path in the release."""
    composition = layout.composition
    files = {f"{composition}/{name}": layout.folder / name for name in OF_COMPOSITION}
    if params.further:
        # The leading judge's, too: without it, there are no verdicts.
        for path in sorted((layout.folder / "certificates").glob("[!.]*.json")):
            files[f"{composition}/certificates/{path.name}"] = path
    for judge in params.judges:
        bias = layout.folder / "bias" / f"{judge}.json"
        files[f"{composition}/bias/{judge}.json"] = bias
        folder = layout.judge(judge)
        for path in sorted(folder.rglob("*")):
            # Hidden files, such as records of digests, belong to this run.
            if path.is_file() and not path.name.startswith("."):
                name = path.relative_to(folder).as_posix()
                files[f"{judge_folder(layout, judge)}/{name}"] = path
        for generator in params.controls:
            for path in sorted(layout.scores(generator, judge).glob("[!.]*")):
                # Predictions are pickles, from which the scores of a release are not computed.
                if path.suffix != ".pkl":
                    files[f"{composition}/scores/{judge}/{generator}/{path.name}"] = path
    return files


def adjustment_of(layout: Layout, judge: str, params: Any) -> Adjustment | None:
    """Return how a judge's similarities are adjusted, as in the scores of the run."""
    prompts, variants, images = read_composition(layout, "prompts", "variants", "images").values()
    # The adjustment is chosen on seen prompts alone.
    seen = prompts.loc[prompts["split"] == "test_seen", "text"]
    seen_variants = variants.loc[variants["split"] == "test_seen", "text"]
    opened = open_embedder(
        layout.judge(judge), params.batch, params.threads, params.device, params.cache
    )
    with opened as embedder:
        texts = embed_once(embedder, sorted(set(seen)) + seen_variants.tolist())

        def embed_images(paths: Sequence[str]) -> np.ndarray:
            return embedder.images(items_of(paths, images, layout.results))

        # Chosen again from the same data, because the run keeps only the multiple.
        return choose_adjustment(prompts, images, variants, texts, embed_images, params.seed)


def released_composition(layout: Layout, params: Any) -> ReleasedComposition:
    judges = {}
    for judge in params.judges:
        # The scores of any generator name the judge's hash; all judges rank the same candidates.
        summary = read_json(layout.scores(params.controls[0], judge) / "summary.json")
        folder = judge_folder(layout, judge)
        judges[judge] = ReleasedJudge(folder=folder, hash=summary["judge_hash"])
    return ReleasedComposition(
        candidates=summary["candidates"],
        judges=judges,
        generators=params.controls,
        anchors=params.anchors,
    )


def contents_of(params: Any, compositions: Sequence[Layout], config: ReleaseConfig) -> Contents:
    """Return release.json without its files."""
    settings = {name: getattr(params, name) for name in RELEASED_SETTINGS}
    released = {layout.composition: released_composition(layout, params) for layout in compositions}
    return Contents(
        name=config.name or params.dataset,
        version=config.version,
        license=config.license,
        compclip=package_version("compclip"),
        compositions=released,
        scoring=Scoring.model_validate(params.scoring),
        files={},  # make_release adds them with their hashes
        **settings,
    )


def recorded_judges(job: Job, layout: Layout, classes: pd.Series) -> RecordedJudges:
    """Return what further judges said of the control generators of a composition."""
    # The user's models are not part of the release.
    params = SimpleNamespace(**vars(job.params) | {"generators": job.params.controls})
    of_controls = replace(job, params=params)
    figures = compare_judges(read_judges(of_controls, layout, classes), {})
    return RecordedJudges(read_choices(layout, params), figures)


def main(job: Job) -> None:
    params = job.params
    compositions = layouts(job)
    config = ReleaseConfig.model_validate(params.release)
    # The data set is the same for all compositions.
    data = compositions[0].data
    files = {name: data / name for name in OF_DATASET}
    adjustments = {}
    for layout in compositions:
        files |= files_of(layout, params)
        for judge in params.judges:
            path = f"{layout.composition}/adjustments/{judge}.json"
            adjustments[path] = adjustment_of(layout, judge, params)
    images: dict[str, Path] = {}
    if config.images:
        for path in read_table(data / "images.parquet", IMAGES)["path"].dropna():
            images[path] = compositions[0].results / path
    recorded = {}
    if params.further:
        captions = read_table(job.input.captions, CAPTIONS, ["image_id", "class_id"])
        classes = class_names(captions)
        for layout in compositions:
            recorded[layout.composition] = recorded_judges(job, layout, classes)
    contents = contents_of(params, compositions, config)
    make_release(job.output.release, config, contents, files, adjustments, images, recorded)


if __name__ == "__main__":
    run_script(main)
