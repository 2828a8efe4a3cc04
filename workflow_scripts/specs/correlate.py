"""Do a judge's scores agree with people's ratings? Kendall's tau-b, Spearman's rho and Pearson's r, with intervals."""

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pydantic import Field

from workflow_scripts.clip.embed import open_embedder
from workflow_scripts.core import cli
from workflow_scripts.core.cli import log
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import write_json
from workflow_scripts.core.progress import Progress
from workflow_scripts.core.records import read_records
from workflow_scripts.core.seeds import rng
from workflow_scripts.core.step import Input
from workflow_scripts.score.scores import rounded
from workflow_scripts.specs import evaluation
from workflow_scripts.specs.evaluation import Skipped, find_image
from workflow_scripts.specs.score import TRUNCATED, score_pairs
from workflow_scripts.specs.steps import Evaluation, ImageFolder
from workflow_scripts.stats import interval
from workflow_scripts.stats.correlation import kendall, pearson, spearman, weight_blocks

STATISTICS = {"kendall": kendall, "spearman": spearman, "pearson": pearson}

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
    scores, ratings = scores.astype(float), ratings.astype(float)
    distinct = len(np.unique(np.asarray(images, dtype=str)))
    blocks: dict[str, list[np.ndarray]] = {name: [] for name in STATISTICS}
    with Progress(resamples, "resamples") as progress:
        for weights in weight_blocks(images, resamples if distinct > 1 else 0, rng(seed, "correlate")):
            for name, statistic in STATISTICS.items():
                blocks[name].append(statistic(scores, ratings, weights))
            progress.add(len(weights))
    result = {}
    for name, statistic in STATISTICS.items():
        (whole,) = statistic(scores, ratings, np.ones((1, len(images))))
        value = None if np.isnan(whole) else float(whole)
        draws = np.concatenate([np.empty(0), *blocks[name]])
        draws = draws[~np.isnan(draws)]  # a resample in which a side does not vary has no correlation
        low, high = None, None
        if value is not None and len(draws):
            low, high = np.quantile(draws, [(1 - interval.LEVEL) / 2, (1 + interval.LEVEL) / 2])
        ends = {"value": rounded(value), "low": rounded(low), "high": rounded(high)}
        result[name] = {**ends, "n": len(images), "images": distinct}
    return result


def read_ratings(path: Path, images: Path | None) -> tuple[pd.DataFrame, Skipped]:
    """Return rows of image, path, caption and rating (a number), and those that are skipped, by reason."""
    table, bad = read_records(path, ["image", "caption", "rating"])
    skipped: Skipped = defaultdict(list)
    skipped["rows that cannot be read"] += bad
    rating = pd.to_numeric(table["rating"], errors="coerce")
    faults = {
        "rows without an image": evaluation.is_absent(table["image"]),
        evaluation.EMPTY: evaluation.is_absent(table["caption"]),
        "ratings that are no number": ~np.isfinite(rating.to_numpy(float)),
    }
    kept = pd.Series(True, index=table.index)
    for reason, at_fault in faults.items():
        skipped[reason] += table["where"][at_fault & kept].tolist()
        kept &= ~at_fault
    table = table[kept].assign(rating=rating[kept].astype(float)).reset_index(drop=True)
    table["path"] = [find_image(name, images or path.parent) for name in table["image"]]
    return table[["where", "image", "path", "caption", "rating"]], skipped


def main(step: Correlate) -> None:
    table, skipped = read_ratings(step.data, step.images)
    if table.empty:
        raise UserError(f"{step.data}: no row with an image, a caption and a rating; add some")
    log.info("%d ratings of %d images", len(table), table["image"].nunique())
    with open_embedder(step.judge, step.batch, step.threads, step.device, step.cache) as embedder:
        scored = score_pairs(embedder, table["path"].tolist(), table["caption"].tolist())
        judge = evaluation.judge_of(embedder)
    for name, path in dict(zip(table["image"][~scored.done], table["path"][~scored.done], strict=True)).items():
        skipped[evaluation.fault_of(path)].append(name)
    if not scored.done.any():
        raise UserError(f"{step.data}: no image can be read; the first is {table['path'][0]}; check --images")
    rated, specs = table[scored.done], scored.specs[scored.done]
    statistics = correlations(rated["image"].to_numpy(), specs, rated["rating"].to_numpy(), step.bootstrap, step.seed)
    result = evaluation.head(step, step.data, DEFINITION) | judge | {"captions_cut": scored.status.count(TRUNCATED)}
    result |= {"left_out": evaluation.report_skipped(skipped, step.data), **statistics}
    write_json(result, step.output)
    for name, value in statistics.items():
        if value["value"] is None:
            log.warning("%s: none, because one side does not vary", name)
        else:
            ends = "" if value["low"] is None else f" [{value['low']:.3f}, {value['high']:.3f}]"
            log.info("%s %.3f%s (n = %d)", name, value["value"], ends, value["n"])


if __name__ == "__main__":
    cli.run(main)
