"""Encode each distinct image and caption once, and keep the embeddings between runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from compclip.core.errors import UserError
from compclip.core.identity.cache import key
from compclip.core.identity.code import code_hash
from compclip.core.identity.digests import has_changed, sha256
from compclip.core.identity.vector_cache import VectorCache
from compclip.core.log import log
from compclip.core.processes import map_in_processes

if TYPE_CHECKING:
    import pandas as pd

Box = tuple[float, float, float, float]
# An image's file and its bounding box.
BoxedFile = tuple[Path, Box | None]

BATCHES_HELD = 16  # encoded between two writes to the cache, which a killed run may lose
KEYS_KEPT = 1 << 17
LENGTH_TOLERANCE = 1e-3  # of an embedding's length of 1
CAPTION_SHOWN = 80  # characters of a caption in an error
# Pairs of an image and a text whose cosines are computed at once.
COMPARED_AT_ONCE = 1024


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
    valid = finite
    if unit:
        valid = finite & (np.abs(lengths - 1) <= LENGTH_TOLERANCE)
    invalid = np.flatnonzero(~valid)
    if len(invalid) == 0:
        return
    row = int(invalid[0])
    fault = "is NaN or infinite"
    if finite[row]:
        fault = f"has length {lengths[row]:.3g} instead of 1"
    if len(invalid) > 1:
        fault += f" ({len(invalid) - 1} more like this)"
    raise InvalidEmbedding(
        f"{item(row)}: its embedding by judge {judge} {fault}; use another judge"
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

    def encode_images(self, items: Sequence[BoxedFile], batch: int, *judges: Any) -> np.ndarray: ...
    def encode_texts(self, texts: Sequence[str], batch: int, *judges: Any) -> np.ndarray: ...


@dataclass
class Request:
    """Images or captions to embed."""

    unit: str
    keys: list[bytes]  # (n,) of the cache
    # from some of the n rows, and the other judges, to the columns of all judges
    encode: Callable[[list[int], Sequence[Encoder]], np.ndarray]
    item: Callable[[int], str]  # the name of a row


@dataclass
class Embedder:
    """A judge's embeddings of images and captions, checked and cached."""

    judge: Encoder
    cache: VectorCache  # of embeddings by this judge, in such batches
    batch: int
    # Embedders whose judges see the same pixels; this one fills their caches, too.
    with_same_pixels: list[Embedder] = field(default_factory=list)
    # The same for judges that also see the same tokens.
    with_same_tokens: list[Embedder] = field(default_factory=list)
    processes: int = 1  # that encode, forked

    def images(
        self, items: Sequence[BoxedFile], checked: Mapping[str, str] | None = None
    ) -> np.ndarray:
        """Return (n, d) for files and their boxes; files with equal bytes and boxes are one image.

        ``checked``: the digests of files that have been checked already, by path.
        """
        checked = checked or {}
        digest_of = cache(sha256)
        digests = [checked.get(str(path)) or digest_of(path) for path, _ in items]
        boxes = [box for _, box in items]
        names = list(map(_image_key, digests, boxes))

        def encode(rows: list[int], judges: Sequence[Encoder]) -> np.ndarray:
            chosen = [items[row] for row in rows]
            vectors = self.judge.encode_images(chosen, self.batch, *judges)
            # An embedding of other bytes would stay in the cache under the digest of these.
            for row in rows:
                path, _ = items[row]
                if has_changed(path, digests[row]):
                    raise UserError(
                        f"{path}: changed while it was read; wait until it is complete and run "
                        "again"
                    )
            return vectors

        request = Request("images", names, encode, lambda row: str(items[row][0]))
        return self._rows(request, self.with_same_pixels)

    def files(
        self, paths: Sequence[str | Path], checked: Mapping[str, str] | None = None
    ) -> np.ndarray:
        """Return (n, d) for files without boxes; ``checked``: as of ``images``."""
        return self.images([(Path(path), None) for path in paths], checked)

    def texts(self, texts: Sequence[str]) -> np.ndarray:
        """Return (n, d) for captions."""

        def encode(rows: list[int], judges: Sequence[Encoder]) -> np.ndarray:
            return self.judge.encode_texts([texts[row] for row in rows], self.batch, *judges)

        def describe(row: int) -> str:
            return f"caption {texts[row][:CAPTION_SHOWN]!r}"

        request = Request("captions", list(map(_text_key, texts)), encode, describe)
        return self._rows(request, self.with_same_tokens)

    def _rows(self, request: Request, sharing: Sequence[Embedder]) -> np.ndarray:
        """Return the embeddings (n, d) of what is requested; only what is new is encoded, for
        ``sharing``, too.
        """
        names = request.keys
        number: dict[bytes, int] = {}  # of each distinct key
        index = np.array([number.setdefault(name, len(number)) for name in names], int)
        distinct = list(number)
        _, first = np.unique(index, return_index=True)  # the row of each distinct key

        def check(rows: np.ndarray, vectors: np.ndarray) -> None:
            judge = f"{self.judge.name} ({self.judge.hash})"
            check_embeddings(vectors, judge, lambda row: request.item(first[rows[row]]))

        blocks = list(self.cache.blocks(distinct))
        widths = sorted({vectors.shape[1] for _, vectors in blocks})
        if len(widths) > 1:
            fault = f"embeddings of {' and '.join(map(str, widths))} numbers by one judge"
            raise InvalidEmbedding(f"{self.cache.path}: {fault}; delete this file")
        is_missing = np.ones(len(distinct), bool)
        for rows, vectors in blocks:
            # A cache may be older than the check, or damaged.
            check(rows, vectors)
            is_missing[rows] = False
        missing = np.flatnonzero(is_missing)
        log.info("%s: %d distinct, %d to encode", request.unit, len(distinct), len(missing))
        judges = [embedder.judge for embedder in sharing]
        size = BATCHES_HELD * self.batch
        groups = [missing[start : start + size] for start in range(0, len(missing), size)]

        def encode(rows: np.ndarray) -> np.ndarray:
            return request.encode(first[rows].tolist(), judges).astype(np.float32, copy=False)

        processes = max(1, min(self.processes, len(groups)))
        encoded_groups = map_in_processes(encode, groups, processes)
        for rows, encoded in zip(groups, encoded_groups, strict=True):
            keys = [distinct[row] for row in rows]
            # The columns of the judges follow each other.
            vectors, *of_sharing = np.split(encoded, 1 + len(judges), axis=1)
            check(rows, vectors)  # before they are stored
            self.cache.add(keys, vectors)
            for embedder, columns in zip(sharing, of_sharing, strict=True):
                embedder.cache.add(keys, columns)
            blocks.append((rows, vectors))
        if not names:
            return np.zeros((0, 1), np.float32)
        result = np.empty((len(distinct), blocks[0][1].shape[1]), np.float32)
        for rows, vectors in blocks:
            result[rows] = vectors
        return result[index]


# Remembered, since all judges ask for the same images and texts.
@lru_cache(KEYS_KEPT)
def _image_key(digest: str, box: Box | None) -> bytes:
    return key("image", digest, repr(box))


@lru_cache(KEYS_KEPT)
def _text_key(text: str) -> bytes:
    return key("caption", text)


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
    # All of these may change the last bits of an embedding.
    settings = f"{batch} {threads} {judge.device} {torch.__version__} {encoding_code()}"
    file = cache / "embeddings" / f"{judge.hash}.sqlite"
    with settled(threads), VectorCache(file, settings, judge.hash) as opened:
        yield Embedder(judge, opened, batch)


@contextmanager
def open_embedders(
    folders: Sequence[Path], batch: int, threads: int, device: str, cache: Path
) -> Iterator[list[Embedder]]:
    """Open the embedders by several judges, as ``open_embedder`` does.

    An image is read once for all judges that see the same pixels, and a caption for all that see
    the same tokens.
    """
    with ExitStack() as stack:
        contexts = [open_embedder(folder, batch, threads, device, cache) for folder in folders]
        opened = [stack.enter_context(context) for context in contexts]
        for number, embedder in enumerate(opened):
            inputs = _inputs(embedder.judge)
            # Only later ones: when they are asked, the first has filled their caches.
            for later in opened[number + 1 :]:
                if _inputs(later.judge) != inputs:
                    continue
                embedder.with_same_pixels.append(later)
                if later.judge.tokenizer == embedder.judge.tokenizer:
                    embedder.with_same_tokens.append(later)
        yield opened


def _inputs(judge: Encoder) -> tuple[Any, ...]:
    # Judges with one name are of one model, and so have embeddings of one width.
    return judge.name, judge.preprocess.cfg, judge.preprocess.crop


def items_of(paths: Sequence[str], images: pd.DataFrame, results: Path) -> list[BoxedFile]:
    """Return files and boxes of manifest paths; only real images, those with a path in ``images``,
    have boxes.
    """
    return list(map(item_finder(images, results), paths))


def item_finder(images: pd.DataFrame, results: Path) -> Callable[[str], BoxedFile]:
    """Return the function from a manifest path to what ``items_of`` returns; it remembers items,
    because paths are slow to make.
    """
    boxed = images.dropna(subset=["path", "bbox_x"])
    corners = boxed[["bbox_x", "bbox_y", "bbox_w", "bbox_h"]]
    boxes = corners.itertuples(index=False, name=None)
    box_by_path = dict(zip(boxed["path"], boxes, strict=True))

    @cache
    def find(path: str) -> BoxedFile:
        return results / path, box_by_path.get(path)

    return find


def merge_equal(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct rows, and the index of each row among them.

    So captions with equal embeddings tie, however a matrix product rounds its columns.
    """
    number: dict[bytes, int] = {}  # of each distinct row, in order of appearance
    rows = np.ascontiguousarray(vectors)
    index = np.array([number.setdefault(row.tobytes(), len(number)) for row in rows], int)
    _, first = np.unique(index, return_index=True)
    return vectors[first], index


def similarities(images: np.ndarray, texts: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Return the function from rows of ``images`` (n, d) to their cosines with ``texts`` (k, d),
    all of unit length.
    """
    import torch  # which respects its number of threads, so results are byte-identical

    columns = torch.from_numpy(np.ascontiguousarray(texts)).T
    return lambda rows: (torch.from_numpy(images[rows]) @ columns).numpy()


def gathered(
    images: np.ndarray, texts: np.ndarray
) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Return a function that maps rows of ``images`` (n, d) and of ``texts`` (k, d) to their
    cosines, one by one.
    """

    def cosines(image: np.ndarray, text: np.ndarray) -> np.ndarray:
        # Empty, so that no rows give an empty result.
        products = [np.zeros(0, images.dtype)]
        # In blocks, because the gathered rows need memory for each pair of image and text.
        for start in range(0, len(image), COMPARED_AT_ONCE):
            block = slice(start, start + COMPARED_AT_ONCE)
            image_block = images[image[block]]
            text_block = texts[text[block]]
            product = np.einsum("nd,nd->n", image_block, text_block)
            products.append(product)
        return np.concatenate(products)

    return cosines


def mean_embedding(images: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the mean (d,), scaled to unit length, of ``rows`` (n,) of ``images`` (n, d), for the
    blind control.
    """
    mean = images[rows].sum(axis=0, dtype=np.float64) / np.count_nonzero(rows)
    length = max(float(np.linalg.norm(mean)), 1e-12)  # opposite embeddings may have mean 0
    return (mean / length).astype(np.float32)
