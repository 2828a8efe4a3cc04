"""Long captions for training: layouts of sources, skipped examples, the order of an epoch, and
their chunks.
"""

import itertools
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from compclip.core import limits
from compclip.specs.chunk_captions import Chunker
from compclip.specs.data import LongExamples, read_source
from tests.scripts import job
from tests.specs.evaluated import refused
from workflow_scripts.specs import chunk_captions

TEXTS = [f"A bird with {n} wings is sitting on a branch." for n in range(7)]


def record(image: object, text: object) -> dict[str, Any]:
    turns = [
        {"from": "human", "value": "What do you see?\n<image>"},
        {"from": "gpt", "value": text},
    ]
    return {
        "id": "17",
        "image": image,
        "conversations": [*turns, {"from": "gpt", "value": "And more."}],
    }


def pictures(folder: Path) -> list[str]:
    """Write images below ``folder``; returns their paths."""
    names = [f"coco/{n}.png" for n in range(len(TEXTS))]
    (folder / "coco").mkdir(parents=True, exist_ok=True)
    for n, name in enumerate(names):
        Image.new("RGB", (4, 4), (n, n, n)).save(folder / name)
    return names


def write(source: Path, names: list[str]) -> Path:
    """Write the captions as ShareGPT4V has them, or as a table."""
    table = pd.DataFrame({"other": 1, "text": TEXTS, "image": [f"./{name}" for name in names]})
    if source.suffix == ".json":
        source.write_text(json.dumps([record(*row) for row in zip(names, TEXTS, strict=True)]))
    elif source.suffix == ".parquet":
        table.to_parquet(source)
    else:
        table.to_json(source, orient="records", lines=True)
    return source


def cut(folder: Path, source: Path) -> LongExamples:
    output, settings = (
        folder / "one.parquet",
        {"model": "en_core_web_sm", "cache": folder / "cache"},
    )
    chunk_captions.main(
        job({"examples": source, "images": folder}, {"captions": output}, **settings)
    )
    return LongExamples(pd.read_parquet(output), folder)


@pytest.mark.parametrize("suffix", ["json", "parquet", "jsonl"])
def test_every_layout_gives_the_same_examples(tmp_path: Path, suffix: str) -> None:
    names = pictures(tmp_path)
    examples = cut(tmp_path, write(tmp_path / f"s.{suffix}", names))
    assert len(examples) == len(TEXTS) and not examples.excluded
    for number, example in enumerate(examples[n] for n in range(len(examples))):
        assert (example.text, example.image) == (TEXTS[number], tmp_path / names[number])
        assert example.ends[-1] == len(example.text) and len(example.ends) > 1


def test_other_pictures_of_the_same_names_and_sizes_give_another_table(tmp_path: Path) -> None:
    """So a training on others does not resume."""
    names = pictures(tmp_path)
    source, tables = write(tmp_path / "s.json", names), []
    for gray in (3, 3, 9):
        Image.new("RGB", (4, 4), (gray, gray, gray)).save(tmp_path / names[3])
        cut(tmp_path, source)
        tables.append((tmp_path / "one.parquet").read_bytes())
    assert tables[0] == tables[1] != tables[2]


def test_skipped_examples_are_named_and_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    names = pictures(tmp_path)
    (tmp_path / names[1]).write_bytes((tmp_path / names[1]).read_bytes()[:40])
    (tmp_path / names[2]).write_text("no image")
    (tmp_path / names[3]).unlink()
    records = [
        *(record(name, text) for name, text in zip(names[:5], TEXTS, strict=False)),
        record(names[5], " "),
        record(names[6], None),
        {"image": names[0]},
        {"image": names[0], "conversations": 3},
        record(None, "text alone"),
        record("../secret.png", "a bird"),
        record("/etc/passwd", "a bird"),
    ]
    (tmp_path / "s.json").write_text(json.dumps(records))
    examples = cut(tmp_path, tmp_path / "s.json")
    assert f"skipped: record 2 ({names[1]}): not a readable image" in caplog.text
    assert [examples[n].text for n in range(len(examples))] == [
        TEXTS[0],
        TEXTS[4],
    ] and examples.excluded == {
        "not a readable image": 5,
        "no caption": 4,
        "names no image": 1,
    }
    faults = pd.read_parquet(tmp_path / "one.parquet")["fault"]
    kinds = faults.str.split(" (", regex=False).str[0].value_counts().to_dict()
    assert kinds == {"": 2, "names no image": 1, "no caption": 4, "not a readable image": 5}
    assert faults[2] == "not a readable image (no image of a known format)"
    assert not faults.str.contains(str(tmp_path)).any()
    text = json.dumps([record("a.png", "half \ud800"), record("b.png", "naïve 鳥")])
    (tmp_path / "s.json").write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert read_source(tmp_path / "s.json")["text"].tolist() == ["half ?", "naïve 鳥"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("s.json", '[{"image": "a.png"}, {"ima', "not valid JSON"),
        ("s.json", '[{"image": "a.png", "image": "b.png"}]', "duplicate key 'image'"),
        ("s.json", '{"a": 1}', "expected a list of objects"),
        ("s.json", "[3]", "expected a list of objects"),
        (
            "s.json",
            json.dumps([record("gone.png", "a bird")]),
            "none of 1 examples is usable; check that this",
        ),
        ("s.parquet", "PAR1 no", "not a readable Parquet file"),
        ("s.csv", "url,text\na,b\n", "no column 'image'"),
        ("s.tar", "", "unknown format '.tar'"),
    ],
)
def test_other_files(tmp_path: Path, name: str, content: str, message: str) -> None:
    (tmp_path / name).write_text(content)
    assert message in refused(lambda: cut(tmp_path, tmp_path / name))


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
    "The waves | in the distance | are small |, suggesting that the photo was taken | in the late "
    "afternoon.",
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
    'A sign | on the wall | reads "Bless this home" | in cursive letters.',
    "A British Shorthair cat | with plush, bluish-gray fur | is lounging | on a deep green velvet "
    "sofa. | The cat"
    " | is partially tucked | under a multi-colored woven blanket | with fringed edges.",
    # What is not separated at all.
    "a small yellow bird",
    "...",
    # A number alone is not a chunk.
    "1. A yellow taxi. | 2. A man.",
]


@pytest.fixture(scope="module")
def ends_of():
    chunker = Chunker("en_core_web_sm")
    return lambda *texts: [json.loads(value) for value in chunker.parse(texts)]


@pytest.mark.parametrize("marked", MARKED)
def test_worked_examples(ends_of, marked):
    text = marked.replace(" |", "")
    parts = [text[a:b] for a, b in itertools.pairwise([0, *ends_of(text)[0]])]
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


MARKS = "and , ; ( ) \" “ ” . ! … - — it which who that of from to 's 7 \n \t 黄色い鳥 Vogel".split(
    " "
)
WORDS = st.sampled_from([*CAT.split(), *MARKS])
ANY_TEXT = st.lists(WORDS, max_size=40).map(" ".join) | st.text(max_size=60)


@settings(max_examples=150)
@given(ANY_TEXT)
def test_increments_of_any_text_are_prefixes_of_it(ends_of, text):
    assert_cut_well(text, ends_of(text)[0])


def test_ten_thousand_words(ends_of):
    """The part of a text that is too long to be parsed belongs to its last chunk."""
    text = " ".join(f"{CAT} {n}" for n in range(400)) + " "
    assert len(text.split()) > 10_000
    ends, parsed = ends_of(text, text[: limits.CAPTION])
    assert_cut_well(text, ends)
    assert ends[:-1] == parsed[:-1] and len(ends) > 800
