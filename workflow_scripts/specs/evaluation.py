"""What every evaluation of a model shares: its options, images that cannot be read, and how results are written.

What is left out is a dict from a reason to the names of what it cost: counted, and the first ones named, in the log
and in the result.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from workflow_scripts.clip import embed
from workflow_scripts.clip.embed import Embedder
from workflow_scripts.clip.tokens import cut_texts
from workflow_scripts.core import cli
from workflow_scripts.core.cli import log
from workflow_scripts.core.errors import UserError
from workflow_scripts.dataset.source import named
from workflow_scripts.score.scores import rounded
from workflow_scripts.specs.score import embed_images
from workflow_scripts.stats import interval

LeftOut = dict[str, list[str]]

MISSING, UNREADABLE, EMPTY = "images missing", "images unreadable", "captions empty"


def add_arguments(parser: argparse.ArgumentParser, data: str) -> None:
    """The options of an evaluation; ``data`` says what ``--data`` may be."""
    parser.add_argument("--data", type=Path, required=True, help=data)
    parser.add_argument("--bootstrap", type=cli.resamples, default=2000, help="resamples of the intervals")
    parser.add_argument("--seed", type=int, default=0, help="of the intervals")
    parser.add_argument("--output", type=Path, required=True, help="the result, JSON")
    embed.add_arguments(parser)


def encode_images(embedder: Embedder, paths: Sequence[Path]) -> tuple[np.ndarray, np.ndarray]:
    """Embeddings (n, d) of image files, and for each its fault (n,): ``""``, MISSING or UNREADABLE.

    An image with a fault has zeros for its embedding. Raises UserError where none is left.
    """
    found, faults = embed_images(embedder, list(dict.fromkeys(paths)))
    if not found:
        first = f"{paths[0]}: {faults[paths[0]]}" if paths else "none are there"
        raise UserError(f"none of {len(paths)} images can be read: {first}")
    blank = np.zeros_like(next(iter(found.values())))
    fault = np.array(["" if path in found else fault_of(path) for path in paths], dtype=object)
    return np.stack([found.get(path, blank) for path in paths]), fault


def fault_of(path: Path) -> str:
    """Why an image could not be read, as a reason to leave it out."""
    # Not Path.is_file, which fails at a name that is too long.
    return UNREADABLE if os.path.isfile(path) else MISSING


def count_cut(embedder: Embedder, captions: Sequence[str]) -> int:
    """How many of ``captions`` are longer than the model reads; the end token is kept."""
    shortened = cut_texts(embedder.judge.tokenizer, captions)
    return sum(caption in shortened for caption in captions)


def estimate(
    values: np.ndarray,
    images: np.ndarray,
    resamples: int,
    generator: np.random.Generator,
    of: Callable[..., interval.Estimate] = interval.share,
) -> dict[str, float | int | None]:
    """The share of ``values`` (n,), or what ``of`` takes, with a 95 % interval over images, as a result says it."""
    found = interval.Estimate(np.nan, None, None)
    if len(values):
        found = of(images, values, np.ones(len(values)), resamples, generator)
    return {
        "value": rounded(found.value) if len(values) else None,
        "low": rounded(found.low),
        "high": rounded(found.high),
        "n": len(values),
        "images": len(np.unique(np.asarray(images, dtype=str))),
    }


def head(options: argparse.Namespace, definition: str) -> dict[str, Any]:
    """What a result says first."""
    return {
        "data": options.data.resolve().name,
        "definition": " ".join(definition.split()),
        "level": interval.LEVEL,
        "resamples": options.bootstrap,
        "seed": options.seed,
    }


def judge_of(embedder: Embedder) -> dict[str, str]:
    return {"judge": embedder.judge.name, "judge_hash": embedder.judge.hash}


def say_left_out(left_out: Mapping[str, Sequence[str]], where: Path) -> dict[str, Any]:
    """Warn of what was left out, a line a reason; the same for a result."""
    for reason, names in left_out.items():
        if names:
            log.warning("warning: %s: %s: %d, the first is %s", where, reason, len(names), names[0])
    return {reason: named(names) for reason, names in left_out.items() if names}


def absent(cells: pd.Series) -> pd.Series:
    """Where a column of ``records.read_records`` has no text."""
    return ~cells.fillna("").str.strip().astype(bool)


def percent(found: Mapping[str, Any]) -> str:
    """An estimate as a reader sees it: ``61.2 % [58.0, 64.1]``."""
    if found["value"] is None:
        return "none"
    ends = "" if found["low"] is None else f" [{100 * found['low']:.1f}, {100 * found['high']:.1f}]"
    return f"{100 * found['value']:.1f} %{ends}"


def find_image(name: str, folder: Path) -> Path:
    """The file of an image's name: as it is or below ``folder``, else its last part in ``folder`` itself."""
    path = folder / name
    beside = folder / path.name
    return beside if not os.path.isfile(path) and os.path.isfile(beside) else path
