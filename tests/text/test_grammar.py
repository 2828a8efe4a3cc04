"""The lists of words that captions are read by."""

import re
from pathlib import Path

from compclip.core import code
from compclip.text.grammar import WORDS
from tests.conftest import ROOT


def test_every_list_is_used_and_holds_words_and_those_of_the_lists_it_names() -> None:
    sources = (path.read_text() for path in (ROOT / "compclip").rglob("*.py") if path.name != "grammar.py")
    used = {name for source in sources for name in re.findall(r"\bWORDS\.(\w+)", source)}
    in_lists = set(re.findall(r"\*(\w+)", (ROOT / "lexicons" / "grammar.yaml").read_text()))
    assert used <= set(vars(WORDS)) <= used | in_lists
    assert {"is", "been", "'s", "seem"} < WORDS.copulas and WORDS.be < WORDS.verbs < WORDS.copulas
    assert WORDS.carriers_of == {"covert": {"wing", "tail"}, "crest": {"head"}}
    assert WORDS.clashes["paler"] == {"black", "white"}


def test_an_edited_list_changes_the_identity_of_what_reads_captions(tmp_path: Path, monkeypatch) -> None:
    def identities() -> list[str]:
        code._parse.cache_clear(), code.code_hash.cache_clear()
        names = ("pairs.engine", "split.make_splits", "split.swap_adjectives", "split.audit", "pairs.rank_pairs")
        return [code.code_hash(f"compclip.{name}") for name in names]

    before = identities()
    edited = tmp_path / "grammar.yaml"
    edited.write_bytes((ROOT / "lexicons" / "grammar.yaml").read_bytes() + b"# edited\n")
    monkeypatch.setitem(code.DATA, "compclip.text.grammar", str(edited))
    changed = [one != other for one, other in zip(before, identities(), strict=True)]
    monkeypatch.undo()
    assert identities() == before and changed == [True, True, True, True, False]
