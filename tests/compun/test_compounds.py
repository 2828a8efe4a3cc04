"""Lists of compounds: the benchmark's own, every form that a user's may have, and what is wrong with one."""

from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflow_scripts.compun.compounds import joined, key, read_list, split_open, two_spellings
from workflow_scripts.core.errors import UserError

COMPUN = Path(__file__).resolve().parents[2] / "lexicons" / "compounds" / "compun.csv"


def listed(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_the_benchmarks_list() -> None:
    table = read_list(COMPUN)
    names = list(table["compound"])
    assert len(names) == len(set(map(key, names))) == 400
    # Table 5 has fifty rows of eight.
    assert names[:8] == [
        "snow ball", "courtyard", "mountain bike", "building stone", "seat belt", "pocketknife", "teaspoon",
        "spray paint",
    ]  # fmt: skip
    assert names[::8][:3] == ["snow ball", "sun roof", "steam train"]
    assert names[12 * 8 : 13 * 8] == [
        "tennis shoes", "houseboat", "coconut haystack", "tailbone", "Woodshop", "deck chair", "fingernail", "corn dog",
    ]  # fmt: skip
    assert names[-1] == "piston ring"
    assert {"grill surface thermometer", "pancake", "rainbow", "M & M cookies", "shuttle cork"} <= set(names)
    assert two_spellings(names) == ["snow ball, snowball"]
    assert table["kind"].isna().all()


def test_the_benchmarks_constituents_make_its_compounds() -> None:
    table = read_list(COMPUN)
    assert [joined(a + b) for a, b in zip(table["first"], table["second"], strict=True)] == [
        joined(name) for name in table["compound"]
    ]
    apart = table["compound"].str.contains(" ")
    assert apart.sum() == 224
    for row in table[apart].itertuples():
        assert split_open(row.compound.lower()) == (row.first.lower(), row.second)
    assert table.set_index("compound").loc["carpet", ["first", "second"]].tolist() == ["car", "pet"]


def test_a_text_file(tmp_path: Path) -> None:
    file = listed(tmp_path / "mine.txt", "\ufeff# ours\nsnow  ball\n\n goldfish \r\nsix-pack\n")
    table = read_list(file)
    assert table[["compound", "first", "second", "n1", "n2"]].values.tolist() == [
        ["snow ball", "snow", "ball", "snow", "ball"],
        ["goldfish", None, None, None, None],
        ["six-pack", "six", "pack", "six", "pack"],
    ]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_table(tmp_path: Path, ending: str) -> None:
    given = [("goldfish", "gold", "fish", "either", None), ("lab_coat", None, None, None, "laboratory")]
    rows, file = pd.DataFrame(given, columns=["compound", "first", "second", "kind", "n1"]), tmp_path / f"mine.{ending}"
    rows.to_csv(file, index=False) if ending == "csv" else rows.to_parquet(file)
    assert read_list(file)[["compound", "first", "second", "kind", "n1", "n2"]].values.tolist() == [
        ["goldfish", "gold", "fish", "either", "gold", "fish"],
        ["lab coat", "lab", "coat", None, "laboratory", "coat"],
    ]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.txt", "# nothing\n\n", "no compounds"),
        ("a.csv", "compound\n", "no compounds"),
        ("a.csv", "", "no column 'compound'"),
        ("a.csv", "noun\ngoldfish\n", "no column 'compound'; its columns: 'noun'"),
        ("a.csv", "compound,frist,second\ngoldfish,gold,fish\n", "unknown column 'frist'; allowed: compound, first"),
        ("a.csv", "compound,first\ngoldfish,gold\n", "line 2: 'goldfish' has only one constituent"),
        ("a.csv", "compound,kind\ngoldfish,neither\n", "line 2: kind 'neither' of 'goldfish'; allowed: either, both"),
        ("a.csv", "compound,kind\ngoldfish,both\n ,both\n", "line 3: no compound"),
        ("a.csv", "compound,kind\ngoldfish\n", "line 2: 1 values, the header has 2 columns; correct the row"),
        ("a.txt", "goldfish\nlab coat\nLab_Coat\n", "line 3: duplicate entry 'Lab Coat', first in line 2; remove one"),
        ("a.doc", "goldfish", "unknown format '.doc'"),
    ],
)
def test_a_wrong_list_is_one_line(tmp_path: Path, name: str, text: str, said: str) -> None:
    file = listed(tmp_path / name, text)
    with pytest.raises(UserError) as caught:
        read_list(file)
    assert str(file) in str(caught.value)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        read_list(tmp_path / "none.txt")
    file = tmp_path / "latin.txt"
    file.write_bytes("goldfish\ncafé table\n".encode("latin-1"))
    with pytest.raises(UserError, match="line 2: byte 0xe9 is not UTF-8"):
        read_list(file)


words = st.text("abcdefgh", min_size=1, max_size=6)


@given(words, words, st.sampled_from([" ", "-", "_", "  "]))
def test_spellings(a: str, b: str, between: str) -> None:
    name = f"{a}{between}{b}"
    assert split_open(name) == (a, b)
    assert joined(name) == joined(a + b) == a + b
    assert two_spellings([name, a + b]) == [f"{name}, {a + b}"]
    assert key(name.upper()) == key(name)
    assert split_open(a + b) is None
