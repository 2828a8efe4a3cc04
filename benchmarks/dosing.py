"""Give images of held-out pairs back to a training list: to each pair its dose, and nothing more.

Every image with a held-out pair is in test_unseen, so the images of the doses are new. They are
among the next birds that the source would draw: a bird is taken if its captions state one held-out
pair, and this pair still lacks images. They are distributed like the images of seen pairs: the pair
is not drawn more boldly or named more often.
"""

import itertools
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from compclip.core.artifacts.heldout import split_pair
from compclip.core.errors import UserError, require
from compclip.core.seeds import rng
from compclip.dataset.sketch.draw import paint_scene, png
from compclip.dataset.sketch.world import make_world
from compclip.dataset.sources.sketch import Bird, Settings, make_bird
from compclip.split.audit import read_heldout_pairs
from compclip.split.reading import reader_of
from compclip.text.lexicon import forms_of

ASSIGNMENTS = 2000  # random ones of doses to pairs; the most balanced one is taken
MOST_BIRDS = 2_000_000  # that are looked at for images of a pair


def choose_doses(pairs: Sequence[str], doses: Sequence[int], seed: int) -> dict[str, int]:
    """Return a dose for each pair.

    Each dose has equally many pairs, up to one. Of seeded random assignments, the one is taken in
    which pairs with the same adjective or noun have the same dose least often, so that a dose does
    not stand for an adjective.

    Raises:
        UserError: there are fewer pairs than doses.
    """
    fault = f"{len(pairs)} held-out pairs for {len(doses)} doses"
    require(len(pairs) >= len(doses), "doses", fault, "hold out more pairs or choose fewer doses")
    random = rng(seed, "doses")
    best, least = dict[str, int](), np.inf
    for _ in range(ASSIGNMENTS):
        # The doses that more pairs have differ, too.
        levels = random.permutation(np.resize(random.permutation(doses), len(pairs)))
        chosen = dict(zip(sorted(pairs), levels.tolist(), strict=True))
        repeats = _repeats(chosen)
        if repeats < least:
            best, least = chosen, repeats
    return best


def _repeats(chosen: Mapping[str, int]) -> int:
    """Return how many pairs of pairs share an adjective or a noun, and the dose."""
    words = Counter(
        (side, word, dose)
        for pair, dose in chosen.items()
        for side, word in enumerate(split_pair(pair))
    )
    return sum(count * (count - 1) // 2 for count in words.values())


@dataclass(frozen=True)
class DosedBird:
    """A further bird of the data set, with the held-out pair that its captions state."""

    image_id: str
    pair: str
    bird: Bird


def further_birds(
    settings: Settings, seed: int, doses: Mapping[str, int], kind: str
) -> Iterator[DosedBird]:
    """Yield the birds that the source would draw next, until each pair has its dose.

    A bird counts if its captions state exactly one held-out pair.

    Args:
        settings, seed: of the data set.
        doses: the dose of each held-out pair.
        kind: the composition, color or shape.

    Raises:
        UserError: the pairs are too rare.
    """
    world = make_world(seed, settings.species)
    missing = Counter(doses)
    for index in itertools.count(settings.images):
        missing = +missing
        if not missing:
            return
        if index - settings.images >= MOST_BIRDS:
            raise UserError(
                f"doses: too few birds show {', '.join(sorted(missing))}; choose smaller doses"
            )
        bird = make_bird(settings, world, seed, index)
        facts = (fact for caption in bird.captions for fact in caption.facts if fact.kind == kind)
        stated = {f"{fact.value}_{fact.part}" for fact in facts} & doses.keys()
        if len(stated) == 1 and missing[pair := stated.pop()]:
            missing[pair] -= 1
            yield DosedBird(str(index), pair, bird)


def write_birds(birds: Iterator[DosedBird], size: int, folder: Path) -> pd.DataFrame:
    """Draw birds into ``folder``; return image_id, caption_id, file_name (in the folder) and text
    of each caption.
    """
    folder.mkdir()
    rows = []
    for dosed in birds:
        name = f"{dosed.image_id}.png"
        (folder / name).write_bytes(png(paint_scene(dosed.bird.scene, dosed.bird.pose, size)))
        rows += [
            (dosed.image_id, number, name, of.text) for number, of in enumerate(dosed.bird.captions)
        ]
    return pd.DataFrame(rows, columns=["image_id", "caption_id", "file_name", "text"])


def count_stated(
    captions: pd.DataFrame, heldout: Collection[str], adjectives: str, nouns: str | None
) -> dict[str, int]:
    """Return the number of images whose captions state each held-out pair, as the audit reads them.

    Args:
        captions: image_id and text.
        heldout: the held-out pairs.
        adjectives, nouns: names of lexicons.
    """
    reader = reader_of(heldout, *forms_of(adjectives, nouns), None)
    read = read_heldout_pairs(
        captions["text"].unique(), {split_pair(pair) for pair in heldout}, reader
    )
    stated = read[read["reading"] == "stated"].merge(captions, on="text")
    images = stated.groupby("pair")["image_id"].nunique()
    return {pair: int(images.get(pair, 0)) for pair in sorted(heldout)}


def check_doses(
    captions: pd.DataFrame, doses: Mapping[str, int], adjectives: str, nouns: str | None
) -> None:
    """Raise UserError if a pair is not stated in as many images of a training list as its dose."""
    counts = count_stated(captions, doses, adjectives, nouns)
    wrong = [
        f"{pair} in {counts[pair]} images instead of {dose}"
        for pair, dose in doses.items()
        if counts[pair] != dose
    ]
    require(
        not wrong, "training list", f"the audit reads {'; '.join(wrong)}", "report this as a bug"
    )
