"""Do a judge's scores agree with people's ratings? Kendall's tau-b, Spearman's rho and Pearson's r, with intervals."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pydantic import Field

from workflow_scripts.clip.embed import open_embedder
from workflow_scripts.core import cli
from workflow_scripts.core.cli import log
from workflow_scripts.core.errors import require
from workflow_scripts.core.io import write_json
from workflow_scripts.core.progress import track
from workflow_scripts.core.records import read_records
from workflow_scripts.core.seeds import rng
from workflow_scripts.core.step import Input
from workflow_scripts.score.scores import rounded
from workflow_scripts.specs import evaluation
from workflow_scripts.specs.evaluation import EMPTY, Skipped, find_image, is_absent
from workflow_scripts.specs.score import TRUNCATED, score_pairs
from workflow_scripts.specs.steps import Evaluation, ImageFolder
from workflow_scripts.stats import interval
from workflow_scripts.stats.correlation import kendall, pearson, spearman, weight_blocks

STATISTICS = {"kendall": kendall, "spearman": spearman, "pearson": pearson}
NO_NUMBER = "ratings that are no number"

DEFINITION = """Correlations over all ratings: kendall is tau-b, spearman and pearson are of ranks and of values. score:
max((cosine + 1) / 2, 0). Intervals resample images with all their ratings."""


class Correlate(Evaluation):
    """Measure how well SPECS scores agree with people's ratings.

    The data are a table (CSV, TSV, JSON, JSON lines, Parquet) with columns image, caption and rating, a row per rating.
    The result has Kendall's tau-b, Spearman's rho and Pearson's r with the SPECS score of each row, and intervals.
    """

    data: Input = Field(description="a table of ratings")
    images: ImageFolder


def correlations(
    images: np.ndarray, scores: np.ndarray, ratings: np.ndarray, resamples: int, seed: int
) -> dict[str, dict[str, Any]]:
    """Return each of STATISTICS of n scores and ratings, with its interval over resampled images.

    A value is None if a side does not vary; a single image has no interval.
    """
    scores, ratings, distinct = scores.astype(float), ratings.astype(float), len(np.unique(images.astype(str)))
    blocks = weight_blocks(images, resamples if distinct > 1 else 0, rng(seed, "correlate"))
    # The first row is of all images once.
    weights = itertools.chain([np.ones((1, len(images)))], track(blocks, None, "blocks of resamples"))
    parts = [[statistic(scores, ratings, block) for statistic in STATISTICS.values()] for block in weights]
    result = {}
    for name, values in zip(STATISTICS, map(np.concatenate, zip(*parts, strict=True)), strict=True):
        # A resample in which a side does not vary has no correlation.
        draws = values[1:][~np.isnan(values[1:])]
        value = None if np.isnan(values[0]) else float(values[0])
        known = value is not None and len(draws)
        low, high = np.quantile(draws, [(1 - interval.LEVEL) / 2, (1 + interval.LEVEL) / 2]) if known else (None, None)
        ends = {"value": rounded(value), "low": rounded(low), "high": rounded(high)}
        result[name] = {**ends, "n": len(images), "images": distinct}
    return result


def read_ratings(path: Path, images: Path | None) -> tuple[pd.DataFrame, Skipped]:
    """Return rows of image, path, caption and rating (a number), and those that are skipped, by reason."""
    table, bad = read_records(path, ["image", "caption", "rating"])
    table["rating"] = pd.to_numeric(table["rating"], errors="coerce").astype(float)
    skipped: Skipped = {"rows that cannot be read": bad}
    for reason, column in (("rows without an image", "image"), (EMPTY, "caption"), (NO_NUMBER, "rating")):
        at_fault = ~np.isfinite(table[column]) if column == "rating" else is_absent(table[column])
        skipped[reason] = table["where"][at_fault].tolist()
        table = table[~at_fault]
    require(len(table), path, "no row with an image, a caption and a rating", "add some")
    return table.assign(path=[find_image(name, images or path.parent) for name in table["image"]]), skipped


def main(step: Correlate) -> None:
    table, skipped = read_ratings(step.data, step.images)
    log.info("%d ratings of %d images", len(table), table["image"].nunique())
    with open_embedder(step.judge, step.batch, step.threads, step.device, step.cache) as embedder:
        scored = score_pairs(embedder, table["path"].tolist(), table["caption"].tolist())
        result = evaluation.head(step, step.data, DEFINITION) | evaluation.judge_of(embedder)
    evaluation.skip_unreadable(skipped, table["image"].tolist(), np.where(scored.done, "", scored.status))
    rated, specs = table[scored.done], scored.specs[scored.done]
    require(len(rated), step.data, "none of its images can be read", "check --images")
    statistics = correlations(rated["image"].to_numpy(), specs, rated["rating"].to_numpy(), step.bootstrap, step.seed)
    result |= {"captions_cut": scored.status.count(TRUNCATED)}
    write_json(result | {"left_out": evaluation.report_skipped(skipped, step.data), **statistics}, step.output)
    for name, value in statistics.items():
        log.info("%s %s [%s, %s] (n = %d)", name, *(value[end] for end in ("value", "low", "high", "n")))


if __name__ == "__main__":
    cli.run(main)
