"""Lexicons are data that users edit: every slip is named."""

from pathlib import Path

import pytest

from compclip.core.errors import UserError
from compclip.text import LEXICONS
from compclip.text.lexicon import lexicons_of, load_lexicon, merge

# Appendix 1.4, figure 11, and the nouns whose adjectives are swapped in figures 4 and 5.
BIRDS = """bill wing belly head breast crown feather body eye tail throat spot neck foot eyering
secondary stripe wingbar primary nape cheek patch tarsus back retrice""".split()
FLOWERS = """petal tip edge pedicel stripe filament anther center stigma vein bud leaf
ovary pistil stamen flower""".split()
COLORS = "white tan black purple gray yellow brown blue red green orange pink".split()


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_forms_and_groups(tmp_path: Path) -> None:
    lexicon = load_lexicon(write(tmp_path / "color.yaml", "gray: [grey, Grau]\n".replace("Grau", "grayish gray")))
    assert lexicon.name == "color" and lexicon.words == ("gray",)
    assert lexicon.forms == {"gray": "gray", "grey": "gray", "grayish gray": "gray"}
    assert load_lexicon(write(tmp_path / "b.yaml", "red:\nblue: []\n")).words == ("blue", "red")
    sizes = "long: [tall]\nshort:\nlarge:\nflat:\n"
    grouped = load_lexicon(write(tmp_path / "shape.yaml", f"groups: [[long, short], [large, short]]\n{sizes}"))
    assert grouped.words == ("flat", "large", "long", "short") and "tall" in grouped.forms
    excluded = {word: grouped.excluded_by(word) for word in grouped.words}
    assert excluded == {"flat": set(), "large": {"short"}, "long": {"short"}, "short": {"large", "long"}}
    one_group = load_lexicon(write(tmp_path / "size.yaml", sizes))
    assert one_group.excluded_by("flat") == {"large", "long", "short"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("groups: [[red, rose]]\nred: [rose]\n", "groups: 'rose' is not a word of the lexicon; remove it"),
        ("groups: [[red]]\nred:\n", r"groups: \['red'\]: expected at least two words"),
        ("groups: [[red, red]]\nred:\n", r"groups: \['red', 'red'\]: expected at least two words"),
        ("groups: [red, pink]\nred:\npink:\n", "groups: expected lists of words"),
        ("groups: red\nred:\n", "groups: expected lists of words"),
        ("groups: [[red, pink]]\n", "map each word to a list"),
        ("red: [rose]\npink: [rose]\n", "duplicate entry 'rose' under 'red' and 'pink'"),
        ("red: [blue]\nblue: []\n", "duplicate entry 'blue' under"),
        ("red: [Rose]\n", "expected a lower-case word"),
        ("red: [on]\n", "expected a lower-case word.* quote yes, no, on and off"),
        ("red: [' ']\n", "expected a lower-case word"),
        ("red: rose\n", "expected a list of other forms"),
        ("- red\n", "map each word to a list"),
        ("", "map each word to a list"),
        ("red: [\n", "not valid YAML"),
    ],
)
def test_mistakes(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UserError, match=message) as error:
        load_lexicon(write(tmp_path / "a.yaml", text))
    assert "a.yaml" in str(error.value) and "\n" not in str(error.value)


def test_own_shared_and_unknown_lexicons(tmp_path: Path) -> None:
    color = load_lexicon(write(tmp_path / "color.yaml", "light: []\n"))
    shape = load_lexicon(write(tmp_path / "shape.yaml", "thin: [light]\n"))
    with pytest.raises(UserError, match="lexicons color and shape: duplicate entry 'light'"):
        merge([color, shape])
    assert merge([color]).words == ("light",)
    (tmp_path / "shape.yaml").unlink()
    with pytest.raises(UserError, match="no such lexicon; choose one of: color"):
        load_lexicon(tmp_path / "colour.yaml")
    lexicons = {"color": "red: []", "shape": "small: [tiny]", "size": "big: [tiny]", "age": "old:"}
    for name, text in lexicons.items():
        (tmp_path / f"{name}.yaml").write_text(text)
    assert lexicons_of("color", tmp_path) == lexicons_of("shape", tmp_path) == ["color", "shape"]
    assert lexicons_of("age", tmp_path) == ["color", "shape", "age"]
    assert lexicons_of("size", tmp_path) == ["color", "size"]


@pytest.mark.parametrize(("nouns", "words"), [("birds", BIRDS), ("flowers", FLOWERS)])
def test_lexicons_of_the_project_have_the_papers_words_and_no_form_twice(nouns: str, words: list[str]) -> None:
    color, shape, parts = (
        load_lexicon(LEXICONS / f"{name}.yaml") for name in ("adjectives/color", "adjectives/shape", f"nouns/{nouns}")
    )
    assert len(merge([color, shape, parts]).forms) == sum(len(lexicon.forms) for lexicon in (color, shape, parts))
    assert set(COLORS) <= set(color.words) and set(words) <= set(parts.words)


def test_near_synonyms_of_shape_do_not_exclude_each_other() -> None:
    shape = load_lexicon(LEXICONS / "adjectives" / "shape.yaml")
    synonyms = ["pointed sharp", "large fat", "round oval", "short small", "long large", "thick wide", "curved wavy"]
    for a, b in map(str.split, synonyms):
        assert b not in shape.excluded_by(a) and a not in shape.excluded_by(b)
    for a, b in map(str.split, ["long short", "large small", "thick thin", "curved straight", "round pointed"]):
        assert b in shape.excluded_by(a)
