"""The intrinsic measures of SPECS: whether the similarity rises with correct details and falls with
wrong ones.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from compclip.clip.embed import Embedder
from compclip.clip.tokens import truncated_texts
from compclip.core.errors import require
from compclip.core.log import log
from compclip.core.reading.records import read_records
from compclip.core.seeds import rng
from compclip.dataset.source import named
from compclip.specs.config import INTRINSIC_MEASURES
from compclip.specs.evaluation import NO_FILE, embed_readable, mean_over_images, show_estimate

INTRINSIC_DEFINITION = (
    "Over captions with more than one increment, the mean of each caption's fraction. pos: of its "
    "increments, those at which the similarity rises; neg: of its negatives, those that the true "
    "text beats; increment_rate: (pos + 1 - the fraction of its negatives that beat the true text) "
    "/ 2. A tie is neither a rise nor a win of either side."
)

SkippedNames = dict[str, list[str]]  # names of skipped entries, by reason
CAPTION_KEYS = ["image", "caption_id"]
STEP_COLUMNS = ["image", "path", "caption_id", "step", "text", "negative"]


def score_captions(steps: pd.DataFrame) -> pd.DataFrame:
    """Return a row per caption with more than one increment: image, caption_id, increments and the
    three measures.

    ``steps`` has the columns image, caption_id, similarity and negative_similarity (NaN if there is
    none), shortest text first. Without any negative, neg and increment_rate are NaN.
    """
    similarity = steps["similarity"]
    negative_similarity = steps["negative_similarity"]
    grouped = steps.groupby(CAPTION_KEYS, sort=False)
    # Booleans, which the sum over a caption counts. A comparison with NaN is false.
    table = steps[CAPTION_KEYS].assign(
        increments=grouped.cumcount() > 0,
        rises=grouped["similarity"].diff() > 0,
        negatives=negative_similarity.notna(),
        won=similarity > negative_similarity,
        lost=negative_similarity > similarity,
    )
    table = table.groupby(CAPTION_KEYS, sort=False, as_index=False).sum()
    table["pos"] = table["rises"] / table["increments"]
    table["neg"] = table["won"] / table["negatives"]
    lost_fraction = table["lost"] / table["negatives"]
    table["increment_rate"] = (table["pos"] + 1 - lost_fraction) / 2
    table = table[[*CAPTION_KEYS, "increments", *INTRINSIC_MEASURES]]
    return table[table["increments"] > 1].reset_index(drop=True)


def measure_means(captions: pd.DataFrame, seed: int, *, paired: bool = False) -> dict[str, dict]:
    """Return each measure's mean over captions (``score_captions``), with its interval over
    images.
    """
    means = {}
    for measure in INTRINSIC_MEASURES:
        # Captions without negatives count only for pos.
        measured = captions.dropna(subset=measure)
        values = measured[measure].to_numpy(float)
        images = measured["image"].to_numpy()
        generator = rng(seed, "intrinsic", measure)
        means[measure] = mean_over_images(values, images, generator, paired=paired)
    return means


def measure_gains(a: pd.DataFrame, b: pd.DataFrame, seed: int) -> dict[str, dict]:
    """Return each measure of ``a`` minus that of ``b`` (``score_captions`` of two judges), over
    common captions.

    The differences are paired: both judges see the same resampled images.
    """
    common = a.merge(b, on=CAPTION_KEYS, suffixes=("_a", "_b"))
    gains = common[["image"]].copy()
    for measure in INTRINSIC_MEASURES:
        gains[measure] = common[f"{measure}_a"] - common[f"{measure}_b"]
    return measure_means(gains, seed, paired=True)


def read_steps(path: Path, images: Path) -> tuple[pd.DataFrame, SkippedNames]:
    """Return the sorted steps (STEP_COLUMNS) of a table, and the captions that were skipped for an
    empty text.

    The table has the columns image (a file of folder ``images``), caption_id, step (a number), text
    and, optionally, negative: the text with its newest part replaced by a wrong one.
    """
    table, bad = read_records(path, ["image", "caption_id", "step", "text"], ["negative"])
    table["negative"] = table.get("negative")  # None if the table lacks it
    # NaN for a text, which is a fault of its row below
    table["step"] = pd.to_numeric(table["step"], errors="coerce")
    texts = table[["image", "caption_id", "text", "negative"]].fillna("")
    is_blank = texts.map(str.strip) == ""
    faults = {
        "no image": is_blank["image"],
        "no caption_id": is_blank["caption_id"],
        "step: expected a number": table["step"].isna(),
        "duplicate step of its caption": table.duplicated([*CAPTION_KEYS, "step"]),
    }
    for fault, is_faulty in faults.items():
        bad += [f"{row}: {fault}" for row in table["where"][is_faulty]]
    require(not bad, path, bad[0] if bad else "", f"correct this row ({len(bad)} rows are wrong)")
    for column in ("text", "negative"):
        table[column] = table[column].mask(is_blank[column], None)
    captions = table["image"] + " " + table["caption_id"]
    # One empty text leaves a gap in the growth of its caption, so the whole caption is skipped.
    is_skipped = captions.isin(captions[table["text"].isna()])
    table["path"] = [images / name for name in table["image"]]
    steps = table.loc[~is_skipped, STEP_COLUMNS]
    steps = steps.sort_values([*CAPTION_KEYS, "step"], ignore_index=True)
    return steps, {"captions empty": sorted(set(captions[is_skipped]))}


def step_similarities(steps: pd.DataFrame, embedder: Embedder) -> tuple[pd.DataFrame, SkippedNames]:
    """Return ``steps`` (sorted by image) with columns similarity and negative_similarity, and the
    skipped images.

    Equal texts have equal similarities, regardless of the other texts.
    """
    vectors, faults = embed_readable(embedder, steps["path"].tolist())
    is_readable = faults == ""
    fault = f"none of {steps['image'].nunique()} images can be read"
    require(is_readable.any(), fault, f"{steps['path'].iloc[0]}: {faults[0]}")
    unread = steps["image"][~is_readable]
    reasons = np.where(faults == NO_FILE, "images missing", "images broken")[~is_readable]
    by_reason = unread.groupby(reasons, sort=False)
    skipped = {str(reason): names.unique().tolist() for reason, names in by_reason}
    steps = steps[is_readable].reset_index(drop=True)
    images = vectors[is_readable]
    has_negative = steps["negative"].notna().to_numpy()
    # One call for all texts, so that each distinct one is encoded once.
    vectors = embedder.texts([*steps["text"], *steps["negative"][has_negative]])
    texts, negatives = np.split(vectors, [len(steps)])
    # einsum sums each row on its own, so a similarity does not depend on the number of rows.
    steps["similarity"] = np.einsum("nd,nd->n", images, texts)
    steps["negative_similarity"] = np.nan
    negative_similarity = np.einsum("nd,nd->n", images[has_negative], negatives)
    steps.loc[has_negative, "negative_similarity"] = negative_similarity
    return steps, skipped


def count_captions(steps: pd.DataFrame, texts: int = 1) -> int:
    return int((steps.groupby(CAPTION_KEYS).size() >= texts).sum())


def require_increments(steps: pd.DataFrame, where: str | Path, kind: str) -> None:
    count = f"none of {count_captions(steps)} {kind}"
    fault = f"{count} has more than one increment, as the measures require"
    require(count_captions(steps, 3), where, fault, "add captions with three texts or more")


class JudgeEvaluation(NamedTuple):
    """What one judge contributes to the result."""

    result: dict[str, Any]  # its entry
    captions: pd.DataFrame  # its measures of each caption (``score_captions``)
    steps: pd.DataFrame  # its similarities of each step


def evaluate_judge(
    name: str, embedder: Embedder, steps: pd.DataFrame, seed: int
) -> JudgeEvaluation:
    """Measure one judge on steps with its similarities."""
    captions = score_captions(steps)
    means = measure_means(captions, seed)
    estimates = ", ".join(f"{measure} {show_estimate(mean)}" for measure, mean in means.items())
    log.info("%s: %s", name, estimates)
    judge = embedder.judge
    # Only the longest text of a caption counts as truncated.
    longest = steps.groupby(CAPTION_KEYS)["text"].last()
    is_truncated = longest.isin(truncated_texts(judge.tokenizer, longest.tolist()))
    result = {
        "folder": name,
        "judge": judge.name,
        "judge_hash": judge.hash,
        "captions_cut": int(is_truncated.sum()),
        **means,
    }
    # Results do not have paths, which depend on the machine.
    similarities = steps.drop(columns="path").assign(judge=name)
    return JudgeEvaluation(result, captions, similarities)


def compare_judges(first: JudgeEvaluation, second: JudgeEvaluation, seed: int) -> dict[str, Any]:
    """Return the entry of the result on the first judge's measures minus another's."""
    gains = measure_gains(first.captions, second.captions, seed)
    names = {"a": first.result["folder"], "b": second.result["folder"]}
    return {**names, "b_hash": second.result["judge_hash"], **gains}


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
    images = steps["image"].nunique()
    captions = count_captions(steps)
    log.info("%d images, %d captions, %d texts", images, captions, len(steps))
    names_by_reason: SkippedNames = dict(skipped or {})
    evaluations = []
    for name, embedder in judges:
        table, unread = step_similarities(steps, embedder)
        names_by_reason |= unread
        require_increments(table, where, "readable captions")
        evaluations.append(evaluate_judge(name, embedder, table, seed))
    names_by_reason = {reason: names for reason, names in names_by_reason.items() if names}
    for reason, names in names_by_reason.items():
        count = len(names)
        log.warning("warning: %s: skipped: %s: %d, first %s", where, reason, count, names[0])
    first, *compared = evaluations
    # All judges read the same captions, so any evaluation has the numbers.
    unmeasured = count_captions(first.steps) - len(first.captions)
    result = {
        "captions": captions,
        "captions_with_one_increment_or_none": unmeasured,
        "excluded": {reason: len(names) for reason, names in names_by_reason.items()},
        "excluded_names": {
            reason: named(names)["names"] for reason, names in names_by_reason.items()
        },
        "judges": [evaluation.result for evaluation in evaluations],
        "differences": [compare_judges(first, second, seed) for second in compared],
    }
    similarities = [evaluation.steps for evaluation in evaluations]
    return result, pd.concat(similarities, ignore_index=True)
