"""What the step accepts, skips by name, and refuses; its artifacts are complete or absent."""

import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from PIL import Image

from compclip.core import tables
from compclip.core.artifacts.files import read_json
from compclip.core.artifacts.parquet import read_table
from compclip.core.errors import UserError
from compclip.core.reading.pictures import image_size, read_rgb
from compclip.dataset.load_dataset import check_boxes, check_captions, check_image_files, turned_box
from compclip.dataset.source import BOX, spread_over_classes
from compclip.dataset.sources import table
from tests.core.picture_files import FIELDS, saved, turned
from tests.dataset.conftest import jpeg, load_job
from tests.dataset.test_table import write
from tests.specs.evaluated import refused
from workflow_scripts.dataset.load_dataset import main


def captions(*rows: tuple) -> pd.DataFrame:
    """From image_id, caption_id, text and optionally class_id."""
    return pd.DataFrame(
        [(*r, None)[:4] for r in rows], columns=["image_id", "caption_id", "text", "class_id"]
    )


def run(
    tmp_path: Path, table: str, images: dict[str, bytes] | None = None, limit: int | None = None
) -> Path:
    """Run the step on a CSV table and, unless None, a folder of images; return the data set's
    folder.
    """
    (tmp_path / "t.csv").write_text(table, encoding="utf-8")
    settings = {"file": str(tmp_path / "t.csv")}
    if images is not None:
        settings["images"] = str(tmp_path / "pictures")
        for name, content in images.items():
            path = tmp_path / "pictures" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    main(load_job(tmp_path, "table", limit, **settings))
    return tmp_path / "results" / "mine"


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("../a", 0, "x")], "image_id"),
        ([("a", 0, ""), ("a", 1, " \t")], "^x: no captions .2 are empty"),
        (
            [("a", 0, "x"), ("b", 0, "x"), ("a", 0, "y")],
            "image 'a': caption 0: duplicate caption_id",
        ),
        (
            [("a", 0, "x"), ("b", 3, "y\0")],
            r"image 'b': caption 3: contains a control character \(1 in total\); re",
        ),
        (
            [("a", 0, "x", "1"), ("a", 1, "y", "2")],
            "image 'a': caption 0: the image has captions of two classes",
        ),
    ],
)
def test_refused_captions(rows: list[tuple], message: str) -> None:
    with pytest.raises(UserError, match=message):
        [*check_captions(captions(*rows), "x", [], {})]


def test_empty_captions_and_boxes_outside_their_image() -> None:
    rows = captions(("a", 2, "two"), ("a", 1, " "), ("a", 0, "zero"), ("b", 0, ""))
    (found,) = check_captions(rows, "x", empty := [], {})
    assert found[["image_id", "caption_id", "text"]].values.tolist() == [
        ["a", 0, "zero"],
        ["a", 2, "two"],
    ]
    assert empty == ["a 1", "b 0"]
    # Some boxes overlap the image; others only touch it, have no area or lack a number.
    inside = [(0, 0, 40, 30), (-5, -5, 10, 10), (39, 29, 10, 10)]
    outside = [(-5, -5, 5, 5), (40, 0, 5, 5), (3, 3, 0, 5), (3, 3, -2, 5), (3, None, 2, 5)]
    rows = [(n, "p", 40, 30, *box) for n, box in enumerate(inside + outside)]
    found, named = check_boxes(
        pd.DataFrame(rows, columns=["image_id", "path", "width", "height", *BOX])
    )
    assert found["bbox_x"].notna().tolist() == [True] * 3 + [False] * 5 and named == [3, 4, 5, 6, 7]


@given(st.text(st.characters(exclude_categories=["Cc", "Cs"], include_characters="\t\n\r")))
@example('two  spaces, "é"')
def test_a_caption_is_one_line(text: str) -> None:
    (found,) = check_captions(captions(("a", 0, "x"), ("a", 1, text)), "x", [], {})
    for kept in found["text"][1:]:
        assert kept and kept == kept.strip() and len(kept.splitlines()) == 1 and "\t" not in kept
        assert kept == text.strip() or set(text) & set("\t\n\r\u2028\u2029")


@pytest.mark.parametrize("text", ["\u200b", "&nbsp;", "\u00ad \ufeff", "\u3164", "<br>"])
def test_a_caption_without_a_visible_character_is_empty(text: str) -> None:
    (found,) = check_captions(captions(("a", 0, "x"), ("a", 1, text)), "x", empty := [], {})
    assert found["text"].tolist() == ["x"] and empty == ["a 1"]


def test_what_is_read_otherwise_than_written_is_counted_and_named(
    tmp_path: Path, lines: list[str]
) -> None:
    clean = read_json(
        run(tmp_path, "image_id,caption\na,a red cup\nb,it\u2019s  tan\n") / "dataset.json"
    )
    assert not any(name.startswith(("captions_with", "ids_with")) for name in clean)
    table = (
        "image_id,caption\na,a red\u200b cup\na,a red&nbsp;cup\nb,a r\u0435d cup\nb,a *red* "
        "cup\nc\u200b,tan\n"
    )
    place = run(tmp_path, table)
    summary = read_json(place / "dataset.json")
    counted = {
        name: value["names"]
        for name, value in summary.items()
        if name.startswith(("captions_with", "ids_with"))
    }
    assert counted == {
        "ids_with_invisible_characters": ["line 6: image_id 'c\\u200b'"],
        "captions_with_compatibility_characters": ["a 1: 'a red&nbsp;cup'"],
        "captions_with_entities": ["a 1: 'a red&nbsp;cup'"],
        "captions_with_invisible_characters": ["a 0: 'a red\\u200b cup'"],
        "captions_with_markup": ["b 1: 'a *red* cup'"],
        "captions_with_mixed_scripts": ["b 0: 'a r\\u0435d cup'"],
    }
    assert any(
        "captions with invisible characters: 1 (a 0: 'a red\\u200b cup')" in line for line in lines
    )
    # The text is kept as given.
    texts = read_table(place / "captions.parquet", tables.CAPTIONS)["text"]
    assert texts.tolist() == [
        "a red\u200b cup",
        "a red&nbsp;cup",
        "a r\u0435d cup",
        "a *red* cup",
        "tan",
    ]


def test_images(tmp_path: Path) -> None:
    (tmp_path / "good.jpg").write_bytes(jpeg(1, (40, 30)))
    (tmp_path / "silent.jpg").write_bytes(jpeg(1))
    whole = jpeg(2, (300, 300))
    for name, content in [("cut", whole[: len(whole) // 2]), ("text", b"<html>"), ("empty", b"")]:
        (tmp_path / f"{name}.jpg").write_bytes(content)
    ids = ["good", "cut", "text", "empty", "lost", "none"]
    images = pd.DataFrame(
        {"image_id": [*ids, "silent"], "path": [*(f"{i}.jpg" for i in ids[:5]), None, "silent.jpg"]}
    )
    found, report = check_image_files(sorted([*ids, "unknown"]), images, tmp_path, "x")
    there = found.set_index("image_id")
    assert list(there.index) == sorted([*ids, "unknown"])
    assert list(there.loc["good", ["path", "width", "height"]]) == ["good.jpg", 40, 30]
    assert there.drop(index="good")[["path", "width", "height"]].isna().all(axis=None)
    assert report["images_broken"]["count"] == 3
    assert [n.split(":")[0] for n in report["images_broken"]["names"]] == ["cut", "empty", "text"]
    assert report["images_without_file"] == {"count": 3, "names": ["lost", "none", "unknown"]}
    assert report["images_without_captions"] == {"count": 1, "names": ["silent"]}
    # Broken files, and files without captions, are removed.
    assert [p.name for p in tmp_path.iterdir()] == ["good.jpg"]


@pytest.mark.parametrize(
    ("image", "paths", "message"),
    [
        ("a", ["a.jpg"], "none of 1 images is readable, the first: a: "),
        ("a", [None] * 2, "1 duplicate images: .'a'"),
        ("../a", ["a"], "image_id"),
    ],
)
def test_refused_images(tmp_path: Path, image: str, paths: list[str | None], message: str) -> None:
    (tmp_path / "a.jpg").write_bytes(b"no")
    with pytest.raises(UserError, match=message):
        check_image_files(["a"], pd.DataFrame({"image_id": image, "path": paths}), tmp_path, "x")


def test_the_artifacts_and_that_a_failure_keeps_them(tmp_path: Path) -> None:
    table = (
        "image_id,caption,class_id\nb/2,a red bird,1\n007,blue "
        "wings,2\n007,,2\nb/2,gray,1\n3,no image,2\n"
    )
    images = {"007.jpg": jpeg(), "b/2.PNG": jpeg(1), "3.jpg": b"broken"}
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    place, again = (run(tmp_path / name, table, images) for name in ("one", "two"))
    found = read_table(place / "captions.parquet", tables.CAPTIONS)
    assert found[["image_id", "caption_id"]].values.tolist() == [
        ["007", 0],
        ["3", 0],
        ["b/2", 0],
        ["b/2", 1],
    ]
    paths = read_table(place / "images.parquet", tables.IMAGES)["path"]
    assert paths.fillna("").tolist() == ["mine/images/007.jpg", "", "mine/images/b/2.png"]
    assert all((place.parent / path).is_file() for path in paths.dropna())
    assert not (place / "images" / "3.jpg").exists()
    summary = read_json(place / "dataset.json")
    counted = ("images", "images_with_file", "captions", "classes")
    assert [summary[name] for name in counted] == [3, 2, 4, 2]
    assert summary["captions_empty"] == {"count": 1, "names": ["007 1"]}
    assert summary["images_broken"]["count"] == 1
    # No artifact contains an absolute path, and equal work gives equal bytes.
    assert all(str(tmp_path).encode() not in p.read_bytes() for p in place.glob("*.*"))
    contents = (
        {p.relative_to(r): p.read_bytes() for p in r.rglob("*") if p.is_file()}
        for r in (place, again)
    )
    assert next(contents) == next(contents)
    place = run(tmp_path, "image_id,caption\na,a red bird\n", {"a.jpg": jpeg()})
    before = {p: p.read_bytes() for p in place.rglob("*") if p.is_file()}
    with pytest.raises(UserError, match="duplicate caption_id"):
        run(tmp_path, "image_id,caption_id,caption\na,0,a red bird\na,0,a blue bird\n", {})
    assert {p: p.read_bytes() for p in place.rglob("*") if p.is_file()} == before
    message = refused(lambda: main(load_job(tmp_path, "table")))
    assert "settings: file: Field required; allowed keys: file, columns, images" in message


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
@pytest.mark.parametrize("limit", [None, 5])
def test_blocks_of_any_size_give_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, limit: int | None
) -> None:
    """Of shuffled rows, with rows that cannot be read, equal rows, and images without captions."""
    dice = np.random.default_rng(0)
    image = dice.integers(0, 12, 60)
    rows = pd.DataFrame(
        {"image_id": [f"i{n}" if n else "" for n in image], "class_id": [f"{n % 3}" for n in image]}
    )
    rows["caption"] = dice.choice(["red", "a blue\nbird", "", "tan", "\1"], 60)
    if limit:
        rows["caption_id"] = [f"{n}" if n % 9 else "x" for n in range(60)]
    file = write(tmp_path / f"t{suffix}", rows.to_dict("records"))
    made = []
    for size in (1, 3, 1000):
        for name in ("ROWS_READ", "ROWS_PER_GROUP", "ROWS_CHECKED"):
            monkeypatch.setattr(table, name, size)
        main(load_job(tmp_path, "table", limit, file=str(file)))
        made.append(
            {
                p.name: p.read_bytes()
                for p in (tmp_path / "results" / "mine").iterdir()
                if p.is_file()
            }
        )
    assert made[0] == made[1] == made[2] and [*map(len, made)] == [3, 3, 3]
    summary = read_json(tmp_path / "results" / "mine" / "dataset.json")
    assert summary["rows_unreadable"]["count"] > 10 and summary["captions_empty"]["count"] > 2
    assert summary["captions_distinct"] == 3 and (summary["rows_duplicate"]["count"] > 9) == (
        limit is None
    )


def test_captions_of_a_source_without_a_column_are_refused() -> None:
    table = captions(("a", 0, "x")).drop(columns="class_id")
    with pytest.raises(UserError, match="mine: captions without class_id; return captions with"):
        [*check_captions(table, "mine", [], {})]


def test_faults_are_counted_over_all_blocks() -> None:
    blocks = (captions((image, 0, "x"), (image, 0, "y")) for image in ("a", "b"))
    with pytest.raises(
        UserError, match=r"image 'a': caption 0: duplicate caption_id \(2 in total\)"
    ):
        [*check_captions(blocks, "x", [], {})]


@given(
    st.lists(st.sampled_from(["1", "2", "3", None]), min_size=1, max_size=40),
    st.integers(1, 45),
    st.integers(0, 3),
)
def test_a_limit_is_spread_over_the_classes(
    classes: list[str | None], limit: int, seed: int
) -> None:
    images = pd.DataFrame(
        {"image_id": [f"{n:02}" for n in range(len(classes))], "class_id": classes}
    )
    chosen = spread_over_classes(images, limit, seed)
    assert len(chosen) == min(limit, len(classes))
    assert chosen == spread_over_classes(images.sample(frac=1, random_state=1), limit, seed)
    assert chosen <= spread_over_classes(images, limit + 1, seed)
    taken = images[images["image_id"].isin(chosen)]["class_id"].fillna("").value_counts()
    whole = images["class_id"].fillna("").value_counts()
    # Classes differ by at most one image, unless a class has no more.
    for name, size in whole.items():
        assert taken.get(name, 0) >= min(size, taken.max() - 1)


def test_images_are_stored_as_people_see_them(tmp_path: Path) -> None:
    """With the sizes that are shown; clean data has no such entries."""
    files = {
        "turned.jpg": turned(6),
        "plain.jpg": saved(FIELDS, "JPEG"),
        "clear.png": saved(Image.new("LA", (9, 7)), "PNG"),
    }
    listed = "image_id,caption\nturned,a red bird\nplain,blue wings\nclear,a gray bird\n"
    place = run(tmp_path, listed, files)
    images = read_table(place / "images.parquet", tables.IMAGES).set_index("image_id")
    assert images["path"].to_dict() == {
        "turned": "mine/images/turned.jpg.png",
        "plain": "mine/images/plain.jpg",
        "clear": "mine/images/clear.png",
    }
    assert images[["width", "height"]].loc["turned"].tolist() == [40, 60]
    summary = read_json(place / "dataset.json")
    assert summary["images_rotated"] == {"count": 1, "names": ["turned"]}
    assert summary["images_transparent"] == {"count": 1, "names": ["clear"]}
    assert (place / "images" / "plain.jpg").read_bytes() == files["plain.jpg"]
    (tmp_path / "clean").mkdir()
    clean = run(
        tmp_path / "clean",
        "image_id,caption\nplain,blue wings\n",
        {"plain.jpg": files["plain.jpg"]},
    )
    assert not {"images_rotated", "images_transparent"} & set(read_json(clean / "dataset.json"))


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_box_is_turned_with_its_image(orientation: int) -> None:
    stored = Image.new("L", (60, 40))
    stored.paste(255, (5, 10, 25, 40))
    exif = Image.Exif()
    exif[0x0112] = orientation
    raw = io.BytesIO(saved(stored, "PNG", exif=exif))
    left, top, right, bottom = read_rgb(raw).getbbox() or ()
    assert turned_box((5, 10, 20, 30), orientation, image_size(raw)) == [
        left,
        top,
        right - left,
        bottom - top,
    ]
