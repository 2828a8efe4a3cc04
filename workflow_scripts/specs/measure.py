"""The SPECS score: how well a long caption fits its image, computed from the embeddings of both.

Source: Chen, Salazar and Kementchedjhieva, "SPECS" (EMNLP 2025), and the README of its release.
"""

from typing import Any

import torch
import torch.nn.functional as F

from workflow_scripts.clip.vision import import_torchvision

import_torchvision()

from torchmetrics import MeanMetric  # noqa: E402


def cosine(images: torch.Tensor, texts: torch.Tensor) -> torch.Tensor:
    """Return the cosine of each row of ``images`` (n, d) with the same row of ``texts`` (n, d), (n,).

    It is computed in float32, or in float64 if both are; the cosine of a row of zeros is 0.
    """
    if images.ndim != 2 or images.shape != texts.shape:
        raise ValueError(f"expected pairs of rows, got images {tuple(images.shape)} and texts {tuple(texts.shape)}")
    if not images.dtype == texts.dtype == torch.float64:
        images, texts = images.float(), texts.float()
    return F.cosine_similarity(images, texts, dim=-1)


def from_cosine(cosines: torch.Tensor) -> torch.Tensor:
    return ((cosines + 1) / 2).clamp(min=0)


def specs(images: torch.Tensor, texts: torch.Tensor) -> torch.Tensor:
    """Return the SPECS score, ``max((cos + 1) / 2, 0)``, of each pair of embeddings by one model, (n, d) each, (n,)."""
    return from_cosine(cosine(images, texts))


class SpecsScore(MeanMetric):
    """The mean SPECS score of all pairs of embeddings, over batches and processes.

    >>> score = SpecsScore()
    >>> score.update(torch.tensor([[1.0, 0.0], [1.0, 0.0]]), torch.tensor([[2.0, 0.0], [0.0, 1.0]]))
    >>> score.compute()
    tensor(0.7500)
    """

    higher_is_better = True  # type: ignore[assignment]

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.set_dtype(torch.float64)  # float32 would stop counting after many pairs

    def update(self, images: torch.Tensor, texts: torch.Tensor) -> None:  # type: ignore[override]
        super().update(specs(images, texts))

    def compute(self) -> torch.Tensor:
        return super().compute().float()
