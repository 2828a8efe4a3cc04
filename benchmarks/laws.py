"""Laws of composing and styles of drawing, for generators whose truth is known:
``benchmarks.styles``.
"""

import io
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
from PIL import Image, ImageEnhance, ImageFilter, ImageOps

from compclip.dataset.sketch import draw
from compclip.dataset.sketch.draw import RGB, Color
from compclip.stats.composed import SEEN

# What is drawn for a prompt, and the fraction of the part that shows the pair then.
DRAWN = {"asked": 1.0, "bold": 1.0, "half": 0.5, "usual": 0.0, "unbound": 0.0, "ignored": 0.0}

Picture = Image.Image
Change = Callable[[Picture, int], Picture]  # of a picture, by a seed


def enhance(kind: Any, factor: float) -> Change:
    return lambda picture, seed: kind(picture).enhance(factor)


def blur(radius: float) -> Change:
    return lambda picture, seed: picture.filter(ImageFilter.GaussianBlur(radius))


def gamma(exponent: float) -> Change:
    curve = [round(255 * (value / 255) ** exponent) for value in range(256)]
    return lambda picture, seed: picture.point(curve * 3)


def tint(*factors: float) -> Change:
    def change(picture: Picture, seed: int) -> Picture:
        pixels = np.asarray(picture) * np.array(factors)
        return Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))

    return change


def noise(deviation: float) -> Change:
    def change(picture: Picture, seed: int) -> Picture:
        pixels = np.asarray(picture, dtype=float)
        pixels += np.random.default_rng(seed).normal(0, deviation, pixels.shape)
        return Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))

    return change


def jpeg(quality: int) -> Change:
    def change(picture: Picture, seed: int) -> Picture:
        buffer = io.BytesIO()
        picture.save(buffer, "jpeg", quality=quality)
        return Image.open(buffer).convert("RGB")

    return change


def coarse(size: int) -> Change:
    def change(picture: Picture, seed: int) -> Picture:
        small = picture.resize((size, size), Image.Resampling.BOX)
        return small.resize(picture.size, Image.Resampling.BICUBIC)

    return change


def moved(
    scale: float = 1.0, degrees: float = 0.0, right: float = 0.0, down: float = 0.0
) -> Change:
    """Scale, rotate and shift a picture; its edge continues outside."""

    def change(picture: Picture, seed: int) -> Picture:
        width, height = picture.size
        margin = width // 2
        pixels = np.pad(
            np.asarray(picture), ((margin, margin), (margin, margin), (0, 0)), mode="edge"
        )
        turn = np.deg2rad(degrees)
        cosine, sine = np.cos(turn) / scale, np.sin(turn) / scale
        center = width / 2 + margin
        x = center - cosine * (width / 2 + right) - sine * (height / 2 + down)
        y = center + sine * (width / 2 + right) - cosine * (height / 2 + down)
        matrix = (cosine, sine, x, -sine, cosine, y)
        return Image.fromarray(pixels).transform(
            (width, height), Image.Transform.AFFINE, matrix, Image.Resampling.BICUBIC
        )

    return change


def mixed_colors(fraction: float, other: Color) -> dict[str, Color]:
    """Return the palette with a fraction of another color in each."""
    mixed = {
        name: (1 - fraction) * np.array(color) + fraction * np.array(other)
        for name, color in RGB.items()
    }
    return {name: tuple(int(value) for value in color) for name, color in mixed.items()}  # type: ignore[misc]


OTHER_PALETTE: dict[str, Color] = {
    "black": (40, 34, 40),
    "blue": (60, 120, 200),
    "brown": (140, 90, 50),
    "gray": (140, 140, 140),
    "green": (70, 170, 50),
    "orange": (240, 145, 50),
    "pink": (250, 160, 200),
    "purple": (120, 50, 170),
    "red": (190, 45, 45),
    "tan": (215, 185, 140),
    "white": (240, 240, 235),
    "yellow": (235, 215, 70),
}
OTHER_BACKGROUNDS = (
    (120, 140, 90),
    (240, 240, 240),
    (90, 110, 140),
    (200, 170, 130),
    (150, 120, 150),
    (60, 70, 80),
)


@dataclass(frozen=True)
class Style:
    """How a generator draws: constants of ``sketch.draw`` that it replaces, and changes of each
    picture, in turn.
    """

    changes: tuple[Change, ...] = ()
    constants: dict[str, Any] = field(default_factory=dict)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Draw in this style meanwhile."""
        with ExitStack() as stack:
            for name, value in self.constants.items():
                stack.enter_context(mock.patch.object(draw, name, value))
            yield

    def of(self, picture: Picture, seed: int) -> Picture:
        for change in self.changes:
            picture = change(picture, seed)
        return picture


STYLES = {
    "plain": Style(),
    "brightness 0.8": Style((enhance(ImageEnhance.Brightness, 0.8),)),
    "brightness 1.15": Style((enhance(ImageEnhance.Brightness, 1.15),)),
    "saturation 0.7": Style((enhance(ImageEnhance.Color, 0.7),)),
    "contrast 0.7": Style((enhance(ImageEnhance.Contrast, 0.7),)),
    "gamma 1.5": Style((gamma(1.5),)),
    "warm light": Style((tint(1.1, 1.0, 0.88),)),
    "85 % of the size": Style((moved(0.85),)),
    "75 % of the size": Style((moved(0.75),)),
    "110 % of the size": Style((moved(1.1),)),
    "6 px to the side": Style((moved(right=6),)),
    "4 px left and down": Style((moved(right=-4, down=4),)),
    "rotated by 10°": Style((moved(degrees=10),)),
    "mirrored": Style((lambda picture, seed: ImageOps.mirror(picture),)),
    "blur 1 px": Style((blur(1),)),
    "blur 2 px": Style((blur(2),)),
    "noise 15": Style((noise(15),)),
    "noise 30": Style((noise(30),)),
    "JPEG quality 20": Style((jpeg(20),)),
    "32 px and back": Style((coarse(32),)),
    "pale palette": Style(constants={"RGB": mixed_colors(0.25, (128, 128, 128))}),
    "other palette": Style(constants={"RGB": OTHER_PALETTE}),
    "line drawing": Style(
        constants={"RGB": mixed_colors(0.4, (255, 255, 255)), "edge": lambda color: (20, 20, 20)}
    ),
    "other background": Style(constants={"BACKGROUNDS": OTHER_BACKGROUNDS}),
    "dark and small": Style((enhance(ImageEnhance.Brightness, 0.8), moved(0.85))),
    "pale, blurred, shifted": Style(
        (enhance(ImageEnhance.Color, 0.8), blur(1), moved(right=3, down=3))
    ),
}


@dataclass(frozen=True)
class Prompts:
    """What a law may depend on, a row or value for each prompt.

    Args:
        table: with split, pair, adjective and noun.
        frequency: (n,) from 0, the rarest pair, to 1.
        visible: (n,) from 0, the smallest part, to 1.
        recognized: (n,) whether the judges recognize the pair.
    """

    table: pd.DataFrame
    frequency: np.ndarray
    visible: np.ndarray
    recognized: np.ndarray

    @property
    def held_out(self) -> np.ndarray:
        return (self.table["split"] != SEEN).to_numpy()

    def some(self, column: str, fraction: float, random: np.random.Generator) -> np.ndarray:
        """Return which prompts have one of a random fraction of the values of held-out prompts in a
        column.
        """
        values = np.sort(self.table.loc[self.held_out, column].unique())
        chosen = random.permutation(values)[: round(fraction * len(values))]
        return self.table[column].isin(chosen).to_numpy()


# From prompts and a random generator to what is drawn for each: a key of ``DRAWN``.
Law = Callable[[Prompts, np.random.Generator], np.ndarray]


def held_out_only(
    other: str,
    is_composed: Callable[[Prompts, np.random.Generator], np.ndarray],
    like: str = "asked",
) -> Law:
    """Draw seen prompts as asked; held-out ones that are composed like ``like``, and the others
    like ``other``.
    """

    def law(prompts: Prompts, random: np.random.Generator) -> np.ndarray:
        held_out = np.where(is_composed(prompts, random), like, other)
        return np.where(prompts.held_out, held_out, "asked")

    return law


def by_prompt(fraction: float) -> Callable[[Prompts, np.random.Generator], np.ndarray]:
    return lambda prompts, random: random.random(len(prompts.table)) < fraction


def by_value(column: str, fraction: float) -> Callable[[Prompts, np.random.Generator], np.ndarray]:
    return lambda prompts, random: prompts.some(column, fraction, random)


def with_ignored(fraction: float, law: Law, other: str = "ignored") -> Law:
    """Draw a part of all prompts, seen ones, too, as ``other``, and the rest by another law."""

    def changed(prompts: Prompts, random: np.random.Generator) -> np.ndarray:
        return np.where(random.random(len(prompts.table)) < fraction, other, law(prompts, random))

    return changed


LAWS: dict[str, Law] = {
    "composes all": held_out_only("usual", by_prompt(1.0)),
    "composes nothing": held_out_only("usual", by_prompt(0.0)),
    "a quarter of the prompts": held_out_only("usual", by_prompt(0.25)),
    "half of the prompts": held_out_only("usual", by_prompt(0.5)),
    "three quarters of the prompts": held_out_only("usual", by_prompt(0.75)),
    "a quarter of the pairs": held_out_only("usual", by_value("pair", 0.25)),
    "half of the pairs": held_out_only("usual", by_value("pair", 0.5)),
    "three quarters of the pairs": held_out_only("usual", by_value("pair", 0.75)),
    "half of the nouns": held_out_only("usual", by_value("noun", 0.5)),
    "half of the adjectives": held_out_only("usual", by_value("adjective", 0.5)),
    "by frequency": held_out_only(
        "usual", lambda of, random: random.random(len(of.table)) < of.frequency
    ),
    "by visibility": held_out_only(
        "usual", lambda of, random: random.random(len(of.table)) < of.visible
    ),
    "recognized pairs alone": held_out_only("usual", lambda of, random: of.recognized),
    "unrecognized pairs alone, boldly": held_out_only(
        "usual", lambda of, random: ~of.recognized, "bold"
    ),
    "all held-out prompts boldly": held_out_only("usual", by_prompt(1.0), "bold"),
    "half of the pairs, boldly": held_out_only("usual", by_value("pair", 0.5), "bold"),
    "ignores 30 % of all prompts": with_ignored(0.3, held_out_only("usual", by_prompt(1.0))),
    "ignores 30 %, composes half": with_ignored(0.3, held_out_only("usual", by_prompt(0.5))),
    "30 % of all on wrong parts": with_ignored(
        0.3, held_out_only("usual", by_prompt(1.0)), "unbound"
    ),
    "half of held-out on wrong parts": held_out_only("unbound", by_prompt(0.5)),
    "half of each held-out part": held_out_only("usual", by_prompt(1.0), "half"),
}
