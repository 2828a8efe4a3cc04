"""From images and captions to features while the judge trains, by the shortest way.

A tower that trains from its start takes bytes or ids. Of one with a frozen part, that part's activations are
computed once and kept in a file, and each step starts from them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch

from workflow_scripts.clip import text_tower
from workflow_scripts.clip.activations import Activations
from workflow_scripts.clip.frontier import ImageCut, TextCut, image_cut, text_cut
from workflow_scripts.clip.model import Judge
from workflow_scripts.clip.pixels import Item, Preprocess
from workflow_scripts.clip.precision import autocast
from workflow_scripts.core.cli import log
from workflow_scripts.core.io import atomic
from workflow_scripts.core.progress import Progress
from workflow_scripts.judge.config import JudgeConfig
from workflow_scripts.judge.parallel import Group

# Rows by number, and of images which of them are to be mirrored, to features (n, d), not normalized.
Images = Callable[..., torch.Tensor]
Captions = Callable[[np.ndarray], torch.Tensor]

# Images that a thread reads before it reports.
READ_AT_ONCE = 64
# Images or captions that go through a frozen part together.
FROZEN_AT_ONCE = 64


def read_pixels(items: Sequence[Item], preprocess: Preprocess, threads: int, file: Path) -> None:
    """Put the bytes of all images, (n, height, width, 3), into ``file``."""
    shape = (len(items), *preprocess.size, 3)
    log.info("reading %d images; their pixels take %.0f MB in %s", len(items), np.prod(shape) / 1e6, file.parent)
    # Not through a memory map: on a full disk that ends the process without a word.
    with (
        atomic(file) as temporary,
        temporary.open("wb") as pixels,
        ThreadPoolExecutor(threads) as pool,
        Progress(len(items), "images") as progress,
    ):
        starts = range(0, len(items), READ_AT_ONCE)
        for part in pool.map(preprocess.read, (items[start : start + READ_AT_ONCE] for start in starts)):
            pixels.write(part.tobytes())
            progress.add(len(part))


def whole_captions(judge: Judge, ids: torch.Tensor) -> Captions:
    """The features of captions, ids (n, length), by the whole text tower."""

    def features(rows: np.ndarray) -> torch.Tensor:
        return text_tower.encode_texts(judge.model, ids[torch.from_numpy(rows)].to(judge.device), len(rows))

    return features


class Feed:
    """What a judge in training is fed, with its files in ``folder``; the first of ``group`` writes them."""

    def __init__(self, judge: Judge, config: JudgeConfig, folder: Path, group: Group) -> None:
        self.judge, self.folder, self.group, self.precision = judge, folder, group, config.precision
        self.files: list[Path] = []
        # Without a training each is looked at once.
        self.image_cut = image_cut(judge.model) if config.epochs else None
        self.text_cut = text_cut(judge.model) if config.epochs else None
        if config.flip and self.image_cut:
            self.image_cut = None
            log.info("judge.flip: images go through all of the image tower in every epoch, its frozen part included")

    def images(self, items: Sequence[Item], name: str) -> Images:
        """The features of ``items``' images; ``name`` is their file's."""
        if self.image_cut:
            return self._frozen_images(self.image_cut, items, self._file(name))
        judge, file = self.judge, self._file(name)
        if self.group.first and not file.is_file():
            read_pixels(items, judge.preprocess, judge.threads, file)
        self.group.wait()
        pixels = np.memmap(file, np.uint8, "r", shape=(len(items), *judge.preprocess.size, 3))

        def features(rows: np.ndarray, mirrored: np.ndarray | None = None) -> torch.Tensor:
            part = np.asarray(pixels[rows])
            if mirrored is not None:
                part[mirrored] = part[mirrored, :, ::-1]
            return judge.model.encode_image(judge.preprocess.floats(part, judge.device))

        return features

    def captions(self, ids: torch.Tensor, name: str) -> Captions:
        """The features of captions, ids (n, length); ``name`` is their file's."""
        if self.text_cut:
            return self._frozen_captions(self.text_cut, ids, self._file(name))
        return whole_captions(self.judge, ids)

    def clear(self) -> None:
        """Remove the files."""
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
            # As a convolution likes it: channels last.
            return x.permute(0, 2, 3, 1) if x.ndim == 4 else x

        judge.model.eval()
        one = below(np.zeros((1, *judge.preprocess.size, 3), np.uint8))
        kept = Activations(file, (len(items), *one.shape[1:]), one.dtype, judge.device)
        if self.group.first:
            parts = (below(pixels) for pixels in judge.read_ahead(items, FROZEN_AT_ONCE))
            kept.write(parts, f"{len(items)} images behind {cut.behind}")
        self.group.wait()
        kept.open()

        def features(rows: np.ndarray, mirrored: np.ndarray | None = None) -> torch.Tensor:
            x = kept[torch.from_numpy(rows)]
            return cut.above(x.permute(0, 3, 1, 2) if x.ndim == 4 else x)

        return features

    def _frozen_captions(self, cut: TextCut, ids: torch.Tensor, file: Path) -> Captions:
        judge = self.judge
        # One token after another, padding left out; captions of like length are computed together.
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
            parts: Iterator[torch.Tensor] = (below(rows) for rows in order.split(FROZEN_AT_ONCE))
            kept.write(parts, f"{len(ids)} captions, {kept.shape[0]} tokens, behind {cut.behind}")
        self.group.wait()
        kept.open()

        def features(rows: np.ndarray) -> torch.Tensor:
            chosen = torch.from_numpy(rows)
            longest = int(lengths[chosen].max())
            # Behind its end a caption repeats its end: no token before it looks there.
            places = starts[chosen, None] + torch.arange(longest).minimum(lengths[chosen, None] - 1)
            x = kept[places.flatten()].unflatten(0, places.shape)
            return cut.above(x, ids[chosen, :longest].to(judge.device))

        return features
