"""Score a published pickle of predictions: plain, or with its annotations checked and balanced."""

import json
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
from pydantic import BeforeValidator, Field

from compclip.core.artifacts.rounding import rounded
from compclip.core.errors import require
from compclip.core.reading.published_files import read_data, read_predictions
from compclip.core.seeds import rng
from compclip.core.settings.cli import Command
from compclip.core.settings.section import Count, Seed
from compclip.core.tables import CAPTION_KEY, are_among
from compclip.dataset.source import named
from compclip.stats import balance, interval
from compclip.stats.r_precision import sampled

# As published.
PUBLISHED_CHUNKS = 10
PUBLISHED_RATIO = 1.25


# The released code expects C-CUB, but is called with C_CUB.
DataSet = Annotated[
    Literal["C-CUB", "C-Flowers"], BeforeValidator(lambda name: str(name).replace("_", "-"))
]


class Aggregate(Command):
    """Score a published pickle of predictions: plain, or with its annotations checked and balanced.

    A prediction is (image_id, caption_id, path, predicted index); index 0 is a hit. Prints as JSON
    the fraction of hits with a 95 % bootstrap interval over images, and the mean and the population
    standard deviation over ten shuffled chunks: as published (equal chunks; the remainder is
    dropped, and fewer than ten entries give nothing, where the released code prints NaN) and over
    all entries.

    Annotations are for test_swapped unless --split is given; its entries are also balanced
    (appendix 1.5): by the two-pair rule for C-CUB color, by the one-pair rule otherwise. The
    released code, called as documented (--dataset C-CUB), never applies its two-pair rule;
    --dominant 1 gives its result. Balancing weights the exact mean, and draws a seeded subsample
    for the chunks.
    """

    predictions: Path = Field(description="pickle of predictions")
    annotations: Path | None = Field(
        None, description="data.pkl of the data set: for checks and balancing"
    )
    dataset: DataSet | None = Field(None, description="published data set, also spelled with _")
    composition: Literal["color", "shape"] | None = Field(
        None, description="composition of the annotations"
    )
    split: Literal["test_seen", "test_unseen", "test_swapped"] = Field(
        "test_swapped", description="split of the predictions"
    )
    dominant: int | None = Field(
        None, ge=1, le=2, description="number of dominant pairs; default: the data set's rule"
    )
    bootstrap: Count = Field(2000, ge=100, description="resamples of an interval")
    seed: Seed


def caption_keys(table: pd.DataFrame) -> pd.MultiIndex:
    return pd.MultiIndex.from_frame(table[CAPTION_KEY])


def unknown_caption(predictions: pd.DataFrame, captions: pd.DataFrame) -> str:
    """Return the name of a predicted caption that is not in ``captions``, "" if there is none."""
    absent = predictions[~are_among(predictions, captions, CAPTION_KEY)]
    return " ".join(map(str, absent.iloc[0][CAPTION_KEY])) if len(absent) else ""


def score_hits(
    command: Aggregate, predictions: pd.DataFrame, weights: np.ndarray, kept: np.ndarray
) -> dict[str, Any]:
    """Return the weighted fraction of hits with its interval over images, and chunk means of the
    hits ``kept``.
    """
    hits = predictions["hit"].to_numpy(float)
    images = predictions["image_id"].to_numpy()
    stream = rng(command.seed, "aggregate", "interval")
    fraction = interval.bootstrap_fraction(images, hits, weights, command.bootstrap, stream)
    result: dict[str, Any] = {
        "mean": rounded(fraction.value),
        "low": rounded(fraction.low),
        "high": rounded(fraction.high),
        "n": int(kept.sum()),
    }
    for chunking in ("published", "even"):
        statistics = sampled(hits[kept] > 0, PUBLISHED_CHUNKS, command.seed, chunking)
        mean, deviation = statistics or (None, None)
        result[chunking] = {"mean": rounded(mean), "deviation": rounded(deviation)}
    return result


def dominant_pairs(command: Aggregate) -> int:
    """Return how many pairs are dominant; UserError if the options do not decide it."""
    is_known = command.dominant or (command.dataset and command.composition)
    require(is_known, "--annotations", "balancing needs --dataset and --composition, or --dominant")
    if command.dominant:
        return command.dominant
    # Appendix 1.5 of the paper: only colors of birds have two dominant pairs.
    return 2 if (command.dataset, command.composition) == ("C-CUB", "color") else 1


def balanced_score(
    command: Aggregate, predictions: pd.DataFrame, captions: pd.DataFrame
) -> dict[str, Any]:
    """Return the balanced score of swapped captions."""
    swapped = captions[captions["swapped_text"].notna()]
    fault = "no swapped captions to balance"
    require(len(swapped), command.annotations, fault, "omit --annotations, or give --split")
    absent = unknown_caption(predictions, swapped)
    fault = f"caption {absent} of {command.annotations} has no swapped text"
    remedy = "for predictions of test_seen or test_unseen give --split"
    require(not absent, command.predictions, fault, remedy)
    dominant = dominant_pairs(command)
    # A swapped caption is of the pair with its new adjective.
    new_pairs = (swapped["new_adj"] + "_" + swapped["noun"]).set_axis(caption_keys(swapped))
    pairs = new_pairs.loc[caption_keys(predictions)].tolist()
    cap = balance.cap_dominant(pairs, dominant, PUBLISHED_RATIO)
    # The names of appendix 1.5.
    rule = "one-pair" if dominant == 1 else "two-pair"
    result: dict[str, Any] = {
        "rule": f"{rule} rule: {cap.rule}",
        "pairs": len(cap.counts),
        "cut": {pair: {"of": cap.counts[pair], "kept": n} for pair, n in cap.kept.items()},
    }
    # Weights balance the exact mean, a subsample the chunks.
    weights = balance.weights(pairs, cap)
    subsample = balance.subsample(pairs, cap, command.seed)
    return result | score_hits(command, predictions, weights, subsample)


def check_annotations(
    command: Aggregate, annotations: Path, predictions: pd.DataFrame
) -> dict[str, Any]:
    """Return the captions without a prediction and, for swapped captions, the balanced score."""
    captions, _ = read_data(annotations)
    absent = unknown_caption(predictions, captions)
    fault = f"caption {absent} is not in {annotations}"
    require(not absent, command.predictions, fault)
    result: dict[str, Any] = {}
    if command.split == "test_swapped":
        result["balanced"] = balanced_score(command, predictions, captions)
        expected = captions[captions["swapped_text"].notna()]
    else:
        # The file has the captions of all splits.
        expected = captions[captions["image_id"].isin(predictions["image_id"])]
    missing = expected[~are_among(expected, predictions, CAPTION_KEY)]
    keys = missing[CAPTION_KEY].to_numpy()
    return result | {"missing": named([f"{image} {caption}" for image, caption in keys])}


def main(command: Aggregate) -> None:
    predictions = read_predictions(command.predictions)
    n = len(predictions)
    require(n, command.predictions, "no predictions")
    equal_tuples = int(predictions.duplicated().sum())
    predictions["hit"] = predictions["predicted"] == 0
    result: dict[str, Any] = {
        "predictions": command.predictions.name,
        "seed": command.seed,
        "n": n,
        "images": int(predictions["image_id"].nunique()),
        "captions": len(predictions.drop_duplicates(CAPTION_KEY)),
        "equal_tuples": equal_tuples,
        "plain": score_hits(command, predictions, np.ones(n), np.ones(n, bool)),
    }
    if command.annotations:
        result |= check_annotations(command, command.annotations, predictions)
    print(json.dumps(result, indent=2, ensure_ascii=False))
