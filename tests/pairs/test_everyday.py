"""Captions of people, animals and things, in our own words: colors, shapes and sizes of any
noun.
"""

from pathlib import Path

import pytest

from compclip.pairs.config import Selection
from compclip.pairs.engine import Extractor, decode_occurrences
from compclip.pairs.extract_pairs import extract_pairs
from compclip.pairs.rank_pairs import rank_pairs
from tests.pairs.conftest import MODEL

# A caption a line and, after a bar, its pairs; a noun is its lemma.
CAPTIONS = [
    tuple(field.strip() for field in line.split("|"))
    for line in (Path(__file__).parent / "everyday.txt").read_text(encoding="utf-8").splitlines()
]


@pytest.fixture(scope="module")
def read(adjectives):
    """``read(text)``: the relation of each pair of listed adjectives, without a noun lexicon."""
    extractor = Extractor(MODEL, adjectives, None)
    words = {word for lexicon in adjectives for word in lexicon.words}

    def pairs(text: str) -> dict[str, str]:
        occurrences = decode_occurrences(extractor.parse([text])[0])
        return {f"{o.adjective}_{o.noun}": o.relation for o in occurrences if o.adjective in words}

    return pairs


@pytest.mark.parametrize(("text", "pairs"), CAPTIONS, ids=[text for text, _ in CAPTIONS])
def test_everyday_caption(read, text, pairs):
    sure = {pair for pair, relation in read(text).items() if relation != "disputed"}
    assert sure == set(filter(None, pairs.split(", ")))


@pytest.mark.parametrize(
    ("text", "pair"),
    [
        # An article for one thing may not reach a plural, nor an adjective of things people.
        ("a man in a black shirt and jeans", "black_jean"),
        ("a boy in a red hat and sneakers", "red_sneaker"),
        ("a man in a red shirt and woman in a coat", "red_woman"),
        # The noun alone after a conjunction may be coordinated with a color as a noun.
        ("a blue and raspberry topped cake", "blue_raspberry"),
    ],
)
def test_a_pair_on_which_readers_may_differ_is_disputed(read, text, pair):
    assert read(text)[pair] == "disputed"


@pytest.mark.parametrize(
    "noun", ["shoes", "gloves", "boots", "pants", "lights", "signs", "glasses"]
)
def test_a_plural_after_a_noun_or_a_bare_color_is_no_verb(read, noun):
    singular = next(iter(read(f"red {noun}"))).removeprefix("red_")
    for text in (
        f"two red rubber {noun}",
        f"red plastic {noun} on a shelf",
        f"a woman in red {noun}",
    ):
        assert f"red_{singular}" in read(text), text


def test_other_adjectives_and_nouns_have_rows_and_are_not_ranked():
    texts = ["a brown bird with a brown head", "its head is brown and shiny", "a brown barn"]
    pairs = extract_pairs(texts, ["color"], "birds")
    rows = {*zip(pairs["adjective"], pairs["noun"], strict=True)}
    assert rows == {("brown", "bird"), ("brown", "head"), ("shiny", "head"), ("brown", "barn")}
    ranking = rank_pairs(pairs, "color", "birds", Selection(min_count=1))
    assert ranking[["adjective", "noun", "count"]].to_numpy().tolist() == [["brown", "head", 2]]
