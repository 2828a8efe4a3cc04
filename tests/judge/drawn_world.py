"""Images that are only names, and judges that choose by these names: a world whose truth is known.

A prompt asks for a pair; what each generator draws is in the names of its images, such as
``half/test_unseen/3-red.png``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from compclip.judge.chooser import JudgedImage

COLORS = ("red", "blue", "green", "tan")
NOUNS = ("bill", "wing", "crown", "belly", "tail")
# The usual color of a noun is seen, and so is another one; the other two are held out.
USUAL, SEEN, *HELD_OUT = range(4)


def color_of(noun: int, number: int) -> str:
    """Return the color with this number for a noun; each noun has another order."""
    return COLORS[(noun + number) % len(COLORS)]


def prompts_and_variants(n: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return n prompts of each split, and their variants with all other colors."""
    rows = []
    variants = []
    for split, numbers in (("test_seen", (USUAL, SEEN)), ("test_unseen", HELD_OUT)):
        for index in range(n):
            noun = index % len(NOUNS)
            color = color_of(noun, numbers[index // len(NOUNS) % 2])
            key = {"split": split, "image_id": f"{split}-{index}", "caption_id": 0}
            text = f"a bird with a {color} {NOUNS[noun]}"
            pair = f"{color}_{NOUNS[noun]}"
            rows.append(key | {"draw": 0, "text": text, "pair": pair, "noun": noun})
            for other in COLORS:
                if other != color:
                    replaced = {"adjective": other, "text": text.replace(color, other)}
                    variants.append(key | replaced | {"changes": []})
    return pd.DataFrame(rows), pd.DataFrame(variants)


def draw(prompts: pd.DataFrame, generator: str, chance: float, seed: int) -> pd.DataFrame:
    """Return the entries of a generator that draws a held-out pair with a chance, and else the
    usual one; seen pairs are drawn as asked.
    """
    stream = np.random.default_rng(seed)
    paths = []
    for row in prompts.to_dict("records"):
        asked = row["pair"].split("_")[0]
        shows_pair = row["split"] == "test_seen" or stream.random() < chance
        color = asked if shows_pair else color_of(row["noun"], USUAL)
        paths.append(f"{generator}/{row['image_id']}-{color}.png")
    return prompts.drop(columns="noun").assign(generator=generator, path=paths)


def draw_usual(prompts: pd.DataFrame) -> pd.DataFrame:
    """Return the entries of a generator that draws another seen color than the one asked for."""
    paths = []
    for row in prompts.to_dict("records"):
        asked = row["pair"].split("_")[0]
        usual = color_of(row["noun"], USUAL)
        color = color_of(row["noun"], SEEN) if asked == usual else usual
        paths.append(f"usual/{row['image_id']}-{color}.png")
    return prompts.drop(columns="noun").assign(generator="usual", path=paths)


def world(chances: dict[str, float], n: int = 200) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the entries of generators by their chance to draw a held-out pair, and the variants;
    generators ``faithful`` and ``usual`` are the anchors.
    """
    prompts, variants = prompts_and_variants(n)
    entries = [draw(prompts, "faithful", 1, 0), draw_usual(prompts)]
    for seed, (name, chance) in enumerate(chances.items(), 1):
        entries.append(draw(prompts, name, chance, seed))
    return pd.concat(entries, ignore_index=True), variants


@dataclass
class NamedColors:
    """A judge that reads the color in an image's name, and is wrong with a chance.

    Attributes:
        error: the chance of a random answer.
        first_place: the chance to choose the first text, whatever it is.
    """

    error: float = 0.0
    first_place: float = 0.0
    name: str = "named"
    hash: str = "0"

    def choose(
        self, images: Sequence[JudgedImage], options: Sequence[Sequence[str]]
    ) -> list[np.ndarray]:
        stream = np.random.default_rng(len(images))
        answers = []
        for image, texts in zip(images, options, strict=True):
            color = Path(image.path).stem.rpartition("-")[2]
            right = next(place for place, text in enumerate(texts) if f" {color} " in text)
            if stream.random() < self.error:
                right = int(stream.integers(len(texts)))
            if stream.random() < self.first_place:
                right = 0
            chances = np.zeros(len(texts))
            chances[right] = 1
            answers.append(chances)
        return answers


class Silent(NamedColors):
    """A judge that answers nothing about the images of one generator."""

    def choose(self, images: Sequence[JudgedImage], options: Any) -> list[np.ndarray]:
        answers = super().choose(images, options)
        for image, chances in zip(images, answers, strict=True):
            if image.id.startswith("half/"):
                chances[:] = 0
        return answers
