"""What all evaluations of a judge share: images that cannot be read, and how results are written."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from compclip.clip.embed import Embedder, InvalidEmbedding
from compclip.clip.tokens import cut_texts
from compclip.core.cli import Command
from compclip.core.errors import require
from compclip.core.log import log
from compclip.core.pictures import BrokenImage, image_size
from compclip.core.section import CacheFolder, Seed, Threads
from compclip.dataset.source import named
from compclip.plot import labels
from compclip.score.scores import rounded
from compclip.specs.config import Resamples
from compclip.stats import interval

SkippedNames = dict[str, list[str]]  # from a reason to the names of what was skipped
IMAGES_MISSING, IMAGES_UNREADABLE, CAPTIONS_EMPTY = "images missing", "images unreadable", "captions empty"
NO_FILE = "no such image file"

Device = Annotated[Literal["auto", "cpu", "cuda"], Field("auto", description="auto: a GPU if there is one")]


class Evaluation(Command):
    """The base of the evaluations of a judge that are run by hand."""

    judge: Path = Field(description="folder of the judge")
    bootstrap: Resamples
    seed: Seed
    batch: int = Field(256, ge=1, description="items encoded at once; changes floating-point rounding")
    threads: Threads
    device: Device
    cache: CacheFolder
    output: Path = Field(description="the result (JSON)")


def embed_readable(embedder: Embedder, paths: Sequence[Path]) -> tuple[np.ndarray, np.ndarray]:
    """Return embeddings (n, d) of files, zero for a faulty one, and what is wrong with each (n,), ``""`` if nothing."""
    distinct = dict.fromkeys(paths)
    # os.path, because Path.is_file fails if a name is too long, for example a caption.
    faults = {path: NO_FILE for path in distinct if not os.path.isfile(path)}

    def embed() -> dict[Path, np.ndarray]:
        files = [path for path in distinct if path not in faults]
        return dict(zip(files, embedder.images([(path, None) for path in files]), strict=True))

    try:
        vectors = embed()
    except InvalidEmbedding:
        raise
    except Exception:
        # One bad file stops its batch; only then is each file decoded.
        broken = {path: fault for path in distinct if path not in faults and (fault := _fault(path))}
        if not broken:
            raise
        faults |= broken
        vectors = embed()
    zero = np.zeros_like(next(iter(vectors.values()), np.zeros(1, np.float32)))
    rows = [vectors.get(path, zero) for path in paths]
    return np.array(rows).reshape(len(paths), len(zero)), np.array([faults.get(path, "") for path in paths], object)


def _fault(path: Path) -> str:
    try:
        image_size(path)
    except (BrokenImage, OSError) as error:
        return f"unreadable image: {error.strerror if isinstance(error, OSError) else error}"
    return ""


def encode_images(embedder: Embedder, paths: Sequence[Path]) -> tuple[np.ndarray, np.ndarray]:
    """Return the result of ``embed_readable``; raises UserError if no image can be read."""
    vectors, fault = embed_readable(embedder, paths)
    first = f"{paths[0]}: {fault[0]}" if len(paths) else "there are none"
    require((fault == "").any(), f"none of {len(paths)} images can be read", first)
    return vectors, fault


def skip_unreadable(skipped: SkippedNames, names: Sequence[str], fault: np.ndarray) -> None:
    """Add the distinct names of images with a fault to ``skipped``, by the kind of fault."""
    for name, reason in dict(zip(names, fault, strict=True)).items():
        if reason:
            skipped.setdefault(IMAGES_MISSING if reason == NO_FILE else IMAGES_UNREADABLE, []).append(name)


def mean_over_images(
    values: np.ndarray, images: np.ndarray, resamples: int, generator: np.random.Generator, *, paired: bool = False
) -> dict[str, float | int | None]:
    """Return the mean of ``values`` (n,), with a 95 % interval over images, as in a result.

    ``paired``: the values are differences, not hits, so that 0 and 1 are values like others.
    """
    ends: dict[str, float | None] = dict.fromkeys(("value", "low", "high"))
    if len(values):
        estimator = interval.mean if paired else interval.share
        mean = estimator(images, values, np.ones(len(values)), resamples, generator)
        ends = {end: rounded(getattr(mean, end)) for end in ends}
    return {**ends, "n": len(values), "images": len(np.unique(np.asarray(images, dtype=str)))}


def result_head(data: Path, definition: str, resamples: int, seed: int) -> dict[str, Any]:
    """Return what every result begins with."""
    about = {"data": data.resolve().name, "definition": " ".join(definition.split()), "level": interval.LEVEL}
    return about | {"resamples": resamples, "seed": seed}


def judge_of(embedder: Embedder) -> dict[str, str]:
    return {"judge": embedder.judge.name, "judge_hash": embedder.judge.hash}


def count_truncated(embedder: Embedder, captions: Sequence[str]) -> int:
    truncated = cut_texts(embedder.judge.tokenizer, captions)
    return sum(caption in truncated for caption in captions)


def report_skipped(skipped: Mapping[str, Sequence[str]], data: str | Path) -> dict[str, Any]:
    """Log a warning for each reason; returns what the result says about them."""
    for reason, names in skipped.items():
        if names:
            log.warning("warning: %s: skipped: %s: %d, first %s", data, reason, len(names), names[0])
    return {reason: named(names) for reason, names in skipped.items() if names}


def is_absent(cells: pd.Series) -> pd.Series:
    return ~cells.fillna("").str.strip().astype(bool)


def show_estimate(estimate: Mapping[str, Any]) -> str:
    """Format an estimate for the log: ``61.2 [58.0, 64.1]``."""
    return f"{labels.percent(estimate['value'])} {labels.interval(estimate['low'], estimate['high'])}"
