"""Score a published pickle of predictions: plain, or with its annotations checked and balanced."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
from pydantic import BeforeValidator, Field

from workflow_scripts.core import cli
from workflow_scripts.core.cli import log
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.published import read_data, read_predictions
from workflow_scripts.core.rounding import rounded
from workflow_scripts.core.seeds import rng
from workflow_scripts.core.step import Input, Seed, Step
from workflow_scripts.dataset.source import named
from workflow_scripts.score.steps import TestSplit
from workflow_scripts.stats import balance, interval
from workflow_scripts.stats.config import Resampling
from workflow_scripts.stats.r_precision import sampled

CAPTION = ["image_id", "caption_id"]
# Names that an error or a note lists.
LISTED = 3
# As published.
CHUNKS, RATIO = 10, 1.25


class Aggregate(Step):
    """Score a published pickle of predictions: plain, or with its annotations checked and balanced.

    A prediction is (image_id, caption_id, path, predicted index); index 0 is a hit. Prints the fraction of hits with
    a 95 % bootstrap interval over images, and the mean and the population standard deviation over ten shuffled
    chunks: as published (equal chunks; the remainder is dropped, and fewer than ten entries give nothing, where the
    released code prints NaN) and over all entries.

    Annotations are for test_swapped unless --split says otherwise; then the entries are balanced too (appendix 1.5):
    by the two-pair rule for C-CUB color, by the one-pair rule otherwise. The released code, called as documented
    (--dataset C-CUB), never applies its two-pair rule; --dominant 1 gives what it gives. Balanced are the exact mean,
    by weights, and the chunks of a seeded subsample.
    """

    predictions: Input = Field(description="pickle of predictions")
    annotations: Input | None = Field(None, description="data.pkl of the data set: for checks and balancing")
    # The released code compares with C-CUB and is called with C_CUB.
    dataset: (
        Annotated[Literal["C-CUB", "C-Flowers"], BeforeValidator(lambda name: str(name).replace("_", "-"))] | None
    ) = Field(None, description="published data set, also spelled with _")
    composition: Literal["color", "shape"] | None = Field(None, description="composition of the annotations")
    split: TestSplit = Field("test_swapped", description="split of the predictions")
    dominant: int | None = Field(None, ge=1, le=2, description="number of dominant pairs; default: the data set's rule")
    bootstrap: Annotated[int, Resampling.model_fields["bootstrap"]]
    seed: Seed
    as_json: bool = Field(False, alias="json", description="print JSON")


def keys(table: pd.DataFrame) -> pd.MultiIndex:
    return pd.MultiIndex.from_frame(table[CAPTION])


def names(table: pd.DataFrame) -> list[str]:
    return [f"{image} {caption}" for image, caption in table[CAPTION].drop_duplicates().itertuples(index=False)]


def listed(items: Sequence[str]) -> str:
    return ", ".join(map(repr, items[:LISTED])) + (", …" if len(items) > LISTED else "")


def check_known(predictions: pd.DataFrame, captions: pd.DataFrame, files: tuple[Path, Path]) -> None:
    """Check that the annotations have every predicted image and caption; ``files`` are those of both tables."""
    unknown = predictions.loc[~predictions["image_id"].isin(captions["image_id"]), "image_id"].unique()
    if len(unknown):
        raise UserError(f"{files[0]}: {len(unknown)} images are not in {files[1]}: {listed(list(unknown))}")
    absent = names(predictions[~keys(predictions).isin(keys(captions))])
    if absent:
        raise UserError(f"{files[0]}: {len(absent)} captions are not in {files[1]}: {listed(absent)}")


def pairs_of(predictions: pd.DataFrame, captions: pd.DataFrame, files: tuple[Path, Path]) -> pd.Series:
    """Return the swapped pair of each prediction; UserError if a caption has none."""
    swapped = captions[captions["swapped_text"].notna()]
    if swapped.empty:
        raise UserError(
            f"{files[1]}: no swapped captions, so nothing to balance; omit --annotations for the plain score, or give"
            " the --split of the predictions"
        )
    absent = names(predictions[~keys(predictions).isin(keys(swapped))])
    if absent:
        raise UserError(
            f"{files[0]}: {len(absent)} captions of {files[1]} have no swapped text: {listed(absent)};"
            " for predictions of test_seen or test_unseen give --split"
        )
    pair = swapped["new_adj"] + "_" + swapped["noun"]
    return predictions[CAPTION].merge(swapped[CAPTION].assign(pair=pair), on=CAPTION, how="left")["pair"]


def chunked(hits: np.ndarray, seed: int) -> dict[str, Any]:
    """Return mean and standard deviation over chunks, as published and over all entries."""
    lost = len(hits) % CHUNKS if len(hits) >= CHUNKS else len(hits)
    result: dict[str, Any] = {"n": len(hits), "chunks": CHUNKS, "lost": lost}
    for chunking in ("published", "even"):
        mean, deviation = sampled(hits, CHUNKS, seed, chunking) or (None, None)
        result[chunking] = {"mean": rounded(mean), "deviation": rounded(deviation)}
    if len(hits) < CHUNKS:
        result["note"] = f"{len(hits)} entries are fewer than {CHUNKS} chunks; the released code gives NaN"
    return result


def mean(predictions: pd.DataFrame, weights: np.ndarray, resamples: int, seed: int) -> dict[str, Any]:
    """Return the weighted fraction of hits and its interval over images."""
    stream = rng(seed, "aggregate", "interval")
    hits = predictions["hit"].to_numpy(np.float64)
    fraction = interval.share(predictions["image_id"].to_numpy(), hits, weights, resamples, stream)
    return {"mean": rounded(fraction.value), "low": rounded(fraction.low), "high": rounded(fraction.high)}


def aggregate(predictions: pd.DataFrame, resamples: int, seed: int) -> dict[str, Any]:
    """Return the plain score of predictions, at least one, with column ``hit``."""
    draws = predictions.groupby(CAPTION).size()
    return {
        "n": len(predictions),
        "images": int(predictions["image_id"].nunique()),
        "captions": len(draws),
        "draws": {"least": int(draws.min()), "most": int(draws.max()), "fewer": int((draws < draws.max()).sum())},
        "equal_tuples": int(predictions.duplicated().sum()),
        "hits": int(predictions["hit"].sum()),
        "plain": mean(predictions, np.ones(len(predictions)), resamples, seed)
        | {"chunked": chunked(predictions["hit"].to_numpy(), seed)},
    }


def balanced(
    predictions: pd.DataFrame, pairs: pd.Series, dominant: int, why: str, resamples: int, seed: int
) -> dict[str, Any]:
    """Return the balanced score, exact by weights and of a seeded subsample; ``why`` explains the number of pairs."""
    cut = balance.cut_dominant(list(pairs), dominant, RATIO)
    kept = balance.subsample(list(pairs), cut, seed)
    return {
        "rule": f"{('one', 'two')[dominant - 1]}-pair rule ({why}): {cut.rule}",
        "pairs": len(cut.counts),
        "cut": {pair: {"of": cut.counts[pair], "kept": n} for pair, n in cut.kept.items()},
        **mean(predictions, balance.weights(list(pairs), cut), resamples, seed),
        "chunked": chunked(predictions.loc[kept, "hit"].to_numpy(), seed),
    }


def missing(predictions: pd.DataFrame, captions: pd.DataFrame, split: str) -> dict[str, Any]:
    """Return what has no prediction: swapped captions or, for other splits, captions of the predicted images."""
    if split == "test_swapped":
        what, asked = "swapped captions", captions[captions["swapped_text"].notna()]
    else:
        what = "captions of the images predicted for"
        asked = captions[captions["image_id"].isin(predictions["image_id"])]
    without = asked[~keys(asked).isin(keys(predictions))]
    images = sorted(set(asked["image_id"]) - set(predictions["image_id"]))
    return {"what": what, "of": len(asked), "captions": named(names(without)), "images": named(images)}


def percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.2f}"


def row(name: str, score: dict[str, Any]) -> list[str]:
    ends = "" if score["low"] is None else f" [{percent(score['low'])}, {percent(score['high'])}]"
    cells = [name, f"{score['chunked']['n']:,}", percent(score["mean"]) + ends]
    for chunking in ("published", "even"):
        chunks = score["chunked"][chunking]
        known = chunks["mean"] is not None
        cells.append(f"{percent(chunks['mean'])} ± {percent(chunks['deviation'])}" if known else "–")
    return cells


def readable(result: dict[str, Any]) -> str:
    rows = [["score", "n", "hits [95 %]", "chunked, published", "chunked, all"], row("plain", result["plain"])]
    if result.get("balanced"):
        rows.append(row("balanced", result["balanced"]))
    width = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(w) for cell, w in zip(cells, width, strict=True)).rstrip() for cells in rows]
    draws = result["draws"]
    each = f"{draws['most']} draw{'s' * (draws['most'] > 1)} of each"
    if draws["fewer"]:
        each = f"{draws['least']} to {draws['most']} draws of each, {draws['fewer']:,} have fewer than {draws['most']}"
    lines += [
        "",
        "percent, intervals over images",
        f"{result['n']:,} entries of {result['images']:,} images and {result['captions']:,} captions, {each}",
    ]
    if result["equal_tuples"]:
        lines.append(f"{result['equal_tuples']:,} entries repeat an earlier one, path included; they count again")
    chunks = result["plain"]["chunked"]
    if note := chunks.get("note"):
        lines.append(note)
    elif chunks["lost"]:
        lines.append(f"published chunks drop {chunks['lost']} entries: {chunks['n']:,} is not a multiple of {CHUNKS}")
    if balanced := result.get("balanced"):
        cuts = [f"{pair} {n['of']} to {n['kept']}" for pair, n in balanced["cut"].items()]
        lines.append(f"{balanced['rule']}{': ' if cuts else ''}{', '.join(cuts)}; {balanced['pairs']} pairs")
        if balanced["rule"].startswith("two-pair rule (C-CUB"):
            lines.append("(the released code, called as documented, applies the one-pair rule here: --dominant 1)")
    if absent := result.get("missing"):
        without = absent["captions"]
        line = f"{without['count']:,} of {absent['of']:,} {absent['what']} have no prediction"
        lines.append(line + (f": {listed(without['names'])}" if without["count"] else ""))
    return "\n".join(lines)


def main(step: Aggregate) -> None:
    predictions = read_predictions(step.predictions)
    if predictions.empty:
        raise UserError(f"{step.predictions}: no predictions")
    predictions["hit"] = predictions["predicted"] == 0
    result: dict[str, Any] = {"predictions": step.predictions.name, "seed": step.seed}
    result |= aggregate(predictions, step.bootstrap, step.seed)
    if step.annotations:
        dominant, why = step.dominant, "--dominant"
        if dominant is None and step.split == "test_swapped":
            if not (step.dataset and step.composition):
                raise UserError("--annotations: balancing needs --dataset and --composition, or --dominant")
            dominant = 2 if (step.dataset, step.composition) == ("C-CUB", "color") else 1
            why = f"{step.dataset} {step.composition}"
        files = (step.predictions, step.annotations)
        captions, _ = read_data(step.annotations)
        check_known(predictions, captions, files)
        result |= {"dataset": step.dataset, "composition": step.composition, "split": step.split}
        if dominant is not None and step.split == "test_swapped":
            pairs = pairs_of(predictions, captions, files)
            result["balanced"] = balanced(predictions, pairs, dominant, why, step.bootstrap, step.seed)
        result["missing"] = missing(predictions, captions, step.split)
    if result["equal_tuples"]:
        log.warning("warning: %s: %d duplicate entries", step.predictions, result["equal_tuples"])
    print(json.dumps(result, indent=2, ensure_ascii=False) if step.as_json else readable(result))


if __name__ == "__main__":
    cli.run(main)
