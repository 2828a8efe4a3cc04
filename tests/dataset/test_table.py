"""A user's table and folder: every format, and every foreseeable mistake."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from compclip.core.errors import UserError
from compclip.dataset.source import Loaded
from compclip.dataset.sources import table
from tests.dataset.conftest import jpeg, load_table
from tests.specs.evaluated import refused

ROWS = [
    {"image_id": "007", "caption": "a red bird", "class_id": "01"},
    {"image_id": "b/8", "caption": 'a "blue", long bill', "class_id": "2"},
    {"image_id": "007", "caption": "rote Flügel", "class_id": "01"},
]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    frame = pd.DataFrame(rows)
    match path.suffix:
        case ".csv" | ".tsv":
            frame.to_csv(path, index=False, sep="," if path.suffix == ".csv" else "\t")
        case ".jsonl":
            path.write_text("\n".join(map(json.dumps, rows)) + "\n\n", encoding="utf-8")
        case ".parquet":
            frame.to_parquet(path)
    return path


def load(file: Path, images: Path | None, out: Path, limit: int | None = None) -> Loaded:
    return load_table(file, out, limit, images=None if images is None else str(images))


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    folder = tmp_path / "pictures"
    (folder / "b").mkdir(parents=True)
    (folder / "007.JPG").write_bytes(jpeg(7))
    (folder / "b" / "8.jpeg").write_bytes(jpeg(8))
    return folder


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet"])
def test_formats(tmp_path: Path, pictures: Path, suffix: str) -> None:
    loaded = load(write(tmp_path / f"t{suffix}", ROWS), pictures, tmp_path / "out")
    found = loaded.captions[["image_id", "caption_id", "class_id", "text"]].values.tolist()
    assert found == [
        ["007", 0, "01", "a red bird"],
        ["b/8", 0, "2", 'a "blue", long bill'],
        ["007", 1, "01", "rote Flügel"],
    ]
    assert loaded.images.values.tolist() == [["007", "007.jpg"], ["b/8", "b/8.jpeg"]]
    assert (tmp_path / "out" / "007.jpg").read_bytes() == jpeg(7)
    assert all(value["count"] == 0 for value in loaded.summary.values())
    assert table.Settings(file="t.csv", images="pictures").reads() == ["t.csv", "pictures"]


def test_ids_that_look_alike_are_equal_and_numbers_become_text_unchanged(tmp_path: Path) -> None:
    rows = [
        {"image_id": image_id, "class_id": class_id, "caption": f"bird {n}"}
        for n, (image_id, class_id) in enumerate(
            [("caf\u00e9", "1"), ("cafe\u0301 ", "1\n"), (" caf\u00e9", " 1")]
        )
    ]
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "cafe\u0301.jpg").write_bytes(jpeg())
    loaded = load(write(tmp_path / "t.csv", rows), tmp_path / "pictures", tmp_path / "out")
    assert loaded.captions[["image_id", "caption_id", "class_id"]].values.tolist() == [
        ["caf\u00e9", n, "1"] for n in range(3)
    ]
    assert loaded.images.values.tolist() == [["caf\u00e9", "caf\u00e9.jpg"]]
    for suffix, ids, texts in (
        # Whole numbers have all their digits, as a 128-bit id does.
        (".jsonl", [7, 8.0, "09", 2**128 - 1, -1.5], ["7", "8", "09", str(2**128 - 1), "-1.5"]),
        (".parquet", [7], ["7"]),
    ):
        rows = [{"image_id": image_id, "caption": "a"} for image_id in ids]
        assert (
            list(load_table(write(tmp_path / f"t{suffix}", rows), tmp_path).captions["image_id"])
            == texts
        )


def test_equal_rows_are_counted_and_read_once_and_an_unused_column_is_named(
    tmp_path: Path, lines: list[str]
) -> None:
    csv = tmp_path / "t.csv"
    csv.write_text("image_id,caption\na,red\nb,red\na,red\na ,red\na,tan\n")
    loaded = load(csv, None, tmp_path / "out")
    # The position among the image's rows stays that in the file.
    assert loaded.captions[["image_id", "caption_id"]].values.tolist() == [
        ["a", 0],
        ["b", 0],
        ["a", 3],
    ]
    assert loaded.summary["rows_duplicate"] == {"count": 2, "names": ["line 4", "line 5"]}
    assert len(loaded.images) == 2 and loaded.images["path"].isna().all()
    csv.write_text("image_id,caption_id,caption\na,7,red\na,7,red\na,8,red\n")
    assert list(load(csv, None, tmp_path / "out").captions["caption_id"]) == [7, 8]
    load(
        write(tmp_path / "t.csv", [{"image_id": "1", "caption": "a bird", "clas_id": "3"}]),
        None,
        tmp_path / "out",
    )
    assert any("column 'clas_id' is not used; did you mean class_id?" in line for line in lines)


def test_bad_rows_and_stated_caption_ids_are_counted_and_named(tmp_path: Path) -> None:
    csv = tmp_path / "t.csv"
    csv.write_text('image_id,caption\na,one\nb\n\n,none\na,"two\nlines"\na,\nc,x,y\n')
    loaded = load(csv, None, tmp_path / "out")
    read = loaded.captions[["image_id", "caption_id", "text"]].values.tolist()
    assert read == [["a", 0, "one"], ["a", 1, "two\nlines"], ["a", 2, ""]]
    assert loaded.summary["rows_unreadable"]["names"] == [
        "line 3: 1 values, the header has 2 columns",
        "line 9: 3 values, the header has 2 columns",
        "line 5: no image_id",
    ]
    jsonl = tmp_path / "t.jsonl"
    lines = [
        '{"image_id": "a", "caption": "one"}',
        "[1]",
        '{"image_id": "a", "capt',
        '{"image_id": {}, "caption": "x"}',
        '{"image_id": "a", "caption": "\\ud800"}',
    ]
    jsonl.write_text("\n".join([*lines, '{"image_id": "a", "caption": "a \\u0000 bill"}']))
    bad = load_table(jsonl, tmp_path).summary["rows_unreadable"]["names"]
    assert [b.split(" ")[1] for b in bad] == ["2:", "3:", "4:", "5:", "6:"]
    assert bad[4] == "line 6: caption contains the control character U+0000"
    (tmp_path / "t.txt").write_text("b/8.jpeg#0\ta blue bird\nbroken\n")
    loaded = load_table(tmp_path / "t.txt", tmp_path)
    assert loaded.captions["image_id"].tolist() == ["b/8"]
    assert loaded.summary["rows_unreadable"]["names"] == ["line 2: not id#number<TAB>caption"]
    rows = [{"image_id": "a", "caption_id": n, "caption": "x"} for n in ("5", "2", "two", None)]
    loaded = load_table(write(tmp_path / "t.jsonl", rows), tmp_path)
    assert list(loaded.captions["caption_id"]) == [5, 2]
    assert loaded.summary["rows_unreadable"]["names"] == [
        "line 3: caption_id is not a whole number",
        "line 4: caption_id is not a whole number",
    ]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", b"id,text\na,b\n", "no column 'image_id'; its columns: 'id', 'text'"),
        ("t.tsv", b"image_id,caption\na,b\n", "its columns: 'image_id,caption'"),
        (
            "t.csv",
            b"image_id,caption\na," + b"x" * 1_000_001,
            "from line 2: field larger than field limit (1000000)",
        ),
        ("t.csv", b"," * 300_000, "duplicate column ''"),
        ("t.jsonl", b'{"image_id": 1, "caption": "a", "caption": "b"}', "no column 'image_id'"),
        (
            "t.jsonl",
            b'{"image_id": 1e20, "caption": "a"}',
            "may have lost digits; write it as text",
        ),
        ("t.csv", b"", "is empty; write it again"),
        ("t.csv", b"image_id,caption\n", "no captions"),
        (
            "t.csv",
            b"image_id,caption\na,b,c\n",
            "no captions: 1 rows cannot be read, the first: line 2: 3 values",
        ),
        ("t.csv", b"image_id,caption,caption\na,b,c\n", "duplicate column 'caption'"),
        ("t.csv", "image_id,caption\na,b\nc,é".encode("latin-1"), "line 3: byte 0xe9 is not UTF-8"),
        (
            "t.csv",
            b'image_id,caption\na,b\nc,"d\ne,f\n',
            "from line 3: unexpected end of data; correct the quotes",
        ),
        (
            "t.csv",
            b"image_id,caption\n../../etc/x,b\n",
            "line 2: image_id '../../etc/x': not usable as a path",
        ),
        ("t.jsonl", b"[1, 2]", "no column 'image_id'; its columns: none"),
        ("t.jsonl", b'{"image_id": "a"}', "no column 'caption'; its columns: 'image_id'"),
        ("t.parquet", b"PAR1", "not a readable Parquet file"),
        ("t.json", b"[]", "unknown format '.json'; allowed: .csv, .tsv, .jsonl, .parquet"),
        (
            "t.csv",
            b"image_id,caption,path\na,b,x.jpg\na,c,y.jpg\n",
            "line 3: image 'a' has a second path, 'y.jpg'",
        ),
    ],
)
def test_one_line_for_each_mistake(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    error = refused(lambda: load(tmp_path / name, None, tmp_path / "out"))
    assert message in error and name in error


def test_missing_files_stated_paths_and_a_limit(tmp_path: Path, pictures: Path) -> None:
    file = write(tmp_path / "t.csv", ROWS)
    other = write(tmp_path / "u.csv", [{"image_id": "x", "caption": "y"}])
    (tmp_path / "empty").mkdir()
    no_image = (
        "none of the table's 2 images is in this folder, the first should be 007.jpg; it contains 0"
    )
    for captions, images, message in [
        (tmp_path / "v.csv", None, "v.csv: no such file; did you mean .*[tu].csv"),
        (file, tmp_path / "none", "none: no such folder of images"),
        (file, tmp_path / "empty", no_image),
        (other, pictures, "it contains 2 images, for example 007.JPG"),
    ]:
        with pytest.raises(UserError, match=message):
            load(captions, images, tmp_path / "out")
    rows = [
        {"image_id": i, "caption": "a", "path": path}
        for i, path in (("x", "b/8.jpeg"), ("y", "none.png"))
    ]
    loaded = load(write(tmp_path / "t.csv", rows), pictures, tmp_path / "out")
    assert loaded.images.values.tolist()[0] == ["x", "x.jpeg"] and pd.isna(loaded.images["path"][1])
    assert loaded.summary["files_without_captions"] == {"count": 1, "names": ["007.JPG"]}
    (tmp_path / "secret.jpg").write_bytes(jpeg())
    for outside in ("../secret.jpg", str(tmp_path / "secret.jpg")):
        rows[0]["path"] = outside
        with pytest.raises(UserError, match="leaves the folder of images"):
            load(write(tmp_path / "t.csv", rows), pictures, tmp_path / "out")
    rows = [{"image_id": f"no{n}", "caption": "x"} for n in range(50)] + ROWS
    loaded = load(write(tmp_path / "t.csv", rows), pictures, tmp_path / "out", limit=2)
    # A limit counts images with a file.
    assert list(loaded.images["path"]) == ["007.jpg", "b/8.jpeg"]
    assert len(load(write(tmp_path / "t.csv", rows), None, tmp_path / "out", limit=20).images) == 20


SPREAD = [
    "['a red chair', 'a blue table']",
    '["a red chair", "a blue table"]',
    "['a red chair' 'a blue table']",
    "['a red chair'\n 'a blue table']",
    "('a red chair', 'a blue table')",
    "array(['a red chair', 'a blue table'], dtype=object)",
    " [ 'a red chair' , \"a blue table\" , ] ",
    "['a red chair', None, 'a blue table']",
    '["a red chair", null, "a blue table"]',
]


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet"])
@pytest.mark.parametrize("cell", SPREAD)
def test_the_printed_form_of_a_list_is_several_captions(
    tmp_path: Path, cell: str, suffix: str
) -> None:
    file = write(
        tmp_path / f"t{suffix}",
        [{"image_id": "1", "caption": cell}, {"image_id": "2", "caption": "a cup"}],
    )
    texts = [text for text in load_table(file, tmp_path).captions["text"] if text]
    assert texts == ["a red chair", "a blue table", "a cup"]


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        ("['it\\'s red', \"it's blue\"]", ["it's red", "it's blue"]),
        ("['caf\\xe9']", ["caf\u00e9"]),
        (json.dumps(["caf\u00e9 \U0001f600"]), ["caf\u00e9 \U0001f600"]),
        ("[]", [""]),
        ("['a, b']", ["a, b"]),
        ("[red] a cup", ["[red] a cup"]),
        ("['a'] and ['b']", ["['a'] and ['b']"]),
        ("[1, 2]", ["[1, 2]"]),
        ("['a', 2]", ["['a', 2]"]),
        ("['a', __import__('os')]", ["['a', __import__('os')]"]),
        ("('a cup')", ["a cup"]),
        ("(a cup)", ["(a cup)"]),
        ("['a", ["['a"]),
        ("['\\ud800']", ["['\\ud800']"]),
    ],
)
def test_what_is_a_list_and_what_a_caption(tmp_path: Path, cell: str, text: list[str]) -> None:
    file = write(tmp_path / "t.csv", [{"image_id": "1", "caption": cell}])
    assert load_table(file, tmp_path).captions["text"].tolist() == text


def test_a_cell_of_brackets_and_quotes_takes_time_in_proportion(tmp_path: Path) -> None:
    cells = [
        "[" * 100_000,
        "['" * 100_000,
        "['a'" + " " * 400_000,
        "['a'" + ",'a'" * 100_000,
        "['" + "\\" * 400_000,
    ]
    file = write(
        tmp_path / "t.jsonl",
        [{"image_id": str(n), "caption": cell} for n, cell in enumerate(cells)],
    )
    assert len(load_table(file, tmp_path).captions) == len(cells)


# What separates lines elsewhere is white space inside a caption.
BREAKS = ["\u2028", "\u2029", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\r"]


@pytest.mark.parametrize("separator", BREAKS, ids=ascii)
@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=ascii)
def test_lines_end_only_at_newlines(tmp_path: Path, separator: str, end: str) -> None:
    texts = [f"a bird with a red{separator}bill", "a blue bird"]
    contents = {
        "t.txt": [f"1.jpg#0\t{texts[0]}", f"2.jpg#0\t{texts[1]}"],
        "t.csv": ["image_id,caption", *(f"{n},{text}" for n, text in enumerate(texts, 1))],
        "t.jsonl": [
            json.dumps({"image_id": str(n), "caption": t}, ensure_ascii=False)
            for n, t in enumerate(texts, 1)
        ],
    }
    if separator < " ":  # JSON escapes control characters
        contents["t.jsonl"] = [
            json.dumps({"image_id": str(n), "caption": text}) for n, text in enumerate(texts, 1)
        ]
    for name, lines in contents.items():
        (tmp_path / name).write_bytes("".join(line + end for line in lines).encode())
        loaded = load_table(tmp_path / name, tmp_path)
        assert [text.split() for text in loaded.captions["text"]] == [
            text.split() for text in texts
        ]
        assert loaded.captions["image_id"].tolist() == ["1", "2"]
        assert loaded.summary["rows_unreadable"]["count"] == 0


@pytest.mark.parametrize("name", ["t.txt", "t.csv"])
def test_files_of_old_macs_are_read(tmp_path: Path, name: str) -> None:
    lines = ["1.jpg#0\ta red bird", "2.jpg#0\ta tan bird"]
    lines = ["image_id,caption", "1,a red bird", "2,a tan bird"] if name == "t.csv" else lines
    (tmp_path / name).write_bytes("\r".join(lines).encode())
    assert load_table(tmp_path / name, tmp_path).captions["text"].tolist() == [
        "a red bird",
        "a tan bird",
    ]


@pytest.mark.parametrize("name", ["t.txt", "t.csv"])
@pytest.mark.parametrize(
    "content",
    [
        "image,caption\n1.jpg,a red bird\n1.jpg,a tan bird\n",
        "image_name| comment_number| comment\n1.jpg| 0| a red bird\n1.jpg| 1| a tan bird\n",
        "file_name;caption\r\n1.jpg;a red bird\r\n1.jpg;a tan bird\r\n",
        "image\tcaption\n1.jpg\ta red bird\n1.jpg\ta tan bird\n",
        "\ufeff\ufeffimage,caption\n1.jpg,a red bird\n1.jpg,a tan bird\n",
        "\ufeffimage\u200b, caption \n./1.jpg,a red bird\n.//1.jpg,a tan bird\n",
        '"image","caption"\n1.jpg,a red bird\n1.jpg,a tan bird\n',
    ],
)
def test_tables_as_they_are_distributed(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8", newline="")
    captions = load_table(tmp_path / name, tmp_path).captions
    assert [text.strip() for text in captions["text"]] == ["a red bird", "a tan bird"]
    assert captions[["image_id", "caption_id"]].values.tolist() == [["1", 0], ["1", 1]]


def test_byte_order_marks_are_no_text(tmp_path: Path) -> None:
    for name, line in (
        ("t.jsonl", '{"image_id": "1", "caption": "a cup"}'),
        ("t.txt", "1.jpg#0\ta cup"),
    ):
        (tmp_path / name).write_text(
            f"\ufeff\ufeff{line}\n\ufeff{line.replace('1', '2', 1)}\n", encoding="utf-8"
        )
        assert load_table(tmp_path / name, tmp_path).captions["image_id"].tolist() == ["1", "2"]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("name", ["t.csv", "t.txt", "t.jsonl"])
def test_another_encoding_is_named(tmp_path: Path, name: str, encoding: str) -> None:
    (tmp_path / name).write_text("image_id,caption\n1,a red bird\n", encoding=encoding)
    error = refused(lambda: load_table(tmp_path / name, tmp_path))
    assert error == f"{tmp_path / name}: is UTF-16 or UTF-32, not UTF-8; save the file as UTF-8"


def test_ids_with_invisible_characters_are_one_image_and_named(tmp_path: Path) -> None:
    ids = ["12", "12\u200b", "\ufeff12", " 12", "1\u00ad2", "./12", "12\u2060"]
    rows = [{"image_id": image_id, "caption": f"bird {n}"} for n, image_id in enumerate(ids)]
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "12\u200b.jpg").write_bytes(jpeg())
    loaded = load(write(tmp_path / "t.csv", rows), tmp_path / "pictures", tmp_path / "out")
    assert loaded.images.values.tolist() == [["12", "12.jpg"]]
    assert set(loaded.captions["image_id"]) == {"12"} and len(loaded.captions) == len(ids)
    changed = loaded.summary["ids_with_invisible_characters"]
    # The second byte order mark of a line is the id's.
    assert changed["names"] == [
        "line 3: image_id '12\\u200b'",
        "line 6: image_id '1\\xad2'",
        "line 8: image_id '12\\u2060'",
    ]
    clean = load(write(tmp_path / "t.csv", rows[:1]), tmp_path / "pictures", tmp_path / "out")
    assert "ids_with_invisible_characters" not in clean.summary


def test_paths_of_files_join_in_any_form(tmp_path: Path) -> None:
    (tmp_path / "pictures").mkdir()
    for name in ("cafe\u0301.jpg", "b.jpg", "c.jpg"):
        (tmp_path / "pictures" / name).write_bytes(jpeg())
    rows = [
        {"image_id": "1", "caption": "a", "path": "caf\u00e9.jpg"},
        {"image_id": "2", "caption": "a", "path": "./b.jpg"},
        {"image_id": "2", "caption": "b", "path": "b.jpg\u200b"},
        {"image_id": "3", "caption": "a", "path": " c.jpg "},
    ]
    loaded = load(write(tmp_path / "t.csv", rows), tmp_path / "pictures", tmp_path / "out")
    assert loaded.images.values.tolist() == [["1", "1.jpg"], ["2", "2.jpg"], ["3", "3.jpg"]]
    rows = [{"file_name": name, "caption": "a"} for name in ("caf\u00e9.jpg", "./b.jpg", "./c.jpg")]
    loaded = load(write(tmp_path / "t.csv", rows), tmp_path / "pictures", tmp_path / "out")
    assert loaded.images["image_id"].tolist() == ["b", "c", "caf\u00e9"]
    assert loaded.images["path"].notna().all()
