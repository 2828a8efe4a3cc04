"""The SPECS score: how well a long caption fits its image, from the embeddings of both.

Source: Chen, Salazar and Kementchedjhieva, "SPECS" (EMNLP 2025), and the README of its release.
"""

import torch
import torch.nn.functional as F

from compclip.core.errors import require
from compclip.core.settings.arguments import Vectors
from compclip.core.settings.calls import checked


def cosine(images: torch.Tensor, texts: torch.Tensor) -> torch.Tensor:
    """Return the cosine of each row of ``images`` (n, d) with the same row of ``texts`` (n, d),
    (n,).

    Computed in float32, or in float64 if both inputs are; the cosine of a row of zeros is 0.
    """
    is_paired = images.ndim == 2 and images.shape == texts.shape
    shapes = f"{tuple(images.shape)} and texts {tuple(texts.shape)}"
    require(is_paired, "images", f"expected pairs of rows, got {shapes}")
    if not images.dtype == texts.dtype == torch.float64:
        images = images.float()
        texts = texts.float()
    return F.cosine_similarity(images, texts, dim=-1)


def from_cosine(cosines: torch.Tensor) -> torch.Tensor:
    # Rounding can make a cosine of opposite vectors slightly less than -1.
    return ((cosines + 1) / 2).clamp(min=0)


@checked
def specs_score(images: Vectors, texts: Vectors) -> torch.Tensor:
    """Return the SPECS score, ``max((cos + 1) / 2, 0)``, of pairs of embeddings by one model.

    Args:
        images, texts: (n, d), row i of both is a pair; of any length.

    Returns:
        (n,) from 0 to 1.

    Raises:
        UserError: the shapes or devices differ, or a value is NaN or infinite.
    """
    devices = f"expected {images.device}, as images, got {texts.device}"
    require(images.device == texts.device, "texts", devices, "move one of them")
    # before the check, because this refuses other shapes
    scores = cosine(images, texts)
    is_finite = (images.isfinite() & texts.isfinite()).all(dim=1)
    first_bad = (~is_finite).int().argmax()
    fault = f"row {first_bad}: NaN or infinite"
    require(is_finite.all(), "images or texts", fault, "use another model")
    return from_cosine(scores)
