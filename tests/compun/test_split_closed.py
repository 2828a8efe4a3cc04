"""Closed compounds and their two nouns: measured on the benchmark's, which were read by eye, and on eighty others."""

import logging
from pathlib import Path

import pandas as pd
import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st

from workflow_scripts.compun import split_closed
from workflow_scripts.compun.compounds import read_list
from workflow_scripts.compun.split_closed import (
    MIN_LETTERS,
    SplitClosed,
    cuts,
    file_nouns,
    propose,
    spacy_nouns,
    table_text,
)
from workflow_scripts.core.errors import UserError

COMPUN = Path(__file__).resolve().parents[2] / "lexicons" / "compounds" / "compun.csv"
# Written down before any was tried.
OTHERS = """
rain+forest air+plane note+book news+paper door+knob sail+boat wind+mill scare+crow wheel+barrow fire+place bath+tub
tooth+ache head+ache arm+pit back+pack cheese+cake earth+quake life+guard motor+boat mouse+trap neck+tie pop+corn
post+card rail+way rain+drop sand+box ship+wreck snow+flake spot+light steam+boat sun+glasses sun+tan sweat+shirt
table+cloth thunder+storm type+writer volley+ball wash+cloth water+fall week+end wood+pecker work+bench wrist+band
book+worm bee+hive blood+stream body+guard car+pool copy+right day+light dead+line door+mat eye+brow eye+lash
fire+cracker fisher+man gate+keeper grand+stand hair+dresser heart+beat home+work ice+berg jack+pot land+lord man+power
moon+light night+mare oat+meal pick+pocket play+ground quick+sand room+mate sea+port sheep+skin stock+pile tug+boat
under+wear vine+yard ware+house whirl+pool
"""


@pytest.fixture(scope="module")
def nouns() -> frozenset[str]:
    return spacy_nouns("en_core_web_sm")


def test_the_benchmarks_closed_compounds(nouns: frozenset[str]) -> None:
    table = read_list(COMPUN)
    closed = table[~table["compound"].str.contains(" ")]
    found = [cuts(name, nouns)[0] for name in closed["compound"]]
    assert found == list(zip(closed["first"], closed["second"], strict=True))


def test_other_closed_compounds(nouns: frozenset[str]) -> None:
    pairs = [tuple(word.split("+")) for word in OTHERS.split()]
    right = [(cuts("".join(pair), nouns) or [None])[0] == pair for pair in pairs]
    assert len(right) == 80
    assert sum(right) >= 79


def test_the_singular_goes_first() -> None:
    nouns = frozenset({"egg", "eggs", "shell", "hell", "ear", "bud", "bull", "eye"})
    assert cuts("Eggshell", nouns) == [("egg", "shell"), ("eggs", "hell")]
    assert cuts("earbuds", nouns) == [("ear", "buds")]
    assert cuts("bullseye", nouns) == [("bulls", "eye")]
    assert cuts("skyscraper", nouns) == []


@given(st.text("abs", min_size=0, max_size=9), st.frozensets(st.text("abs", min_size=1, max_size=5)))
def test_every_cut_and_no_other(word: str, nouns: frozenset[str]) -> None:
    known = nouns | {noun + "s" for noun in nouns}
    expected = {(a, word[len(a) :]) for a in known if word.startswith(a) and word[len(a) :] in known}
    expected = {pair for pair in expected if min(map(len, pair)) >= MIN_LETTERS}
    found = cuts(word, nouns)
    assert set(found) == expected
    assert len(found) == len(set(found))


def test_a_proposal_is_marked_and_read_again(tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    file.write_text("compound,first,second,n2\nsnow ball,,,\nbarman,bar,man,\ngoldfish,,,pike\nxyzzy,,,\n")
    table = propose(read_list(file), lambda: frozenset({"gold", "fish", "bar", "man", "barm", "an"}))
    again = tmp_path / "checked.csv"
    again.write_text(table_text(table))
    assert again.read_text().splitlines() == [
        "compound,first,second,n2,check",
        "snow ball,snow,ball,,",
        "barman,bar,man,,",
        "goldfish,gold,fish,pike,proposed",
        "xyzzy,,,,no cut into two nouns found",
    ]
    pd.testing.assert_frame_equal(read_list(again), table)


def test_the_step(tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "list.txt").write_text("goldfish\nlab coat\n")
    (tmp_path / "words.txt").write_text("# nouns\nGold\nfish\n")
    step = SplitClosed(file=tmp_path / "list.txt", words=tmp_path / "words.txt", output=tmp_path / "out.csv")
    with caplog.at_level(logging.INFO):
        split_closed.main(step)
    assert "2 compounds; 1 splits proposed, 0 not found" in caplog.text
    assert "goldfish,gold,fish,proposed\n" in step.output.read_text()
    # What the user has checked is not overwritten.
    with pytest.raises(UserError, match="output file already exists"):
        split_closed.main(step)


def test_wrong_words(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("# none\n")
    with pytest.raises(UserError, match="no words"):
        file_nouns(tmp_path / "words.txt")
    with pytest.raises(UserError, match="no such file"):
        file_nouns(tmp_path / "none.txt")
    with pytest.raises(UserError, match="not installed"):
        spacy_nouns("xx_none")


def test_a_pipeline_without_a_list_of_nouns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(split_closed, "load_language", lambda name: spacy.blank("en"))
    with pytest.raises(UserError, match="--model: en_other has no list of nouns; give a file of nouns by --words"):
        spacy_nouns("en_other")
