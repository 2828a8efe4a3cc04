"""Lists of compounds, their images and texts, and what is wrong with one; the paper's prompts of
them.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from compclip.compun import load_compounds as library
from compclip.compun.load_compounds import (
    load_compounds,
    name_key,
    name_letters,
    read_list,
    split_open,
)
from compclip.compun.prompts import compound_prompts, read_texts, usual_prompts
from compclip.core.artifacts.files import read_json
from tests.compun.conftest import read
from tests.core.picture_files import FIELDS, saved, turned
from tests.scripts import job
from tests.specs.evaluated import refused
from workflow_scripts.compun import load_compounds as script

COMPUN = Path(__file__).resolve().parents[2] / "lexicons" / "compounds" / "compun.csv"


def test_the_benchmarks_list_and_a_table(tmp_path: Path) -> None:
    table = read_list(COMPUN)
    names = list(table["compound"])
    assert len(names) == len(set(map(name_key, names))) == 400
    # Table 5 has fifty rows of eight.
    assert names[::8][:3] == ["snow ball", "sun roof", "steam train"] and names[-1] == "piston ring"
    assert {
        "grill surface thermometer",
        "pancake",
        "rainbow",
        "M & M cookies",
        "shuttle cork",
    } <= set(names)
    assert table["kind"].isna().all()
    # Its constituents make its compounds.
    constituents = table["first"] + table["second"]
    assert constituents.map(name_letters).tolist() == [*map(name_letters, names)]
    apart = table["compound"].str.contains(" ")
    assert apart.sum() == 224
    for row in table[apart].itertuples():
        assert split_open(row.compound.lower()) == (row.first.lower(), row.second)
    assert table.set_index("compound").loc["carpet", ["first", "second"]].tolist() == ["car", "pet"]
    rows = [
        ("goldfish", "gold", "fish", "either", None),
        ("lab_coat", None, None, None, "laboratory"),
    ]
    rows += [("bellboy", None, None, None, None), ("six-pack", None, None, "none", None)]
    own = pd.DataFrame(rows, columns=["compound", "first", "second", "kind", "n1"])
    own.to_parquet(file := tmp_path / "mine.parquet")
    assert read_list(file)[["compound", "first", "second", "kind", "n1", "n2"]].values.tolist() == [
        ["goldfish", "gold", "fish", "either", "gold", "fish"],
        ["lab coat", "lab", "coat", None, "laboratory", "coat"],
        ["bellboy", None, None, None, None, None],
        ["six-pack", "six", "pack", "none", "six", "pack"],
    ]


@pytest.mark.parametrize(
    ("read", "text", "fault"),
    [
        (read_list, "compound\n", "no compounds; give a table"),
        (read_list, "noun\ngoldfish\n", "no column 'compound'; its columns: 'noun'"),
        (
            read_list,
            "compound,first\ngoldfish,gold\n",
            "line 2: only one of first and second is given; give both or neither",
        ),
        (
            read_list,
            "compound,kind\ngoldfish,neither\n",
            "line 2: kind 'neither'; use either, both, none",
        ),
        (read_list, "compound,kind\ngoldfish,both\n ,both\n", "line 3: no compound"),
        (
            read_list,
            "compound\ngoldfish\nlab coat\nLab_Coat\n",
            "line 4: duplicate entry 'Lab Coat'; remove one",
        ),
        (read_texts, '{"a b": ["x"], "A_B": ["y"]}', "differ only in case or spaces"),
        (read_texts, '["x"]', "does not map compounds to texts"),
        (read_texts, '{"a": "x"}', "'a': expected a list of texts"),
        (read_texts, '{"a": [""]}', "'a': expected a list of texts"),
    ],
)
def test_a_fault_is_one_line(
    tmp_path: Path, read: Callable[[Path], object], text: str, fault: str
) -> None:
    file = tmp_path / ("a.json" if text[:1] in ("[", "{") else "a.csv")
    file.write_text(text)
    message = refused(lambda: read(file))
    assert str(file) in message and fault in message


words = st.text("abcdefgh", min_size=1, max_size=6)


@given(words, words, st.sampled_from([" ", "-"]))
def test_spellings(a: str, b: str, between: str) -> None:
    name = f"{a}{between}{b}"
    assert split_open(name) == (a, b) and split_open(a + b) == (None, None)
    assert name_letters(name) == name_letters(a + b) == a + b
    assert name_key(name.upper()) == name_key(name)


def test_images_match_by_their_names_are_copied_and_all_others_named(tmp_path: Path) -> None:
    names = [
        "snow_ball.jpg",
        "Snowball_N1.png",
        "in/snow-man.webp",
        "snow man_n2.png",
        "snow  ball.png",
        "x.png",
    ]
    assert library.match_images(["snow ball", "snowball", "snowman"], names) == {
        # Exactly where two listed compounds have the same letters; of two files of an image, the
        # first is used.
        ("snow ball", "compound"): "snow  ball.png",
        ("snowball", "n1"): "Snowball_N1.png",
        ("snowman", "compound"): "in/snow-man.webp",
        ("snowman", "n2"): "snow man_n2.png",
    }
    source, folder = tmp_path / "mine", tmp_path / "images"
    (source / "more").mkdir(parents=True)
    for name in ("red ball", "red ball_n1", "more/red ball_n2", "goldfish", "goldfish_n1", "stray"):
        Image.new("RGB", (8, 8), "red").save(source / f"{name}.png")
    (source / "goldfish_n2.png").write_bytes(b"\x89PNG\r\n")
    (source / ".hidden.png").touch()
    (source / "notes.txt").touch()
    file = tmp_path / "list.csv"
    file.write_text("compound,kind\nred ball,both\ngoldfish,\n")
    tables = {name: tmp_path / f"{name}.parquet" for name in ("compounds", "images")}
    writes = {**tables, "files": folder, "summary": tmp_path / "compounds.json"}
    script.main(job({"file": file, "source": source}, writes))
    compounds, images, summary = (
        *(read(tmp_path, name) for name in tables),
        read_json(writes["summary"]),
    )
    assert compounds["complete"].tolist() == [True, False]
    copied = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.png"))
    assert (
        copied
        == sorted(images["path"].dropna())
        == [
            "goldfish.png",
            "goldfish_n1.png",
            "more/red ball_n2.png",
            "red ball.png",
            "red ball_n1.png",
        ]
    )
    assert summary["images not used"]["names"] == ["stray.png"]
    assert summary["images broken"]["names"][0].startswith("goldfish_n2.png: ")
    assert summary["compounds incomplete"]["names"] == ["goldfish: n2"]
    assert summary["compounds without constituents"]["names"] == ["goldfish"]
    assert summary["kinds"] == {"either": 0, "both": 1, "none": 0} and summary["complete"] == 1


@pytest.mark.parametrize(
    ("names", "fault"),
    [
        ([], "0 images, none of a compound of"),
        (["fish"], "1 images, none of a compound of .* name them as 'red ball.jpg'"),
        (
            ["red ball", "red ball_n2"],
            "no compound has all three images .*'red ball' lacks n1.*; add images",
        ),
    ],
)
def test_no_complete_compound_is_one_line(tmp_path: Path, names: list[str], fault: str) -> None:
    for name in names:
        Image.new("RGB", (8, 8)).save(tmp_path / f"{name}.png")
    (tmp_path / "list.csv").write_text("compound\nred ball\n")
    assert re.search(fault, refused(lambda: load_compounds(tmp_path / "list.csv", tmp_path)))


ASKED = pd.DataFrame(
    [
        ("snow ball", "snow", "ball"),
        ("Goldfish", None, None),
        ("grill surface thermometer", "grill surface", "thermometer"),
    ],
    columns=["compound", "first", "second"],
)
CAPTIONS = {
    "snow ball": ["A child throws a snow ball.", "Snow ball on a fence"],
    "goldfish": ["goldfish in a bowl"],
}
DESCRIPTIONS = {"goldfish": ["orange scales", "often swims in a bowl", "is small"]}


def test_the_papers_sentences_for_texts_of_any_spelling(tmp_path: Path) -> None:
    """Section 4; usual prompts have the paper's number of captions."""
    prompts = compound_prompts(ASKED, CAPTIONS, DESCRIPTIONS)
    assert list(prompts) == ["template", "reversed", "descriptions", "examples_1", "examples_2"]
    assert prompts["template"]["Goldfish"] == ["a photo of a Goldfish"]
    assert prompts["reversed"] == {
        "snow ball": ["a photo of a ball snow"],
        "grill surface thermometer": ["a photo of a thermometer grill surface"],
    }
    start = "a photo of a snow ball. An example of snow ball in an image is"
    examples = [f"{start} A child throws a snow ball.", f"{start} Snow ball on a fence"]
    assert prompts["examples_1"]["snow ball"] == examples[:1] and prompts["examples_2"] == {
        "snow ball": examples
    }
    assert prompts["descriptions"] == {
        "Goldfish": [
            "a photo of a Goldfish, which has orange scales",
            "a photo of a Goldfish, which often swims in a bowl",
            "a photo of a Goldfish, which is small",
        ]
    }
    # The texts are of any spelling of the compound.
    assert list(prompts["examples_1"]) == ["snow ball", "Goldfish"]
    assert list(compound_prompts(ASKED, {}, {})) == ["template", "reversed"]
    assert usual_prompts(["template", "examples_1", "examples_5", "examples_7"]) == [
        "template",
        "examples_5",
    ]
    assert usual_prompts(["template", "examples_1", "examples_3"]) == ["template", "examples_3"]
    (tmp_path / "a.json").write_text(json.dumps({"Snow_Ball": ["one", " two\n"], "b": ["x"]}))
    assert read_texts(tmp_path / "a.json") == {"snow ball": ["one", "two"], "b": ["x"]}


def test_images_are_copied_as_people_see_them(tmp_path: Path) -> None:
    source, folder = tmp_path / "mine", tmp_path / "images"
    source.mkdir()
    (source / "goldfish.jpg").write_bytes(turned(6))
    for role in ("n1", "n2"):
        (source / f"goldfish_{role}.jpg").write_bytes(saved(FIELDS, "JPEG"))
    (tmp_path / "list.csv").write_text("compound,kind\ngoldfish,\n")
    tables = {name: tmp_path / f"{name}.parquet" for name in ("compounds", "images")}
    writes = {**tables, "files": folder, "summary": tmp_path / "compounds.json"}
    script.main(job({"file": tmp_path / "list.csv", "source": source}, writes))
    assert read(tmp_path, "images")["path"].tolist() == [
        "goldfish.jpg.png",
        "goldfish_n1.jpg",
        "goldfish_n2.jpg",
    ]
    assert Image.open(folder / "goldfish.jpg.png").size == (40, 60)
    assert read_json(writes["summary"])["images_rotated"] == {"count": 1, "names": ["goldfish.jpg"]}
