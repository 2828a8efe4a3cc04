"""What all evaluations of a judge share: images that cannot be read, and how results are written."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from workflow_scripts.clip.embed import Embedder
from workflow_scripts.clip.tokens import cut_texts
from workflow_scripts.core.cli import log
from workflow_scripts.core.errors import UserError
from workflow_scripts.dataset.source import named
from workflow_scripts.score.scores import rounded
from workflow_scripts.specs.score import embed_images
from workflow_scripts.specs.steps import Evaluation
from workflow_scripts.stats import interval

Skipped = dict[str, list[str]]  # from a reason to the names of what was skipped
MISSING, UNREADABLE, EMPTY = "images missing", "images unreadable", "captions empty"


def encode_images(embedder: Embedder, paths: Sequence[Path]) -> tuple[np.ndarray, np.ndarray]:
    """Return embeddings (n, d) of files, zero for a fault, and each fault (n,): ``""``, MISSING or UNREADABLE."""
    vectors, faults = embed_images(embedder, list(dict.fromkeys(paths)))
    if not vectors:
        first = f"{paths[0]}: {faults[paths[0]]}" if paths else "there are none"
        raise UserError(f"none of {len(paths)} images can be read: {first}")
    zero = np.zeros_like(next(iter(vectors.values())))
    fault = np.array(["" if path in vectors else fault_of(path) for path in paths], dtype=object)
    return np.stack([vectors.get(path, zero) for path in paths]), fault


def fault_of(path: Path) -> str:
    # os.path, because Path.is_file fails if a name is too long.
    return UNREADABLE if os.path.isfile(path) else MISSING


def count_truncated(embedder: Embedder, captions: Sequence[str]) -> int:
    truncated = cut_texts(embedder.judge.tokenizer, captions)
    return sum(caption in truncated for caption in captions)


def estimate(
    values: np.ndarray,
    images: np.ndarray,
    resamples: int,
    generator: np.random.Generator,
    of: Callable[..., interval.Estimate] = interval.share,
) -> dict[str, float | int | None]:
    """Return the mean of ``values`` (n,) by estimator ``of``, with a 95 % interval over images, as in a result."""
    mean = interval.Estimate(np.nan, None, None)
    if len(values):
        mean = of(images, values, np.ones(len(values)), resamples, generator)
    return {
        "value": rounded(mean.value) if len(values) else None,
        "low": rounded(mean.low),
        "high": rounded(mean.high),
        "n": len(values),
        "images": len(np.unique(np.asarray(images, dtype=str))),
    }


def head(step: Evaluation, data: Path, definition: str) -> dict[str, Any]:
    return {
        "data": data.resolve().name,
        "definition": " ".join(definition.split()),
        "level": interval.LEVEL,
        "resamples": step.bootstrap,
        "seed": step.seed,
    }


def judge_of(embedder: Embedder) -> dict[str, str]:
    return {"judge": embedder.judge.name, "judge_hash": embedder.judge.hash}


def report_skipped(skipped: Mapping[str, Sequence[str]], data: Path) -> dict[str, Any]:
    """Log a warning for each reason; returns what the result says about them."""
    for reason, names in skipped.items():
        if names:
            log.warning("warning: %s: skipped: %s: %d, first %s", data, reason, len(names), names[0])
    return {reason: named(names) for reason, names in skipped.items() if names}


def is_absent(cells: pd.Series) -> pd.Series:
    return ~cells.fillna("").str.strip().astype(bool)


def percent(mean: Mapping[str, Any]) -> str:
    """Format an estimate for the log: ``61.2 % [58.0, 64.1]``."""
    if mean["value"] is None:
        return "none"
    ends = "" if mean["low"] is None else f" [{100 * mean['low']:.1f}, {100 * mean['high']:.1f}]"
    return f"{100 * mean['value']:.1f} %{ends}"


def find_image(name: str, folder: Path) -> Path:
    """Return the file of an image's name: the path below ``folder`` or, if only that exists, its last part there."""
    path = folder / name
    flat = folder / path.name
    return flat if not os.path.isfile(path) and os.path.isfile(flat) else path
