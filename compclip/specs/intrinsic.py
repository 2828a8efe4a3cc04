"""Does the similarity rise with every correct detail, and fall with a wrong one? (SPECS' intrinsic measures)"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as arrow
from pyarrow import parquet

from compclip.clip.embed import Embedder
from compclip.core.errors import UserError, one_line, require
from compclip.core.log import log
from compclip.core.records import read_records
from compclip.core.seeds import rng
from compclip.io import atomic
from compclip.specs import evaluation
from compclip.specs.config import INTRINSIC_MEASURES
from compclip.specs.evaluation import CAPTIONS_EMPTY, SkippedNames, encode_images, is_absent, mean_over_images

INTRINSIC_DEFINITION = """Over captions with more than one increment, the mean of each caption's share. pos: of its
increments, those at which the similarity rises; neg: of its negatives, those that the true text beats; increment_rate:
(pos + 1 - the share of its negatives that beat the true text) / 2. A tie is neither a rise nor a win of either side."""

STEP_COLUMNS = ["image", "path", "caption_id", "step", "text", "negative"]
SDCI_COLUMNS = ["image", "captions", "neg_captions"]
NEGATIVES_UNFIT, IMAGE_UNNAMED = "captions whose negatives do not fit", "captions without an image"


def score_captions(steps: pd.DataFrame) -> pd.DataFrame:
    """Return a row per caption with more than one increment: image, caption_id, increments and the three measures.

    ``steps`` has the columns image, caption_id, similarity and negative_similarity (NaN if there is none), shortest
    text first. Without any negative, neg and increment_rate are NaN.
    """
    grouped = steps.groupby(["image", "caption_id"], sort=False)
    negative, against = steps["negative_similarity"], steps["negative_similarity"].notna()
    facts = steps[["image", "caption_id"]].assign(
        increments=grouped.cumcount() > 0, rises=grouped["similarity"].diff() > 0, against=against,
        won=against & (steps["similarity"] > negative), lost=negative > steps["similarity"],
    )  # fmt: skip
    table = facts.groupby(["image", "caption_id"], sort=False, as_index=False).sum()
    table["pos"] = table["rises"] / table["increments"]
    table["neg"] = table["won"] / table["against"]
    table["increment_rate"] = (table["pos"] + 1 - table["lost"] / table["against"]) / 2
    measured = table[["image", "caption_id", "increments", *INTRINSIC_MEASURES]]
    return measured[measured["increments"] > 1].reset_index(drop=True)


def measure_means(captions: pd.DataFrame, resamples: int, seed: int, *, paired: bool = False) -> dict[str, dict]:
    """Return each measure's mean over captions (``score_captions``) with its interval over images."""
    means = {}
    for measure in INTRINSIC_MEASURES:
        known = captions.dropna(subset=measure)
        values, images = known[measure].to_numpy(float), known["image"].to_numpy()
        means[measure] = mean_over_images(values, images, resamples, rng(seed, "intrinsic", measure), paired=paired)
    return means


def measure_gains(a: pd.DataFrame, b: pd.DataFrame, resamples: int, seed: int) -> dict[str, dict]:
    """Return each measure of ``a`` minus that of ``b`` (``score_captions`` of two judges) over the captions of both.

    The differences are paired: both judges see the same resampled images.
    """
    both = a.merge(b, on=["image", "caption_id"], suffixes=("_a", "_b"))
    gains = both[["image"]].assign(**{m: both[f"{m}_a"] - both[f"{m}_b"] for m in INTRINSIC_MEASURES})
    return measure_means(gains, resamples, seed, paired=True)


def read_growing(path: Path, images: Path | None) -> tuple[pd.DataFrame, SkippedNames]:
    """Return the steps (STEP_COLUMNS) of a table, and the captions skipped because of an empty text."""
    table, bad = read_records(path, ["image", "caption_id", "step", "text"], ["negative"])
    table["negative"] = table.get("negative")
    table["step"] = pd.to_numeric(table["step"], errors="coerce")
    faults = {
        "no image": is_absent(table["image"]),
        "no caption_id": is_absent(table["caption_id"]),
        "step: expected a number": table["step"].isna(),
        "duplicate step of its caption": table.duplicated(["image", "caption_id", "step"]),
    }
    bad += [f"{where}: {fault}" for fault, rows in faults.items() for where in table["where"][rows]]
    require(not bad, path, bad[0] if bad else "", f"correct this row ({len(bad)} rows are wrong)")
    for column in ("text", "negative"):
        table[column] = [_stated(cell) for cell in table[column]]
    caption = table["image"] + " " + table["caption_id"]
    empty = caption.isin(caption[table["text"].isna()])
    table["path"] = [(images or path.parent) / name for name in table["image"]]
    return table[~empty][STEP_COLUMNS], {CAPTIONS_EMPTY: sorted(set(caption[empty]))}


def align(texts: Sequence[str], negatives: Sequence[str | None]) -> list[str | None] | None:
    """Return for each text the negative that replaces its newest part, or None; None if the numbers do not fit.

    With one negative less than texts, negatives that continue the texts belong to the next ones, others to the texts
    at their own places. (The released evaluation always uses the same place.)
    """
    if len(negatives) == len(texts) - 1:
        continues = all((negative or text).startswith(text) for negative, text in zip(negatives, texts, strict=False))
        return [None, *negatives] if continues else [*negatives, None]
    return list(negatives) if len(negatives) == len(texts) else None


def read_sdci(folder: Path, images: Path | None, cache: Path) -> tuple[pd.DataFrame, SkippedNames]:
    """Return the same of a folder that Hugging Face's ``datasets`` saved, or of its split ``test``.

    image is a path, or the file's bytes, which are kept in ``cache``; captions are a caption's cumulated texts,
    neg_captions their negatives (``align``).
    """
    folder = folder / "test" if (folder / "test").is_dir() else folder
    try:
        files = sorted(folder.glob("*.arrow"))
        tables = [arrow.ipc.open_stream(file).read_all() for file in map(arrow.memory_map, map(str, files))]
        rows = (arrow.concat_tables(tables) if files else parquet.read_table(folder)).select(SDCI_COLUMNS).to_pylist()
    except (arrow.ArrowException, OSError, KeyError) as error:
        layout = "expected .arrow or .parquet files with the columns image, captions, neg_captions"
        raise UserError(f"{folder}: not sDCI: {one_line(error)}; {layout}") from error
    steps: list[tuple[Any, ...]] = []
    skipped: SkippedNames = {CAPTIONS_EMPTY: [], NEGATIVES_UNFIT: [], IMAGE_UNNAMED: []}
    captions: Counter[str] = Counter()
    for number, row in enumerate(rows):
        name, path = _image(row["image"], images or folder, cache)
        if path is None:
            skipped[IMAGE_UNNAMED].append(f"row {number}")
            continue
        caption, texts = captions[name], row["captions"] or []
        captions[name] += 1
        negatives = align(texts, row["neg_captions"] or [])
        if not texts or not all(map(_stated, texts)):
            skipped[CAPTIONS_EMPTY].append(f"{name} {caption}")
        elif negatives is None:
            skipped[NEGATIVES_UNFIT].append(f"{name} {caption}")
        else:
            pairs = enumerate(zip(texts, negatives, strict=True))
            steps += [(name, path, f"{caption:02d}", step, text, _stated(wrong)) for step, (text, wrong) in pairs]
    return pd.DataFrame(steps, columns=STEP_COLUMNS), skipped


def read_steps(data: Path, images: Path | None, cache: Path) -> tuple[pd.DataFrame, SkippedNames]:
    """Return the steps of a table, or of sDCI's folder, sorted, and what is skipped.

    A table has the columns image, caption_id, step, text and, optionally, negative (the text with its newest part
    replaced by a wrong one). ``images``: folder of the images; None: the folder of the data.
    """
    steps, skipped = read_sdci(data, images, cache) if data.is_dir() else read_growing(data, images)
    return steps.sort_values(["image", "caption_id", "step"], ignore_index=True), skipped


def _stated(cell: Any) -> str | None:
    return cell if isinstance(cell, str) and cell.strip() else None


def _image(cell: Any, folder: Path, cache: Path) -> tuple[str, Path | None]:
    """Return the name and the file of an image given as a path or as bytes; no file if it is neither."""
    cell = cell if isinstance(cell, dict) else {"path": cell}
    raw, path = cell.get("bytes"), PurePath(cell.get("path") or "")
    if raw:
        digest = hashlib.blake2b(raw, digest_size=16).hexdigest()
        file = cache / "images" / digest
        if not file.is_file() or file.read_bytes() != raw:
            with atomic(file) as temporary:
                temporary.write_bytes(raw)
        return path.name or digest, file
    if not path.name:
        return "", None
    # An absolute path is only valid on the machine that saved it.
    name = path.name if path.is_absolute() else str(path)
    return name, folder / name


def step_similarities(steps: pd.DataFrame, embedder: Embedder) -> tuple[pd.DataFrame, SkippedNames]:
    """Return ``steps`` (sorted by image) with columns similarity and negative_similarity, and the skipped images.

    Equal texts have equal similarities, whatever else is compared.
    """
    paths = dict(zip(steps["image"], steps["path"], strict=True))
    vectors, fault = encode_images(embedder, list(paths.values()))
    skipped: SkippedNames = {}
    evaluation.skip_unreadable(skipped, list(paths), fault)
    place = {name: number for number, (name, reason) in enumerate(zip(paths, fault, strict=True)) if not reason}
    steps = steps[steps["image"].isin(place)].reset_index(drop=True)
    negative = steps["negative"].notna().to_numpy()
    texts = embedder.texts([*steps["text"], *steps["negative"][negative]])
    images = vectors[steps["image"].map(place).to_numpy(int)]
    steps["similarity"] = np.einsum("nd,nd->n", images, texts[: len(steps)])
    steps["negative_similarity"] = np.nan
    steps.loc[negative, "negative_similarity"] = np.einsum("nd,nd->n", images[negative], texts[len(steps) :])
    return steps, skipped


def count_captions(steps: pd.DataFrame, texts: int = 1) -> int:
    return int((steps.groupby(["image", "caption_id"]).size() >= texts).sum())


def require_increments(steps: pd.DataFrame, where: str | Path, kind: str) -> None:
    fault = f"none of {count_captions(steps)} {kind} has more than one increment, as the measures require"
    require(count_captions(steps, 3), where, fault, "add captions with three texts or more")


def intrinsic(
    steps: pd.DataFrame, judges: Iterable[tuple[str, Embedder]], *, skipped: Mapping[str, list[str]] | None = None,
    resamples: int = 2000, seed: int = 0, where: str | Path = "captions",
) -> tuple[dict[str, Any], pd.DataFrame]:  # fmt: skip
    """Measure how often the similarity rises with a correct detail and falls with a wrong one (SPECS).

    Args:
        steps: captions of growing detail (STEP_COLUMNS), of ``read_steps``.
        judges: each judge's name and embedder; the first is compared with the others, paired over the same images.
            An iterator may load one judge after another.
        skipped: what of the data is skipped already.
        resamples: bootstrap resamples of images for the intervals.
        where: what messages call the data.

    Returns:
        The result (INTRINSIC_DEFINITION), and the similarities of each step by each judge.
    """
    require_increments(steps, where, "captions")
    log.info("%d images, %d captions, %d texts", steps["image"].nunique(), count_captions(steps), len(steps))
    left_out: SkippedNames = dict(skipped or {})
    results, captions, compared = [], [], []
    for name, embedder in judges:
        table, unseen = step_similarities(steps, embedder)
        left_out |= unseen
        require_increments(table, where, "readable captions")
        measured = score_captions(table)
        last = table.groupby(["image", "caption_id"])["text"].last()
        judge: dict[str, Any] = {"folder": name, **evaluation.judge_of(embedder)}
        judge["captions_cut"] = evaluation.count_truncated(embedder, last.tolist())
        means = measure_means(measured, resamples, seed)
        log.info("%s: %s", name, ", ".join(f"{key} {evaluation.show_estimate(mean)}" for key, mean in means.items()))
        results.append(judge | means)
        captions.append(measured)
        compared.append(table.drop(columns="path").assign(judge=name))
    gains = [
        {"a": results[0]["folder"], "b": other["folder"], "b_hash": other["judge_hash"],
         **measure_gains(captions[0], measured, resamples, seed)}
        for other, measured in zip(results[1:], captions[1:], strict=True)
    ]  # fmt: skip
    result = {
        "captions": count_captions(steps),
        "captions_with_one_increment_or_none": count_captions(compared[-1]) - len(captions[-1]),
        "left_out": evaluation.report_skipped(left_out, where),
        "judges": results,
        "differences": gains,
    }
    return result, pd.concat(compared, ignore_index=True)
