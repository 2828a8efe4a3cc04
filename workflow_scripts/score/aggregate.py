"""The score of a published pickle of predictions: plain, or with its annotations checked and balanced.

    python -m workflow_scripts.score.aggregate --predictions FILE
    python -m workflow_scripts.score.aggregate --predictions FILE --annotations data.pkl \\
        --dataset C-CUB --composition color [--split test_swapped] [--json]

A prediction is (image_id, caption_id, path, predicted index); index 0 is a hit. Printed are the share of hits with
a 95 % bootstrap interval over images, and the mean and the population deviation over ten shuffled chunks, once as
published (equal chunks; the remainder is lost, and fewer than ten entries give nothing, where the released code
prints NaN) and once over all entries.

Annotations are for test_swapped unless --split says otherwise; then the entries are balanced too (appendix 1.5):
by the two-pair rule for C-CUB color and by the one-pair rule for all else. The released code as it is called
(--dataset C-CUB) never takes its two-pair rule; --dominant 1 gives what it gives. Balanced are the exact mean, with
weights, and the chunks of a seeded subsample.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from workflow_scripts.core import cli
from workflow_scripts.core.cli import log
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.published import read_data, read_predictions
from workflow_scripts.core.seeds import rng
from workflow_scripts.core.tables import TESTS
from workflow_scripts.dataset.source import named
from workflow_scripts.score.scores import rounded
from workflow_scripts.stats import balance, interval
from workflow_scripts.stats.r_precision import sampled

CAPTION = ["image_id", "caption_id"]
DATASETS = ("C-CUB", "C-Flowers")
SHOWN = 3
# As published.
CHUNKS, RATIO = 10, 1.25


def dataset_name(text: str) -> str:
    """``C-CUB`` of C-CUB and C_CUB alike: the released code compares with one and is called with the other."""
    name = text.replace("_", "-")
    if name not in DATASETS:
        raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(DATASETS)} (or with _)")
    return name


def published_dominant(dataset: str, composition: str) -> int:
    """How many pairs are cut, as published: two for C-CUB color, one otherwise."""
    return 2 if (dataset, composition) == ("C-CUB", "color") else 1


def keys(table: pd.DataFrame) -> pd.MultiIndex:
    return pd.MultiIndex.from_frame(table[CAPTION])


def names(table: pd.DataFrame) -> list[str]:
    """The captions of a table, each once, as ``image caption``."""
    return [f"{image} {caption}" for image, caption in table[CAPTION].drop_duplicates().itertuples(index=False)]


def listed(found: Sequence[str]) -> str:
    """A few of them, for one line."""
    return ", ".join(map(repr, found[:SHOWN])) + (", …" if len(found) > SHOWN else "")


def check_known(predictions: pd.DataFrame, captions: pd.DataFrame, files: tuple[Path, Path]) -> None:
    """Refuse predictions of images or captions that the annotations do not have; files: of both."""
    strange = predictions.loc[~predictions["image_id"].isin(captions["image_id"]), "image_id"].unique()
    if len(strange):
        raise UserError(f"{files[0]}: {len(strange)} images are not in {files[1]}: {listed(list(strange))}")
    strange = names(predictions[~keys(predictions).isin(keys(captions))])
    if strange:
        raise UserError(f"{files[0]}: {len(strange)} captions are not in {files[1]}: {listed(strange)}")


def pairs_of(predictions: pd.DataFrame, captions: pd.DataFrame, files: tuple[Path, Path]) -> pd.Series:
    """The swapped pair of each prediction; UserError where a caption has none."""
    swapped = captions[captions["swapped_text"].notna()]
    if swapped.empty:
        raise UserError(
            f"{files[1]}: holds no swapped captions, so nothing can be balanced: leave out --annotations for the plain "
            "score, or say which --split these are"
        )
    absent = names(predictions[~keys(predictions).isin(keys(swapped))])
    if absent:
        raise UserError(
            f"{files[0]}: {len(absent)} captions of {files[1]} have no swapped text: {listed(absent)}: not balanced; "
            "if these are predictions of test_seen or test_unseen, say so with --split"
        )
    pair = swapped["new_adj"] + "_" + swapped["noun"]
    return predictions[CAPTION].merge(swapped[CAPTION].assign(pair=pair), on=CAPTION, how="left")["pair"]


def chunked(hits: np.ndarray, seed: int) -> dict[str, Any]:
    """Mean and deviation over chunks, as published and over all entries."""
    lost = len(hits) % CHUNKS if len(hits) >= CHUNKS else len(hits)
    result: dict[str, Any] = {"n": len(hits), "chunks": CHUNKS, "lost": lost}
    for chunking in ("published", "even"):
        mean, deviation = sampled(hits, CHUNKS, seed, chunking) or (None, None)
        result[chunking] = {"mean": rounded(mean), "deviation": rounded(deviation)}
    if len(hits) < CHUNKS:
        result["note"] = f"{len(hits)} entries are fewer than {CHUNKS} chunks: the released code gives NaN"
    return result


def mean(predictions: pd.DataFrame, weights: np.ndarray, resamples: int, seed: int) -> dict[str, Any]:
    """The weighted share of hits and its interval over images."""
    stream = rng(seed, "aggregate", "interval")
    hits = predictions["hit"].to_numpy(np.float64)
    found = interval.share(predictions["image_id"].to_numpy(), hits, weights, resamples, stream)
    return {"mean": rounded(found.value), "low": rounded(found.low), "high": rounded(found.high)}


def aggregate(predictions: pd.DataFrame, resamples: int, seed: int) -> dict[str, Any]:
    """The plain score. predictions: columns of ``published.read_predictions`` and ``hit``; at least one row."""
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
    """The balanced score: exact by weights, and of a seeded subsample. why: what chose the number of pairs."""
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
    """What has no prediction: swapped captions, or, of other splits, captions of the images predicted for."""
    if split == "test_swapped":
        asked = captions[captions["swapped_text"].notna()]
    else:
        asked = captions[captions["image_id"].isin(predictions["image_id"])]
    without = asked[~keys(asked).isin(keys(predictions))]
    images = sorted(set(asked["image_id"]) - set(predictions["image_id"]))
    what = "swapped captions" if split == "test_swapped" else "captions of the images predicted for"
    return {"what": what, "of": len(asked), "captions": named(names(without)), "images": named(images)}


def percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.2f}"


def row(name: str, found: dict[str, Any]) -> list[str]:
    ends = "" if found["low"] is None else f" [{percent(found['low'])}, {percent(found['high'])}]"
    cells = [name, f"{found['chunked']['n']:,}", percent(found["mean"]) + ends]
    for chunking in ("published", "even"):
        part = found["chunked"][chunking]
        cells.append(f"{percent(part['mean'])} ± {percent(part['deviation'])}" if part["mean"] is not None else "–")
    return cells


def readable(result: dict[str, Any]) -> str:
    """The table and the notes under it."""
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
        "in percent, intervals over images",
        f"{result['n']:,} entries of {result['images']:,} images and {result['captions']:,} captions, {each}",
    ]
    if result["equal_tuples"]:
        lines.append(f"{result['equal_tuples']:,} entries stand in the file before, path and all: they count again")
    chunks = result["plain"]["chunked"]
    if note := chunks.get("note"):
        lines.append(note)
    elif chunks["lost"]:
        lines.append(f"published chunks lose {chunks['lost']} entries: {chunks['n']:,} is no multiple of {CHUNKS}")
    if about := result.get("balanced"):
        cuts = [f"{pair} {n['of']} to {n['kept']}" for pair, n in about["cut"].items()]
        lines.append(f"{about['rule']}{': ' if cuts else ''}{', '.join(cuts)}; {about['pairs']} pairs")
        if about["rule"].startswith("two-pair rule (C-CUB"):
            lines.append("(the released code as it is called takes the one-pair rule here: --dominant 1)")
    if about := result.get("missing"):
        without = about["captions"]
        line = f"{without['count']:,} of {about['of']:,} {about['what']} have no prediction"
        lines.append(line + (f": {listed(without['names'])}" if without["count"] else ""))
    return "\n".join(lines)


def main(options: argparse.Namespace) -> None:
    predictions = read_predictions(options.predictions)
    if predictions.empty:
        raise UserError(f"{options.predictions}: holds no predictions")
    predictions["hit"] = predictions["predicted"] == 0
    result: dict[str, Any] = {"predictions": options.predictions.name, "seed": options.seed}
    result |= aggregate(predictions, options.bootstrap, options.seed)
    if options.annotations:
        dominant, why = options.dominant, "--dominant"
        if dominant is None and options.split == "test_swapped":
            if not (options.dataset and options.composition):
                raise UserError("--dataset and --composition choose the rule of balancing: give both, or --dominant")
            dominant = published_dominant(options.dataset, options.composition)
            why = f"{options.dataset} {options.composition}"
        files = (options.predictions, options.annotations)
        captions, _ = read_data(options.annotations)
        check_known(predictions, captions, files)
        result |= {"dataset": options.dataset, "composition": options.composition, "split": options.split}
        if options.split == "test_swapped":
            pairs = pairs_of(predictions, captions, files)
            result["balanced"] = balanced(predictions, pairs, dominant, why, options.bootstrap, options.seed)
        result["missing"] = missing(predictions, captions, options.split)
    if result["equal_tuples"]:
        log.warning("warning: %d equal tuples in %s", result["equal_tuples"], options.predictions)
    print(json.dumps(result, indent=2, ensure_ascii=False) if options.json else readable(result))


def arguments() -> argparse.ArgumentParser:
    parser = cli.parser(__doc__)
    parser.add_argument("--predictions", type=Path, required=True, help="a pickle of predictions")
    parser.add_argument("--annotations", type=Path, help="data.pkl of its data set: checks, and balances")
    parser.add_argument("--dataset", type=dataset_name, metavar="NAME", help="C-CUB or C-Flowers")
    parser.add_argument("--composition", choices=("color", "shape"))
    parser.add_argument("--split", choices=TESTS, default="test_swapped", help="of the predictions (%(default)s)")
    parser.add_argument("--dominant", type=int, choices=(1, 2), help="pairs cut by balancing, whatever the data set")
    parser.add_argument("--bootstrap", type=cli.resamples, default=2000, help="resamples of an interval")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


if __name__ == "__main__":
    cli.run(main, arguments())
