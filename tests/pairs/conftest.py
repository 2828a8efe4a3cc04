"""The pipeline and the lexicons, loaded once."""

import pytest

from compclip.pairs.engine import Extractor, decode_occurrences
from compclip.text.lexicon import SHARED, Lexicon, find_lexicon

MODEL = "en_core_web_sm"


@pytest.fixture(scope="session")
def adjectives() -> list[Lexicon]:
    return [find_lexicon(name, "adjectives") for name in SHARED]


@pytest.fixture(scope="session")
def nouns() -> Lexicon:
    return find_lexicon("birds", "nouns")


@pytest.fixture(scope="session")
def extractor(adjectives, nouns) -> Extractor:
    return Extractor(MODEL, adjectives, nouns)


@pytest.fixture(scope="session")
def find(extractor):
    """``find(text)``: the occurrences of one caption."""
    return lambda text: decode_occurrences(extractor.parse([text])[0])
