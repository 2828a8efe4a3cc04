"""Does the similarity rise with every correct detail, and fall with a wrong one? (SPECS' intrinsic measures)"""

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
from workflow_scripts.core.cli import log, one_line
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import atomic, read_json, write_frame, write_json
from workflow_scripts.core.records import read_records
from workflow_scripts.core.seeds import rng
from workflow_scripts.specs import evaluation
from workflow_scripts.specs.evaluation import EMPTY, Skipped, encode_images, estimate, find_image, percent
from workflow_scripts.specs.steps import Intrinsic
from workflow_scripts.stats import interval

DEFINITION = """Over captions with more than one increment, the mean of each caption's share. pos: of its increments,
those at which the similarity rises; neg: of its negatives, those that the true text beats; increment_rate: (pos + 1 -
the share of its negatives that beat the true text) / 2. A tie is neither a rise nor a win of either side."""

MEASURES = ("pos", "neg", "increment_rate")
STEPS = ["image", "path", "caption_id", "step", "text", "negative"]
SDCI = ["image", "captions", "neg_captions"]
TOO_SHORT = "has more than one increment, as the measures require; add captions with three texts or more"
UNFIT, NAMELESS = "captions whose negatives do not fit", "captions without an image"
TEXTS_IN_MEMORY = 50_000  # and as many negatives


def score_captions(
    images: np.ndarray, captions: np.ndarray, similarity: np.ndarray, negative: np.ndarray
) -> pd.DataFrame:
    """Return a row per caption with more than one increment: image, caption_id, increments and the three measures.

    Args:
        images, captions: (n,) names; the steps of a caption are consecutive, shortest text first.
        similarity: (n,) of each step's text.
        negative: (n,) of each step's negative, NaN if there is none. Without any, neg and increment_rate are NaN.
    """
    if not len(images):
        return pd.DataFrame(columns=["image", "caption_id", "increments", *MEASURES])
    first = np.r_[True, (images[1:] != images[:-1]) | (captions[1:] != captions[:-1])]
    caption = np.cumsum(first) - 1
    rises = ~first & (similarity > np.r_[np.nan, similarity[:-1]])
    has_negative = ~np.isnan(negative)
    columns = [~first, rises, has_negative, has_negative & (similarity > negative), negative > similarity]
    increments, rise, negatives, won, lost = (np.bincount(caption, weights=column) for column in columns)
    with np.errstate(divide="ignore", invalid="ignore"):
        pos, neg, loses = rise / increments, won / negatives, lost / negatives
    measures = {"pos": pos, "neg": neg, "increment_rate": (pos + 1 - loses) / 2}
    names = {"image": images[first], "caption_id": captions[first], "increments": increments.astype(int)}
    table = pd.DataFrame(names | measures)
    return table[table["increments"] > 1].reset_index(drop=True)


def summarize(
    captions: pd.DataFrame, resamples: int, seed: int, of: Callable[..., interval.Estimate] = interval.share
) -> dict[str, dict[str, Any]]:
    """Return each measure's mean over captions (``score_captions``) with its interval over images."""
    summary = {}
    for measure in MEASURES:
        known = captions.dropna(subset=measure)
        values, images = known[measure].to_numpy(float), known["image"].to_numpy()
        summary[measure] = estimate(values, images, resamples, rng(seed, "intrinsic", measure), of)
    return summary


def differences(a: pd.DataFrame, b: pd.DataFrame, resamples: int, seed: int) -> dict[str, dict[str, Any]]:
    """Return each measure of ``a`` minus that of ``b`` (``score_captions`` of two judges) over the captions of both.

    The differences are paired: both judges see the same resampled images.
    """
    both = a.merge(b, on=["image", "caption_id"], suffixes=("_a", "_b"))
    paired = both[["image"]].assign(**{m: both[f"{m}_a"] - both[f"{m}_b"] for m in MEASURES})
    return summarize(paired, resamples, seed, interval.mean)


def read_table(path: Path, images: Path | None) -> tuple[pd.DataFrame, Skipped]:
    """Return the steps (columns STEPS) of a table, sorted, and the captions skipped because of an empty text."""
    table, bad = read_records(path, ["image", "caption_id", "step", "text"], ["negative"])
    if bad:
        raise UserError(f"{path}: {bad[0]}; correct this row ({len(bad)} rows are unreadable)")
    for column in ("image", "caption_id", "step"):
        if (absent := evaluation.is_absent(table[column])).any():
            raise UserError(f"{path}: {table['where'][absent].iloc[0]}: no {column}; add it")
    step = pd.to_numeric(table["step"], errors="coerce")
    if step.isna().any():
        row = table[step.isna()].iloc[0]
        raise UserError(f"{path}: {row['where']}: step: expected a number, got {row['step']!r}")
    table["step"] = step
    duplicate = table.duplicated(["image", "caption_id", "step"])
    if duplicate.any():
        row = table[duplicate].iloc[0]
        raise UserError(
            f"{path}: {row['where']}: duplicate step {row['step']:g} of caption {row['caption_id']} of image"
            f" {row['image']}; remove one"
        )
    table["negative"] = [_text(cell) for cell in table["negative"]] if "negative" in table else None
    table["text"] = [_text(cell) for cell in table["text"]]
    caption = table["image"] + " " + table["caption_id"]
    empty = caption.isin(set(caption[table["text"].isna()]))
    folder = images or path.parent
    table["path"] = [find_image(name, folder) for name in table["image"]]
    skipped = {EMPTY: sorted(set(caption[empty]))}
    return table[~empty].sort_values(["image", "caption_id", "step"], ignore_index=True)[STEPS], skipped


def _text(cell: Any) -> str | None:
    return cell if isinstance(cell, str) and cell.strip() else None


def align(texts: Sequence[str], negatives: Sequence[str | None]) -> list[str | None] | None:
    """Return for each text the negative that replaces its newest part, or None; None if the numbers do not fit.

    With one negative less than texts, negatives that continue the texts belong to the next ones, others to the texts
    at their own places. (The released evaluation always uses the same place, and so compares a negative that
    continues a text with the text before its wrong part.)
    """
    if len(negatives) == len(texts):
        return list(negatives)
    if len(negatives) != len(texts) - 1:
        return None
    continues = all((negative or text).startswith(text) for negative, text in zip(negatives, texts, strict=False))
    return [None, *negatives] if continues else [*negatives, None]


def read_sdci(folder: Path, images: Path | None, cache: Path) -> tuple[pd.DataFrame, Skipped]:
    """Do the same as ``read_table`` for a folder that ``datasets`` saved: one split, or several, then ``test``.

    image is a path, or the file's bytes, which are kept in ``cache``; captions are a caption's cumulated texts,
    neg_captions their negatives (``align``).
    """
    rows: list[tuple[Any, ...]] = []
    skipped: Skipped = {EMPTY: [], UNFIT: [], NAMELESS: []}
    captions: dict[str, int] = defaultdict(int)
    for number, row in enumerate(_saved_rows(folder)):
        name, path = _image(row["image"], images or folder, cache)
        if path is None:
            skipped[NAMELESS].append(f"row {number}")
            continue
        caption = captions[name]
        captions[name] += 1
        texts = row["captions"] or []
        if not texts or not all(_text(text) for text in texts):
            skipped[EMPTY].append(f"{name} {caption}")
        elif (negatives := align(texts, row["neg_captions"] or [])) is None:
            skipped[UNFIT].append(f"{name} {caption}")
        else:
            rows += [
                (name, path, f"{caption:02d}", step, text, _text(negative))
                for step, (text, negative) in enumerate(zip(texts, negatives, strict=True))
            ]
    table = pd.DataFrame(rows, columns=STEPS)
    return table.sort_values(["image", "caption_id", "step"], ignore_index=True), skipped


def _saved_rows(folder: Path) -> Iterator[dict[str, Any]]:
    if (folder / "dataset_dict.json").is_file():
        splits = read_json(folder / "dataset_dict.json").get("splits", [])
        if "test" not in splits and len(splits) != 1:
            names = ", ".join(map(str, splits))
            raise UserError(f"{folder}: has the splits {names}; choose one with --data {folder.name}/SPLIT")
        folder = folder / ("test" if "test" in splits else splits[0])
    if (folder / "state.json").is_file():
        files = [folder / shard["filename"] for shard in read_json(folder / "state.json")["_data_files"]]
        batches: Iterable[arrow.RecordBatch] = (batch for file in files for batch in _arrow(file))
    elif files := sorted(folder.glob("*.parquet")):
        batches = (
            batch
            for file in files
            for batch in pq.ParquetFile(file, page_checksum_verification=True).iter_batches(1000)
        )
    else:
        raise UserError(
            f"{folder}: neither a table nor a saved data set (state.json with .arrow files, or .parquet files)"
        )
    for batch in batches:
        absent = [name for name in SDCI if name not in batch.schema.names]
        if absent:
            raise UserError(f"{folder}: no column {absent[0]!r}; columns: {', '.join(batch.schema.names)}")
        for name in SDCI[1:]:
            kind = batch.schema.field(name).type
            if not (arrow.types.is_list(kind) or arrow.types.is_large_list(kind)):
                raise UserError(f"{folder}: column {name!r}: expected lists of texts, got {kind}")
        yield from batch.select(SDCI).to_pylist()


def _arrow(file: Path) -> Iterator[arrow.RecordBatch]:
    try:
        with arrow.memory_map(str(file)) as source:
            yield from arrow.ipc.open_stream(source)
    except (arrow.ArrowException, OSError) as error:
        raise UserError(f"{file}: not a readable Arrow stream ({one_line(error)}); download it again") from error


def _image(cell: Any, folder: Path, cache: Path) -> tuple[str, Path | None]:
    """Return the name and the file of an image given as a path or as bytes; no file if it is neither."""
    if not isinstance(cell, dict):
        cell = {"path": cell}
    raw, path = cell.get("bytes"), cell.get("path")
    if raw:
        digest = hashlib.blake2b(raw, digest_size=16).hexdigest()
        file = cache / "images" / digest
        if not file.is_file() or file.read_bytes() != raw:
            with atomic(file) as temporary:
                temporary.write_bytes(raw)
        return PurePath(path).name if path else digest, file
    if not isinstance(path, str) or not path:
        return "", None
    # An absolute path is only valid on the machine that saved it.
    return PurePath(path).name if PurePath(path).is_absolute() else path, find_image(path, folder)


def similarities(steps: pd.DataFrame, embedder: Embedder) -> tuple[pd.DataFrame, Skipped]:
    """Return ``steps`` (sorted by image) with columns similarity and negative_similarity, and the skipped images.

    Equal texts have equal similarities, whatever else is compared.
    """
    skipped: Skipped = {evaluation.MISSING: [], evaluation.UNREADABLE: []}
    paths = dict(zip(steps["image"], steps["path"], strict=True))
    vectors, fault = encode_images(embedder, list(paths.values()))
    for name, reason in zip(paths, fault, strict=True):
        if reason:
            skipped[reason].append(name)
    place = {name: number for number, (name, reason) in enumerate(zip(paths, fault, strict=True)) if not reason}
    steps = steps[steps["image"].isin(place)].reset_index(drop=True)
    tables = []
    for start in range(0, len(steps), TEXTS_IN_MEMORY):
        table = steps.iloc[start : start + TEXTS_IN_MEMORY].copy()
        has_negative = table["negative"].notna().to_numpy()
        texts = embedder.texts([*table["text"], *table["negative"][has_negative]])
        images = vectors[table["image"].map(place).to_numpy()]
        table["similarity"] = np.einsum("nd,nd->n", images, texts[: len(table)])
        table["negative_similarity"] = np.nan
        negatives = np.einsum("nd,nd->n", images[has_negative], texts[len(table) :])
        table.loc[has_negative, "negative_similarity"] = negatives
        tables.append(table)
    return pd.concat(tables, ignore_index=True), skipped


def count_captions(steps: pd.DataFrame, texts: int = 1) -> int:
    return int((steps.groupby(["image", "caption_id"]).size() >= texts).sum())


def evaluate(step: Intrinsic, judge: Path, steps: pd.DataFrame) -> tuple[dict, pd.DataFrame, pd.DataFrame, Skipped]:
    """Return a judge's part of the result, the captions' measures, the steps with similarities, and skipped images."""
    with open_embedder(judge, step.batch, step.threads, step.device, step.cache) as embedder:
        compared, skipped = similarities(steps, embedder)
        columns = [compared[name].to_numpy() for name in ("image", "caption_id", "similarity", "negative_similarity")]
        captions = score_captions(*columns)
        if captions.empty:
            readable = count_captions(compared)
            raise UserError(f"{step.data}: none of {readable} captions with a readable image {TOO_SHORT}")
        last = compared.groupby(["image", "caption_id"])["text"].last()
        result = {
            "folder": judge.resolve().name,
            **evaluation.judge_of(embedder),
            "captions_cut": evaluation.count_truncated(embedder, last.tolist()),
            **summarize(captions, step.bootstrap, step.seed),
        }
    log.info("%s: %s", judge, _summary(result))
    return result, captions, compared.drop(columns="path").assign(judge=result["folder"]), skipped


def _summary(result: dict[str, Any]) -> str:
    return ", ".join(f"{measure} {percent(result[measure])}" for measure in MEASURES)


def main(step: Intrinsic) -> None:
    if step.data.is_dir():
        steps, skipped = read_sdci(step.data, step.images, step.cache)
    else:
        steps, skipped = read_table(step.data, step.images)
    if steps.empty:
        raise UserError(f"{step.data}: no caption without an empty text; add some")
    if not count_captions(steps, 3):
        raise UserError(f"{step.data}: none of {count_captions(steps)} captions {TOO_SHORT}")
    log.info("%d images, %d captions, %d texts", steps["image"].nunique(), count_captions(steps), len(steps))
    judges, captions, compared = [], [], []
    for folder in [step.judge, *step.against]:
        result, measured, table, unseen = evaluate(step, folder, steps)
        skipped |= unseen
        judges.append(result)
        captions.append(measured)
        compared.append(table)
    gains = []
    for other, measured in zip(judges[1:], captions[1:], strict=True):
        gain = differences(captions[0], measured, step.bootstrap, step.seed)
        gains.append({"a": judges[0]["folder"], "b": other["folder"], "b_hash": other["judge_hash"], **gain})
        log.info("%s minus %s: %s", gains[-1]["a"], gains[-1]["b"], _summary(gain))
    result = evaluation.head(step, step.data, DEFINITION) | {
        "captions": count_captions(steps),
        "captions_with_one_increment_or_none": count_captions(compared[-1]) - len(captions[-1]),
        "left_out": evaluation.report_skipped(skipped, step.data),
        "judges": judges,
        "differences": gains,
    }
    write_json(result, step.output)
    if step.similarities:
        write_frame(pd.concat(compared, ignore_index=True), step.similarities)


if __name__ == "__main__":
    cli.run(main)
