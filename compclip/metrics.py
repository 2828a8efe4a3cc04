"""Scores of a release for training loops: torch modules with the interface of torchmetrics,
``update``, ``compute``, ``merge_state``, and with intervals, ``estimate``.

    metric = compclip.metrics.AdjectiveAccuracy("release", "color", "test_unseen")
    for images, ids in batches:  # bytes (n, 3, height, width), and file_name of the prompts
        metric.update(images, ids)
    metric.estimate()

With images for all prompts of a split, the value equals that of a submission and of the table.
"""

from collections.abc import Callable, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
import torch
from PIL import Image

from compclip.clip.device import settled
from compclip.clip.embed import open_embedder
from compclip.core.errors import require
from compclip.core.tables import TESTS, is_further
from compclip.generate.generator import PROMPT_KEYS
from compclip.release.open_release import open_release
from compclip.release.submit import score_part, sets_to_score
from compclip.score.choices import Embed
from compclip.score.score_images import embed_once
from compclip.stats.estimates import ScoreEstimate, estimate_score

# Embeddings (d,) of each image, by image id and judge.
ImageEmbeddings = dict[str, dict[str, np.ndarray]]


def as_item(image: Any) -> tuple[Path | BytesIO, None]:
    """Return an image in a form that judges read: a path, or bytes (3, height, width) of a tensor
    or array as a PNG.
    """
    if isinstance(image, str | Path):
        return Path(image), None
    pixels = image.detach().cpu().numpy() if isinstance(image, torch.Tensor) else np.asarray(image)
    is_image = pixels.ndim == 3 and pixels.shape[0] == 3 and pixels.dtype == np.uint8
    require(
        is_image,
        "update",
        f"expected bytes (3, height, width), got {pixels.dtype} {pixels.shape}",
        "convert it",
    )
    file = BytesIO()
    # A PNG keeps all pixels at any level of compression; 1 is the fastest.
    Image.fromarray(np.ascontiguousarray(pixels.transpose(1, 2, 0))).save(
        file, "png", compress_level=1
    )
    file.seek(0)
    return file, None


class ReleaseMetric(torch.nn.Module):
    """A score of one split of a release, averaged over its judges, for the images so far.

    Its judges move with ``to``. They are not submodules: a checkpoint of the module that has the
    metric shall not contain them, nor shall ``train`` change them.
    """

    column: str  # of ``tables.SCORES``

    def __init__(
        self,
        release: str | Path,
        composition: str,
        split: str,
        *,
        device: str = "cpu",
        cache: str | Path = ".cache",
    ) -> None:
        """Load the judges, and encode the captions of the split; their embeddings are kept in
        ``cache``.
        """
        super().__init__()
        opened = open_release(release)
        self.part = opened.part(composition)
        self.split = split
        require(
            split in TESTS, "split", f"unknown split {split!r}", f"choose one of {', '.join(TESTS)}"
        )
        self.prompts = self.part.tables["prompts"].query("split == @split").reset_index(drop=True)
        self.batch = opened.contents.batch
        self.judges: dict[str, Any] = {}
        self.texts: dict[str, Embed] = {}
        self.threads = opened.contents.threads
        # The texts do not depend on the images, so they are encoded once for all updates.
        everything = self._texts()
        for name, about in self.part.contents.judges.items():
            folder = opened.folder / about.folder
            with open_embedder(folder, self.batch, self.threads, device, Path(cache)) as embedder:
                self.judges[name] = embedder.judge
                self.texts[name] = embed_once(embedder, everything)
        self.state: ImageEmbeddings = {}

    def _texts(self) -> list[str]:
        """Return all texts that are compared with images of the split."""
        tables = self.part.tables
        release = self.part.release
        judged = release.captions["image_id"].isin(self.part.judged["image_id"])
        columns = [release.captions.loc[judged, "text"], self.prompts["text"]]
        columns.append(tables["variants"].query("split == @self.split")["text"])
        if self.split == "test_swapped":
            columns.append(tables["swapped"]["swapped_text"])
        # Sorted, because a set of texts has another order in each process.
        return sorted(set(pd.concat(columns)))

    def update(self, images: Sequence[Any] | torch.Tensor, ids: Sequence[str]) -> None:
        """Add images; an image with an earlier id replaces the earlier one.

        Args:
            images: n paths, n tensors or arrays of bytes (3, height, width), or a tensor (n, 3,
                height, width).
            ids: (n,) the file_name of each image's prompt.
        """
        fault = f"{len(images)} images with {len(ids)} ids"
        require(len(images) == len(ids), "update", fault, "give one each")
        unknown = sorted({*ids} - {*self.prompts["file_name"]})
        fault = f"{unknown[:1]} is not a file_name of {self.part.name}, {self.split}"
        require(not unknown, "update", fault, "give the column file_name of the prompts")
        if not len(images):
            return
        items = [as_item(image) for image in images]
        for name, judge in self.judges.items():
            vectors = judge.encode_images(items, self.batch)
            for image_id, vector in zip(ids, vectors, strict=True):
                self.state.setdefault(image_id, {})[name] = vector

    def merge_state(self, incoming: "Self | Mapping[str, Mapping[str, np.ndarray]]") -> None:
        """Add the images of another metric or of its ``state``, for example from another
        process.
        """
        state = incoming.state if isinstance(incoming, ReleaseMetric) else incoming
        self.state |= {image_id: dict(vectors) for image_id, vectors in state.items()}

    def reset(self) -> None:
        """Remove all images."""
        self.state = {}

    def _apply(self, fn: Callable[[torch.Tensor], torch.Tensor], recurse: bool = True) -> Self:
        """Move the judges to where ``fn`` moves a tensor; their type stays that of the release."""
        super()._apply(fn, recurse)
        for judge in self.judges.values():
            judge.device = fn(torch.empty(0, device=judge.device)).device
            judge.model.to(judge.device)
        return self

    def compute(self) -> torch.Tensor:
        """Return the score of the images so far, from 0 to 1; UserError if there are none."""
        return torch.tensor(self.estimate().value, dtype=torch.float64)

    def estimate(self) -> ScoreEstimate:
        """Return the score of the images so far with its intervals, as of
        ``compclip.estimate_score``; UserError if there are none.
        """
        require(
            self.state, type(self).__name__, "compute before update", "update with images first"
        )
        made = self.prompts["file_name"].isin(self.state)
        status = made.map({True: "ok", False: "skipped"})
        manifest = self.prompts[PROMPT_KEYS].assign(
            path=self.prompts["file_name"].where(made), status=status
        )

        sets = sets_to_score(self.part, manifest, [self.split])

        def entries_by(judge: str) -> pd.DataFrame:
            def images(ids: Sequence[str]) -> np.ndarray:
                return np.stack([self.state[image_id][judge] for image_id in ids])

            texts = self.texts[judge]
            scored = score_part(self.part, sets, judge, lambda _: texts, images)
            table = scored[self.split].table
            # As in the table of a run, all prompts have the same number of draws.
            return table[~is_further(table)]

        with settled(self.threads):
            tables = [entries_by(judge) for judge in self.judges]
        values = np.column_stack([table[self.column] for table in tables])
        entries = tables[0]
        # Images of a class are not independent, so they are resampled together.
        classes = self.part.release.classes.loc[entries["image_id"]]
        return estimate_score(values, classes, entries["pair"])

    def forward(self, images: Sequence[Any] | torch.Tensor, ids: Sequence[str]) -> torch.Tensor:
        """Add images, and return the score of only these."""
        earlier = self.state
        self.state = {}
        self.update(images, ids)
        value = self.compute()
        self.state = earlier | self.state
        return value

    __call__ = forward


class RPrecision(ReleaseMetric):
    """Exact R-precision: how often a judge ranks an image's prompt first among the candidates."""

    column = "expected_top1"


class AdjectiveAccuracy(ReleaseMetric):
    """Adjective accuracy: how often a judge ranks an image's prompt above its variants with another
    adjective.
    """

    column = "adjective_first"
