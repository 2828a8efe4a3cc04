"""CLIP's symmetric contrastive loss (Radford et al. 2021, figure 3)."""

import torch
import torch.nn.functional as F


def clip_loss(
    images: torch.Tensor, texts: torch.Tensor, scale: torch.Tensor, negatives: torch.Tensor | None = None
) -> torch.Tensor:
    """Return the mean of two cross-entropies: each image among all texts of the batch, each text among all images.

    Equal captions in a batch count as wrong for each other, as in the paper. ``images`` and ``texts`` are (n, d), of
    unit length; ``scale`` is the inverse temperature; ``negatives`` (m, d) are wrong for every image (NegCLIP,
    Yuksekgonul et al. 2023).
    """
    logits = scale * images @ texts.T
    of_images = logits if negatives is None else torch.cat([logits, scale * images @ negatives.T], dim=1)
    target = torch.arange(len(images), device=images.device)
    return (F.cross_entropy(of_images, target) + F.cross_entropy(logits.T, target)) / 2
