"""The pipeline and the lexicons, loaded once."""

from pathlib import Path

import pytest

from compclip.pairs.engine import Extractor, decode_occurrences
from compclip.text.lexicon import Lexicon, load_lexicon

LEXICONS = Path(__file__).resolve().parents[2] / "lexicons"
MODEL = "en_core_web_sm"


@pytest.fixture(scope="session")
def adjectives() -> list[Lexicon]:
    return [load_lexicon(LEXICONS / "adjectives" / f"{name}.yaml") for name in ("color", "shape")]


@pytest.fixture(scope="session")
def nouns() -> Lexicon:
    return load_lexicon(LEXICONS / "nouns" / "birds.yaml")


@pytest.fixture(scope="session")
def extractor(adjectives, nouns) -> Extractor:
    return Extractor(MODEL, adjectives, nouns)


@pytest.fixture(scope="session")
def find(extractor):
    """``find(text)``: the occurrences of one caption."""
    return lambda text: decode_occurrences(extractor.parse([text])[0])
