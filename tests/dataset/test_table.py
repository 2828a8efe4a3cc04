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
        for n, (image_id, class_id) in enumerate([("caf\u00e9", "1"), ("cafe\u0301 ", "1\n"), (" caf\u00e9", " 1")])
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
        assert list(load_table(write(tmp_path / f"t{suffix}", rows), tmp_path).captions["image_id"]) == texts


def test_equal_rows_are_counted_and_read_once_and_an_unused_column_is_named(tmp_path: Path, lines: list[str]) -> None:
    csv = tmp_path / "t.csv"
    csv.write_text("image_id,caption\na,red\nb,red\na,red\na ,red\na,tan\n")
    loaded = load(csv, None, tmp_path / "out")
    # The position among the image's rows stays that in the file.
    assert loaded.captions[["image_id", "caption_id"]].values.tolist() == [["a", 0], ["b", 0], ["a", 3]]
    assert loaded.summary["rows_duplicate"] == {"count": 2, "names": ["line 4", "line 5"]}
    assert len(loaded.images) == 2 and loaded.images["path"].isna().all()
    csv.write_text("image_id,caption_id,caption\na,7,red\na,7,red\na,8,red\n")
    assert list(load(csv, None, tmp_path / "out").captions["caption_id"]) == [7, 8]
    load(write(tmp_path / "t.csv", [{"image_id": "1", "caption": "a bird", "clas_id": "3"}]), None, tmp_path / "out")
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
        ("t.csv", b"image_id,caption\na," + b"x" * 1_000_001, "from line 2: field larger than field limit (1000000)"),
        ("t.csv", b"," * 300_000, "duplicate column ''"),
        ("t.jsonl", b'{"image_id": 1, "caption": "a", "caption": "b"}', "no column 'image_id'"),
        ("t.jsonl", b'{"image_id": 1e20, "caption": "a"}', "may have lost digits; write it as text"),
        ("t.csv", b"", "its columns: none"),
        ("t.csv", b"image_id,caption\n", "no captions"),
        ("t.csv", b"image_id,caption\na,b,c\n", "no captions: 1 rows cannot be read, the first: line 2: 3 values"),
        ("t.csv", b"image_id,caption,caption\na,b,c\n", "duplicate column 'caption'"),
        ("t.csv", "image_id,caption\na,b\nc,é".encode("latin-1"), "line 3: byte 0xe9 is not UTF-8"),
        ("t.csv", b'image_id,caption\na,b\nc,"d\ne,f\n', "from line 3: unexpected end of data; correct the quotes"),
        ("t.csv", b"image_id,caption\n../../etc/x,b\n", "line 2: image_id '../../etc/x': not usable as a path"),
        ("t.jsonl", b"[1, 2]", "no column 'image_id'; its columns: none"),
        ("t.jsonl", b'{"image_id": "a"}', "no column 'caption'; its columns: 'image_id'"),
        ("t.parquet", b"PAR1", "not a readable Parquet file"),
        ("t.json", b"[]", "unknown format '.json'; allowed: .csv, .tsv, .jsonl, .parquet"),
        ("t.csv", b"image_id,caption,path\na,b,x.jpg\na,c,y.jpg\n", "line 3: image 'a' has a second path, 'y.jpg'"),
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
    no_image = "none of the table's 2 images is in this folder, the first should be 007.jpg; it contains 0"
    for captions, images, message in [
        (tmp_path / "v.csv", None, "v.csv: no such file; did you mean .*[tu].csv"),
        (file, tmp_path / "none", "none: no such folder of images"),
        (file, tmp_path / "empty", no_image),
        (other, pictures, "it contains 2 images, for example 007.JPG"),
    ]:
        with pytest.raises(UserError, match=message):
            load(captions, images, tmp_path / "out")
    rows = [{"image_id": i, "caption": "a", "path": path} for i, path in (("x", "b/8.jpeg"), ("y", "none.png"))]
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
