"""Images and captions to features while the judge trains.

A tower that trains completely takes pixels or ids. If a part of it is frozen, that part's activations are computed
once and kept in a file, and each step starts from them.
"""

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch

from compclip.clip import text_tower
from compclip.clip.activations import Activations
from compclip.clip.device import autocast
from compclip.clip.frontier import ImageCut, TextCut, image_cut, text_cut
from compclip.clip.model import Judge
from compclip.clip.pixels import Item, Preprocess
from compclip.core.log import log
from compclip.core.progress import Progress
from compclip.core.sealed import is_whole, sealed
from compclip.judge.config import Training
from compclip.judge.parallel import Group

# Rows by number, and for images which of them to mirror, to features (n, d), not normalized.
Images = Callable[..., torch.Tensor]
Captions = Callable[[np.ndarray], torch.Tensor]

READ_AT_ONCE = 64  # images of a thread
FROZEN_AT_ONCE = 64  # images or captions that go through a frozen part together


def read_pixels(items: Sequence[Item], preprocess: Preprocess, threads: int, file: Path) -> None:
    """Write the bytes of all images, (n, height, width, 3), to ``file``."""
    shape = (len(items), *preprocess.size, 3)
    log.info("reading %d images; their pixels take %.0f MB in %s", len(items), math.prod(shape) / 1e6, file.parent)
    # Not through a memory map, which on a full disk kills the process without an error.
    with sealed(file) as pixels, ThreadPoolExecutor(threads) as pool, Progress(len(items), "images") as progress:
        starts = range(0, len(items), READ_AT_ONCE)
        for batch in pool.map(preprocess.read, (items[start : start + READ_AT_ONCE] for start in starts)):
            pixels.write(batch.tobytes())
            progress.add(len(batch))


def whole_captions(judge: Judge, ids: torch.Tensor) -> Captions:
    """Return the features of captions, ids (n, length), by the whole text tower."""

    def features(rows: np.ndarray) -> torch.Tensor:
        return text_tower.encode_texts(judge.model, ids[torch.from_numpy(rows)].to(judge.device), len(rows))

    return features


class Feed:
    """The inputs of a judge in training, with files in ``folder`` that the first process of ``group`` writes."""

    def __init__(self, judge: Judge, config: Training, folder: Path, group: Group) -> None:
        self.judge, self.folder, self.group, self.precision = judge, folder, group, config.precision
        self.files: list[Path] = []
        # Without training each item is encoded only once.
        self.image_cut = image_cut(judge.model) if config.epochs else None
        self.text_cut = text_cut(judge.model) if config.epochs else None
        if config.flip and self.image_cut:
            self.image_cut = None
            log.info("judge.flip: every epoch runs the whole image tower, including its frozen part")

    def images(self, items: Sequence[Item], name: str) -> Images:
        if self.image_cut:
            return self._frozen_images(self.image_cut, items, self._file(name))
        judge, file = self.judge, self._file(name)
        if self.group.first and not is_whole(file, "read again"):
            read_pixels(items, judge.preprocess, judge.threads, file)
        self.group.wait()
        pixels = np.memmap(file, np.uint8, "r", shape=(len(items), *judge.preprocess.size, 3))

        def features(rows: np.ndarray, mirrored: np.ndarray | None = None) -> torch.Tensor:
            batch = np.asarray(pixels[rows])
            if mirrored is not None:
                batch[mirrored] = batch[mirrored, :, ::-1]
            return judge.model.encode_image(judge.preprocess.floats(batch, judge.device))

        return features

    def captions(self, ids: torch.Tensor, name: str) -> Captions:
        """Return the features of captions, ids (n, length), kept in file ``name``."""
        if self.text_cut:
            return self._frozen_captions(self.text_cut, ids, self._file(name))
        return whole_captions(self.judge, ids)

    def clear(self) -> None:
        self.group.wait()
        for file in self.files if self.group.first else ():
            file.unlink(missing_ok=True)

    def _file(self, name: str) -> Path:
        self.files.append(self.folder / f"{name}.bin")
        return self.files[-1]

    def _frozen_images(self, cut: ImageCut, items: Sequence[Item], file: Path) -> Images:
        judge = self.judge

        def below(pixels: np.ndarray) -> torch.Tensor:
            with torch.inference_mode(), autocast(self.precision, judge.device):
                x = cut.below(judge.preprocess.floats(pixels, judge.device))
            # Channels last, which convolutions prefer.
            return x.permute(0, 2, 3, 1) if x.ndim == 4 else x

        judge.model.eval()
        one = below(np.zeros((1, *judge.preprocess.size, 3), np.uint8))
        kept = Activations(file, (len(items), *one.shape[1:]), one.dtype, judge.device)
        if self.group.first:
            batches = (below(pixels) for pixels in judge.read_ahead(items, FROZEN_AT_ONCE))
            kept.write(batches, f"{len(items)} images after {cut.behind}")
        self.group.wait()
        kept.open()

        def features(rows: np.ndarray, mirrored: np.ndarray | None = None) -> torch.Tensor:
            x = kept[torch.from_numpy(rows)]
            return cut.above(x.permute(0, 3, 1, 2) if x.ndim == 4 else x)

        return features

    def _frozen_captions(self, cut: TextCut, ids: torch.Tensor, file: Path) -> Captions:
        judge = self.judge
        # Only tokens are kept, no padding; captions of similar length are computed together.
        lengths = text_tower.lengths(ids)
        order = lengths.argsort(stable=True)
        starts = torch.empty_like(lengths)
        starts[order] = lengths[order].cumsum(0) - lengths[order]

        def below(rows: torch.Tensor) -> torch.Tensor:
            longest = int(lengths[rows].max())
            with torch.inference_mode(), autocast(self.precision, judge.device):
                x = cut.below(ids[rows, :longest].to(judge.device))
            return x[(torch.arange(longest) < lengths[rows, None]).to(judge.device)]

        judge.model.eval()
        one = below(order[:1])
        kept = Activations(file, (int(lengths.sum()), one.shape[1]), one.dtype, judge.device)
        if self.group.first:
            batches = (below(rows) for rows in order.split(FROZEN_AT_ONCE))
            kept.write(batches, f"{len(ids)} captions, {kept.shape[0]} tokens, after {cut.behind}")
        self.group.wait()
        kept.open()

        def features(rows: np.ndarray) -> torch.Tensor:
            chosen = torch.from_numpy(rows)
            longest = int(lengths[chosen].max())
            # After its end a caption repeats its end token, which no earlier token sees.
            places = starts[chosen, None] + torch.arange(longest).minimum(lengths[chosen, None] - 1)
            x = kept[places.flatten()].unflatten(0, places.shape)
            return cut.above(x, ids[chosen, :longest].to(judge.device))

        return features
