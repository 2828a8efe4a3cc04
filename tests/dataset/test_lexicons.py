"""The lexicons that ship with the project fit together and hold the paper's words."""

from pathlib import Path

import pytest

from compclip.pairs.engine import Extractor, decode
from compclip.text.lexicon import Lexicon, load_lexicon, merge

LEXICONS = Path(__file__).resolve().parents[2] / "lexicons"
# Appendix 1.4, figure 11, and the nouns whose adjectives are swapped in figures 4 and 5.
BIRDS = """bill wing belly head breast crown feather body eye tail throat spot neck foot eyering
secondary stripe wingbar primary nape cheek patch tarsus back retrice""".split()
FLOWERS = """petal tip edge pedicel stripe filament anther center stigma vein bud leaf
ovary pistil stamen flower""".split()
COLORS = "white tan black purple gray yellow brown blue red green orange pink".split()


def lexicon(name: str) -> Lexicon:
    return load_lexicon(LEXICONS / f"{name}.yaml")


@pytest.mark.parametrize("nouns", ["birds", "flowers"])
def test_no_form_is_adjective_and_noun(nouns: str) -> None:
    lexicons = [lexicon("adjectives/color"), lexicon("adjectives/shape"), lexicon(f"nouns/{nouns}")]
    assert len(merge(lexicons).forms) == sum(len(part.forms) for part in lexicons)


def test_the_words_of_the_paper() -> None:
    assert set(COLORS) <= set(lexicon("adjectives/color").words)
    assert set(BIRDS) <= set(lexicon("nouns/birds").words)
    assert set(FLOWERS) <= set(lexicon("nouns/flowers").words)


@pytest.fixture(scope="module")
def extractor() -> Extractor:
    adjectives = [lexicon(f"adjectives/{name}") for name in ("color", "shape")]
    return Extractor("en_core_web_sm", adjectives, lexicon("nouns/flowers"))


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("the flower has pink pedals with white edges and a yellow middle", "pink_petal white_edge yellow_center"),
        ("the leaves are green and the blooms are small", "green_leaf small_flower"),
        ("its petals are purple with thin black lines", "purple_petal thin_stripe black_stripe"),
        ("white petals tipped with pink", "white_petal"),
        ("a purple petaled flower with a long stalk", "purple_petal long_stem"),
    ],
)
def test_pairs_of_flowers(extractor: Extractor, text: str, pairs: str) -> None:
    found = {f"{o.adjective}_{o.noun}" for o in decode(extractor.parse([text])[0]) if o.relation != "disputed"}
    assert found == set(pairs.split())
