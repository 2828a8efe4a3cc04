"""A CLIP: chooses the text with the largest cosine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from compclip.core.errors import require
from compclip.judge.chooser import Chooser, Context, JudgedImage, chances_of_scores
from compclip.judge.config import SeedsOfTraining

if TYPE_CHECKING:
    from compclip.clip.embed import Embedder

ABOUT = "a CLIP, which chooses the text with the largest cosine"
MODEL = True


class Settings(SeedsOfTraining):
    """Model and training, as of ``judge``; each seed is a member."""


class ClipChooser:
    """The judge of an embedder, whose cosines are its scores."""

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
        self.name = embedder.judge.name
        self.hash = embedder.judge.hash

    def scores(
        self, images: Sequence[JudgedImage], options: Sequence[Sequence[str]]
    ) -> list[np.ndarray]:
        """Return the cosine of each image with each of its texts."""
        files = [(image.path, image.box) for image in images]
        of_images = self.embedder.images(files)  # (n, d)
        texts = [text for image_texts in options for text in image_texts]
        distinct = list(dict.fromkeys(texts))
        row_by_text = {text: row for row, text in enumerate(distinct)}
        of_texts = self.embedder.texts(distinct)
        cosines = []
        for vector, image_texts in zip(of_images, options, strict=True):
            rows = [row_by_text[text] for text in image_texts]
            cosines.append(np.einsum("d,kd->k", vector, of_texts[rows]))
        return cosines

    def choose(
        self, images: Sequence[JudgedImage], options: Sequence[Sequence[str]]
    ) -> list[np.ndarray]:
        return [chances_of_scores(cosines) for cosines in self.scores(images, options)]


def open_chooser(settings: Settings, context: Context) -> Chooser:
    from compclip.clip.embed import open_embedder  # torch is slow to import

    require(context.model is not None, "judge", "no folder of a trained judge", "train it first")
    opened = open_embedder(
        Path(str(context.model)), context.batch, context.threads, context.device, context.cache
    )
    return ClipChooser(context.closing.enter_context(opened))
