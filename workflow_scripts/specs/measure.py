"""The SPECS score: how well a long caption fits its image, computed from the embeddings of both.

Source: Chen, Salazar and Kementchedjhieva, "SPECS" (EMNLP 2025), and the README of its release.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

from workflow_scripts.clip.embed import Encoder, Item, check_embeddings
from workflow_scripts.clip.tokens import cut_texts
from workflow_scripts.clip.vision import import_torchvision
from workflow_scripts.core.errors import UserError
from workflow_scripts.specs.score import image_faults

import_torchvision()

from torchmetrics import Metric  # noqa: E402


def cosine(images: torch.Tensor, texts: torch.Tensor) -> torch.Tensor:
    """Return the cosine of each row of ``images`` (n, d) with the same row of ``texts`` (n, d), (n,).

    It is computed in float32, or in float64 if both are; the cosine of a row of zeros is 0.
    """
    if images.ndim != 2 or images.shape != texts.shape:
        raise ValueError(f"expected pairs of rows, got images {tuple(images.shape)} and texts {tuple(texts.shape)}")
    if not images.dtype == texts.dtype == torch.float64:
        images, texts = images.float(), texts.float()
    return F.cosine_similarity(images, texts, dim=-1)


def specs(images: torch.Tensor, texts: torch.Tensor) -> torch.Tensor:
    """Return the SPECS score, ``max((cos + 1) / 2, 0)``, of each pair of embeddings by one model, (n, d) each, (n,)."""
    return from_cosine(cosine(images, texts))


def from_cosine(cosines: torch.Tensor) -> torch.Tensor:
    return ((cosines + 1) / 2).clamp(min=0)


class SpecsScore(Metric):
    """The mean SPECS score of all pairs, over batches and processes.

    Args:
        judge: encodes what ``update`` gets (``clip.model.load_judge``): paths of images, or pairs of a path and a
            bounding box, and captions. Captions longer than it reads are truncated and counted in ``cut``. An
            unreadable image or an empty text raises UserError with its name, and its batch does not count. Without
            a judge ``update`` takes embeddings, (n, d) each.

    >>> score = SpecsScore()
    >>> score.update(torch.tensor([[1.0, 0.0], [1.0, 0.0]]), torch.tensor([[2.0, 0.0], [0.0, 1.0]]))
    >>> score.compute()
    tensor(0.7500)
    """

    is_differentiable = True
    higher_is_better = True
    full_state_update = False

    total: torch.Tensor
    pairs: torch.Tensor
    cut: torch.Tensor

    def __init__(self, judge: Encoder | None = None, batch: int = 32, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.judge, self.batch = judge, batch
        # float64, because float32 would stop counting after many pairs.
        self.add_state("total", torch.tensor(0.0, dtype=torch.float64), dist_reduce_fx="sum")
        self.add_state("pairs", torch.tensor(0), dist_reduce_fx="sum")
        self.add_state("cut", torch.tensor(0), dist_reduce_fx="sum")

    def update(self, images: Any, texts: Any) -> None:
        truncated = 0
        if self.judge is not None:
            images, texts, truncated = self._encode(self.judge, images, texts)
        scores = specs(images, texts)
        self.total += scores.sum(dtype=torch.float64)
        self.pairs += len(scores)
        self.cut += truncated

    def _encode(
        self, judge: Encoder, images: Sequence[Item | Path | str], texts: Sequence[str]
    ) -> tuple[torch.Tensor, torch.Tensor, int]:
        if isinstance(texts, str) or len(images) != len(texts):
            raise ValueError(f"expected a text per image, got {len(images)} images and {len(texts)} texts")
        for number, text in enumerate(texts):
            if not text.strip():
                raise UserError(f"text {number} of {len(texts)} is empty; remove the pair")
        items = [(Path(image), None) if isinstance(image, str | Path) else image for image in images]
        try:
            pictures = judge.encode_images(items, self.batch)
        except Exception as error:
            faults = image_faults(judge, list(dict.fromkeys(path for path, _ in items)))
            if not faults:
                raise
            path, fault = next(iter(faults.items()))
            more = f" ({len(faults) - 1} more unreadable)" if len(faults) > 1 else ""
            raise UserError(f"{path}: {fault}{more}; remove the pair") from error
        truncated = cut_texts(judge.tokenizer, texts)
        captions = judge.encode_texts(texts, self.batch)
        check_embeddings(pictures, judge.name, lambda row: str(items[row][0]))
        check_embeddings(captions, judge.name, lambda row: f"text {row}")
        vectors = [torch.from_numpy(array).to(self.device) for array in (pictures, captions)]
        return vectors[0], vectors[1], sum(text in truncated for text in texts)

    def compute(self) -> torch.Tensor:
        return (self.total / self.pairs).float()
