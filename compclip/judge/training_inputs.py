"""Compute the features of images and captions while the judge trains.

A tower that trains completely reads pixels or ids. The activations of a frozen part are computed
once and kept in a file, from which each step starts.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch

from compclip.clip import text_tower
from compclip.clip.activations import Activations
from compclip.clip.device import autocast, to_device, to_device_at_once
from compclip.clip.freeze_point import FreezePoint, image_freeze_point, text_freeze_point
from compclip.clip.model import Judge
from compclip.clip.pixels import Item
from compclip.judge.augment import VIEWS, Changes, change, draw_changes
from compclip.judge.config import Training
from compclip.judge.parallel import Group

# Maps batches of row numbers, and the changes of each batch's images if there are any, to the
# features (n, d) of each batch, not normalized. They are computed batch by batch, but all numbers
# are copied to a GPU at once.
Features = Callable[..., Iterator[torch.Tensor]]
Batches = Sequence[np.ndarray]

# Images that are read together, or images or captions that a frozen part encodes together.
ITEMS_AT_ONCE = 64


def whole_captions(judge: Judge, ids: torch.Tensor) -> Features:
    """Return the features of captions, given as ids (n, length), by the whole text tower."""

    def features(batches: Batches) -> Iterator[torch.Tensor]:
        for rows in batches:
            chosen = ids[torch.from_numpy(rows)]
            yield text_tower.encode_texts(judge.model, chosen, judge.device)

    return features


class TrainingInputs:
    """The inputs of a judge in training; the first process of ``group`` writes their files (.bin)
    in ``folder``.
    """

    def __init__(
        self, judge: Judge, config: Training, folder: Path, group: Group, seed: int = 0
    ) -> None:
        self.judge = judge
        self.folder = folder
        self.group = group
        self.precision = config.precision
        self.seed = seed  # of the views of images
        # Without training, each item is encoded only once, so keeping activations saves nothing.
        self.image_freeze_point = image_freeze_point(judge.model) if config.epochs else None
        self.text_freeze_point = text_freeze_point(judge.model) if config.epochs else None

    def images(self, items: Sequence[Item], name: str, augment: bool = False) -> Features:
        """Return the features of images, whose pixels, or activations of a frozen part, are kept in
        file ``name``.

        With ``augment``, the function also takes the ``Changes`` of the images. Behind a frozen
        part, which encodes each image only once, it keeps ``VIEWS`` of each image, and the changes
        select one.
        """
        file = self.folder / f"{name}.bin"
        if self.image_freeze_point:
            views = VIEWS if augment else 1
            return self._frozen_images(self.image_freeze_point, items, file, views)
        return self._whole_images(items, file)

    def captions(self, ids: torch.Tensor, name: str) -> Features:
        """Return the features of captions, ids (n, length), kept in file ``name``."""
        if self.text_freeze_point:
            return self._frozen_captions(self.text_freeze_point, ids, self.folder / f"{name}.bin")
        return whole_captions(self.judge, ids)

    def clear(self) -> None:
        """Remove the files, after the last process has read them."""
        self.group.wait()
        if self.group.first:
            for file in self.folder.glob("*.bin"):
                file.unlink()

    def _floats(self, pixels: np.ndarray, changes: Changes | None) -> torch.Tensor:
        """Return normalized pixels, (n, 3, height, width), on the judge's device."""
        device = self.judge.device
        apply = None
        if changes is not None:
            changes = changes.each(lambda values: to_device(values, device))
            apply = partial(change, changes=changes)
        return self.judge.preprocess.floats(pixels, device, apply)

    def _readable(
        self, table: Activations, batches: Iterable[torch.Tensor], description: str
    ) -> Activations:
        """Return ``table`` for reading, after the first process has written it."""
        if self.group.first:
            table.write(batches, description)
        self.group.wait()
        return table.open()

    def _whole_images(self, items: Sequence[Item], file: Path) -> Features:
        """Return the features of images by the whole tower, from their pixels in ``file``."""
        judge = self.judge
        shape = (len(items), *judge.preprocess.size, 3)
        # On the CPU, where ``Preprocess.floats`` expects pixels.
        table = Activations(file, shape, torch.uint8, torch.device("cpu"))
        batches = map(
            torch.from_numpy, judge.preprocess.read_ahead(items, ITEMS_AT_ONCE, judge.threads)
        )
        table = self._readable(table, batches, f"pixels of {len(items)} images")

        def features(
            batches: Batches, changes: Sequence[Changes | None] | None = None
        ) -> Iterator[torch.Tensor]:
            rows = [torch.from_numpy(numbers) for numbers in batches]
            each_changes = changes or [None] * len(rows)
            for pixels, batch_changes in zip(table.batches(rows), each_changes, strict=True):
                yield judge.model.encode_image(self._floats(pixels.numpy(), batch_changes))

        return features

    def _frozen_images(
        self, point: FreezePoint, items: Sequence[Item], file: Path, views: int
    ) -> Features:
        """Return the features of images from the output of the frozen part, kept in ``file``.

        The file has a row for each of the ``views`` of an image, which follow each other.
        """
        judge = self.judge

        def run_frozen(pixels: np.ndarray, changes: Changes | None = None) -> torch.Tensor:
            with torch.inference_mode(), autocast(self.precision, judge.device):
                x = point.frozen(self._floats(pixels, changes))
            # channels last, which is faster for convolutions
            if x.ndim == 4:
                x = x.permute(0, 2, 3, 1)
            return x

        def run_views(batch: int, pixels: np.ndarray) -> torch.Tensor:
            encoded = [run_frozen(pixels)]
            for view in range(1, views):
                changes = draw_changes(len(pixels), self.seed, "view", view, batch)
                encoded.append(run_frozen(pixels, changes))
            by_image = torch.stack(encoded, dim=1)
            return by_image.flatten(0, 1)

        judge.model.eval()
        # The output for any one image shows the shape and type of a row.
        row = run_frozen(np.zeros((1, *judge.preprocess.size, 3), np.uint8))
        shape = (len(items) * views, *row.shape[1:])
        table = Activations(file, shape, row.dtype, judge.device)
        # A batch's number selects the random stream of its changes.
        numbered = enumerate(judge.preprocess.read_ahead(items, ITEMS_AT_ONCE, judge.threads))
        batches = (run_views(batch, pixels) for batch, pixels in numbered)
        in_views = f" in {views} views" if views > 1 else ""
        description = f"{len(items)} images{in_views} after {point.last_frozen}"
        table = self._readable(table, batches, description)

        def features(
            batches: Batches, changes: Sequence[Changes | None] | None = None
        ) -> Iterator[torch.Tensor]:
            rows = [torch.from_numpy(numbers) * views for numbers in batches]
            for number, batch_changes in enumerate(changes or ()):
                if batch_changes is not None:
                    rows[number] += batch_changes.view
            for x in table.batches(rows):
                # Maps were kept channels last; sequences of tokens have three dimensions.
                yield point.trained(x.permute(0, 3, 1, 2) if x.ndim == 4 else x)

        return features

    def _frozen_captions(self, point: FreezePoint, ids: torch.Tensor, file: Path) -> Features:
        """Return the features of captions from the output of the frozen part, kept in ``file``.

        The file has a row for each token up to a caption's end; padding is not kept.
        """
        judge = self.judge
        lengths = text_tower.lengths(ids)
        tokens = int(lengths.sum())
        # Captions of similar length are computed together, with less padding.
        order = lengths.argsort(stable=True)
        # The first row in the file of each caption, by its number in ``ids``.
        starts = torch.empty_like(lengths)
        sorted_lengths = lengths[order]
        starts[order] = sorted_lengths.cumsum(0) - sorted_lengths

        def run_frozen(rows: torch.Tensor) -> torch.Tensor:
            longest = int(lengths[rows].max())
            with torch.inference_mode(), autocast(self.precision, judge.device):
                x = point.frozen(ids[rows, :longest].to(judge.device))
            is_token = torch.arange(longest) < lengths[rows, None]
            return x[is_token.to(judge.device)]

        judge.model.eval()
        # The output for any one caption shows the width and type of a row.
        token_rows = run_frozen(order[:1])
        shape = (tokens, token_rows.shape[1])
        table = Activations(file, shape, token_rows.dtype, judge.device)
        batches = map(run_frozen, order.split(ITEMS_AT_ONCE))
        description = f"{len(ids)} captions, {tokens} tokens, after {point.last_frozen}"
        table = self._readable(table, batches, description)

        def rows_of(chosen: torch.Tensor) -> torch.Tensor:
            """Return the rows in the file (n, longest) of the tokens of captions (n,)."""
            longest = int(lengths[chosen].max())
            last_tokens = lengths[chosen, None] - 1
            # A caption repeats its end token after the end; earlier tokens do not attend to it.
            positions = torch.arange(longest).minimum(last_tokens)
            return starts[chosen, None] + positions

        def features(batches: Batches) -> Iterator[torch.Tensor]:
            chosen = [torch.from_numpy(rows) for rows in batches]
            rows = [rows_of(captions) for captions in chosen]
            ends = [lengths[captions] - 1 for captions in chosen]
            outputs = table.batches([numbers.flatten() for numbers in rows])
            sent_ends = to_device_at_once(ends, judge.device)
            for x, numbers, end in zip(outputs, rows, sent_ends, strict=True):
                yield point.trained(x.unflatten(0, numbers.shape), end)

        return features
