"""Made-up data sets whose pairs are known because the captions are built from them."""

import re
from dataclasses import dataclass
from itertools import product

import numpy as np
import pandas as pd

from compclip.core.tables import PAIRS
from compclip.split.wording import Mention
from compclip.text.lexicon import Lexicon

COLORS = {"red": "red", "blue": "blue", "gray": "gray", "grey": "gray", "orange": "orange", "black": "black"}
NOUNS = {"wing": "wing", "wings": "wing", "bill": "bill", "beak": "bill", "belly": "belly", "eye ring": "eyering"}
LEXICONS = Lexicon("color", COLORS), Lexicon("parts", NOUNS)

SHAPES = {w: w for w in ("long", "short", "small", "large", "pointed", "curved", "round", "sharp", "thin")}


def mention(
    text: str, adjective: str, noun: str, canonical: str = "", relation: str = "adjacent", n: int = 0
) -> Mention:
    """The ``n``-th place of ``adjective`` and the first of ``noun`` after it, or before where none is after."""
    start = [m.start() for m in re.finditer(rf"\b{adjective}\b", text)][n]
    at = text.find(noun, start)
    at = text.rfind(noun, 0, start) if at < 0 else at
    canonical = canonical or {**COLORS, **SHAPES}[adjective.lower()]
    known = NOUNS.get(noun, noun.removesuffix("s"))
    return Mention(canonical, known, start, start + len(adjective), at, at + len(noun), relation)


def mentions(text: str, *said: str) -> list[Mention]:
    """A mention for each ``adjective noun``, whose other words are a relation and the number of the place."""
    found = []
    for adjective, noun, *more in map(str.split, said):
        relation = next((word for word in more if word.isalpha()), "adjacent")
        place = next((int(word) for word in more if word.isdigit()), 0)
        found.append(mention(text, adjective, noun, relation=relation, n=place))
    return found


@dataclass(frozen=True)
class World:
    """captions, images, pairs, ranking: as the tables of those names."""

    captions: pd.DataFrame
    images: pd.DataFrame
    pairs: pd.DataFrame
    ranking: pd.DataFrame


def rank(pairs: pd.DataFrame) -> pd.DataFrame:
    """The ranking of all pairs of a table that are not disputed."""
    sure = pairs[pairs["relation"] != "disputed"]
    table = sure.groupby(["adjective", "noun"]).agg(count=("image_id", "size"), images=("image_id", "nunique"))
    table = table.reset_index().sort_values(["count", "adjective", "noun"], ascending=[False, True, True])
    rank = np.arange(1, len(table) + 1)
    return table.assign(rank=rank, percentile=100 * (rank - 0.5) / max(len(table), 1)).reset_index(drop=True)


def images_table(image_ids: list[str], paths: list[str | None] | None = None) -> pd.DataFrame:
    paths = paths or [None] * len(image_ids)
    table = pd.DataFrame({"image_id": image_ids, "path": pd.Series(paths, dtype="str")})
    for name in ("width", "height"):
        table[name] = pd.array([None if path is None else 9 for path in paths], dtype="Int64")
    for name in ("bbox_x", "bbox_y", "bbox_w", "bbox_h"):
        table[name] = float("nan")
    return table


def captions_table(rows: list[tuple[str, int, str]]) -> pd.DataFrame:
    table = pd.DataFrame(rows, columns=["image_id", "caption_id", "text"])
    table.insert(2, "class_id", pd.Series([None] * len(rows), dtype="str"))
    return table


def pairs_table(rows: list[tuple]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=list(PAIRS.columns))


class Sentence:
    """A caption under construction, and the pairs said in it."""

    def __init__(self) -> None:
        self.text = ""
        self.said: list[tuple[str, str, int, int, int, int, str]] = []

    def put(self, word: str) -> tuple[int, int]:
        self.text += (" " if self.text else "") + word
        return len(self.text) - len(word), len(self.text)

    def say(self, adjective: str, noun: str, a: tuple[int, int], n: tuple[int, int], relation: str) -> None:
        self.said.append((COLORS[adjective.lower()], NOUNS[noun], *a, *n, relation))


def sentence(generator: np.random.Generator) -> Sentence:
    """A few phrases in varied syntax; pairs by construction."""
    made = Sentence()
    made.put("This bird has")
    nouns = list(NOUNS)
    for number in range(int(generator.integers(1, 4))):
        if number:
            made.put(str(generator.choice(["with", "and a very", "but also the"])))
        one, two = (str(w) for w in generator.choice(list(COLORS), 2))
        noun, other = (str(w) for w in generator.choice(nouns, 2))
        kind = int(generator.integers(6))
        if kind == 0:
            n = made.put(noun)
        elif kind == 1:
            made.put("an" if one[0] == "o" else "a")
            a = made.put(one.upper() if generator.integers(5) == 0 else one)
            made.say(one, noun, a, made.put(noun), "adjacent")
        elif kind == 2:
            a = made.put(one)
            made.put("and")
            b = made.put(two)
            n = made.put(noun)
            made.say(one, noun, a, n, "adjacent")
            made.say(two, noun, b, n, "adjacent")
        elif kind == 3:
            n = made.put(noun)
            made.put("that is")
            made.say(one, noun, made.put(one), n, "predicative")
        elif kind == 4:
            a = made.put(one)
            n = made.put(noun)
            made.put("and")
            made.say(one, noun, a, n, "adjacent")
            made.say(one, other, a, made.put(other), "shared")
        else:
            n = made.put(noun)
            made.put("seen by whom")
            made.say(one, noun, made.put(one), n, "disputed")
    made.put(str(generator.choice(["in flight", "that flies", "on a tree."])))
    return made


def world(seed: int, images: int = 60, captions: int = 3) -> World:
    """A data set of which ``seed`` decides everything."""
    generator = np.random.default_rng(seed)
    texts, said = [], []
    for image, number in product(range(images), range(captions)):
        made = sentence(generator)
        name = f"{image % 5:03d}.Kind/Kind_{image:04d}"
        texts.append((name, number, made.text))
        said += [(name, number, *row) for row in made.said]
    pairs = pairs_table(said)
    names = sorted({name for name, _, _ in texts})
    return World(captions_table(texts), images_table(names), pairs, rank(pairs))
