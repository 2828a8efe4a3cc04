"""Compounds and their images: from folders, archives and addresses, by names and by columns, whole and faulty."""

import json
import logging
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from tests.dataset.conftest import Site, jpeg, site, tar, zipped
from workflow_scripts.compun.compounds import key, read_list
from workflow_scripts.compun.config import Compounds
from workflow_scripts.compun.load_compounds import (
    PUBLISHED,
    fingerprint,
    is_image,
    load,
    main,
    match,
    open_images,
    warn,
)  # fmt: skip
from workflow_scripts.compun.steps import LoadCompounds
from workflow_scripts.core.code import ROOT
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import read_json, read_table
from workflow_scripts.core.tables import COMPOUND_IMAGES, COMPOUNDS, ROLES

COMPUN = ROOT / "lexicons" / "compounds" / "compun.csv"
__all__ = ["site"]


def triple(name: str, ending: str = ".jpg") -> list[str]:
    return [f"{name}{ending}", f"{name}_n1{ending}", f"{name}_n2{ending}"]


def listed(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def pictures(folder: Path, names: list[str]) -> Path:
    for number, name in enumerate(names):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.suffix in (".jpg", ".JPG", ".jpeg"):
            target.write_bytes(jpeg(number))
        else:
            Image.new("RGB", (4, 4), (number, 0, 0)).save(target)
    return folder


def loaded(
    tmp_path: Path, file: Path | None, places: Path | str | list[str], sha256: str | None = None
) -> tuple[pd.DataFrame, pd.DataFrame, dict[str, Any]]:
    out = tmp_path / "out"
    out.mkdir(exist_ok=True, parents=True)
    images = str(places) if isinstance(places, Path) else places
    origin = Compounds(file=None if file is None else str(file), images=images, sha256=sha256)
    return load(origin, folder=out, cache=tmp_path / "cache")


def named_files(images: pd.DataFrame) -> dict[str, list[str | None]]:
    images = images.astype(object).where(images.notna(), None)
    return {name: list(part["path"]) for name, part in images.groupby("compound", sort=False)}


# By names


def test_all_of_the_benchmark_in_its_layout() -> None:
    """As its archive is: flat, in a folder, named as listed; both snow balls."""
    table = read_list(COMPUN)
    names = [f"images/{file}" for name in table["compound"] for file in triple(name, ".png")]
    compounds, images, notes = match(table, names, "images.zip", "compun.csv", take_unlisted=True)
    assert list(compounds["compound"]) == list(table["compound"])
    assert len(images) == 1200 and images["path"].notna().all() and list(images["role"][:3]) == list(ROLES)
    assert sorted(images["path"]) == sorted(names)
    assert all(value["count"] == 0 for value in notes.values())
    # And with no list at all.
    alone = match(None, names, "images.zip")[0]
    assert sorted(alone["compound"]) == sorted(table["compound"])


def test_the_images_names_are_the_authority(tmp_path: Path) -> None:
    file = listed(tmp_path / "l.csv", "compound,first,second\nGas station,,\nshuttle cork,shuttle,cork\nlab coat,,\n")
    names = triple("gas station") + triple("Shuttlecock") + triple("shuttlecork") + triple("lab_coat", ".webp")
    compounds, images, notes = match(read_list(file), names, "a.zip", "l.csv", take_unlisted=True)
    assert list(compounds["compound"]) == ["gas station", "shuttlecork", "lab coat", "Shuttlecock"]
    assert list(compounds["first"]) == ["Gas", "shuttle", "lab", None]
    assert images["path"].notna().all()
    called = ["Gas station: gas station", "shuttle cork: shuttlecork"]
    assert notes["compounds_called_as_their_images"] == {"count": 2, "names": called}
    assert notes["compounds_not_listed_and_taken"] == {"count": 1, "names": ["Shuttlecock"]}
    # The spelling is theirs, the choice the list's.
    compounds, images, notes = match(read_list(file), names, "a.zip", "l.csv")
    assert list(compounds["compound"]) == ["gas station", "shuttlecork", "lab coat"]
    assert not images["path"].str.startswith("Shuttlecock").any()
    assert notes["compounds_not_listed_and_left_out"] == {"count": 1, "names": ["Shuttlecock"]}


def test_a_struck_item_is_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Screening is striking an item from the list: nothing of it is copied, and a line says so."""
    folder = pictures(tmp_path / "in", triple("goldfish") + triple("lab coat") + ["lamp shade_n1.png"])
    listed(tmp_path / "l.txt", "goldfish\nlab coat\n")
    assert loaded(tmp_path / "a", tmp_path / "l.txt", folder)[2]["complete"] == 2
    file = listed(tmp_path / "l.txt", "goldfish\n")
    compounds, _, summary = loaded(tmp_path / "b", file, folder)
    assert (list(compounds["compound"]), summary["compounds"]) == (["goldfish"], 1)
    assert sorted(path.name for path in (tmp_path / "b" / "out").iterdir()) == sorted(triple("goldfish"))
    warn(summary)
    assert [record.message for record in caplog.records if record.levelname == "WARNING"] == [
        "warning: without constituents: 1 (goldfish)",
        "warning: compounds not listed and left out: 1 (lab coat)",
        "warning: images that name no listed compound: 1 (lamp shade_n1.png)",
    ]


def test_two_spellings_with_images_of_their_own(tmp_path: Path) -> None:
    file = listed(tmp_path / "l.txt", "snow ball\nsnowball\n")
    compounds, images, _ = match(read_list(file), triple("snowball") + triple("snow ball"), "a", "l.txt")
    assert list(compounds["compound"]) == ["snow ball", "snowball"]
    assert named_files(images) == {"snow ball": triple("snow ball"), "snowball": triple("snowball")}
    # One of them alone takes its own, not the other's.
    compounds, images, _ = match(read_list(file), triple("snowball"), "a", "l.txt")
    assert named_files(images) == {"snow ball": [None] * 3, "snowball": triple("snowball")}
    # A third spelling is that of the one left.
    both = triple("snow-ball") + triple("snowball")
    assert list(match(read_list(file), both, "a", "l.txt")[0]["compound"]) == ["snow-ball", "snowball"]
    # Which of the two is meant by it alone cannot be known.
    file = listed(tmp_path / "l.txt", "snow ball\nsnowball\ngoldfish\n")
    compounds, _, notes = match(read_list(file), triple("snow-ball") + triple("goldfish"), "a", "l.txt")
    assert list(compounds["compound"]) == ["snow ball", "snowball", "goldfish"]
    assert notes["compounds_not_listed_and_left_out"]["names"] == ["snow-ball"]


@pytest.mark.parametrize("take", [True, False])
def test_an_image_without_a_compound(tmp_path: Path, take: bool) -> None:
    """A typing error leaves the listed compound incomplete, and is named."""
    file = listed(tmp_path / "l.txt", "goldfish\nlab coat\n")
    names = [*triple("goldfish")[:1], "goldfish_n2.jpg", "cover.png", "gldfish_n1.jpg"]
    compounds, images, notes = match(read_list(file), names, "a.zip", "l.txt", take)
    assert named_files(images) == {"goldfish": ["goldfish.jpg", None, "goldfish_n2.jpg"], "lab coat": [None] * 3}
    assert notes["images_that_name_no_listed_compound"] == {"count": 2, "names": ["cover.png", "gldfish_n1.jpg"]}
    with pytest.raises(UserError, match="a.zip: holds no image of l.txt; expected 'goldfish'.*such as 'cat food'"):
        match(read_list(file), triple("cat food"), "a.zip", "l.txt")


def test_several_files_of_one_image() -> None:
    names = ["b/goldfish.png", "a/goldfish.jpg", "goldfish_N1.gif", "goldfish_n1.JPEG", "goldfish_n2 .bmp"]
    compounds, images, notes = match(None, names, "a")
    assert list(compounds["compound"]) == ["goldfish"]
    assert list(images["path"]) == ["a/goldfish.jpg", "goldfish_n1.JPEG", "goldfish_n2 .bmp"]
    assert notes["images_with_several_files"]["count"] == 2


@pytest.mark.parametrize(
    ("name", "image"),
    [("a/b.JPG", True), ("M & M cookies_n1.webp", True), ("x.avif", True), ("a.txt", False), ("goldfish", False),
     ("__MACOSX/a.jpg", False), ("images/._a.jpg", False), (".cache/a.jpg", False)],
)  # fmt: skip
def test_which_files_are_images(name: str, image: bool) -> None:
    assert is_image(name) is image


word = st.text("abcde", min_size=1, max_size=4)
compound = st.one_of(word, st.tuples(word, word).map(" ".join))


@given(st.lists(compound, min_size=1, max_size=6, unique_by=key), st.data())
def test_nothing_is_lost_or_invented(names: list[str], data: st.DataObject) -> None:
    """Of any images of listed compounds, each is one compound's, in its role; what is not there is null."""
    everything = [file for name in names for file in triple(name)]
    there = data.draw(st.lists(st.sampled_from(everything), min_size=1, unique=True))
    rows = match(None, everything, "all")[0]
    own = {name for name in names if set(triple(name)) & set(there)}
    compounds, images, notes = match(rows, there, "some", "list", data.draw(st.booleans()))
    files = named_files(images)
    assert sorted(path for paths in files.values() for path in paths if path) == sorted(there)
    for name in own:
        assert files[name] == [file if file in there else None for file in triple(name)]
    assert len(compounds) == len(rows) == len(names)
    assert not any(note["count"] for name, note in notes.items() if "listed" in name)


# By columns


def test_images_that_the_list_states(tmp_path: Path) -> None:
    """Two compounds may share a distractor."""
    text = "compound,kind,path,path_n1,path_n2\nsnow man,both,c/1.png,snow.png,man.png\n"
    file = listed(tmp_path / "l.csv", text + "snow ball,either,c/2.png,snow.png,ball.png\n")
    folder = pictures(tmp_path / "in", ["c/1.png", "c/2.png", "snow.png", "man.png", "other.png"])
    compounds, images, summary = loaded(tmp_path, file, folder)
    stated = {"snow man": ["c/1.png", "snow.png", "man.png"], "snow ball": ["c/2.png", "snow.png", None]}
    assert named_files(images) == stated
    assert list(compounds["complete"]) == [True, False]
    assert summary["kinds"] == {"either": 1, "both": 1, "none": 0}
    assert summary["images_stated_and_not_there"] == {"count": 1, "names": ["ball.png"]}
    assert summary["images_not_used"] == {"count": 1, "names": ["other.png"]}
    assert sorted(p.name for p in (tmp_path / "out").rglob("*.png")) == ["1.png", "2.png", "man.png", "snow.png"]


def test_a_path_that_leaves_the_folder(tmp_path: Path) -> None:
    file = listed(tmp_path / "l.csv", "compound,path\nsnow man,../1.png\n")
    folder = pictures(tmp_path / "in", ["1.png"])
    with pytest.raises(UserError, match=r"'snow man': path '../1.png' leaves the folder of images"):
        loaded(tmp_path, file, folder)
    file = listed(tmp_path / "l.csv", "compound,path\nsnow man,2.png\n")
    with pytest.raises(UserError, match=r"expected '2.png'; it holds 1 images, such as '1.png'"):
        loaded(tmp_path, file, folder)


# Folders, archives, addresses


@pytest.mark.parametrize("kind", ["folder", "zip", "tar"])
def test_folders_and_archives(tmp_path: Path, kind: str) -> None:
    names = triple("goldfish") + triple("M & M cookies")
    members = {f"Compun/{name}": jpeg(number) for number, name in enumerate(names)}
    members |= {"Compun/read me.txt": b"", "__MACOSX/._goldfish.jpg": b"mac"}
    if kind == "folder":
        place = tmp_path / "in"
        for name, content in members.items():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_bytes(content)
    else:
        place = (zipped if kind == "zip" else tar)(tmp_path / f"a.{kind}", members)
    file = listed(tmp_path / "l.txt", "M & M cookies\ngoldfish\n")
    compounds, images, summary = loaded(tmp_path, file, place)
    assert compounds["complete"].all()
    assert list(compounds["first"].fillna("")) == ["M & M", ""]
    for path in images["path"]:
        assert (tmp_path / "out" / path).read_bytes() == members[path]
    assert (summary["compounds"], summary["complete"], summary["images"]) == (2, 2, 6)
    assert summary["without_constituents"] == {"count": 1, "names": ["goldfish"]}
    assert ("archive" in summary) is (kind != "folder")
    assert str(tmp_path) not in json.dumps(summary)


def test_an_address(tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = zipped(tmp_path / "a.zip", {name: jpeg(n) for n, name in enumerate(triple("goldfish"))})
    site.files["/a.zip"] = archive.read_bytes()
    compounds, _, summary = loaded(tmp_path, None, f"{site.address}/a.zip")
    assert compounds["complete"].tolist() == [True]
    assert summary["archive"]["sum"] == "unchecked"
    asked = len(site.asked)
    loaded(tmp_path, None, f"{site.address}/a.zip")
    assert len(site.asked) == asked
    with pytest.raises(UserError, match="expected 0000"):
        loaded(tmp_path, None, f"{site.address}/a.zip", "0" * 64)
    # The benchmark's own address is asked for by its name.
    monkeypatch.setitem(PUBLISHED, "compun", type(PUBLISHED["compun"])((f"{site.address}/none.zip",)))
    with pytest.raises(UserError, match=r"none.zip: .*404.*in a browser"):
        open_images("compun", None, tmp_path / "cache")
    # A folder that is here goes before an address.
    folder = pictures(tmp_path / "here", triple("goldfish"))
    assert open_images([f"{site.address}/none.zip", str(folder)], None, tmp_path / "cache") == (folder, None)


def test_places_that_are_wrong(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    climbing = zipped(tmp_path / "c.zip", {"../goldfish.jpg": jpeg()})
    for place, sha256, message in (
        (tmp_path / "none", None, "none: no such file"),
        (tmp_path / "empty", None, "empty: holds no image"),
        (tmp_path / "empty", "0" * 64, "a folder has no sha256"),
        (listed(tmp_path / "a.zip", "no"), None, "truncated, damaged or not an archive"),
        (climbing, None, "outside its folder; do not trust it"),
    ):
        with pytest.raises(UserError, match=message):
            loaded(tmp_path, None, place, sha256)


# What is not whole


def test_an_image_missing_and_one_broken(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    names = [*triple("goldfish"), *triple("lab coat")[:2], *triple("snow ball"), *triple("snowball")]
    folder = pictures(tmp_path / "in", names)
    (folder / "snow ball_n2.jpg").write_bytes(jpeg()[:400])
    file = listed(tmp_path / "l.txt", "goldfish\nlab coat\nsnow ball\nsnowball\ncricket bat\n")
    compounds, images, summary = loaded(tmp_path, file, folder)
    assert dict(zip(compounds["compound"], compounds["complete"], strict=True)) == {
        "goldfish": True, "lab coat": False, "snow ball": False, "snowball": True, "cricket bat": False,
    }  # fmt: skip
    assert named_files(images)["snow ball"] == ["snow ball.jpg", "snow ball_n1.jpg", None]
    assert not (tmp_path / "out" / "snow ball_n2.jpg").exists()
    assert summary["compounds_incomplete"] == {
        "count": 3,
        "names": ["lab coat: n2", "snow ball: n2", "cricket bat: compound, n1, n2"],
    }
    assert summary["images_broken"]["count"] == 1
    assert summary["two_spellings"]["names"] == ["snow ball, snowball"]
    warn(summary)
    said = [record.message for record in caplog.records if record.levelno >= logging.WARNING]
    assert sum("snow ball_n2.jpg" in line and "not a readable image" in line for line in said) == 1
    assert "warning: two spellings: 1 (snow ball, snowball)" in said
    assert all(line.startswith("warning: ") for line in said)
    assert not any("\n" in line for line in said)


def test_images_of_the_same_bytes_are_named(tmp_path: Path) -> None:
    folder = pictures(tmp_path / "in", triple("goldfish") + triple("lab coat"))
    (folder / "goldfish_n2.jpg").write_bytes((folder / "goldfish.jpg").read_bytes())
    # A distractor that two compounds share is no fault.
    (folder / "lab coat_n1.jpg").write_bytes((folder / "goldfish_n1.jpg").read_bytes())
    summary = loaded(tmp_path, None, folder)[2]
    found = {"count": 1, "names": ["goldfish: compound, n2"]}
    assert summary["images_of_a_compound_with_the_same_bytes"] == found


def test_nothing_whole_is_an_error(tmp_path: Path) -> None:
    folder = pictures(tmp_path / "in", triple("goldfish")[1:])
    with pytest.raises(UserError, match="in: no compound has all three images; 'goldfish' lacks compound"):
        loaded(tmp_path, None, folder)
    (folder / "goldfish.jpg").write_bytes(b"<html>")
    with pytest.raises(UserError, match=r"'goldfish' lacks compound; goldfish.jpg: no image of a known format"):
        loaded(tmp_path, None, folder)


def test_constituents_that_nobody_has_checked(tmp_path: Path) -> None:
    file = listed(tmp_path / "l.csv", "compound,first,second,check\ngoldfish,gold,fish,proposed\nbarman,bar,man,\n")
    folder = pictures(tmp_path / "in", triple("goldfish"))
    assert loaded(tmp_path, file, folder)[2]["constituents_unchecked"] == {"count": 1, "names": ["goldfish"]}


# The step and the config


def run(output: Path, images: Path, take_unlisted: bool = False) -> dict[str, Any]:
    paths = {name: output / f"{name}.parquet" for name in ("compounds", "images")}
    main(LoadCompounds(origin=Compounds(images=str(images)), take_unlisted=take_unlisted, cache=output / "c",
                       files=output / "images", summary=output / "compounds.json", **paths))  # fmt: skip
    return read_json(output / "compounds.json")


def test_the_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    folder = pictures(tmp_path / "in", triple("snow ball") + triple("goldfish")[1:])
    summary = run(tmp_path / "a", folder)
    assert (summary["compounds"], summary["complete"], summary["images"]) == (400, 1, 5)
    compounds = read_table(tmp_path / "a" / "compounds.parquet", COMPOUNDS)
    images = read_table(tmp_path / "a" / "images.parquet", COMPOUND_IMAGES)
    assert (len(compounds), len(images), images["path"].notna().sum()) == (400, 1200, 5)
    assert list(compounds["compound"][compounds["complete"]]) == ["snow ball"]
    assert all((tmp_path / "a" / "images" / path).is_file() for path in images["path"].dropna())
    run(tmp_path / "b", folder)  # gives the same bytes
    for name in ("compounds.parquet", "images.parquet", "compounds.json"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


@pytest.mark.parametrize(("take_unlisted", "compounds", "complete"), [(False, 400, 1), (True, 401, 2)])
def test_unlisted_compounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, take_unlisted: bool, compounds: int, complete: int
) -> None:
    monkeypatch.chdir(ROOT)
    summary = run(tmp_path, pictures(tmp_path / "in", triple("snow ball") + triple("no such one")), take_unlisted)
    assert (summary["compounds"], summary["complete"]) == (compounds, complete)


def test_unlisted_compounds_of_the_benchmark_are_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    archive = zipped(tmp_path / "a.zip", {name: jpeg() for name in triple("snow ball") + triple("no such one")})
    monkeypatch.setitem(PUBLISHED, "compun", type(PUBLISHED["compun"])((str(archive),)))
    main(LoadCompounds(cache=tmp_path / "c", compounds=tmp_path / "c.parquet", images=tmp_path / "i.parquet",
                       files=tmp_path / "images", summary=tmp_path / "s.json"))  # fmt: skip
    assert read_json(tmp_path / "s.json")["compounds"] == 401


def test_a_changed_file_changes_the_fingerprint(tmp_path: Path) -> None:
    file = listed(tmp_path / "l.txt", "goldfish\n")
    folder = pictures(tmp_path / "in", triple("goldfish"))
    origin = Compounds(file=str(file), images=str(folder))
    before = fingerprint(origin)
    assert fingerprint(origin) == before
    pictures(folder, ["more.png"])
    after = fingerprint(origin)
    listed(file, "goldfish\nlab coat\n")
    other = Compounds(file=str(file), images="compun")
    assert len({before, after, fingerprint(origin), fingerprint(other)}) == 4
