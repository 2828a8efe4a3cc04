"""Compute the features of images and captions while the judge trains.

A tower that trains completely reads pixels or ids. The activations of a frozen part are computed
once and kept in a file, from which each step starts.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch

from compclip.clip import text_tower
from compclip.clip.activations import Activations
from compclip.clip.device import autocast
from compclip.clip.frontier import CutTower, image_cut, text_cut
from compclip.clip.model import Judge
from compclip.clip.pixels import Item
from compclip.judge.augment import VIEWS, Changes, change, draw_changes
from compclip.judge.config import Training
from compclip.judge.parallel import Group

# Maps row numbers, and the changes of images if there are any, to features (n, d), not normalized.
Features = Callable[..., torch.Tensor]

ITEMS_AT_ONCE = (
    64  # images that are read together, or images or captions that a frozen part encodes together
)


def whole_captions(judge: Judge, ids: torch.Tensor) -> Features:
    """Return the features of captions, given as ids (n, length), by the whole text tower."""

    def features(rows: np.ndarray) -> torch.Tensor:
        return text_tower.encode_texts(judge.model, ids[torch.from_numpy(rows)].to(judge.device))

    return features


class Feed:
    """The inputs of a judge in training; the first process of ``group`` writes their files (.bin)
    in ``folder``.
    """

    def __init__(
        self, judge: Judge, config: Training, folder: Path, group: Group, seed: int = 0
    ) -> None:
        self.judge, self.folder, self.group, self.precision = judge, folder, group, config.precision
        self.seed = seed  # of the views of images
        # Without training, each item is encoded only once.
        self.image_cut = image_cut(judge.model) if config.epochs else None
        self.text_cut = text_cut(judge.model) if config.epochs else None

    def images(self, items: Sequence[Item], name: str, augment: bool = False) -> Features:
        """Return the features of images, whose pixels, or activations of a frozen part, are kept in
        file ``name``.

        With ``augment``, the function also takes the ``Changes`` of the images. Behind a frozen
        part, which encodes each image only once, it keeps ``VIEWS`` of each image, and the changes
        select one.
        """
        judge, cut = self.judge, self.image_cut
        views = VIEWS if augment and cut else 1

        def below(pixels: np.ndarray, changes: Changes | None = None) -> torch.Tensor:
            if not cut:
                return torch.from_numpy(pixels)
            with torch.inference_mode(), autocast(self.precision, judge.device):
                x = cut.below(self._floats(pixels, changes))
            # channels last, which is faster for convolutions
            return x.permute(0, 2, 3, 1) if x.ndim == 4 else x

        def with_views(batch: int, pixels: np.ndarray) -> torch.Tensor:
            n = len(pixels)
            changed = [
                below(pixels, draw_changes(n, self.seed, "view", view, batch))
                for view in range(1, views)
            ]
            return torch.stack([below(pixels), *changed], dim=1).flatten(0, 1)

        def above(x: torch.Tensor, changes: Changes | None) -> torch.Tensor:
            if not cut:
                return judge.model.encode_image(self._floats(x.numpy(), changes))
            return cut.above(x.permute(0, 3, 1, 2) if x.ndim == 4 else x)

        def features(rows: np.ndarray, changes: Changes | None = None) -> torch.Tensor:
            chosen = torch.from_numpy(rows) * views
            if changes is not None and cut:
                chosen = chosen + changes.view
            return above(kept[chosen], changes)

        judge.model.eval()
        one = below(np.zeros((1, *judge.preprocess.size, 3), np.uint8))
        device = judge.device if cut else torch.device("cpu")
        batches = (
            with_views(*numbered) for numbered in enumerate(judge.read_ahead(items, ITEMS_AT_ONCE))
        )
        each = f" in {views} views" if views > 1 else ""
        what = (
            f"{len(items)} images{each} after {cut.behind}"
            if cut
            else f"pixels of {len(items)} images"
        )
        kept = Activations(
            self.folder / f"{name}.bin", (len(items) * views, *one.shape[1:]), one.dtype, device
        )
        kept = self._kept(kept, batches, what)
        return features

    def _floats(self, pixels: np.ndarray, changes: Changes | None) -> torch.Tensor:
        """Return normalized pixels, (n, 3, height, width), on the judge's device."""
        device = self.judge.device
        if changes is None:
            return self.judge.preprocess.floats(pixels, device)
        on_device = changes.each(lambda values: values.to(device))
        return self.judge.preprocess.floats(pixels, device, partial(change, changes=on_device))

    def captions(self, ids: torch.Tensor, name: str) -> Features:
        """Return the features of captions, ids (n, length), kept in file ``name``."""
        if self.text_cut:
            return self._frozen_captions(self.text_cut, ids, self.folder / f"{name}.bin")
        return whole_captions(self.judge, ids)

    def clear(self) -> None:
        self.group.wait()
        for file in self.folder.glob("*.bin") if self.group.first else ():
            file.unlink()

    def _kept(self, kept: Activations, batches: Iterable[torch.Tensor], what: str) -> Activations:
        """Return the activations for reading, after the first process has written them."""
        if self.group.first:
            kept.write(batches, what)
        self.group.wait()
        return kept.open()

    def _frozen_captions(self, cut: CutTower, ids: torch.Tensor, file: Path) -> Features:
        judge = self.judge
        # Padding is not kept; captions of similar length are computed together.
        lengths = text_tower.lengths(ids)
        tokens = int(lengths.sum())
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
        batches = (below(rows) for rows in order.split(ITEMS_AT_ONCE))
        shape, what = (
            (tokens, one.shape[1]),
            f"{len(ids)} captions, {tokens} tokens, after {cut.behind}",
        )
        kept = self._kept(Activations(file, shape, one.dtype, judge.device), batches, what)

        def features(rows: np.ndarray) -> torch.Tensor:
            chosen = torch.from_numpy(rows)
            longest = int(lengths[chosen].max())
            # A caption repeats its end token after the end; earlier tokens do not attend to it.
            places = starts[chosen, None] + torch.arange(longest).minimum(lengths[chosen, None] - 1)
            x = kept[places.flatten()].unflatten(0, places.shape)
            return cut.above(x, ids[chosen, :longest].to(judge.device))

        return features
