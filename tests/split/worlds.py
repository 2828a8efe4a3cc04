"""Made-up data sets whose pairs are known because the captions are built from them."""

import re
from dataclasses import dataclass
from itertools import product

import numpy as np
import pandas as pd

from compclip.core.tables import PAIRS
from compclip.split.wording import Mention
from compclip.text.lexicon import Lexicon

COLORS = {
    "red": "red",
    "blue": "blue",
    "gray": "gray",
    "grey": "gray",
    "orange": "orange",
    "black": "black",
}
NOUNS = {
    "wing": "wing",
    "wings": "wing",
    "bill": "bill",
    "beak": "bill",
    "belly": "belly",
    "eye ring": "eyering",
}
LEXICONS = Lexicon("color", COLORS), Lexicon("parts", NOUNS)

SHAPES = {
    w: w for w in ("long", "short", "small", "large", "pointed", "curved", "round", "sharp", "thin")
}


def mention(
    text: str,
    adjective: str,
    noun: str,
    canonical: str = "",
    relation: str = "adjacent",
    n: int = 0,
) -> Mention:
    """The ``n``-th place of ``adjective`` and the first of ``noun`` after it, or before where none
    is after.
    """
    start = [m.start() for m in re.finditer(rf"\b{adjective}\b", text)][n]
    at = text.find(noun, start)
    at = text.rfind(noun, 0, start) if at < 0 else at
    canonical = canonical or {**COLORS, **SHAPES}[adjective.lower()]
    known = NOUNS.get(noun, noun.removesuffix("s"))
    return Mention(canonical, known, start, start + len(adjective), at, at + len(noun), relation)


def mentions(text: str, *said: str) -> list[Mention]:
    """A mention for each ``adjective noun``, whose other words are a relation and the number of the
    place.
    """
    found = []
    for adjective, noun, *more in map(str.split, said):
        relation = next(filter(str.isalpha, more), "adjacent")
        found.append(
            mention(
                text, adjective, noun, relation=relation, n=int(next(filter(str.isdigit, more), 0))
            )
        )
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
    table = sure.groupby(["adjective", "noun"]).agg(
        count=("image_id", "size"), images=("image_id", "nunique")
    )
    table = table.reset_index().sort_values(
        ["count", "adjective", "noun"], ascending=[False, True, True]
    )
    rank = np.arange(1, len(table) + 1)
    return table.assign(rank=rank, percentile=100 * (rank - 0.5) / max(len(table), 1)).reset_index(
        drop=True
    )


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


def said(*rows: str, captions: pd.DataFrame | None = None) -> pd.DataFrame:
    """``image adjective noun [relation]`` a row; with ``captions``, at the places of the words
    there.
    """
    pairs = []
    texts = (
        {} if captions is None else dict(zip(captions["image_id"], captions["text"], strict=True))
    )
    for image, adjective, noun, *more in (row.split() for row in rows):
        text = texts.get(image, f"{adjective} {noun}")
        found = [re.compile(rf"{word}\w*").search(text).span() for word in (adjective, noun)]
        pairs.append((image, 0, adjective, noun, *found[0], *found[1], *(more or ["adjacent"])))
    return pairs_table(pairs)


# Words of a phrase, in which A and B are adjectives, N and M nouns, and the pairs that it states.
PHRASES = (
    ("N", ()),
    ("a A N", ("A N adjacent",)),
    ("A and B N", ("A N adjacent", "B N adjacent")),
    ("N that is A", ("A N predicative",)),
    ("A N and M", ("A N adjacent", "A M shared")),
    ("N seen by whom A", ("A N disputed",)),
)


def sentence(generator: np.random.Generator) -> tuple[str, list[tuple]]:
    """A few phrases in varied syntax, and their pairs by construction."""
    text, stated = "This bird has", []
    for number in range(int(generator.integers(1, 4))):
        if number:
            text += f" {generator.choice(['with', 'and a very', 'but also the'])}"
        words = dict(zip("AB", generator.choice(list(COLORS), 2).tolist(), strict=True))
        words |= zip("NM", generator.choice(list(NOUNS), 2).tolist(), strict=True)
        words["a"] = "an" if words["A"][0] == "o" else "a"
        phrase, pairs = PHRASES[generator.integers(6)]
        if phrase == "a A N" and generator.integers(5) == 0:
            words["A"] = words["A"].upper()
        spans = {}
        for symbol in phrase.split():
            start = len(text) + 1
            text += f" {words.get(symbol, symbol)}"
            spans[symbol] = start, len(text)
        for adjective, noun, relation in map(str.split, pairs):
            words_of_pair = COLORS[words[adjective].lower()], NOUNS[words[noun]]
            stated.append((*words_of_pair, *spans[adjective], *spans[noun], relation))
    return f"{text} {generator.choice(['in flight', 'that flies', 'on a tree.'])}", stated


def world(seed: int, images: int = 60, captions: int = 3) -> World:
    """A data set of which ``seed`` decides everything."""
    generator = np.random.default_rng(seed)
    texts, rows = [], []
    for image, number in product(range(images), range(captions)):
        text, stated = sentence(generator)
        name = f"{image % 5:03d}.Kind/Kind_{image:04d}"
        texts.append((name, number, text))
        rows += [(name, number, *pair) for pair in stated]
    pairs = pairs_table(rows)
    names = sorted({name for name, _, _ in texts})
    return World(captions_table(texts), images_table(names), pairs, rank(pairs))
