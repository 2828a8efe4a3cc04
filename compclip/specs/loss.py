"""The loss of SPECS: captions retrieve their images, right details raise the similarity, wrong ones
lower it.

Source: Chen, Salazar and Kementchedjhieva, EMNLP 2025 (arXiv 2509.03897), and its released code.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import torch
import torch.nn.functional as F

from compclip.core.errors import require
from compclip.core.settings.arguments import Vectors
from compclip.core.settings.calls import checked

# Weights of the contrastive term, the details and the negatives: as published, and only the
# contrastive term.
LOSS_WEIGHTS = {"specs": (1.0, 8.0, 0.8), "contrastive": (1.0, 0.0, 0.0)}
MARGIN_RANGE = (0.0, 1.5)  # in logits, as published


class Losses(NamedTuple):
    """Scalars; ``total`` is the weighted sum of the other three, which are unweighted."""

    total: torch.Tensor
    contrastive: torch.Tensor  # L_con of the paper
    detail: torch.Tensor  # L_detail
    negative: torch.Tensor  # L_neg


class Margin:
    """The adaptive margin of the hinges, in logits: ``epsilon``.

    It starts at 0, and each hinge, after using it, sets it to its own mean difference. So details
    use the difference of the previous batch's negatives, and negatives that of the current details.
    """

    def __init__(self) -> None:
        self.epsilon: float | torch.Tensor = 0.0

    def hinge(self, better: torch.Tensor, worse: torch.Tensor) -> torch.Tensor:
        """Return the mean of ReLU(epsilon + worse - better), logits (n,), then adapt epsilon, which
        has no gradient.
        """
        loss = F.relu(self.epsilon + worse - better).mean()
        self.epsilon = (better.mean() - worse.mean()).detach().clamp(*MARGIN_RANGE)
        return loss


@dataclass(frozen=True)
class Objective:
    """How a training weighs the terms of its loss, and the margin, which each batch passes on to
    the next.
    """

    weights: tuple[float, float, float] = LOSS_WEIGHTS["specs"]
    margin: Margin = field(default_factory=Margin)


@checked
def specs_loss(
    images: Vectors,
    full: Vectors,
    base: Vectors,
    detail: Vectors,
    negative: Vectors,
    scale: torch.Tensor,
    objective: Objective | None = None,
) -> Losses:
    """Return the contrastive term, the hinge of details and, with the adapted margin, the hinge of
    negatives.

    Args:
        images: (n, d) embeddings of unit length; row i of each of the texts belongs to image i.
        full: (n, d) the whole captions. The contrastive term has only one direction, text to image.
        base: (n, d) the captions' first chunks.
        detail: (n, d) one chunk more than base.
        negative: (n, d) base with its last chunk replaced by another image's.
        scale: the inverse temperature, which turns cosines into logits.
        objective: weights of the terms, and the margin after the previous batch; None: the
            published weights, and the margin of a first batch.

    Returns:
        Scalars; ``total`` is NaN if an input is NaN or infinite. An error would wait for the GPU in
        each step.

    Raises:
        UserError: the shapes, dtypes or devices differ, or an input is not a tensor of floats.
    """
    texts = {"full": full, "base": base, "detail": detail, "negative": negative}
    for name, rows in texts.items():
        _require_like_images(name, rows, images)
    objective = objective or Objective()
    logits = scale * full @ images.T  # (n, n), a row per caption
    own_image = torch.arange(len(images), device=images.device)
    contrastive = F.cross_entropy(logits, own_image)
    # (3, n): s in the paper's hinges, L = mean ReLU(ε + s(worse) - s(better))
    cosines = (torch.stack([base, detail, negative]) * images).sum(-1)
    base_logits, detail_logits, negative_logits = scale * cosines
    # This order matters: the first hinge sets the margin of the second.
    detail_loss = objective.margin.hinge(detail_logits, base_logits)
    negative_loss = objective.margin.hinge(base_logits, negative_logits)
    contrastive_weight, detail_weight, negative_weight = objective.weights
    total = contrastive_weight * contrastive
    total = total + detail_weight * detail_loss + negative_weight * negative_loss
    # The hinges of infinite embeddings are finite.
    inputs = (images, *texts.values(), scale)
    is_finite = torch.stack([rows.isfinite().all() for rows in inputs]).all()
    total = torch.where(is_finite, total, torch.nan)
    return Losses(total, contrastive, detail_loss, negative_loss)


def _require_like_images(name: str, rows: torch.Tensor, images: torch.Tensor) -> None:
    shapes = f"expected {tuple(images.shape)}, as images, got {tuple(rows.shape)}"
    require(rows.shape == images.shape, name, shapes)
    expected = f"{images.dtype} on {images.device}"
    actual = f"{rows.dtype} on {rows.device}"
    fault = f"expected {expected}, as images, got {actual}"
    require(actual == expected, name, fault, "convert one of them")
