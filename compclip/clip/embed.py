"""Encode each distinct image and caption once, and keep the embeddings between runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from compclip.core.cache import Cache, key
from compclip.core.code import code_hash
from compclip.core.digests import sha256
from compclip.core.errors import UserError
from compclip.core.log import log

if TYPE_CHECKING:
    import pandas as pd

BoxedFile = tuple[
    Path, tuple[float, float, float, float] | None
]  # an image's file and its bounding box

BATCHES_HELD = 16  # encoded between two writes to the cache, which a killed run may lose
LENGTH_TOLERANCE = 1e-3  # of an embedding's length of 1
CAPTION_SHOWN = 80  # characters of a caption in an error


def encoding_code() -> str:
    """Return the identity of the code, outside the judge, that determines an embedding."""
    return code_hash("compclip.clip.model", within=("compclip.clip",))


class InvalidEmbedding(UserError):
    """An embedding from which no score can be computed."""


def check_embeddings(
    vectors: np.ndarray, judge: str, item: Callable[[int], str], unit: bool = True
) -> None:
    """Raise InvalidEmbedding unless all ``vectors`` (n, d) are finite and, with ``unit``, of length
    1.

    Comparisons with NaN are false, so a NaN would count as a distractor that never wins.

    Args:
        judge: its name in the error.
        item: returns the name of a row's image or caption.
    """
    finite = np.isfinite(vectors).all(axis=1)
    lengths = np.sqrt(np.einsum("nd,nd->n", vectors, vectors))
    bad = np.flatnonzero(~(finite & (np.abs(lengths - 1) <= LENGTH_TOLERANCE) if unit else finite))
    if len(bad):
        row = int(bad[0])
        fault = (
            f"has length {lengths[row]:.3g} instead of 1" if finite[row] else "is NaN or infinite"
        )
        others = f" ({len(bad) - 1} more like this)" if len(bad) > 1 else ""
        raise InvalidEmbedding(
            f"{item(row)}: its embedding by judge {judge} {fault}{others}; use another judge"
        )


@runtime_checkable
class Encoder(Protocol):
    """The interface of a judge (``clip.model.Judge``): float32 rows of unit length, which depend
    only on ``batch``.
    """

    name: str
    hash: str
    device: Any
    tokenizer: Any
    preprocess: Any

    def encode_images(self, items: Sequence[BoxedFile], batch: int, *others: Any) -> np.ndarray: ...
    def encode_texts(self, texts: Sequence[str], batch: int) -> np.ndarray: ...


class Embedder:
    """A judge's embeddings of images and captions, checked and cached; ``made``: what else
    determines their bytes.
    """

    def __init__(self, judge: Encoder, cache: Cache, batch: int, made: str) -> None:
        self.judge, self.cache, self.batch, self.made = judge, cache, batch, made
        self.others: list[Embedder] = []  # which encode the images that this one reads, too

    def images(
        self, items: Sequence[BoxedFile], known: Mapping[str, str] | None = None
    ) -> np.ndarray:
        """Return (n, d) for files and their boxes; files with equal bytes and boxes are one image.

        ``known``: the digests of files that have been checked already, by path.
        """
        digests = {
            path: (known or {}).get(str(path)) or sha256(path)
            for path in {path for path, _ in items}
        }

        def names(of: Embedder, of_items: Sequence[BoxedFile]) -> list[bytes]:
            return [
                key("image", of.made, of.judge.hash, digests[path], repr(box))
                for path, box in of_items
            ]

        def encode(rows: list[int]) -> np.ndarray:
            chosen = [items[row] for row in rows]
            vectors = self.judge.encode_images(
                chosen, self.batch, *(of.judge for of in self.others)
            )
            changed = [path for path, _ in chosen if sha256(path) != digests[path]]
            if changed:
                raise UserError(
                    f"{changed[0]}: changed while it was read; wait until it is complete and run "
                    "again"
                )
            own, *theirs = np.split(vectors, 1 + len(self.others), axis=1)
            for of, made in zip(self.others, theirs, strict=True):
                of.cache.put(
                    (name, row.tobytes()) for name, row in zip(names(of, chosen), made, strict=True)
                )
            return own

        return self._rows("images", names(self, items), encode, lambda row: str(items[row][0]))

    def files(self, paths: Sequence[str | Path]) -> np.ndarray:
        return self.images([(Path(path), None) for path in paths])

    def texts(self, texts: Sequence[str]) -> np.ndarray:
        return self._rows(
            "captions",
            [key("caption", self.made, self.judge.hash, text) for text in texts],
            lambda rows: self.judge.encode_texts([texts[i] for i in rows], self.batch),
            lambda row: f"caption {texts[row][:CAPTION_SHOWN]!r}",
        )

    def _rows(
        self,
        unit: str,
        keys: list[bytes],
        encode: Callable[[list[int]], np.ndarray],
        item: Callable[[int], str],
    ) -> np.ndarray:
        def check(vectors: np.ndarray, rows: Sequence[int]) -> None:
            check_embeddings(
                vectors, f"{self.judge.name} ({self.judge.hash})", lambda row: item(rows[row])
            )

        first: dict[bytes, int] = {}
        for row, name in enumerate(keys):
            first.setdefault(name, row)
        vectors = {
            name: np.frombuffer(value, np.float32)
            for name, value in self.cache.get(list(first)).items()
        }
        if len(widths := {vector.size for vector in vectors.values()}) > 1:
            fault = f"embeddings of {' and '.join(map(str, sorted(widths)))} numbers by one judge"
            raise InvalidEmbedding(f"{self.cache.path}: {fault}; delete this file")
        if vectors:
            check(np.stack(list(vectors.values())), [first[name] for name in vectors])
        missing = [name for name in first if name not in vectors]
        log.info("%s: %d distinct, %d to encode", unit, len(first), len(missing))
        held = BATCHES_HELD * self.batch
        for names in (missing[start : start + held] for start in range(0, len(missing), held)):
            made = np.ascontiguousarray(encode([first[name] for name in names]), np.float32)
            check(made, [first[name] for name in names])
            self.cache.put(
                (name, vector.tobytes()) for name, vector in zip(names, made, strict=True)
            )
            vectors |= zip(names, made, strict=True)
        return np.stack([vectors[name] for name in keys]) if keys else np.zeros((0, 1), np.float32)


@contextmanager
def open_embedder(
    folder: Path, batch: int, threads: int, device: str, cache: Path
) -> Iterator[Embedder]:
    """Open the embedder by the judge in ``folder``, with its embeddings in ``cache``; torch is
    settled meanwhile.
    """
    import torch  # slow to import, and the rest of this module works with any encoder

    from compclip.clip.device import settled
    from compclip.clip.model import load_judge

    judge = load_judge(folder, threads, device)
    made = f"{batch} {threads} {judge.device} {torch.__version__} {encoding_code()}"
    with settled(threads), Cache(cache / "embeddings" / f"{judge.hash}.sqlite") as opened:
        yield Embedder(judge, opened, batch, made)


@contextmanager
def open_embedders(folders: Sequence[Path], *settings: Any) -> Iterator[list[Embedder]]:
    """Open several embedders with these ``settings``; an image is read once for all judges that see
    the same pixels.
    """
    with ExitStack() as stack:
        opened = [stack.enter_context(open_embedder(folder, *settings)) for folder in folders]
        seen = [(of.judge.name, of.judge.preprocess.cfg, of.judge.preprocess.crop) for of in opened]
        for number, embedder in enumerate(opened):
            embedder.others = [
                of for i, of in enumerate(opened) if i > number and seen[i] == seen[number]
            ]
        yield opened


def items_of(paths: Sequence[str], images: pd.DataFrame, results: Path) -> list[BoxedFile]:
    """Return files and boxes of manifest paths; only real images, those with a path in ``images``,
    have boxes.
    """
    boxed = images[images["path"].notna() & images["bbox_x"].notna()]
    corners = boxed[["bbox_x", "bbox_y", "bbox_w", "bbox_h"]].itertuples(index=False, name=None)
    boxes = dict(zip(boxed["path"], corners, strict=True))
    return [(results / path, boxes.get(path)) for path in paths]


def merge_equal(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct rows, and the index of each row among them.

    So captions with equal embeddings tie, however a matrix product rounds its columns.
    """
    first: dict[bytes, int] = {}
    index = np.array(
        [first.setdefault(row.tobytes(), len(first)) for row in np.ascontiguousarray(vectors)], int
    )
    _, rows = np.unique(index, return_index=True)
    return vectors[rows], index


def similarities(images: np.ndarray, texts: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Return the function from rows of ``images`` (n, d) to their cosines with ``texts`` (k, d),
    all of unit length.
    """
    import torch  # which respects its number of threads, so results are byte-identical

    columns = torch.from_numpy(np.ascontiguousarray(texts)).T
    return lambda rows: (torch.from_numpy(images[rows]) @ columns).numpy()


def mean_embedding(images: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the mean (d,), scaled to unit length, of ``rows`` (n,) of ``images`` (n, d), for the
    blind control.
    """
    mean = images[rows].sum(axis=0, dtype=np.float64) / np.count_nonzero(rows)
    return (mean / max(float(np.linalg.norm(mean)), 1e-12)).astype(np.float32)
