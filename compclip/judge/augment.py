"""Change the light, colors, size and position of training images, so that a judge reads images of
other styles.

A judge that has seen only one style takes a darker or smaller image for another bird. Hue never
changes, because captions name colors.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, fields

import torch
import torch.nn.functional as F

from compclip.clip.device import to_device
from compclip.core.seeds import derive_seed

# Factors of the mild changes. They are drawn uniformly in their logarithm, so that halving is as
# likely as doubling.
SIZE = (0.84, 1.06)
LIGHT = (0.8, 1.12)
CONTRAST = (0.83, 1.1)
GAMMA = (0.85, 1.25)
SATURATION = (0.82, 1.1)
MAX_SHIFT = 0.08  # to either side, in sides of the image
UNMOVED = 0.1  # fraction of the images that keep size and position, so that some stay sharp
NOISE = 8.0  # largest standard deviation of noise, of 255
VIEWS = 4  # of an image that a frozen part encodes beforehand; the first is the image itself
# Fractions of the steps before the first change and until the changes are complete. A judge that
# starts with changed images learns colors and parts much more slowly.
START, FULL = 0.3, 0.5
MAX = 255.0
LUMINANCE = (0.299, 0.587, 0.114)  # of red, green and blue, by ITU-R BT.601


@dataclass(frozen=True)
class Changes:
    """Changes of n images, each (n,).

    ``size``, ``light``, ``contrast`` and ``saturation`` are factors, ``gamma`` an exponent,
    ``right`` and ``down`` shifts in sides of the image, ``noise`` a factor of the noise drawn by
    ``grain``. ``view`` selects one of the ``VIEWS`` that are kept of an image instead, if a frozen
    part encodes it only once.
    """

    view: torch.Tensor
    size: torch.Tensor
    right: torch.Tensor
    down: torch.Tensor
    light: torch.Tensor
    contrast: torch.Tensor
    gamma: torch.Tensor
    saturation: torch.Tensor
    noise: torch.Tensor
    grain: int  # a seed, equal for all n images

    def each(self, convert: Callable[[torch.Tensor], torch.Tensor]) -> "Changes":
        """Return the changes with all tensors converted."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        grain = values.pop("grain")
        converted = {name: convert(tensor) for name, tensor in values.items()}
        return Changes(**converted, grain=grain)


def strength_at(step: int, steps: int) -> float:
    """Return how strong changes are at ``step`` (from 0) of ``steps``: 0 (none) to 1."""
    progress = (step / steps - START) / (FULL - START)
    return min(1.0, max(0.0, progress))


def draw_changes(n: int, seed: int, *keys: str | int, strength: float = 1.0) -> Changes:
    """Draw the changes of n images; they depend on the arguments alone, so a training resumes to
    the same.
    """
    generator = torch.Generator().manual_seed(derive_seed(seed, "augment", *keys))

    def uniform(low: float, high: float) -> torch.Tensor:
        return low + (high - low) * torch.rand(n, generator=generator)

    def factor(bounds: tuple[float, float]) -> torch.Tensor:
        low, high = bounds
        return (strength * uniform(math.log(low), math.log(high))).exp()

    # The order of the draws decides every judge's weights: keep it.
    is_moved = uniform(0, 1) >= UNMOVED
    other_view = torch.randint(VIEWS, (n,), generator=generator)
    is_other = uniform(0, 1) < strength

    def shift() -> torch.Tensor:
        return torch.where(is_moved, strength * uniform(-MAX_SHIFT, MAX_SHIFT), 0.0)

    # Python evaluates these arguments, and so draws them, from top to bottom.
    return Changes(
        view=torch.where(is_other, other_view, 0),
        size=torch.where(is_moved, factor(SIZE), 1.0),
        right=shift(),
        down=shift(),
        light=factor(LIGHT),
        contrast=factor(CONTRAST),
        gamma=factor(GAMMA),
        saturation=factor(SATURATION),
        noise=strength * uniform(-NOISE, NOISE),
        grain=derive_seed(seed, "grain", *keys),
    )


def change(pixels: torch.Tensor, changes: Changes) -> torch.Tensor:
    """Return changed images, (n, height, width, 3) from 0 to 255, of the same shape and range.

    First size and position change, around the center, with the border continued outward. Then
    light, contrast and gamma change the gray value of each pixel, and saturation how far its colors
    lie from it. So a hue stays, unless a color leaves the range and is limited to it. At last, gray
    noise is added.
    """
    # Each image gets its own multiple of one pattern: noise for each image would cost more than all
    # other changes.
    generator = torch.Generator().manual_seed(changes.grain)
    # Drawn on the CPU, because a GPU's generator gives other numbers.
    pattern = torch.randn(pixels.shape[1:3], generator=generator)
    noise = _per_image(changes.noise) * to_device(pattern, pixels.device)
    return _tone(_move(pixels, changes), changes, noise)


def _per_image(values: torch.Tensor) -> torch.Tensor:
    """Return ``values`` (n,) in the form (n, 1, 1), which applies to all pixels of an image."""
    return values[:, None, None]


def _move(pixels: torch.Tensor, changes: Changes) -> torch.Tensor:
    height, width = pixels.shape[1:3]
    # The point in the image that each row and column of the result shows. Without rotation, rows do
    # not depend on columns, which costs a quarter of ``F.affine_grid``.
    x = _sampling_points(width, changes.right, changes.size)
    y = _sampling_points(height, changes.down, changes.size)
    columns = x[:, None, :].expand(-1, height, -1)
    rows = y[:, :, None].expand(-1, -1, width)
    grid = torch.stack([columns, rows], dim=-1)
    channels_first = pixels.permute(0, 3, 1, 2)
    moved = F.grid_sample(channels_first, grid, padding_mode="border", align_corners=False)
    return moved.permute(0, 2, 3, 1).contiguous()


def _sampling_points(length: int, shift: torch.Tensor, size: torch.Tensor) -> torch.Tensor:
    """Return (n, length) coordinates of ``F.grid_sample``, from -1 to 1 at the ends of a side."""
    centers = (2 * torch.arange(length, device=size.device) + 1) / length - 1
    # A side has length 2 in these coordinates, and 1 in those of the shift.
    return (centers - 2 * shift[:, None]) / size[:, None]


def _tone(pixels: torch.Tensor, changes: Changes, noise: torch.Tensor) -> torch.Tensor:
    light = _per_image(changes.light)
    contrast = _per_image(changes.contrast)
    gray = pixels @ to_device(torch.tensor(LUMINANCE), pixels.device)
    mean = gray.mean(dim=(1, 2), keepdim=True)
    # at least 1, because the strength below divides by it
    toned = (light * (mean + contrast * (gray - mean))).clamp_(1, MAX)
    # Gamma acts on the gray value: a power of each color by itself would change hues.
    curved = (toned / MAX).pow_(_per_image(changes.gamma)).mul_(MAX)
    # How far a pixel's colors lie from its gray value changes with the light, too.
    strength = _per_image(changes.saturation) * light * contrast * (curved / toned)
    # new color = curved + strength * (color - gray) + noise
    offset = curved - strength * gray + noise
    return (pixels * strength[..., None]).add_(offset[..., None]).clamp_(0, MAX)
