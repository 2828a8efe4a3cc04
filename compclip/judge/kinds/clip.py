"""A CLIP: chooses the text with the largest cosine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from compclip.core.errors import require
from compclip.judge.chooser import Chooser, Context, JudgedImage, chances_of_scores
from compclip.judge.config import SeedsOfTraining

if TYPE_CHECKING:
    import numpy as np

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
        import numpy as np

        from compclip.clip.embed import gathered

        of_images = self.embedder.images([(image.path, image.box) for image in images])  # (n, d)
        texts = [text for image_texts in options for text in image_texts]
        distinct = list(dict.fromkeys(texts))
        of_texts = self.embedder.texts(distinct)
        row_by_text = {text: row for row, text in enumerate(distinct)}
        text_rows = np.array([row_by_text[text] for text in texts])
        sizes = [len(image_texts) for image_texts in options]
        image_rows = np.repeat(np.arange(len(images)), sizes)
        # One by one, so that a cosine does not depend on what it is computed with.
        cosines = gathered(of_images, of_texts)(image_rows, text_rows)
        return np.split(cosines, np.cumsum(sizes)[:-1])

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
