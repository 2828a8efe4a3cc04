"""The intrinsic measures of SPECS: whether the similarity rises with correct details and falls with
wrong ones.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from compclip.clip.embed import Embedder
from compclip.clip.tokens import cut_texts
from compclip.core.errors import require
from compclip.core.log import log
from compclip.core.records import read_records
from compclip.core.seeds import rng
from compclip.dataset.source import named
from compclip.specs.config import INTRINSIC_MEASURES
from compclip.specs.evaluation import NO_FILE, embed_readable, mean_over_images, show_estimate

INTRINSIC_DEFINITION = """Over captions with more than one increment, the mean of each caption's share. pos: of its
increments, those at which the similarity rises; neg: of its negatives, those that the true text beats; increment_rate:
(pos + 1 - the share of its negatives that beat the true text) / 2. A tie is neither a rise nor a win of either side."""  # noqa: E501

SkippedNames = dict[str, list[str]]  # names of skipped entries, by reason
STEP_COLUMNS = ["image", "path", "caption_id", "step", "text", "negative"]


def score_captions(steps: pd.DataFrame) -> pd.DataFrame:
    """Return a row per caption with more than one increment: image, caption_id, increments and the
    three measures.

    ``steps`` has the columns image, caption_id, similarity and negative_similarity (NaN if there is
    none), shortest text first. Without any negative, neg and increment_rate are NaN.
    """
    grouped = steps.groupby(["image", "caption_id"], sort=False)
    negative, against = steps["negative_similarity"], steps["negative_similarity"].notna()
    facts = steps[["image", "caption_id"]].assign(
        increments=grouped.cumcount() > 0,
        rises=grouped["similarity"].diff() > 0,
        against=against,
        won=against & (steps["similarity"] > negative),
        lost=negative > steps["similarity"],
    )
    table = facts.groupby(["image", "caption_id"], sort=False, as_index=False).sum()
    table["pos"] = table["rises"] / table["increments"]
    table["neg"] = table["won"] / table["against"]
    table["increment_rate"] = (table["pos"] + 1 - table["lost"] / table["against"]) / 2
    measured = table[["image", "caption_id", "increments", *INTRINSIC_MEASURES]]
    return measured[measured["increments"] > 1].reset_index(drop=True)


def measure_means(captions: pd.DataFrame, seed: int, *, paired: bool = False) -> dict[str, dict]:
    """Return each measure's mean over captions (``score_captions``), with its interval over
    images.
    """
    means = {}
    for measure in INTRINSIC_MEASURES:
        known = captions.dropna(subset=measure)
        values, images = known[measure].to_numpy(float), known["image"].to_numpy()
        means[measure] = mean_over_images(
            values, images, rng(seed, "intrinsic", measure), paired=paired
        )
    return means


def measure_gains(a: pd.DataFrame, b: pd.DataFrame, seed: int) -> dict[str, dict]:
    """Return each measure of ``a`` minus that of ``b`` (``score_captions`` of two judges), over
    common captions.

    The differences are paired: both judges see the same resampled images.
    """
    both = a.merge(b, on=["image", "caption_id"], suffixes=("_a", "_b"))
    gains = both[["image"]].assign(
        **{m: both[f"{m}_a"] - both[f"{m}_b"] for m in INTRINSIC_MEASURES}
    )
    return measure_means(gains, seed, paired=True)


def read_steps(path: Path, images: Path) -> tuple[pd.DataFrame, SkippedNames]:
    """Return the sorted steps (STEP_COLUMNS) of a table, and the captions that were skipped for an
    empty text.

    The table has the columns image (a file of folder ``images``), caption_id, step (a number), text
    and, optionally, negative: the text with its newest part replaced by a wrong one.
    """
    table, bad = read_records(path, ["image", "caption_id", "step", "text"], ["negative"])
    table["negative"] = table.get("negative")
    table["step"] = pd.to_numeric(table["step"], errors="coerce")
    texts = table[["image", "caption_id", "text", "negative"]].fillna("")
    absent = texts.map(str.strip) == ""
    faults = {
        "no image": absent["image"],
        "no caption_id": absent["caption_id"],
        "step: expected a number": table["step"].isna(),
        "duplicate step of its caption": table.duplicated(["image", "caption_id", "step"]),
    }
    bad += [f"{where}: {fault}" for fault, rows in faults.items() for where in table["where"][rows]]
    require(not bad, path, bad[0] if bad else "", f"correct this row ({len(bad)} rows are wrong)")
    for column in ("text", "negative"):
        table[column] = table[column].mask(absent[column], None)
    caption = table["image"] + " " + table["caption_id"]
    empty = caption.isin(caption[table["text"].isna()])
    table["path"] = [images / name for name in table["image"]]
    steps = table.loc[~empty, STEP_COLUMNS].sort_values(
        ["image", "caption_id", "step"], ignore_index=True
    )
    return steps, {"captions empty": sorted(set(caption[empty]))}


def step_similarities(steps: pd.DataFrame, embedder: Embedder) -> tuple[pd.DataFrame, SkippedNames]:
    """Return ``steps`` (sorted by image) with columns similarity and negative_similarity, and the
    skipped images.

    Equal texts have equal similarities, regardless of the other texts.
    """
    vectors, faults = embed_readable(embedder, steps["path"].tolist())
    readable, reasons = (
        faults == "",
        np.where(faults == NO_FILE, "images missing", "images unreadable"),
    )
    fault = f"none of {steps['image'].nunique()} images can be read"
    require(readable.any(), fault, f"{steps['path'].iloc[0]}: {faults[0]}")
    by_reason = steps["image"][~readable].groupby(reasons[~readable], sort=False)
    skipped = {str(reason): names.unique().tolist() for reason, names in by_reason}
    steps, images = steps[readable].reset_index(drop=True), vectors[readable]
    negative = steps["negative"].notna().to_numpy()
    texts = embedder.texts([*steps["text"], *steps["negative"][negative]])
    steps["similarity"] = np.einsum("nd,nd->n", images, texts[: len(steps)])
    steps["negative_similarity"] = np.nan
    steps.loc[negative, "negative_similarity"] = np.einsum(
        "nd,nd->n", images[negative], texts[len(steps) :]
    )
    return steps, skipped


def count_captions(steps: pd.DataFrame, texts: int = 1) -> int:
    return int((steps.groupby(["image", "caption_id"]).size() >= texts).sum())


def require_increments(steps: pd.DataFrame, where: str | Path, kind: str) -> None:
    fault = (
        f"none of {count_captions(steps)} {kind} has more than one increment, as the measures "
        "require"
    )
    require(count_captions(steps, 3), where, fault, "add captions with three texts or more")


def intrinsic(
    steps: pd.DataFrame,
    judges: Iterable[tuple[str, Embedder]],
    *,
    skipped: Mapping[str, list[str]] | None = None,
    seed: int = 0,
    where: str | Path = "captions",
) -> tuple[dict[str, Any], pd.DataFrame]:
    """Measure how often the similarity rises with a correct detail and falls with a wrong one
    (SPECS).

    Args:
        steps: captions of growing detail (STEP_COLUMNS), as ``read_steps`` returns them.
        judges: each judge's name and embedder; the first is compared with the others, paired over
            the same images. An iterator may load one judge after another.
        skipped: entries that were skipped already.
        where: name of the data in messages.

    Returns:
        The result (INTRINSIC_DEFINITION), and the similarities of each step by each judge.
    """
    require_increments(steps, where, "captions")
    log.info(
        "%d images, %d captions, %d texts",
        steps["image"].nunique(),
        count_captions(steps),
        len(steps),
    )
    left_out: SkippedNames = dict(skipped or {})
    results, captions, compared = [], [], []
    for name, embedder in judges:
        table, unseen = step_similarities(steps, embedder)
        left_out |= unseen
        require_increments(table, where, "readable captions")
        measured = score_captions(table)
        last = table.groupby(["image", "caption_id"])["text"].last()
        judge = {"folder": name, "judge": embedder.judge.name, "judge_hash": embedder.judge.hash}
        truncated = last.isin(cut_texts(embedder.judge.tokenizer, last.tolist()))
        means = measure_means(measured, seed)
        log.info(
            "%s: %s", name, ", ".join(f"{key} {show_estimate(mean)}" for key, mean in means.items())
        )
        results.append({**judge, "captions_cut": int(truncated.sum()), **means})
        captions.append(measured)
        compared.append(table.drop(columns="path").assign(judge=name))
    gains = [
        {
            "a": results[0]["folder"],
            "b": other["folder"],
            "b_hash": other["judge_hash"],
            **measure_gains(captions[0], measured, seed),
        }
        for other, measured in zip(results[1:], captions[1:], strict=True)
    ]
    for reason, names in left_out.items():
        if names:
            log.warning(
                "warning: %s: skipped: %s: %d, first %s", where, reason, len(names), names[0]
            )
    result = {
        "captions": count_captions(steps),
        "captions_with_one_increment_or_none": count_captions(compared[-1]) - len(captions[-1]),
        "left_out": {reason: named(names) for reason, names in left_out.items() if names},
        "judges": results,
        "differences": gains,
    }
    return result, pd.concat(compared, ignore_index=True)
