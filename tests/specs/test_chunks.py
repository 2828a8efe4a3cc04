"""Chunks: they add up to the caption, and each beginning is complete."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compclip.core import limits
from compclip.specs.cut_captions import Chunker

CAT = (
    "A British Shorthair cat with plush, bluish-gray fur is lounging on a deep green velvet sofa."
    " The cat is partially tucked under a multi-colored woven blanket with fringed edges."
)
# Captions with their chunks marked by hand.
MARKED = [
    # Noun phrases keep what precedes them and their `of`; verbs keep their objects.
    "A group of people | with colorful umbrellas | are waiting to cross.",
    "A man | is holding a red ball | in his left hand.",
    "This is a close-up of a white ceramic bowl | filled with steaming noodle soup.",
    # Prepositional phrases, before and after the clause.
    "In the background |, a tree | stands | on a hill.",
    "He plays | from left to right | between a cat and a dog.",
    # Relative clauses, participles, adverbial clauses.
    "The bus |, which is adorned with a white stripe |, is followed closely | by a black taxi.",
    "a bird | that rests on a branch | has wings | that are brown | and has a red nape .",
    "The waves | in the distance | are small |, suggesting that the photo was taken | in the late afternoon.",
    # Coordination: adjectives before a noun stay together, after the verb they are details.
    "Slices of pork |, a soft-boiled egg |, and chopped scallions | are arranged neatly.",
    "a small bird | with black and white wings | is brown | and black.",
    "this bird | is black and white in color | with a long beak .",
    # What would be incomplete is not separated.
    "It consists of grilled salmon |, asparagus |, and mashed potatoes.",
    "The fork | lies next to the plate.",
    "The surface | is as smooth as glass.",
    "There is a man | standing on a skateboard.",
    "A canal | in Venice, Italy |, leads to a small bridge.",
    "Two zebras | stand side by side | at a watering hole.",
    "Snow | covers the ground as far as the eye can see.",
    # Brackets and quotation marks stay whole.
    "A bowl of fruit | (apples, bananas and oranges) | sits | on a table.",
    "A sign | on the wall | reads \"Bless this home\" | in cursive letters.",
    "A British Shorthair cat | with plush, bluish-gray fur | is lounging | on a deep green velvet sofa. | The cat"
    " | is partially tucked | under a multi-colored woven blanket | with fringed edges.",
    # What is not separated at all.
    "a small yellow bird",
    "...",
    # A number alone is not a chunk.
    "1. A yellow taxi. | 2. A man.",
]  # fmt: skip


@pytest.fixture(scope="module")
def chunker() -> Chunker:
    return Chunker("en_core_web_sm")


@pytest.mark.parametrize("marked", MARKED)
def test_worked_examples(chunker, marked):
    text = marked.replace(" |", "")
    parts = [text[a:b] for a, b in itertools.pairwise([0, *chunker.cut([text])[0]])]
    assert " |".join(parts) == marked


def assert_cut_well(text: str, ends: list[int]) -> None:
    """Assert what holds for the ends of any text."""
    assert ends == sorted(set(ends)) and bool(ends) == bool(text.strip())
    if ends:
        assert ends[-1] == len(text.rstrip())
    for start, end in itertools.pairwise([0, *ends]):
        # A chunk is not blank, ends with a word or a mark, and splits no word.
        assert text[start:end].strip() and not text[end - 1].isspace()
        assert end == len(text) or not (text[end - 1].isalnum() and text[end].isalnum())


MARKS = "and , ; ( ) \" “ ” . ! … - — it which who that of from to 's 7 \n \t 黄色い鳥 Vogel".split(" ")
WORDS = st.sampled_from([*CAT.split(), *MARKS])
ANY_TEXT = st.lists(WORDS, max_size=40).map(" ".join) | st.text(max_size=60)


@settings(max_examples=150)
@given(ANY_TEXT)
def test_increments_of_any_text_are_prefixes_of_it(chunker, text):
    assert_cut_well(text, chunker.cut([text])[0])


def test_ten_thousand_words(chunker):
    """The part of a text that is too long to be parsed belongs to its last chunk."""
    text = " ".join(f"{CAT} {n}" for n in range(400)) + " "
    assert len(text.split()) > 10_000
    ends, parsed = chunker.cut([text, text[: limits.CAPTION]])
    assert_cut_well(text, ends)
    assert ends[:-1] == parsed[:-1] and len(ends) > 800
