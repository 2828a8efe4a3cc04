"""Encode each distinct image and each distinct caption once, and keep what was encoded between runs."""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pandas as pd
import torch

from workflow_scripts.core import cli
from workflow_scripts.core.cache import Cache, key
from workflow_scripts.core.cli import log
from workflow_scripts.core.code import code_hash

Box = tuple[float, float, float, float]
Item = tuple[Path, Box | None]

# Batches encoded between two writes to the cache: what a killed run may lose.
BATCHES_HELD = 16
# Embeddings held as float64 at once.
ROWS_HELD = 1 << 14


class Encoder(Protocol):
    """What a judge must offer (``judge/model.py``): rows of unit length, float32, that depend on ``batch`` alone."""

    name: str
    hash: str
    device: Any
    tokenizer: Any

    def encode_images(self, items: Sequence[Item], batch: int) -> np.ndarray: ...
    def encode_texts(self, texts: Sequence[str], batch: int) -> np.ndarray: ...


class Embedder:
    """A judge's embeddings of images and captions, from the cache where it has them.

    made: what else decides the bytes of an embedding: batch, threads, device, versions.
    """

    def __init__(self, judge: Encoder, cache: Cache, batch: int, made: str) -> None:
        self.judge, self.cache, self.batch, self.made = judge, cache, batch, made

    def images(self, items: Sequence[Item]) -> np.ndarray:
        """(n, d) for files and their boxes; equal bytes under an equal box are one image."""
        digests = {path: file_digest(path) for path in dict.fromkeys(path for path, _ in items)}
        keys = [key("image", self.made, self.judge.hash, digests[path], repr(box)) for path, box in items]
        return self._rows("images", keys, lambda rows: self.judge.encode_images([items[i] for i in rows], self.batch))

    def texts(self, texts: Sequence[str]) -> np.ndarray:
        """(n, d) for captions."""
        keys = [key("caption", self.made, self.judge.hash, text) for text in texts]
        return self._rows("captions", keys, lambda rows: self.judge.encode_texts([texts[i] for i in rows], self.batch))

    def _rows(self, unit: str, keys: list[bytes], encode: Callable[[list[int]], np.ndarray]) -> np.ndarray:
        first: dict[bytes, int] = {}
        for row, name in enumerate(keys):
            first.setdefault(name, row)
        names, held = list(first), BATCHES_HELD * self.batch
        # A million embeddings are two gigabytes: each is held once, in its place.
        result = np.zeros((0, 1), np.float32)
        absent: list[int] = []
        for start in range(0, len(names), held):
            found = self.cache.get(names[start : start + held])
            for place, name in enumerate(names[start : start + held], start):
                if name in found:
                    vector = np.frombuffer(found[name], np.float32)
                    result = result if len(result) else np.empty((len(names), len(vector)), np.float32)
                    result[place] = vector
                else:
                    absent.append(place)
        log.info("%s: %d distinct, %d of them to be encoded", unit, len(names), len(absent))
        for start in range(0, len(absent), held):
            places = absent[start : start + held]
            vectors = np.ascontiguousarray(encode([first[names[place]] for place in places]), np.float32)
            self.cache.put((names[place], vector.tobytes()) for place, vector in zip(places, vectors, strict=True))
            result = result if len(result) else np.empty((len(names), vectors.shape[1]), np.float32)
            result[places] = vectors
        if len(names) == len(keys):
            return result
        number = {name: place for place, name in enumerate(names)}
        return result[[number[name] for name in keys]]


@contextmanager
def open_embedder(options: argparse.Namespace) -> Iterator[Embedder]:
    """The embedder that a step's options name (``add_arguments``), its cache open."""
    # Here, not above: a model is slow to import, and all else here works with any encoder.
    from workflow_scripts.clip.model import load_judge

    judge = load_judge(options.judge, options.threads, options.device)
    code = code_hash("workflow_scripts.clip.model")
    made = f"{options.batch} {options.threads} {judge.device} {torch.__version__} {code}"
    with Cache(options.cache / "embeddings" / f"{judge.hash}.sqlite") as cache:
        yield Embedder(judge, cache, options.batch, made)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options that encoding by a judge has."""
    parser.add_argument("--judge", type=Path, required=True, help="folder of the judge")
    parser.add_argument("--cache", type=Path, default=Path(".cache"), help="folder that keeps embeddings between runs")
    parser.add_argument(
        "--batch", type=cli.positive, default=256, help="items encoded at once; other numbers, other last bits"
    )
    parser.add_argument("--threads", type=cli.positive, default=2, help="another number, other last bits")
    parser.add_argument("--device", default="auto", choices=("auto", "cpu", "cuda"))


def file_digest(path: Path) -> bytes:
    """16 bytes over a file's content."""
    # Without a buffer, which takes as long to make as a small image to read.
    with open(path, "rb", buffering=0) as file:
        return hashlib.blake2b(file.read(), digest_size=16).digest()


def items_of(paths: Sequence[str], images: pd.DataFrame, results: Path) -> list[Item]:
    """Files and boxes of manifest paths. The real images alone have boxes, by their path in ``images``."""
    boxed = images[images["path"].notna() & images["bbox_x"].notna()]
    boxes = {
        path: (float(x), float(y), float(w), float(h))
        for path, x, y, w, h in boxed[["path", "bbox_x", "bbox_y", "bbox_w", "bbox_h"]].itertuples(index=False)
    }
    return [(results / path, boxes.get(path)) for path in paths]


def merge_equal(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """``(distinct rows, index of each row among them)``.

    Captions that a judge reads alike (by case, by truncation) must tie, whatever a matrix product does to the
    last bits of its columns.
    """
    first: dict[bytes, int] = {}
    index = np.array([first.setdefault(row.tobytes(), len(first)) for row in np.ascontiguousarray(vectors)], int)
    _, rows = np.unique(index, return_index=True)
    return vectors[rows], index


def similarities(images: np.ndarray, texts: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Cosines of rows of ``images`` (n, d) with all of ``texts`` (k, d), both of unit length, by torch.

    torch keeps to the number of threads that it was given, and so to the same bytes.
    """
    columns = torch.from_numpy(np.ascontiguousarray(texts)).T
    return lambda rows: (torch.from_numpy(images[rows]) @ columns).numpy()


def mean_embedding(images: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """(d,) the mean of the ``images`` (n, d) chosen by ``rows`` (n,), of unit length: what the blind control sees."""
    total = np.zeros((1, images.shape[1]))
    # Row after row, as one sum over all would; that one in float64 needs twice the images' memory.
    for start in range(0, len(images), ROWS_HELD):
        part = images[start : start + ROWS_HELD][rows[start : start + ROWS_HELD]]
        total = np.concatenate([total, part]).sum(axis=0, keepdims=True)
    mean = total[0] / np.count_nonzero(rows)
    return (mean / max(float(np.linalg.norm(mean)), 1e-12)).astype(np.float32)
