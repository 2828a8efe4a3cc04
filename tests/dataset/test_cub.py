"""Source cub reads the published layout, from small archives and from the real ones."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compclip.core.errors import UserError
from compclip.dataset.load_dataset import check_captions, check_image_files
from compclip.dataset.source import Loaded
from compclip.dataset.sources import cub
from tests.dataset.conftest import BIRDS, jpeg, tar, zipped


def load(
    root: Path | str, folder: Path, limit: int | None = None, **settings: str | None
) -> Loaded:
    folder.mkdir(exist_ok=True)
    chosen = cub.Settings(**{"root": str(root), "captions": "cub_captions.zip"} | settings)
    return cub.load(chosen, seed=0, limit=limit, folder=folder, cache=folder)


@pytest.mark.parametrize("as_address", [False, True])
def test_small_archives(cub_archives: Path, tmp_path: Path, as_address: bool) -> None:
    loaded = load(cub_archives.as_uri() if as_address else cub_archives, tmp_path / "images")
    captions = loaded.captions.set_index(["image_id", "caption_id"])
    assert len(captions) == 8
    assert captions.loc[(BIRDS[2], 1), "text"] == "its bill is short 2"
    assert captions.loc[(BIRDS[2], 1), "class_id"] == "182"
    images = loaded.images.set_index("image_id")
    assert list(images.index) == sorted(BIRDS)
    assert images.loc[BIRDS[0], "path"] == f"{BIRDS[0]}.jpg"
    assert list(images.loc[BIRDS[2], ["bbox_x", "bbox_y", "bbox_w", "bbox_h"]]) == [
        3.0,
        2.0,
        20.0,
        10.5,
    ]
    # No photograph: no path, and no box either, though one is listed.
    assert images.loc[BIRDS[3]].isna().all()
    assert (tmp_path / "images" / f"{BIRDS[2]}.jpg").read_bytes() == jpeg(2)
    assert len([p for p in (tmp_path / "images").rglob("*") if p.is_file()]) == 3
    assert loaded.summary["photographs_without_captions"]["names"] == [
        "003.Sooty_Albatross/Sooty_Albatross_0001_1"
    ]
    assert loaded.summary["listed_but_not_in_archive"] == {"count": 1, "names": [BIRDS[3]]}
    # A limit counts images with photographs.
    for limit in (1, 2, 99):
        loaded = load(cub_archives, tmp_path / "images", limit)
        assert len(loaded.images) == min(limit, 3) and loaded.images["path"].notna().all()
        assert set(loaded.captions["image_id"]) == set(loaded.images["image_id"])


def test_lines_of_captions_and_classes_that_they_name_differently(
    cub_archives: Path, tmp_path: Path
) -> None:
    photographs = {
        "009.Brewer_Blackbird/Brewer_Blackbird_0002_2278": 1,
        "126.Nelson_Sharp_tailed_Sparrow/Nelson_Sharp_Tailed_Sparrow_0001_796931": 2,
        BIRDS[0]: 3,
    }
    lists = {
        "images.txt": "".join(f"{n} {i}.jpg\n" for i, n in photographs.items()).encode(),
        "bounding_boxes.txt": b"1 1 1 9 9\n2 2 2 9 9\n3 3 3 9 9\n",
    }
    # The second is listed, and its photograph is not in this archive.
    images = {f"images/{i}.jpg": jpeg(n) for i, n in photographs.items() if n != 2}
    tar(cub_archives / "CUB_200_2011.tgz", lists | images)
    captions = [
        "009.Brewers_Blackbird/Brewers_Blackbird_0002_2278",
        "126.Nelsons_Sparrow/Nelsons_Sparrow_0001_796931",
    ]
    captions += [BIRDS[0], "010.Else/Brewers_Blackbird_0002_2278"]
    zipped(
        cub_archives / "cub_captions.zip",
        {f"cvpr2016_cub/text_c10/{c}.txt": c.encode() for c in captions},
    )
    loaded = load(cub_archives, tmp_path / "images")
    texts = loaded.captions.set_index("image_id")["text"].to_dict()
    assert texts == dict(zip([*photographs][:2], captions, strict=False)) | {
        c: c for c in captions[2:]
    }
    assert loaded.captions["class_id"].tolist() == ["001", "009", "010", "126"]
    assert loaded.images["path"].notna().sum() == 2
    assert loaded.summary["caption_files_of_another_name"]["count"] == 2
    # Without photographs, captions keep their names.
    alone = load(cub_archives, tmp_path / "2", images=None)
    assert list(cub.Settings(images=None).places()) == ["captions"]
    assert set(alone.captions["image_id"]) == set(captions) and alone.images["path"].isna().all()
    contents = {
        "x/text_c10/001.A/one.txt": b"first\r\n\r\nthird\r\n\r\n",
        "x/text_c10/001.A/two.txt": "\ufefffirst\nno\xe9l".encode("latin-1", "replace") + b"\xff",
        "x/text_c10/001.A/none.txt": b"\n",
        "x/word_c10/001.A/one.txt": b"not this",
        "x/text_c10/001.A/._one.txt": b"nor this",
    }
    lines, undecodable = cub.CUB_LAYOUT.read_captions(zipped(tmp_path / "c.zip", contents))
    one = lines[lines["image_id"] == "001.A/one"]
    assert list(one["text"]) == ["first", "", "third"] and list(one["caption_id"]) == [0, 1, 2]
    assert undecodable == ["x/text_c10/001.A/two.txt"]
    assert set(lines["image_id"]) == {"001.A/one", "001.A/two", "001.A/none"}


IDS = st.sets(
    st.tuples(st.sampled_from("12"), st.sampled_from("ab"), st.sampled_from(["1_1", "1_2", "x"]))
)


@given(IDS, IDS)
def test_no_photograph_gets_the_captions_of_two(
    ids: set[tuple[str, ...]], known: set[tuple[str, ...]]
) -> None:
    ids, known = (
        {f"{number}.{name}/{name}_{end}" for number, name, end in some} for some in (ids, known)
    )
    found = cub.renames(ids, known)
    assert set(found) <= ids - known and set(found.values()) <= known - ids
    assert len(set(found.values())) == len(found)
    assert all(
        old.split(".")[0] == new.split(".")[0] and old[-3:] == new[-3:]
        for old, new in found.items()
    )
    if known == ids:
        assert found == {}


def test_errors(cub_archives: Path, tmp_path: Path) -> None:
    for settings, message in [
        ({"images": "none.tgz"}, "none.tgz: no such file"),
        ({"captions_sha256": "0" * 64}, "cub_captions.zip: sha256 is"),
        (
            {"captions": "CUB_200_2011.tgz"},
            "contains no text/<class>/<name>.txt; give the archive of the captions",
        ),
        ({"images": "cub_captions.zip"}, "contains no images/<class>/<name>.jpg"),
    ]:
        with pytest.raises(UserError, match=message):
            load(cub_archives, tmp_path / "i", **settings)
    image = {"images/001.A/one.jpg": jpeg()}
    for lists, message in [
        ({}, "contains no images.txt"),
        ({"images.txt": b"1 001.A/one.jpg"}, "contains no bounding_boxes.txt"),
        (
            {"images.txt": b"1", "bounding_boxes.txt": b""},
            "images.txt: expected lines of a number and 1 values",
        ),
        (
            {"images.txt": b"1 a.jpg\n1 b.jpg", "bounding_boxes.txt": b""},
            "images.txt: expected lines",
        ),
        (
            {"images.txt": b"1 a.jpg", "bounding_boxes.txt": b"1 1 x 1 1"},
            "bounding_boxes.txt: could not convert",
        ),
        ({"images.txt": b"", "bounding_boxes.txt": b""}, "none of its photographs has a caption"),
    ]:
        tar(cub_archives / "other.tgz", image | lists)
        with pytest.raises(UserError, match=message):
            load(cub_archives, tmp_path / "i", images="other.tgz")


def test_the_real_archives(cub_root: Path, tmp_path: Path) -> None:
    loaded = load(cub_root, tmp_path / "images")
    (captions,) = check_captions(loaded.captions, "cub", empty := [], {})
    images, report = check_image_files(
        sorted({*captions["image_id"]}), loaded.images, tmp_path / "images", "cub"
    )
    assert len(captions) == 117_880 and captions["text"].nunique() == 96_481 and not empty
    assert len(images) == 11_788 and captions["class_id"].nunique() == 200
    assert images["path"].notna().sum() == images["bbox_w"].notna().sum() == 2_889
    assert report["images_without_file"]["count"] == 11_788 - 2_889
    assert [report[name]["count"] for name in ("images_broken", "images_without_captions")] == [
        0,
        0,
    ]
    assert captions["caption_id"].max() == 9
