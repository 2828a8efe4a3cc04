"""Scores of the images that people saw: the run's own, and others from the user's files."""

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd

from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import read_table
from workflow_scripts.core.records import read_records
from workflow_scripts.core.rounding import DECIMALS
from workflow_scripts.core.tables import SCORES
from workflow_scripts.human.tasks import prompt_key

# Columns of the run's scores, and what the figure calls them.
RUN_SCORES = {"expected_top1": "R-precision", "similarity": "similarity"}
# By generator and prompt (``prompt_key``).
Scores = dict[tuple[Any, ...], float]


def run_scores(tasks: pd.DataFrame, folders: Sequence[Path]) -> dict[str, Scores]:
    """Return the run's scores of the images in ``tasks``, by name; means over judges.

    By each judge a generator has a folder of its name.
    """
    study = tasks[tasks["check"] == "none"]
    shown = {*study["generator_1"], *study["generator_2"].dropna()}
    by_judge: dict[str, dict[tuple[Any, ...], list[float]]] = {name: {} for name in RUN_SCORES}
    for folder in folders:
        for split in sorted(study["split"].unique()) if folder.name in shown else ():
            path = folder / f"{split}.parquet"
            if path.is_file():
                for row in read_table(path, SCORES).assign(split=split).to_dict("records"):
                    for name in RUN_SCORES:
                        by_judge[name].setdefault((folder.name, *prompt_key(row)), []).append(row[name])
    return {name: {image: fmean(values) for image, values in of.items()} for name, of in by_judge.items()}


def other_scores(path: Path) -> Scores:
    """Read a score; raises UserError if a row has no number or repeats an image."""
    table, unreadable = read_records(path, ["generator", "split", "image_id", "caption_id", "score"], ["draw"])
    if unreadable:
        raise UserError(f"{path}: {unreadable[0]}; correct or remove this row")
    scores: Scores = {}
    for row in table.to_dict("records"):
        where = f"{path}: {row['where']}"
        try:
            image = (row["generator"], *prompt_key({"draw": 0, **row}))
            score = float(row["score"])
        except (TypeError, ValueError):
            raise UserError(f"{where}: caption_id, draw and score must be numbers") from None
        if not np.isfinite(score):
            raise UserError(f"{where}: score is {row['score']}; remove rows without a score")
        if image in scores:
            raise UserError(f"{where}: second score of this image; add a column draw if an image has several draws")
        scores[image] = round(score, DECIMALS)
    return scores
