"""What real captions do, by worked examples: each pair is written `adjective noun`, as it stands in the text."""

import pytest

from tests.pairs.conftest import LEXICONS, MODEL
from workflow_scripts.pairs.engine import Extractor, decode
from workflow_scripts.text.lexicon import load_lexicon

ADJACENT, STACKED, PREDICATIVE, SHARED = "adjacent", "attributive", "predicative", "shared"

CASES = {
    "attributive": ("a bird with a yellow belly", {"yellow belly": ADJACENT}),
    "predicate": ("its bill is long and pointed", {"long bill": PREDICATIVE, "pointed bill": PREDICATIVE}),
    "coordinated": ("it has black and white wings", {"black wings": ADJACENT, "white wings": ADJACENT}),
    "relative clause": (
        "this bird has wings that are brown and has a white belly",
        {"brown wings": PREDICATIVE, "white belly": ADJACENT},
    ),
    "relative clause that ends before a noun": (
        "the bird has a bill that is curved and long and black back",
        {"curved bill": PREDICATIVE, "long bill": PREDICATIVE, "black back": ADJACENT},
    ),
    "relative clause after a place": (
        "a bird with spots on its wings that are white",
        {"white wings": PREDICATIVE},
    ),
    "chain": ("a long pointy beak", {"long beak": STACKED, "pointy beak": ADJACENT}),
    "chain of colors": (
        "a short thick orange bill",
        {"short bill": STACKED, "thick bill": STACKED, "orange bill": ADJACENT},
    ),
    "conjuncts of a predicate": (
        "the belly is white and brown in color",
        {"white belly": PREDICATIVE, "brown belly": PREDICATIVE},
    ),
    "run-on predicates": (
        "the crown is black the wings are brown and the bill is short",
        {"black crown": PREDICATIVE, "brown wings": PREDICATIVE, "short bill": PREDICATIVE},
    ),
    "predicate before a clause": (
        "breast and crown are black belly and throat are brown",
        {"black crown": PREDICATIVE, "black breast": SHARED, "brown throat": PREDICATIVE, "brown belly": SHARED},
    ),
    "color tagged as a noun": ("a tan wing and an orange tail", {"tan wing": ADJACENT, "orange tail": ADJACENT}),
    "list without and": (
        "a bird with a yellow breast belly sides and a grey head",
        {"yellow breast": ADJACENT, "yellow belly": SHARED, "grey head": ADJACENT},
    ),
    "run": (
        "bird with a white belly grey back side brown and black wings",
        {"white belly": ADJACENT, "grey back": ADJACENT, "brown wings": ADJACENT, "black wings": ADJACENT},
    ),
    "back is a noun": ("it has a brown back and a red head", {"brown back": ADJACENT, "red head": ADJACENT}),
    "back is an adverb": ("its feathers are swept back", {}),
    "carrier": (
        "black cheek patch white breast feathers and brown wing tips",
        {"black cheek patch": ADJACENT, "white feathers": ADJACENT},
    ),
    "form of two words": (
        "a white eye ring and two yellow wing bars",
        {"white eye ring": ADJACENT, "yellow wing bars": ADJACENT},
    ),
    "shared": (
        "a white breast throat and belly",
        {"white breast": ADJACENT, "white throat": SHARED, "white belly": SHARED},
    ),
    "not shared with a noun that has its own": (
        "a black head and wings that are white",
        {"black head": ADJACENT, "white wings": PREDICATIVE},
    ),
    "shared subject": ("its crown and nape are yellow", {"yellow nape": PREDICATIVE, "yellow crown": SHARED}),
    "shared antecedent": ("a head and wings which are brown", {"brown wings": PREDICATIVE, "brown head": SHARED}),
    "not the antecedent that has its own": (
        "a white throat and breast and feathers that are brown",
        {"white throat": ADJACENT, "white breast": SHARED, "brown feathers": PREDICATIVE},
    ),
    "shared with a noun that has another predicate": (
        "a brown head and feet that is fluffy",
        {"brown head": ADJACENT},
    ),
    "span": ("the crown down to nape are gray", {"gray nape": PREDICATIVE, "gray crown": SHARED}),
    "pattern": ("black with white speckled feathers", {"black feathers": STACKED}),
    "primaries": (
        "gray primary feathers orange primaries and white bars",
        {"gray primary feathers": ADJACENT, "orange primaries": ADJACENT, "white bars": ADJACENT},
    ),
    "subject before a place": ("the feathers on its belly are white", {"white feathers": PREDICATIVE}),
    "subject before several places": ("the spots on the feathers on its wings are white", {"white spots": PREDICATIVE}),
    "relative clause after several places": (
        "a bird with spots on the feathers on its wings that are white",
        {"white wings": PREDICATIVE},
    ),
    "number of the verb before a place": ("the stripes on its wing is white", {"white wing": PREDICATIVE}),
    "subject before a comparison": (
        "its bill compared to the spots on its head is long",
        {"long bill": PREDICATIVE},
    ),
    "place at the beginning": ("on its wings are white", {"white wings": PREDICATIVE}),
    "to at the beginning": ("to its head is long", {"long head": PREDICATIVE}),
    "under": ("a white under tail", {"white tail": ADJACENT}),
    "under at the beginning": ("under tail white", {}),
    "that without a noun": ("that are white", {}),
    "that at the end": ("white wings that", {"white wings": ADJACENT}),
    "participle alone": ("pointed", {}),
    "participle of another": ("the wings are pointed by rain", {"pointed wings": PREDICATIVE}),
    "participle": ("a curved and pointed beak", {"curved beak": ADJACENT, "pointed beak": ADJACENT}),
    "participle between": ("small black clawed feet", {"small feet": STACKED}),
    "headed": (
        "a small red headed bird with a long tail",
        {"red headed": ADJACENT, "long tail": ADJACENT},
    ),
    "hyphens": ("a Red-Headed bird with blue-gray wings", {
        "Red Headed": ADJACENT, "blue wings": STACKED, "gray wings": ADJACENT,
    }),
    "part of the whole": ("a white belly bird", {"white belly": ADJACENT}),
    "colored": ("black colored wings and a cone shaped orange beak", {
        "black wings": ADJACENT, "orange beak": ADJACENT,
    }),
    "ish": ("a pinkish brown breast", {"brown breast": ADJACENT}),
    "shade": ("a short mustard yellow bill", {"short bill": STACKED, "yellow bill": ADJACENT}),
    "relative clause before a stack": (
        "a belly that is white and gray and long black and tan wings",
        {"white belly": PREDICATIVE, "gray belly": PREDICATIVE, "long wings": STACKED, "black wings": ADJACENT,
         "tan wings": ADJACENT},
    ),
    "relative clause before the same word": (
        "a bill that is black and black and white wings",
        {"black bill": PREDICATIVE, "black wings": ADJACENT, "white wings": ADJACENT},
    ),
    "tones": ("a bird that has tones of brown and dark red eyes", {"red eyes": ADJACENT}),
    "color as a noun": ("a bird with black on its wings and shades of brown", {}),
    "edge": ("a bird with white tipped wings", {}),
    "commas": (
        "Its wings are black, and it has a long, thin bill, a red crown, and yellow legs.",
        {"black wings": PREDICATIVE, "long bill": ADJACENT, "thin bill": ADJACENT, "red crown": ADJACENT,
         "yellow legs": ADJACENT},
    ),
    "comma that coordinates nothing": ("a red head, wings that move", {"red head": ADJACENT}),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_phenomenon(case, find, adjectives, nouns):
    text, expected = CASES[case]
    listed = {word for lexicon in adjectives for word in lexicon.words}
    got = {}
    for o in find(text):
        if o.adjective in listed and o.noun in nouns.words and o.relation != "disputed":
            surface = f"{text[o.adjective_start : o.adjective_end]} {text[o.noun_start : o.noun_end]}"
            got[surface] = o.relation
    assert got == expected


def test_words_that_no_lexicon_lists(find):
    found = {(o.adjective, o.noun): o.relation for o in find("this spotted bird has two large shiny talons")}
    assert found == {("spotted", "bird"): "adjacent", ("large", "talon"): "attributive", ("shiny", "talon"): "adjacent"}


def test_an_article_is_no_noun(find):
    """In one caption of 90,000 the tagger says so, and `a` as a noun would forbid most swaps of all captions."""
    text = "a bird has a breast that is red and it has a long grey bill a tan tail and curved legs"
    nouns = {text[o.noun_start : o.noun_end] for o in find(text)}
    assert nouns == {"breast", "bill", "tail", "legs"}


def test_comparatives_are_words_of_their_own(find):
    assert {o.adjective for o in find("a longer bill and a smaller head")} == {"longer", "smaller"}


def test_parse_against_surface_is_disputed(find):
    relations = {(o.adjective, o.noun): o.relation for o in find("this bird has a black crown brown primaries")}
    assert relations["black", "crown"] == relations["brown", "primary"] == "adjacent"
    assert relations.get(("black", "primary"), "disputed") == "disputed"


def test_the_reading_of_a_shared_adjective_is_open_before_another_predicate(find):
    relations = {(o.adjective, o.noun): o.relation for o in find("a brown head and feet that is fluffy")}
    assert relations["brown", "foot"] == "disputed"


def test_that_after_a_word_the_tagger_does_not_know(adjectives):
    flowers = load_lexicon(LEXICONS / "nouns" / "flowers.yaml")
    text = "a purple flower with pistil that are short and white"
    found = decode(Extractor(MODEL, adjectives, flowers).parse([text])[0])
    kept = {(o.adjective, o.noun) for o in found if o.relation != "disputed"}
    assert kept == {("purple", "flower"), ("short", "pistil"), ("white", "pistil")}
