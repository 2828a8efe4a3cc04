"""SPECS: how well a long caption fits its image, from the embeddings of both.

Source: Chen, Salazar and Kementchedjhieva, "SPECS" (EMNLP 2025), and the README of its release.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

from workflow_scripts.clip.embed import Encoder, Item
from workflow_scripts.clip.tokens import cut_texts
from workflow_scripts.clip.vision import import_torchvision
from workflow_scripts.core.errors import UserError
from workflow_scripts.specs.score import image_faults

import_torchvision()

from torchmetrics import Metric  # noqa: E402


def cosine(images: torch.Tensor, texts: torch.Tensor) -> torch.Tensor:
    """(n,) the cosine of each row of ``images`` (n, d) with the same row of ``texts`` (n, d), of any length.

    In float32, in float64 where both are; a row of zeros has the cosine 0. Raises ValueError for other shapes.
    """
    if images.ndim != 2 or images.shape != texts.shape:
        raise ValueError(f"a row of each makes a pair, not images {tuple(images.shape)} and texts {tuple(texts.shape)}")
    if not images.dtype == texts.dtype == torch.float64:
        images, texts = images.float(), texts.float()
    return F.cosine_similarity(images, texts, dim=-1)


def specs(images: torch.Tensor, texts: torch.Tensor) -> torch.Tensor:
    """(n,) the SPECS score of each pair of rows: the cosine moved to 0 … 1, ``max((cos + 1) / 2, 0)``.

    images, texts: (n, d) embeddings by one model, of any length. Raises ValueError for other shapes.
    """
    return from_cosine(cosine(images, texts))


def from_cosine(cosines: torch.Tensor) -> torch.Tensor:
    return ((cosines + 1) / 2).clamp(min=0)


class SpecsScore(Metric):
    """The mean SPECS score of all pairs seen, over batches and processes.

    judge: encodes what ``update`` is given, paths of images (or pairs of a path and a bounding box) and captions
    (``judge.model.load_judge``). Without one ``update`` takes the embeddings, (n, d) each. With one, ``cut`` counts
    captions longer than it reads, which are scored by their beginning; an image that cannot be read, or an empty text,
    raises UserError, which names it, and nothing of that batch is counted.

    >>> score = SpecsScore()
    >>> score.update(torch.tensor([[1.0, 0.0], [1.0, 0.0]]), torch.tensor([[2.0, 0.0], [0.0, 1.0]]))
    >>> score.compute()
    tensor(0.7500)
    """

    is_differentiable = True
    higher_is_better = True
    full_state_update = False
    plot_lower_bound = 0.0
    plot_upper_bound = 1.0

    total: torch.Tensor
    pairs: torch.Tensor
    cut: torch.Tensor

    def __init__(self, judge: Encoder | None = None, batch: int = 32, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.judge, self.batch = judge, batch
        # Sums of many pairs: float32 would stop counting.
        self.add_state("total", torch.tensor(0.0, dtype=torch.float64), dist_reduce_fx="sum")
        self.add_state("pairs", torch.tensor(0), dist_reduce_fx="sum")
        self.add_state("cut", torch.tensor(0), dist_reduce_fx="sum")

    def update(self, images: torch.Tensor | Sequence[Item | Path | str], texts: torch.Tensor | Sequence[str]) -> None:
        cut = 0
        if self.judge is not None:
            images, texts, cut = self._encode(images, texts)
        scores = specs(images, texts)
        self.total += scores.sum(dtype=torch.float64)
        self.pairs += len(scores)
        self.cut += cut

    def _encode(
        self, images: Sequence[Item | Path | str], texts: Sequence[str]
    ) -> tuple[torch.Tensor, torch.Tensor, int]:
        """The embeddings, and how many texts are cut."""
        if isinstance(texts, str) or len(images) != len(texts):
            raise ValueError(f"a text for each image, not {len(images)} images and {len(texts)} texts")
        for number, text in enumerate(texts):
            if not text.strip():
                raise UserError(f"text {number} of {len(texts)} is empty: leave the pair out")
        items = [(Path(image), None) if isinstance(image, str | Path) else image for image in images]
        try:
            shown = self.judge.encode_images(items, self.batch)
        except Exception as error:
            faults = image_faults(self.judge, list(dict.fromkeys(path for path, _ in items)))
            if not faults:
                raise
            path, fault = next(iter(faults.items()))
            more = f" ({len(faults) - 1} more are bad)" if len(faults) > 1 else ""
            raise UserError(f"{path}: {fault}{more}: leave the pair out") from error
        longer = cut_texts(self.judge.tokenizer, texts)
        said = self.judge.encode_texts(texts, self.batch)
        pair = (torch.from_numpy(part).to(self.device) for part in (shown, said))
        return (*pair, sum(text in longer for text in texts))

    def compute(self) -> torch.Tensor:
        return (self.total / self.pairs).float()
