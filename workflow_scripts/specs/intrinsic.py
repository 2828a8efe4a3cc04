"""Does the similarity rise with every correct detail, and fall with a wrong one? (SPECS' intrinsic measures)

Reads captions of growing detail: a table (CSV, TSV, JSON, JSON lines, Parquet) with a row for each step of a caption
and columns image, caption_id, step, text and negative (the text with its newest part replaced by a wrong one, or
nothing), or sDCI as it is published: a folder that Hugging Face's ``datasets`` saved, with columns image, captions
and neg_captions. With --against, each measure's difference to other models, paired over the same images.
"""

from __future__ import annotations

import argparse
import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path, PurePath
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as arrow
import pyarrow.parquet as pq

from workflow_scripts.clip.embed import Embedder, open_embedder
from workflow_scripts.core import cli
from workflow_scripts.core.cli import log
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import atomic, read_json, write_frame, write_json
from workflow_scripts.core.records import read_records
from workflow_scripts.core.seeds import rng
from workflow_scripts.specs import evaluation
from workflow_scripts.specs.evaluation import EMPTY, LeftOut, encode_images, estimate, find_image, percent
from workflow_scripts.stats import interval

DEFINITION = """Over captions with more than one increment, the mean of each caption's share. pos: of its increments,
those at which the similarity rises; neg: of its negatives, those that the true text beats; increment_rate: (pos + 1 -
the share of its negatives that beat the true text) / 2. A tie is neither a rise nor a win of either side."""

MEASURES = ("pos", "neg", "increment_rate")
STEPS = ["image", "path", "caption_id", "step", "text", "negative"]
SHORT = "has more than one increment, over which the measures are: give captions of three texts or more"
UNFIT, NAMELESS = "captions whose negatives do not fit", "captions without an image"
# Texts, and as many negatives, that are compared at once: what is held in memory.
HELD = 50_000


def score_captions(
    images: np.ndarray, captions: np.ndarray, similarity: np.ndarray, negative: np.ndarray
) -> pd.DataFrame:
    """A row a caption with more than one increment: image, caption_id, increments, pos, neg, increment_rate.

    images, captions (n,): names; the steps of a caption are rows one after the other, shortest text first.
    similarity, negative (n,): of the step's text and of its negative, NaN where there is none. A caption without
    negatives has NaN for neg and increment_rate.
    """
    if not len(images):
        return pd.DataFrame(columns=["image", "caption_id", "increments", *MEASURES])
    first = np.r_[True, (images[1:] != images[:-1]) | (captions[1:] != captions[:-1])]
    caption = np.cumsum(first) - 1
    rises = ~first & (similarity > np.r_[np.nan, similarity[:-1]])
    there = ~np.isnan(negative)
    columns = [~first, rises, there, there & (similarity > negative), there & (negative > similarity)]
    increments, rise, negatives, won, lost = (np.bincount(caption, weights=column) for column in columns)
    with np.errstate(divide="ignore", invalid="ignore"):
        pos, neg, loses = rise / increments, won / negatives, lost / negatives
    table = pd.DataFrame(
        {
            "image": images[first],
            "caption_id": captions[first],
            "increments": increments.astype(int),
            "pos": pos,
            "neg": neg,
            "increment_rate": (pos + 1 - loses) / 2,
        }
    )
    return table[table["increments"] > 1].reset_index(drop=True)


def summarize(
    captions: pd.DataFrame, resamples: int, seed: int, of: Callable[..., interval.Estimate] = interval.share
) -> dict[str, dict[str, Any]]:
    """Each measure's mean over captions (``score_captions``) and its interval over images."""
    found = {}
    for measure in MEASURES:
        known = captions.dropna(subset=measure)
        generator = rng(seed, "intrinsic", measure)
        found[measure] = estimate(known[measure].to_numpy(float), known["image"].to_numpy(), resamples, generator, of)
    return found


def differences(a: pd.DataFrame, b: pd.DataFrame, resamples: int, seed: int) -> dict[str, dict[str, Any]]:
    """Each measure of ``a`` less that of ``b`` (``score_captions`` of two models) over the captions of both.

    The interval is of the paired differences: both models see the same resampled images.
    """
    both = a.merge(b, on=["image", "caption_id"], suffixes=("_a", "_b"))
    paired = both[["image"]].assign(**{m: both[f"{m}_a"] - both[f"{m}_b"] for m in MEASURES})
    return summarize(paired, resamples, seed, interval.mean)


# Reading


def read_table(path: Path, images: Path | None) -> tuple[pd.DataFrame, LeftOut]:
    """The steps (columns STEPS) of a table, sorted, and what was left out. images: default the table's folder.

    A caption with an empty text loses all its steps. Raises UserError for a row that cannot be read, for a step that
    is no number or stands twice: the increments beside it would be wrong.
    """
    table, bad = read_records(path, ["image", "caption_id", "step", "text"], ["negative"])
    if bad:
        raise UserError(f"{path}: {bad[0]}: mend it ({len(bad)} such rows)")
    for column in ("image", "caption_id", "step"):
        if (missing := evaluation.absent(table[column])).any():
            raise UserError(f"{path}: {table['where'][missing].iloc[0]}: no {column}: give one")
    step = pd.to_numeric(table["step"], errors="coerce")
    if step.isna().any():
        row = table[step.isna()].iloc[0]
        raise UserError(f"{path}: {row['where']}: step {row['step']!r} is no number")
    table["step"] = step
    twice = table.duplicated(["image", "caption_id", "step"])
    if twice.any():
        row = table[twice].iloc[0]
        raise UserError(
            f"{path}: {row['where']}: step {row['step']:g} of caption {row['caption_id']} of image {row['image']}"
            " stands twice: keep one"
        )
    table["negative"] = [_text(cell) for cell in table["negative"]] if "negative" in table else None
    table["text"] = [_text(cell) for cell in table["text"]]
    caption = table["image"] + " " + table["caption_id"]
    empty = caption.isin(set(caption[table["text"].isna()]))
    folder = images or path.parent
    table["path"] = [find_image(name, folder) for name in table["image"]]
    left_out = {EMPTY: sorted(set(caption[empty]))}
    return table[~empty].sort_values(["image", "caption_id", "step"], ignore_index=True)[STEPS], left_out


def _text(cell: Any) -> str | None:
    return cell if isinstance(cell, str) and cell.strip() else None


def beside(texts: Sequence[str], negatives: Sequence[str | None]) -> list[str | None] | None:
    """Each negative beside the text whose newest part it replaces, None elsewhere; None where they do not fit.

    With one negative fewer than texts, those that go on from the texts belong to the next ones; others to the texts
    at their own places. (The released evaluation takes the one at the same place in either case, and so compares a
    negative with the text before its wrong part.)
    """
    if len(negatives) == len(texts):
        return list(negatives)
    if len(negatives) != len(texts) - 1:
        return None
    follow = all((negative or text).startswith(text) for negative, text in zip(negatives, texts, strict=False))
    return [None, *negatives] if follow else [*negatives, None]


def read_sdci(folder: Path, images: Path | None, cache: Path) -> tuple[pd.DataFrame, LeftOut]:
    """As ``read_table``, of a folder that ``datasets`` saved: one split, or several, of which ``test`` is read.

    image is a path, or the file's bytes, which are kept in ``cache``; captions are a caption's cumulated texts,
    neg_captions their negatives (``beside``).
    """
    rows: list[tuple[Any, ...]] = []
    left_out: LeftOut = {EMPTY: [], UNFIT: [], NAMELESS: []}
    seen: dict[str, int] = defaultdict(int)
    for number, row in enumerate(_saved_rows(folder)):
        name, path = _image(row["image"], images or folder, cache)
        if path is None:
            left_out[NAMELESS].append(f"row {number}")
            continue
        caption = seen[name]
        seen[name] += 1
        texts, wrong = row["captions"] or [], row["neg_captions"] or []
        if not texts or not all(_text(text) for text in texts):
            left_out[EMPTY].append(f"{name} {caption}")
        elif (negatives := beside(texts, wrong)) is None:
            left_out[UNFIT].append(f"{name} {caption}")
        else:
            rows += [
                (name, path, f"{caption:02d}", step, text, _text(negative))
                for step, (text, negative) in enumerate(zip(texts, negatives, strict=True))
            ]
    table = pd.DataFrame(rows, columns=STEPS)
    return table.sort_values(["image", "caption_id", "step"], ignore_index=True), left_out


def _saved_rows(folder: Path) -> Iterator[dict[str, Any]]:
    """The rows of a saved data set; its columns are checked."""
    if (folder / "dataset_dict.json").is_file():
        splits = read_json(folder / "dataset_dict.json").get("splits", [])
        if "test" not in splits and len(splits) != 1:
            raise UserError(f"{folder}: splits {', '.join(map(str, splits))}: name one as --data {folder.name}/SPLIT")
        folder = folder / ("test" if "test" in splits else splits[0])
    if (folder / "state.json").is_file():
        files = [folder / part["filename"] for part in read_json(folder / "state.json")["_data_files"]]
        batches: Iterable[arrow.RecordBatch] = (batch for file in files for batch in _arrow(file))
    elif files := sorted(folder.glob("*.parquet")):
        batches = (batch for file in files for batch in pq.ParquetFile(file).iter_batches(1000))
    else:
        raise UserError(
            f"{folder}: neither a table nor a saved data set (state.json with .arrow files, or .parquet files)"
        )
    for batch in batches:
        absent = [name for name in ("image", "captions", "neg_captions") if name not in batch.schema.names]
        if absent:
            raise UserError(f"{folder}: no column {absent[0]!r}; its columns: {', '.join(batch.schema.names)}")
        for name in ("captions", "neg_captions"):
            kind = batch.schema.field(name).type
            if not (arrow.types.is_list(kind) or arrow.types.is_large_list(kind)):
                raise UserError(f"{folder}: column {name!r} must hold lists of texts, not {kind}")
        yield from batch.select(["image", "captions", "neg_captions"]).to_pylist()


def _arrow(file: Path) -> Iterator[arrow.RecordBatch]:
    try:
        with arrow.memory_map(str(file)) as source:
            yield from arrow.ipc.open_stream(source)
    except (arrow.ArrowException, OSError) as error:
        raise UserError(f"{file}: not a readable Arrow stream ({' '.join(str(error).split())[:200]})") from error


def _image(cell: Any, folder: Path, cache: Path) -> tuple[str, Path | None]:
    """The name and the file of an image that is a path, or bytes with or without a path; None where it is neither."""
    if not isinstance(cell, dict):
        cell = {"path": cell}
    raw, path = cell.get("bytes"), cell.get("path")
    if raw:
        digest = hashlib.blake2b(raw, digest_size=16).hexdigest()
        file = cache / "images" / digest
        if not file.is_file():
            with atomic(file) as temporary:
                temporary.write_bytes(raw)
        return PurePath(path).name if path else digest, file
    if not isinstance(path, str) or not path:
        return "", None
    # An absolute path is that of the machine which saved it.
    return PurePath(path).name if PurePath(path).is_absolute() else path, find_image(path, folder)


# Comparing


def similarities(steps: pd.DataFrame, embedder: Embedder) -> tuple[pd.DataFrame, LeftOut]:
    """``steps`` (columns STEPS, sorted by image) with columns similarity and negative_similarity, and images left out.

    Equal texts have equal similarities, whatever else is compared with them.
    """
    done = []
    left_out: LeftOut = {evaluation.MISSING: [], evaluation.UNREADABLE: []}
    paths = dict(zip(steps["image"], steps["path"], strict=True))
    shown, fault = encode_images(embedder, list(paths.values()))
    for name, reason in zip(paths, fault, strict=True):
        if reason:
            left_out[reason].append(name)
    place = {name: number for number, (name, reason) in enumerate(zip(paths, fault, strict=True)) if not reason}
    steps = steps[steps["image"].isin(place)].reset_index(drop=True)
    for start in range(0, len(steps), HELD):
        part = steps.iloc[start : start + HELD].copy()
        there = part["negative"].notna().to_numpy()
        texts = embedder.texts([*part["text"], *part["negative"][there]])
        images = shown[part["image"].map(place).to_numpy()]
        part["similarity"] = np.einsum("nd,nd->n", images, texts[: len(part)])
        part["negative_similarity"] = np.nan
        part.loc[there, "negative_similarity"] = np.einsum("nd,nd->n", images[there], texts[len(part) :])
        done.append(part)
    return pd.concat(done, ignore_index=True), left_out


def count_captions(steps: pd.DataFrame, texts: int = 1) -> int:
    """How many captions have as many texts, or more."""
    return int((steps.groupby(["image", "caption_id"]).size() >= texts).sum())


def evaluate(steps: pd.DataFrame, embedder: Embedder) -> tuple[pd.DataFrame, pd.DataFrame, LeftOut, int]:
    """By one model, the steps with their similarities, the captions' shares, what it could not see, and how many
    captions it reads but in part."""
    found, left_out = similarities(steps, embedder)
    last = found.groupby(["image", "caption_id"])["text"].last()
    columns = [found[name].to_numpy() for name in ("image", "caption_id", "similarity", "negative_similarity")]
    return found, score_captions(*columns), left_out, evaluation.count_cut(embedder, last.tolist())


def main(options: argparse.Namespace) -> None:
    if options.data.is_dir():
        steps, left_out = read_sdci(options.data, options.images, options.cache)
    else:
        steps, left_out = read_table(options.data, options.images)
    if steps.empty:
        raise UserError(f"{options.data}: no caption whose texts are all there")
    captions = count_captions(steps)
    if not count_captions(steps, 3):
        raise UserError(f"{options.data}: none of {captions} captions {SHORT}")
    log.info("%d images, %d captions, %d texts", steps["image"].nunique(), captions, len(steps))
    judges: list[dict[str, Any]] = []
    scored: list[pd.DataFrame] = []
    compared_steps: list[pd.DataFrame] = []
    for folder in [options.judge, *options.against]:
        with open_embedder(argparse.Namespace(**{**vars(options), "judge": folder})) as embedder:
            found_steps, table, unseen, cut = evaluate(steps, embedder)
            seen = count_captions(found_steps)
            if table.empty:
                raise UserError(f"{options.data}: none of {seen} captions whose images can be read {SHORT}")
            left_out |= unseen
            found = summarize(table, options.bootstrap, options.seed)
            judges.append(
                {"folder": folder.resolve().name, **evaluation.judge_of(embedder), "captions_cut": cut, **found}
            )
        scored.append(table)
        compared_steps.append(found_steps.drop(columns="path").assign(judge=judges[-1]["folder"]))
        log.info("%s: %s", folder, ", ".join(f"{measure} {percent(found[measure])}" for measure in MEASURES))
    compared = []
    for other, table in zip(judges[1:], scored[1:], strict=True):
        found = differences(scored[0], table, options.bootstrap, options.seed)
        compared.append({"a": judges[0]["folder"], "b": other["folder"], "b_hash": other["judge_hash"], **found})
        line = ", ".join(f"{measure} {percent(found[measure])}" for measure in MEASURES)
        log.info("%s less %s: %s", compared[-1]["a"], compared[-1]["b"], line)
    result = evaluation.head(options, DEFINITION) | {
        "captions": captions,
        "captions_with_one_increment_or_none": seen - len(table),
        "left_out": evaluation.say_left_out(left_out, options.data),
        "judges": judges,
        "differences": compared,
    }
    write_json(result, options.output)
    if options.similarities:
        write_frame(pd.concat(compared_steps, ignore_index=True), options.similarities)


def arguments() -> argparse.ArgumentParser:
    parser = cli.parser(__doc__)
    evaluation.add_arguments(parser, "a table of steps, or sDCI's folder")
    parser.add_argument("--images", type=Path, help="folder of the images; default: where the data lie")
    parser.add_argument("--against", type=Path, nargs="+", default=[], help="folders of judges to compare with")
    parser.add_argument("--similarities", type=Path, help="Parquet to write: each step's similarity by each judge")
    return parser


if __name__ == "__main__":
    cli.run(main, arguments())
