"""Lexicons and lists of words are data that users edit: every slip is named, every edit reruns what
reads them.
"""

import re
from pathlib import Path

import pytest

from compclip.core.errors import UserError
from compclip.core.identity import code
from compclip.text import LEXICONS
from compclip.text.grammar import WORDS
from compclip.text.lexicon import Lexicon, lexicons_of, load_lexicon, require_distinct
from tests.conftest import ROOT

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
    lexicon = load_lexicon(
        write(tmp_path / "color.yaml", "gray: [grey, Grau]\n".replace("Grau", "grayish gray"))
    )
    assert lexicon.name == "color" and lexicon.words == ("gray",)
    assert lexicon.forms == {"gray": "gray", "grey": "gray", "grayish gray": "gray"}
    assert load_lexicon(write(tmp_path / "b.yaml", "red:\nblue: []\n")).words == ("blue", "red")
    sizes = "long: [tall]\nshort:\nlarge:\nflat:\n"
    grouped = load_lexicon(
        write(tmp_path / "shape.yaml", f"groups: [[long, short], [large, short]]\n{sizes}")
    )
    assert grouped.words == ("flat", "large", "long", "short") and "tall" in grouped.forms
    excluded = {word: grouped.excluded_by(word) for word in grouped.words}
    assert excluded == {
        "flat": set(),
        "large": {"short"},
        "long": {"short"},
        "short": {"large", "long"},
    }
    one_group = load_lexicon(write(tmp_path / "size.yaml", sizes))
    assert one_group.excluded_by("flat") == {"large", "long", "short"}


def test_a_swap_is_exclusive_if_each_of_its_changes_is() -> None:
    words = {word: word for word in ("long", "short", "large", "flat")}
    grouped = Lexicon("shape", words, (("long", "short"), ("large", "short")))

    def excludes(*changes: str) -> bool:
        words_of_changes = map(str.split, changes)
        return grouped.excludes(words_of_changes)

    assert excludes("long short") and excludes("short large", "short long")
    assert (
        not excludes("long large")
        and not excludes("long short", "long flat")
        and not excludes("long long")
    )
    # A published swap may change nothing, or words that are not in the lexicon.
    assert not excludes() and not excludes("pretty long")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "groups: [[red, rose]]\nred: [rose]\n",
            "groups: 'rose' is not a word of the lexicon; remove it",
        ),
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
        require_distinct([color, shape])
    require_distinct([color])
    (tmp_path / "shape.yaml").unlink()
    with pytest.raises(
        UserError, match="no such lexicon; did you mean color\\? choose one of: color"
    ):
        load_lexicon(tmp_path / "colour.yaml")
    lexicons = {"color": "red: []", "shape": "small: [tiny]", "size": "big: [tiny]", "age": "old:"}
    for name, text in lexicons.items():
        (tmp_path / f"{name}.yaml").write_text(text)
    used = {name: lexicons_of(tmp_path / f"{name}.yaml", tmp_path) for name in lexicons}
    assert used["color"] == used["shape"] == ["color", "shape"]
    assert used["age"] == ["color", "shape", "age"]
    assert used["size"] == ["color", "size"]


def test_lexicons_of_the_project() -> None:
    color, shape = (
        load_lexicon(LEXICONS / "adjectives" / f"{name}.yaml") for name in ("color", "shape")
    )
    for nouns, words in (("birds", BIRDS), ("flowers", FLOWERS)):
        parts = load_lexicon(LEXICONS / "nouns" / f"{nouns}.yaml")
        require_distinct([color, shape, parts])
        assert set(COLORS) <= set(color.words) and set(words) <= set(parts.words)
    synonyms = [
        "pointed sharp",
        "large fat",
        "round oval",
        "short small",
        "long large",
        "thick wide",
        "curved wavy",
    ]
    for a, b in map(str.split, synonyms):
        assert b not in shape.excluded_by(a) and a not in shape.excluded_by(b)
    for a, b in map(
        str.split, ["long short", "large small", "thick thin", "curved straight", "round pointed"]
    ):
        assert b in shape.excluded_by(a)


def test_every_list_is_used_and_holds_words_and_those_of_the_lists_it_names() -> None:
    sources = (path.read_text() for path in (ROOT / "compclip").rglob("*.py"))
    used = {name for source in sources for name in re.findall(r"\bWORDS\.(\w+)", source)}
    in_lists = set(re.findall(r"\*(\w+)", (ROOT / "lexicons" / "grammar.yaml").read_text()))
    assert used <= set(vars(WORDS)) <= used | in_lists
    assert {"is", "been", "'s", "seem"} < WORDS.copulas and WORDS.be < WORDS.verbs < WORDS.copulas
    assert WORDS.carriers_of == {"covert": {"wing", "tail"}, "crest": {"head"}}
    assert WORDS.clashes["paler"] == {"black", "white"}


def test_an_edited_list_changes_the_identity_of_what_reads_captions(
    tmp_path: Path, monkeypatch
) -> None:
    def identities() -> list[str]:
        code._parse.cache_clear(), code.code_hash.cache_clear()
        names = (
            "pairs.engine",
            "split.make_splits",
            "split.swap_adjectives",
            "split.audit",
            "pairs.rank_pairs",
        )
        return [code.code_hash(f"compclip.{name}") for name in names]

    before = identities()
    edited = tmp_path / "grammar.yaml"
    edited.write_bytes((ROOT / "lexicons" / "grammar.yaml").read_bytes() + b"# edited\n")
    monkeypatch.setitem(code.DATA, "compclip.text.grammar", str(edited))
    changed = [one != other for one, other in zip(before, identities(), strict=True)]
    monkeypatch.undo()
    assert identities() == before and changed == [True, True, True, True, False]
