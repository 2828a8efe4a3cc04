"""Do the model's scores go with people's ratings? Kendall's tau-b, Spearman's rho, Pearson's r, with intervals.

Reads a table (CSV, TSV, JSON, JSON lines, Parquet) with columns image, caption and rating, a row a rating; the score
of a row is the SPECS score of its image and caption.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from workflow_scripts.clip.embed import open_embedder
from workflow_scripts.core import cli
from workflow_scripts.core.cli import log
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import write_json
from workflow_scripts.core.progress import Progress
from workflow_scripts.core.records import read_records
from workflow_scripts.core.seeds import rng
from workflow_scripts.score.scores import rounded
from workflow_scripts.specs import evaluation
from workflow_scripts.specs.evaluation import LeftOut, find_image
from workflow_scripts.specs.score import CUT, score_pairs
from workflow_scripts.stats import interval
from workflow_scripts.stats.correlation import kendall, pearson, spearman, weight_blocks

STATISTICS = {"kendall": kendall, "spearman": spearman, "pearson": pearson}

DEFINITION = """Correlations over all ratings: kendall is tau-b, spearman and pearson are of ranks and of values. score:
max((cosine + 1) / 2, 0). Intervals resample images with all their ratings."""


def correlations(
    images: np.ndarray, scores: np.ndarray, ratings: np.ndarray, resamples: int, seed: int
) -> dict[str, dict[str, Any]]:
    """STATISTICS of scores (n,) with ratings (n,), each with the interval over resampled images (n,).

    None where one side does not vary, or where no interval can be had of one image.
    """
    scores, ratings = scores.astype(float), ratings.astype(float)
    distinct = len(np.unique(np.asarray(images, dtype=str)))
    drawn: dict[str, list[np.ndarray]] = {name: [] for name in STATISTICS}
    with Progress(resamples, "resamples") as progress:
        for weights in weight_blocks(images, resamples if distinct > 1 else 0, rng(seed, "correlate")):
            for name, statistic in STATISTICS.items():
                drawn[name].append(statistic(scores, ratings, weights))
            progress.add(len(weights))
    found = {}
    for name, statistic in STATISTICS.items():
        (first,) = statistic(scores, ratings, np.ones((1, len(images))))
        value = None if np.isnan(first) else float(first)
        draws = np.concatenate([np.empty(0), *drawn[name]])
        # A resample in which one side does not vary has no correlation.
        draws = draws[~np.isnan(draws)]
        low, high = (None, None)
        if value is not None and len(draws):
            low, high = np.quantile(draws, [(1 - interval.LEVEL) / 2, (1 + interval.LEVEL) / 2])
        found[name] = {
            "value": rounded(value), "low": rounded(low), "high": rounded(high), "n": len(images), "images": distinct,
        }  # fmt: skip
    return found


def read_ratings(path: Path, images: Path | None) -> tuple[pd.DataFrame, LeftOut]:
    """Rows image, path, caption, rating (a number), and those that were left out, by reason."""
    table, bad = read_records(path, ["image", "caption", "rating"])
    left_out: LeftOut = defaultdict(list)
    left_out["rows that cannot be read"] += bad
    rating = pd.to_numeric(table["rating"], errors="coerce")
    faults = {
        "rows without an image": evaluation.absent(table["image"]),
        evaluation.EMPTY: evaluation.absent(table["caption"]),
        "ratings that are no number": ~np.isfinite(rating.to_numpy(float)),
    }
    kept = pd.Series(True, index=table.index)
    for reason, at_fault in faults.items():
        left_out[reason] += table["where"][at_fault & kept].tolist()
        kept &= ~at_fault
    table = table[kept].assign(rating=rating[kept].astype(float)).reset_index(drop=True)
    table["path"] = [find_image(name, images or path.parent) for name in table["image"]]
    return table[["where", "image", "path", "caption", "rating"]], left_out


def main(options: argparse.Namespace) -> None:
    table, left_out = read_ratings(options.data, options.images)
    if table.empty:
        raise UserError(f"{options.data}: no row with an image, a caption and a rating")
    log.info("%d ratings of %d images", len(table), table["image"].nunique())
    with open_embedder(options) as embedder:
        scored = score_pairs(embedder, table["path"].tolist(), table["caption"].tolist())
        judge = evaluation.judge_of(embedder)
    for name, path in dict(zip(table["image"][~scored.done], table["path"][~scored.done], strict=True)).items():
        left_out[evaluation.fault_of(path)].append(name)
    if not scored.done.any():
        raise UserError(
            f"{options.data}: none of its images can be read; the first is {table['path'][0]}: see --images"
        )
    seen = table[scored.done]
    found = correlations(
        seen["image"].to_numpy(), scored.specs[scored.done], seen["rating"].to_numpy(), options.bootstrap, options.seed
    )
    said = evaluation.say_left_out(left_out, options.data)
    result = evaluation.head(options, DEFINITION) | judge | {"captions_cut": scored.status.count(CUT)}
    write_json(result | {"left_out": said, **found}, options.output)
    for name, value in found.items():
        if value["value"] is None:
            log.warning("%s: none: one side does not vary", name)
        else:
            ends = "" if value["low"] is None else f" [{value['low']:.3f}, {value['high']:.3f}]"
            log.info("%s %.3f%s (n = %d)", name, value["value"], ends, value["n"])


def arguments() -> argparse.ArgumentParser:
    parser = cli.parser(__doc__)
    evaluation.add_arguments(parser, "a table of ratings")
    parser.add_argument("--images", type=Path, help="folder of the images; default: the table's")
    return parser


if __name__ == "__main__":
    cli.run(main, arguments())
