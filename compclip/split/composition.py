"""What the steps of a composition share: its lexicons, and its random numbers."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from compclip.core import seeds
from compclip.text.lexicon import Lexicon, forms_of


class Lexicons(NamedTuple):
    """Lexicons, or their names in ``lexicons``."""

    adjectives: Lexicon | str
    nouns: Lexicon | str | None = None  # None: each step says which nouns count
    compounds: Lexicon | None = None  # None: ``lexicons/compounds/common.yaml``

    def forms(self) -> tuple[dict[str, str], dict[str, str] | None]:
        """Return the canonical words of the adjectives' forms and, given a lexicon, of nouns'."""
        return forms_of(self.adjectives, self.nouns)


@dataclass(frozen=True)
class Seeding:
    """The seed and the names from which the random generators of a composition derive."""

    seed: int = 0
    dataset: str = "dataset"
    composition: str = "composition"

    @property
    def location(self) -> str:
        """The data set and the composition, as messages and file names give them."""
        return f"{self.dataset}/{self.composition}"

    def rng(self, step: str, *keys: str) -> np.random.Generator:
        """Return the generator of a step, the same for the same seed, names and keys."""
        return seeds.rng(self.seed, step, self.dataset, self.composition, *keys)
