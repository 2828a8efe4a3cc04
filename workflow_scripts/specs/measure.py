"""SPECS: how well a long caption fits its image, from the embeddings of both.

Source: Chen, Salazar and Kementchedjhieva, "SPECS" (EMNLP 2025), and the README of its release.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F

from workflow_scripts.common.vision import import_torchvision
from workflow_scripts.judge.tokens import cut_texts
from workflow_scripts.score.embed import Encoder, Item

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

    judge: encodes what ``update`` is given, files of images and captions (``judge.model.load_judge``). Without one
    ``update`` takes the embeddings, (n, d) each. With one, ``cut`` counts captions longer than it reads, which are
    scored by their beginning.

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

    def update(self, images: torch.Tensor | Sequence[Item], texts: torch.Tensor | Sequence[str]) -> None:
        if self.judge is not None:
            longer = cut_texts(self.judge.tokenizer, texts)
            self.cut += sum(text in longer for text in texts)
            images = torch.from_numpy(self.judge.encode_images(images, self.batch)).to(self.device)
            texts = torch.from_numpy(self.judge.encode_texts(texts, self.batch)).to(self.device)
        scores = specs(images, texts)
        self.total += scores.sum(dtype=torch.float64)
        self.pairs += len(scores)

    def compute(self) -> torch.Tensor:
        return (self.total / self.pairs).float()
