"""Texts of nouns: the form of answers, users' files, lists of nouns."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflow_scripts.compun.texts import KINDS, BadAnswer, check_texts, mentions, read_answer, read_given, read_nouns
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import write_table
from workflow_scripts.core.tables import COMPOUNDS

NOUNS = ["cricket bat", "goldfish", "lab coat"]
CAPTIONS = KINDS["captions"]


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("count", [1, 5, 7])
def test_the_request_shows_the_form_that_the_check_accepts(kind: str, count: int) -> None:
    request = KINDS[kind].instruction("lab coat", count)
    assert '"lab coat"' in request and str(count) in request and "10 words" in request
    example = request.splitlines()[-1]
    texts = read_answer(example, KINDS[kind], count)
    assert len(texts) == count and all(len(text.split()) <= 10 for text in texts)
    if kind == "captions":
        assert all(mentions(text, "garden hose") for text in texts)
    schema = KINDS[kind].schema(count)
    assert schema["required"] == list(schema["properties"]) == list(json.loads(example))


@pytest.mark.parametrize(
    "text",
    [
        '{"captions": ["a", "b"]}',
        '["a", "b"]',
        '["a", "b", "c"]',
        ' {"captions": ["a ", " b"], "note": 1}\n',
        '```json\n{"captions": ["a", "b"]}\n```',
        '```\n["a",\n"b"]```',
        '<think>["x", "y"] perhaps?</think>\n["a", "b"]',
        '["a", "b", "\\u00a0c"]',
        'Sure! Here you go:\n```json\n{"captions": ["a", "b"]}\n```\nAnything else?',
        'Here they are:\n```\n["a", "b"]\n```',
        'Sure: {"captions": ["a", "b"]} I hope that helps.',
    ],
)
def test_forms_of_a_valid_answer(text: str) -> None:
    assert read_answer(text, CAPTIONS, 2) == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("Here are your captions: a, b", "not JSON"),
        ("['a', 'b']", "not JSON"),
        ('{"texts": ["a", "b"]}', "without the key 'captions'"),
        ('{"captions": "a"}', "not a list"),
        ("3", "not a list"),
        ('["a"]', "1 of 2"),
        ('["a", 2]', "other things than texts"),
        ('["a", ["b"]]', "other things than texts"),
        ('["a", " "]', "empty"),
        ('["A cat", "a  cat"]', "duplicate text 'a cat'"),
        ('["a", "\\ud800"]', "cannot be printed"),
        ('["a", "b\\u0000"]', "cannot be printed"),
        ("[" * 100_000, "not JSON"),
        ('```json\n["x", "y"]\n```\nor\n```json\n["a", "b"]\n```', "not JSON"),
        ('{"captions": ["x", "y"]} or {"captions": ["a", "b"]}', "not JSON"),
        ('["a", "' + "b" * 1001 + '"]', "more than 1,000 characters"),
        ("", "not JSON"),
    ],
)
def test_faults_of_an_answer(text: str, fault: str) -> None:
    with pytest.raises(BadAnswer, match=fault):
        read_answer(text, CAPTIONS, 2)


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=12), max_size=9), st.integers(1, 7))
def test_checked_texts_fit_on_a_line_each(texts: list[str], count: int) -> None:
    try:
        lines = check_texts(texts, count)
    except ValueError:
        return
    assert len(lines) == len(texts) >= count and len({line.casefold() for line in lines}) == len(lines)
    assert all(line and line == " ".join(line.split()) and "\n" not in line for line in lines)
    assert check_texts(lines, count) == lines


def test_a_caption_names_its_noun() -> None:
    assert mentions("Two Snowballs fly.", "snow ball") and mentions("A six pack", "six-pack")
    assert not mentions("A ball of snow", "snow ball")


# Files


def texts(noun: str, n: int) -> list[str]:
    return [f"{noun} number {i}" for i in range(n)]


def test_tables(tmp_path: Path) -> None:
    rows = [{"compound": noun, "caption": text} for noun in NOUNS for text in texts(noun, 5)]
    table, path = pd.DataFrame(rows).sample(frac=1, random_state=0), tmp_path / "given.csv"
    table.to_csv(path, index=False)
    given = read_given(path, NOUNS, CAPTIONS, 5).texts
    assert list(given) == NOUNS
    assert all(given[noun] == table.loc[table["compound"] == noun, "caption"].tolist() for noun in NOUNS)


def test_texts_are_matched_counted_and_truncated(tmp_path: Path) -> None:
    file = tmp_path / "given.json"
    file.write_text(json.dumps({"coffee  grain": texts("grain", 9), "goldfish": texts("fish", 5), "cat": ["x"]}))
    given = read_given(file, ["Coffee grain", "goldfish"], CAPTIONS, 5)
    assert given.texts == {"Coffee grain": texts("grain", 7), "goldfish": texts("fish", 5)}
    assert (given.unused, given.beyond, given.repeated) == (["cat"], 2, 0)
    file.write_text(json.dumps({"goldfish": ["orange scales", "a fin", "Orange  scales", "a tail", "a fin"]}))
    given = read_given(file, ["goldfish"], KINDS["descriptions"], 5)
    assert given.texts == {"goldfish": ["orange scales", "a fin", "a tail"]} and given.repeated == 2


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ('{"goldfish": "a caption"}', "'goldfish': not a list"),
        ('{"goldfish": ["a", "b", "c"]}', "'goldfish': 3 of 5"),
        ('{"goldfish": ["a", "b", "c", "d", 5]}', "other things than texts"),
        ('{"goldfish": ["a", "b", "c", "d", "A"]}', "'goldfish': 4 of 5"),
        ('{"goldfish": ["a", "b", "c", "d", ""]}', "'goldfish': a text is empty"),
        ('{"goldfish": ["a"], "goldfish": ["b"]}', "duplicate entry 'goldfish'"),
        ('{"Goldfish": ["a"], "GOLDFISH": ["b"]}', "both 'Goldfish' and 'GOLDFISH' may be 'goldfish'"),
        ('{"goldfish": [', "not JSON"),
        ("3", "expected the form"),
        ('["a"]', "record 1|no column"),
        ('[{"compound": "goldfish", "caption": null}]', "record 1: without a compound or a caption"),
        (b'{"goldfish": ["\xff"]}', "not UTF-8"),
    ],
)
def test_a_bad_file_is_named(tmp_path: Path, content: str | bytes, fault: str) -> None:
    file = tmp_path / "given.json"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(UserError, match=f"{re.escape(str(file))}: .*({fault})") as error:
        read_given(file, ["goldfish"], CAPTIONS, 5)
    assert "\n" not in str(error.value)


# Nouns


def compounds(path: Path, **complete: bool) -> Path:
    table = pd.DataFrame({"compound": [name.replace("_", " ") for name in complete], "complete": complete.values()})
    table[["first", "second", "kind", "n1", "n2"]] = None
    write_table(table.astype({name: "str" for name in ("first", "second", "kind", "n1", "n2")}), path, COMPOUNDS)
    return path


def test_nouns_of_the_stage_and_of_a_user(tmp_path: Path) -> None:
    path = compounds(tmp_path / "compounds.parquet", snow_ball=True, snowball=False, goldfish=True)
    assert read_nouns(path) == (["snow ball", "goldfish"], 1)
    (tmp_path / "a.csv").write_text("compound,first,second\nsnow  ball,snow,ball\ntea cup,tea,cup\n")
    assert read_nouns(tmp_path / "a.csv") == (["snow ball", "tea cup"], 0)
    (tmp_path / "a.txt").write_text("crane\n\ngreat  white shark\n")
    assert read_nouns(tmp_path / "a.txt") == (["crane", "great white shark"], 0)


def test_bad_lists_of_nouns(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="all 1 compounds lack an image"):
        read_nouns(compounds(tmp_path / "compounds.parquet", goldfish=False))
    (tmp_path / "compounds.parquet").write_bytes(b"nonsense")
    with pytest.raises(UserError, match="not a readable Parquet file"):
        read_nouns(tmp_path / "compounds.parquet")
    (tmp_path / "a.txt").write_text("\n")
    with pytest.raises(UserError, match="no compounds"):
        read_nouns(tmp_path / "a.txt")
