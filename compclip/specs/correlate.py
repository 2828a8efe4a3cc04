"""Do a judge's scores agree with people's ratings? Kendall's tau-b, Spearman's rho and Pearson's r, with intervals."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pydantic import Field

from compclip.core.cli import Command
from compclip.core.errors import require
from compclip.core.log import log
from compclip.core.progress import track
from compclip.core.records import read_records
from compclip.core.section import Seed
from compclip.core.seeds import rng
from compclip.io import write_json
from compclip.score.scores import rounded
from compclip.specs.config import Resamples
from compclip.stats import interval
from compclip.stats.correlation import kendall, pearson, spearman, weight_blocks

CORRELATIONS = {"kendall": kendall, "spearman": spearman, "pearson": pearson}


class Correlate(Command):
    """Measure how well SPECS scores agree with people's ratings: tau-b, rho and r, with intervals over images."""

    scores: Path = Field(description="CSV of specs.score with a column rating, a row per rating")
    bootstrap: Resamples
    seed: Seed
    output: Path = Field(description="the result (JSON)")


def rating_correlations(
    images: np.ndarray, scores: np.ndarray, ratings: np.ndarray, resamples: int, seed: int
) -> dict[str, dict[str, Any]]:
    """Return each of CORRELATIONS of n scores and ratings, with its interval over resampled images.

    A value is None if a side does not vary; a single image has no interval.
    """
    distinct = len(np.unique(images.astype(str)))
    blocks = weight_blocks(images, resamples if distinct > 1 else 0, rng(seed, "correlate"))
    # The first row is of all images once.
    weights = itertools.chain([np.ones((1, len(images)))], track(blocks, None, "blocks of resamples"))
    parts = [[statistic(scores, ratings, block) for statistic in CORRELATIONS.values()] for block in weights]
    result = {}
    for name, values in zip(CORRELATIONS, map(np.concatenate, zip(*parts, strict=True)), strict=True):
        # A resample in which a side does not vary has no correlation.
        draws = values[1:][~np.isnan(values[1:])]
        value = None if np.isnan(values[0]) else float(values[0])
        known = value is not None and len(draws)
        low, high = np.quantile(draws, [(1 - interval.LEVEL) / 2, (1 + interval.LEVEL) / 2]) if known else (None, None)
        ends = {"value": rounded(value), "low": rounded(low), "high": rounded(high)}
        result[name] = {**ends, "n": len(images), "images": distinct}
    return result


def main(command: Correlate) -> None:
    table, bad = read_records(command.scores, ["image", "specs", "rating"])
    score, rating = (pd.to_numeric(table[name], errors="coerce").to_numpy(float) for name in ("specs", "rating"))
    usable = np.isfinite(score) & np.isfinite(rating) & table["image"].notna().to_numpy()
    require(usable.any(), command.scores, "no row with a score and a rating", "add some")
    images = table["image"].to_numpy(str)[usable]
    statistics = rating_correlations(images, score[usable], rating[usable], command.bootstrap, command.seed)
    head = {"data": command.scores.name, "level": interval.LEVEL, "resamples": command.bootstrap, "seed": command.seed}
    write_json({**head, "left_out": len(bad) + int((~usable).sum()), **statistics}, command.output)
    for name, value in statistics.items():
        log.info("%s %s [%s, %s] (n = %d)", name, *(value[end] for end in ("value", "low", "high", "n")))
