"""Write a release of a run: its artifacts, and the adjustment of each judge's similarities."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from compclip.clip.embed import items_of, open_embedder
from compclip.core.tables import IMAGES
from compclip.io import read_json, read_table
from compclip.release.config import ReleaseConfig
from compclip.release.make_release import make_release
from compclip.release.models import Contents, ReleasedComposition, ReleasedJudge
from compclip.release.released import package_version
from compclip.score.adjust import choose_adjustment
from compclip.score.choices import Adjustment
from compclip.score.config import Scoring
from compclip.score.score_images import embed_once
from workflow_scripts.job import Job, run_script
from workflow_scripts.layout import Layout
from workflow_scripts.report.artifacts import layouts, read_composition

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

RELEASED_SETTINGS = (
    "dataset",
    "reference",
    "seed",
    "halves",
    "train_on",
    "prompts",
    "health",
    "batch",
    "threads",
)


def judge_folder(layout: Layout, judge: str) -> str:
    """Return the folder of a judge in the release."""
    return layout.judge(judge).relative_to(layout.data).as_posix()


def files_of(layout: Layout, params: Any) -> Iterator[tuple[str, Path]]:
    """Yield the files of a composition by their path in the release."""
    name = layout.composition
    for file in OF_COMPOSITION:
        yield f"{name}/{file}", layout.place / file
    for judge in params.judges:
        yield f"{name}/health/{judge}.json", layout.place / "health" / f"{judge}.json"
        for path in sorted(layout.judge(judge).rglob("*")):
            if path.is_file() and not path.name.startswith("."):
                within = path.relative_to(layout.judge(judge)).as_posix()
                yield f"{judge_folder(layout, judge)}/{within}", path
        for generator in params.controls:
            for path in sorted(layout.scores(generator, judge).glob("[!.]*")):
                if path.suffix != ".pkl":
                    yield f"{name}/scores/{judge}/{generator}/{path.name}", path


def adjustment_of(layout: Layout, judge: str, params: Any) -> Adjustment | None:
    """Return how a judge's similarities are adjusted, as in the scores of the run."""
    prompts, variants, images = read_composition(layout, "prompts", "variants", "images").values()
    seen, copies = (
        table.loc[table["split"] == "test_seen", "text"].tolist() for table in (prompts, variants)
    )
    folder = layout.judge(judge)
    with open_embedder(
        folder, params.batch, params.threads, params.device, params.cache
    ) as embedder:
        texts = embed_once(embedder, sorted({*seen}) + copies)

        def pictures(paths: Sequence[str]) -> np.ndarray:
            return embedder.images(items_of(paths, images, layout.results))

        return choose_adjustment(prompts, images, variants, texts, pictures, params.seed)


def released_composition(layout: Layout, params: Any) -> ReleasedComposition:
    summaries = {
        judge: read_json(layout.scores(params.controls[0], judge) / "summary.json")
        for judge in params.judges
    }
    judges = {
        judge: ReleasedJudge(folder=judge_folder(layout, judge), hash=summary["judge_hash"])
        for judge, summary in summaries.items()
    }
    candidates = summaries[params.judges[0]]["candidates"]
    return ReleasedComposition(
        candidates=candidates, judges=judges, generators=params.controls, anchors=params.anchors
    )


def contents_of(params: Any, of: Sequence[Layout], config: ReleaseConfig) -> Contents:
    """Return release.json without its files."""
    settings = {name: getattr(params, name) for name in RELEASED_SETTINGS}
    return Contents(
        name=config.name or params.dataset,
        version=config.version,
        license=config.license,
        compclip=package_version("compclip"),
        compositions={layout.composition: released_composition(layout, params) for layout in of},
        scoring=Scoring.model_validate(params.scoring),
        files={},
        **settings,
    )


def main(job: Job) -> None:
    params, of = job.params, layouts(job)
    config = ReleaseConfig.model_validate(params.release)
    files = {name: of[0].data / name for name in OF_DATASET}
    adjustments = {}
    for layout in of:
        files |= dict(files_of(layout, params))
        for judge in params.judges:
            adjustments[f"{layout.composition}/adjustments/{judge}.json"] = adjustment_of(
                layout, judge, params
            )
    paths = (
        read_table(of[0].data / "images.parquet", IMAGES)["path"].dropna() if config.images else ()
    )
    images = {path: of[0].results / path for path in paths}
    make_release(
        job.output.release, config, contents_of(params, of, config), files, adjustments, images
    )


if __name__ == "__main__":
    run_script(main)
