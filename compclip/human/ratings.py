"""Released ratings of generated images by people: read them, and correlate scores of judges with
them.

Layouts: images of five models with two ratings each and automatic scores (TIFA, Hu et al. 2023);
ratings of the same images, a row for each worker (DSG, Cho et al. 2024).
"""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pydantic import Field
from pydantic_settings import CliPositionalArg

from compclip.core.artifacts.rounding import DECIMALS
from compclip.core.errors import UserError, require
from compclip.core.reading.documents import decode, no_such, parse_json
from compclip.core.reading.records import first_rows, read_records
from compclip.core.seeds import rng
from compclip.core.settings.cli import Command
from compclip.core.settings.section import Count, Seed
from compclip.human.correlation import MIN_DEFINED
from compclip.stats.agreement import agreement, kendall, resample_images

# image: <prompt>_<model>; prompt: the cluster of images that intervals resample.
RATING_COLUMNS = ["image", "prompt", "model", "worker", "rating"]
LOWEST, HIGHEST = 1, 5
WORKER_COLUMNS = ["source_id", "model_type", "worker_id", "answer"]
# DSG's names of models, and TIFA's.
MODELS = {
    "mini-dalle": "mini_dalle",
    "vq-diffusion": "vq_diffusion",
    "sd1dot1": "stable_diffusion_v1_1",
    "sd1dot5": "stable_diffusion_v1_5",
    "sd2dot1": "stable_diffusion_v2_1",
}
RESAMPLES = 2000


class Ratings(Command):
    """Correlate scores of images with their ratings by people, and measure how far raters agree.

    Prints Spearman's and Kendall's correlation (tau-b) of each score with the mean rating of an
    image, and Krippendorff's alpha of the ratings, with 95 % intervals over prompts.
    """

    ratings: CliPositionalArg[Path] = Field(
        description="tifa_800_ratings_and_scores.json (TIFA), or tifa160_worker_annotations.csv "
        "(DSG)"
    )
    scores: Path | None = Field(
        None,
        description="table with the image (<prompt>_<model>, as in the ratings) and a column for "
        "each score; default: the scores beside TIFA's ratings",
    )
    resamples: Count = Field(RESAMPLES, ge=1, le=1_000_000, description="of the prompts")
    seed: Seed


def check_ratings(ratings: pd.DataFrame, location: object = "ratings") -> pd.DataFrame:
    """Return the ``RATING_COLUMNS`` of a row for each rating, as floats from 1 to 5; UserError
    names the first fault, and the row by the table's index.
    """
    absent = [name for name in RATING_COLUMNS if name not in ratings]
    require(not absent, location, f"no column {', '.join(absent)}", "add it")
    require(len(ratings), location, "no ratings", "give at least one")
    table = ratings[RATING_COLUMNS]
    # As text, because pandas fails for integers beyond the largest float.
    numbers = pd.to_numeric(table["rating"].astype(str), errors="coerce")
    fault = f"expected a rating from {LOWEST} to {HIGHEST}"
    _refuse(table, ~numbers.between(LOWEST, HIGHEST), "rating", location, fault)
    for name in ("prompt", "model", "worker", "image"):
        is_blank = table[name].isna() | (table[name].astype(str).str.strip() == "")
        _refuse(table, is_blank, name, location, f"{name} is missing")
    is_second = table.duplicated(["image", "worker"])
    _refuse(table, is_second, "worker", location, "expected one rating of an image by a worker")
    return table.assign(rating=numbers).reset_index(drop=True)


def _refuse(
    table: pd.DataFrame, is_faulty: pd.Series, column: str, location: object, fault: str
) -> None:
    """Raise UserError with the first faulty row, and its value of a column."""
    if not is_faulty.any():
        return
    row = table[is_faulty].iloc[0]
    # Rows of files are named by their line, such as line 2.
    row_name = row.name if isinstance(row.name, str) else f"row {row.name}"
    message = f"{row_name}: {fault}, got {row[column]!a:.40} for image {row['image']!a}"
    raise UserError(f"{location}: {message}; correct or remove it")


def read_tifa_ratings(path: str | Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Read TIFA's ``tifa_800_ratings_and_scores.json``.

    Returns:
        The ratings, as of ``check_ratings``, with places in the file as workers; and the automatic
        scores: a row for each image, with ``image`` and a column for each score.

    Raises:
        UserError: the file is missing or faulty.
    """
    path = Path(path)
    if not path.is_file():
        raise UserError(no_such(path))
    try:
        content = parse_json(decode(path))
    except ValueError as error:
        raise UserError(f"{path}: not valid JSON ({error}); download it again") from error
    is_mapping = isinstance(content, dict) and content
    require(is_mapping, path, "expected records by image", "download it again")
    ratings = []
    scores = []
    for image, record in content.items():
        is_record = isinstance(record, dict) and isinstance(record.get("text_id"), str)
        has_list = is_record and isinstance(record.get("human_scores"), list)
        has_ratings = has_list and record["human_scores"]
        fault = "expected an object with text_id and a list human_scores, not empty"
        require(has_ratings, f"{path}: {image}", fault, "download it again")
        prompt = record["text_id"]
        # Names of prompts contain underscores, too.
        model = image.removeprefix(f"{prompt}_")
        for worker, rating in enumerate(record["human_scores"]):
            ratings.append((image, prompt, model, str(worker), rating))
        # Texts and lists describe the image or the ratings.
        numbers = {key: value for key, value in record.items() if isinstance(value, int | float)}
        scores.append({"image": image, **numbers})
    table = pd.DataFrame(ratings, columns=RATING_COLUMNS)
    # The mean of the ratings is no score of a judge.
    return check_ratings(table, path), pd.DataFrame(scores).drop(
        columns="human_avg", errors="ignore"
    )


def read_worker_ratings(path: str | Path) -> pd.DataFrame:
    """Read DSG's ``tifa160_worker_annotations.csv``.

    Returns:
        The ratings, as of ``check_ratings``, with images named as by ``read_tifa_ratings``.

    Raises:
        UserError: the file is missing, lacks a column, or a row is faulty.
    """
    table = _read_rows(path, WORKER_COLUMNS)
    table["model"] = table["model_type"].replace(MODELS)
    table["image"] = table["source_id"] + "_" + table["model"]
    names = {"source_id": "prompt", "worker_id": "worker", "answer": "rating"}
    return check_ratings(table.rename(columns=names), path)


def read_scores(path: Path) -> pd.DataFrame:
    """Return the image and the scores of each row of a user's table, as numbers."""
    columns, _ = first_rows(path, 1)
    table = _read_rows(path, ["image", *columns])
    scores = table.drop(columns="image").fillna("")
    require(scores.shape[1], path, "no column of scores", "add one")
    numbers = scores.apply(pd.to_numeric, errors="coerce")
    for name in scores:
        # An empty cell is an image without a score.
        is_text = numbers[name].isna() & (scores[name].str.strip() != "")
        _refuse(table, is_text, name, f"{path}: {name}", "expected a number")
    return numbers.assign(image=table["image"])


def _read_rows(path: str | Path, columns: list[str]) -> pd.DataFrame:
    """Return the columns of a table, indexed by the place of rows in the file; UserError names the
    first bad row.
    """
    table, faults = read_records(path, columns)
    require(not faults, path, "; ".join(faults[:1]), "correct the row")
    require(len(table), path, "no rows", "download or write it again")
    return table.set_index("where")


def spearman(x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return (B,): Spearman's correlation of x and y (n,) in each resample, whose ``weights``
    (B, n) are counts of entries.

    An entry's midrank is half the sum of the signs of its differences, plus a constant. NaN where x
    or y does not vary.
    """
    signs_x = np.sign(np.subtract.outer(x, x))
    signs_y = np.sign(np.subtract.outer(y, y))
    ranks_x = weights @ signs_x.T
    ranks_y = weights @ signs_y.T
    # Their mean is 0, because each sign occurs with both signs.
    covariance = (weights * ranks_x * ranks_y).sum(axis=1)
    variance_x = (weights * ranks_x**2).sum(axis=1)
    variance_y = (weights * ranks_y**2).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return covariance / np.sqrt(variance_x * variance_y)


MEASURES = {"spearman": spearman, "kendall": kendall}


def correlate_with_people(
    scores: pd.DataFrame, ratings: pd.DataFrame, resamples: int = RESAMPLES, seed: int = 0
) -> pd.DataFrame:
    """Correlate scores of images with their mean ratings, with 95 % intervals over prompts.

    Args:
        scores: ``image``, and a column for each score; NaN where an image has none.
        ratings: as ``check_ratings`` takes them.
        resamples: number of bootstrap resamples, which draw whole prompts.

    Returns:
        A row for each score and measure (``spearman``, ``kendall``: tau-b): ``value``, ``low`` and
        ``high``, NaN if undefined; the number of ``images``, of ``prompts``, and of rated images
        without a score (``unscored``).

    Raises:
        UserError: scores are no numbers, their images repeat or none is rated, or ratings are
            faulty.
    """
    ratings = check_ratings(ratings)
    require("image" in scores, "scores", "no column image", "name the image of each row")
    require(scores.shape[1] > 1, "scores", "no column of scores", "add one")
    _refuse(scores, scores["image"].duplicated(), "image", "scores", "duplicate image")
    people = ratings.groupby("image").agg(prompt=("prompt", "first"), people=("rating", "mean"))
    rows = []
    for name in scores.columns.drop("image"):
        is_number = pd.api.types.is_numeric_dtype(scores[name])
        is_finite = is_number and not np.isinf(scores[name]).any()
        require(is_finite, f"scores: {name}", "expected finite numbers", "correct the column")
        values = scores[name].set_axis(scores["image"])
        joined = people.assign(score=values.reindex(people.index)).dropna(subset="score")
        fault = "fewer than two rated images have a score"
        require(len(joined) > 1, f"scores: {name}", fault, "name images as the ratings do")
        # One stream for all scores, so that they are compared on the same resamples.
        generator = rng(seed, "correlate_with_people")
        for measure, estimate in _correlations(joined, resamples, generator).items():
            row = {"score": name, "measure": measure, **estimate}
            row["images"] = len(joined)
            row["prompts"] = joined["prompt"].nunique()
            row["unscored"] = len(people) - len(joined)
            rows.append(row)
    return pd.DataFrame(rows)


def _correlations(
    joined: pd.DataFrame, resamples: int, generator: np.random.Generator
) -> dict[str, dict[str, float]]:
    """Return value, low and high of each measure."""
    x = joined["score"].to_numpy(float)
    # Rounded, because floating-point differences of means break ties.
    y = joined["people"].round(DECIMALS).to_numpy(float)
    weights = resample_images(joined["prompt"].to_numpy(str), resamples, generator)
    estimates = {}
    for name, measure in MEASURES.items():
        (value,) = measure(x, y, np.ones((1, len(x))))
        draws = measure(x, y, weights)
        defined = draws[~np.isnan(draws)]
        low = high = np.nan
        # If many resamples have no correlation, the others are not a representative sample.
        if len(defined) >= max(1, MIN_DEFINED * len(draws)):
            low, high = np.quantile(defined, [0.025, 0.975])
        estimates[name] = {"value": value, "low": low, "high": high}
    return estimates


def worker_agreement(
    ratings: pd.DataFrame, resamples: int = RESAMPLES, seed: int = 0
) -> dict[str, Any]:
    """Return Krippendorff's ``alpha`` of ordinal ratings, with ``low`` and ``high`` over prompts,
    and the numbers of ``images`` and ``prompts``.
    """
    ratings = check_ratings(ratings)
    counts = pd.crosstab(ratings["image"], ratings["rating"])
    # Both are sorted by image.
    prompts = ratings.groupby("image")["prompt"].first().to_numpy()
    generator = rng(seed, "worker_agreement")
    # Ordinal: a rating of 4 disagrees less with 5 than with 1.
    result = agreement(counts.to_numpy(), prompts, resamples, generator, level="ordinal")
    # There, tasks are what is rated, and images what is resampled.
    names = {"tasks": "images", "images": "prompts"}
    return {names.get(name, name): value for name, value in result.items()}


def main(command: Ratings) -> None:
    scores = None
    if command.ratings.suffix == ".json":
        ratings, scores = read_tifa_ratings(command.ratings)
    else:
        ratings = read_worker_ratings(command.ratings)
    if command.scores is not None:
        scores = read_scores(command.scores)
    # TIFA's file may have ratings alone.
    if scores is not None and scores.shape[1] > 1:
        table = correlate_with_people(scores, ratings, command.resamples, command.seed)
        print(table.to_string(index=False, float_format="%.3f"))
    raters = worker_agreement(ratings, command.resamples, command.seed)
    # Equal ratings have no alpha, and a single prompt has no interval.
    alpha = "– (undefined)" if raters["alpha"] is None else f"{raters['alpha']:.3f}"
    ends = "" if raters["low"] is None else f" [{raters['low']:.3f}, {raters['high']:.3f}]"
    counts = f"{raters['images']} images of {raters['prompts']} prompts"
    print(f"agreement of raters: alpha {alpha}{ends}, {counts}")
