"""The loss of SPECS: a caption finds its image, a right detail brings it nearer, a wrong one takes it farther.

Chen, Salazar and Kementchedjhieva, EMNLP 2025 (arXiv 2509.03897), and the code that they released.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F

from workflow_scripts.specs.config import SPECS

# The contrastive term alone (``config.SPECS``).
CONTRASTIVE = (1.0, 0.0, 0.0)

# An adaptive margin stays between these, in logits.
LOWEST, HIGHEST = 0.0, 1.5


class Losses(NamedTuple):
    """Scalars: ``total`` is the weighted sum of the other three, which are not weighted."""

    total: torch.Tensor
    contrastive: torch.Tensor
    detail: torch.Tensor
    negative: torch.Tensor


class Margin:
    """How much nearer to the image, in logits, the better of two texts is to be: ``epsilon``.

    Each hinge uses it and then, unless it is fixed, sets it to the difference that it found itself, on the average:
    it is at first 0; in a batch, details ask for what the negatives of the batch before achieved, and negatives for
    what the details have just achieved.

    fixed: a value other than 0 stays.
    """

    def __init__(self, fixed: float = 0.0) -> None:
        self.fixed = fixed != 0
        self.epsilon: float | torch.Tensor = fixed

    def hinge(self, better: torch.Tensor, worse: torch.Tensor) -> torch.Tensor:
        """The mean of ReLU(epsilon + worse - better), logits (n,); then epsilon adapts. Nothing flows through it."""
        loss = F.relu(self.epsilon + worse - better).mean()
        if not self.fixed:
            self.epsilon = (better.mean() - worse.mean()).detach().clamp(LOWEST, HIGHEST)
        return loss


def specs_loss(
    images: torch.Tensor,
    full: torch.Tensor,
    base: torch.Tensor,
    detail: torch.Tensor,
    negative: torch.Tensor,
    scale: torch.Tensor,
    margin: Margin,
    weights: tuple[float, float, float] = SPECS,
) -> Losses:
    """The contrastive term, the hinge of details, and behind it, with the margin that it left, that of negatives.

    images, and the caption of each in four forms: (n, d), rows of unit length that belong together. full: the whole
    caption; base: its first chunks; detail: one chunk more; negative: base but for its last chunk, which is another
    image's. scale: the inverse temperature; with it cosines are logits. The contrastive term goes one way only: each
    whole caption among the images of the batch.
    """
    logits = scale * full @ images.T
    contrastive = F.cross_entropy(logits, torch.arange(len(images), device=images.device))
    near, nearer, farther = scale * (torch.stack([base, detail, negative]) * images).sum(-1)
    details = margin.hinge(nearer, near)
    negatives = margin.hinge(near, farther)
    total = weights[0] * contrastive + weights[1] * details + weights[2] * negatives
    return Losses(total, contrastive, details, negatives)
