"""Images are found by their prompts' file names; missing and broken ones are named, and other texts
refused.
"""

import json
import re
import unicodedata
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from compclip.core.errors import UserError
from compclip.core.reading.pictures import read_rgb
from compclip.generate.config import Generator
from compclip.generate.generators import folder
from compclip.generate.write_manifest import write_manifest
from tests.core.picture_files import EXCHANGED, FIELDS, saved, turned
from tests.generate.conftest import HOME, Place, make_prompts, picture
from tests.specs.evaluated import refused


def make(root: Path, names: list[str]) -> Path:
    for number, name in enumerate(names):
        picture(root / name, number + 100)
    return root


def list_texts(place: Place, mine: Path, **changed: str) -> None:
    """Write the manifest of the prompts' texts; ``changed`` has other texts by file name."""
    rows = place.prompts[["file_name", "text"]].set_index("file_name", drop=False)
    write_manifest(mine, rows.assign(text=pd.Series(rows["text"].to_dict() | changed)))


# What the manifest contains, and what is said of it, where four images were made.
FAULTS = {
    '{"file_name": "x.png", "words": "a"}': "no column 'text'; its columns: 'file_name', 'words'",
    "file_name,text": "not objects with file_name and text|no column 'file_name'",
    '{"file_name": "x.png", "text": "a"}': "4 of 4 images have no line",
    f'{{"file_name": "{HOME}/test_seen/s/1/0.png", "text": "a red bird"}}': "3 of 4 images have "
    "no line",
    '{"file_name": "mine/shape/test_seen/s/1/0.png", "text": "a red bird"}': "4 of 4 images have "
    "no line",
}


def test_files_named_as_the_prompts_and_made_from_their_texts(place: Place) -> None:
    names = list(place.prompts["file_name"])
    mine = make(place.root / "made", names)
    manifest, summary = place.generate("folder", path=str(mine))
    assert (manifest["status"] == "ok").all() and set(manifest["split"]) == set(
        place.prompts["split"]
    )
    for row, prompt in zip(manifest.itertuples(), place.prompts.itertuples(), strict=True):
        assert row.path == f"mine/color/generated/it/images/{prompt.file_name}"
        assert (place.root / "results" / row.path).read_bytes() == (
            mine / prompt.file_name
        ).read_bytes()
    assert summary["files_without_prompt"]["count"] == summary["texts_checked"] == 0
    list_texts(place, mine)
    assert place.generate("folder", path=str(mine))[1]["texts_checked"] == 18
    list_texts(place, mine, **{names[2]: "a blue bird", names[5]: "a tan bird"})
    with pytest.raises(
        UserError,
        match=rf"2 of 18 images have no line or were made from another .*{names[2]}.*a red",
    ):
        place.generate("folder", path=str(mine))
    four = make(place.root / "four", names[:4])
    for rows, message in FAULTS.items():
        (four / "manifest.jsonl").write_text(rows)
        assert re.search(message, refused(lambda: place.generate("folder", path=str(four))))


def test_missing_and_broken_files_are_named_and_a_composition_may_have_its_folder(
    place: Place,
) -> None:
    mine = make(place.root / "made", list(place.prompts["file_name"][:4]))
    home = mine / HOME / "test_seen"
    (home / "s/1/0.png").write_bytes(b"not an image")
    whole = (home / "s/1/1.png").read_bytes()
    (home / "s/1/1.png").write_bytes(whole[: len(whole) // 2])
    make(home, ["s/1/7.png", "other/0.png"])
    (home / "notes.txt").write_text("not an image")
    # Other compositions and data sets share the folder.
    make(mine, ["mine/shape/test_seen/s/1/0.png", "test_seen/s/2/0.png"])
    manifest, summary = place.generate("folder", path=str(mine))
    assert manifest["status"].value_counts().to_dict() == {"missing": 14, "broken": 2, "ok": 2}
    assert manifest["path"].isna().sum() == 16
    assert summary["broken"]["names"] == ["test_seen s/1 0 0", "test_seen s/1 1 0"]
    assert summary["missing"]["count"] == 14
    assert summary["splits"]["test_unseen"] == {
        "ok": 0,
        "missing": 6,
        "broken": 0,
        "skipped": 0,
    }
    assert summary["files_without_prompt"]["names"] == [
        f"{HOME}/test_seen/other/0.png",
        f"{HOME}/test_seen/s/1/7.png",
    ]
    assert len([path for path in (place.target / "images").rglob("*") if path.is_file()]) == 2
    mine = make(place.root / "others", ["a.png", "s/x/0.png"])
    for settings, message in (
        (
            {"path": str(mine)},
            r"no image of the 18 prompts, the first should be mine/color/test_seen/s/1/0.png; name",
        ),
        ({"path": str(place.root / "none")}, "none: no such folder of images"),
    ):
        with pytest.raises(UserError, match=message):
            place.generate("folder", **settings)
    generator = Generator(name="it", kind="folder", options={"path": "made/{composition}"})
    assert generator.settings("color").path == "made/color"


@pytest.mark.parametrize("ending", [".png", ".jpg", ".JPEG", ".webp"])
def test_endings_and_draws(place: Place, ending: str) -> None:
    prompts = make_prompts({"test_unseen": ["u/1"]}, captions=1, draws=2)
    mine = make(
        place.root / "made", [str(Path(name).with_suffix(ending)) for name in prompts["file_name"]]
    )
    manifest, _ = place.generate("folder", prompts, path=str(mine))
    assert list(manifest["status"]) == ["ok", "ok"]
    assert list(manifest["path"].str.rsplit("/", n=1).str[-1]) == [
        f"0_0{ending.lower()}",
        f"0_1{ending.lower()}",
    ]
    # Of several endings the first is taken.
    make(
        mine,
        [
            str(Path(name).with_suffix(other))
            for name in prompts["file_name"]
            for other in (".webp", ".jpg")
        ],
    )
    manifest, _ = place.generate("folder", prompts, path=str(mine))
    assert set(manifest["path"].str[-4:]) == {".jpg"}


def test_a_manifest_names_images_and_texts_in_any_form(place: Place) -> None:
    prompts = make_prompts({"test_unseen": ["caf\u00e9", "u/2"]}, captions=1)
    names = list(prompts["file_name"])
    mine = make(place.root / "made", [unicodedata.normalize("NFD", name) for name in names])
    lines = [
        {
            "file_name": f"./{unicodedata.normalize('NFD', names[0])} ",
            "text": f"{prompts['text'][0]}\u200b",
        },
        {"file_name": f"{names[1]}\u200b", "text": prompts["text"][1].replace(" ", "\u00a0")},
    ]
    (mine / "manifest.jsonl").write_text("\n".join(map(json.dumps, lines)))
    assert (place.generate("folder", prompts, path=str(mine))[0]["status"] == "ok").all()


@pytest.mark.parametrize("is_last", [False, True])
@pytest.mark.parametrize("name", ["{}", "./{}", "{}\u200b"])
def test_a_manifest_with_two_texts_of_an_image_is_refused(
    place: Place, name: str, is_last: bool
) -> None:
    names = list(place.prompts["file_name"])
    mine = make(place.root / "made", names)
    list_texts(place, mine)
    right = (mine / "manifest.jsonl").read_text()
    wrong = json.dumps({"file_name": name.format(names[4]), "text": "another text"}) + "\n"
    (mine / "manifest.jsonl").write_text(right + wrong if is_last else wrong + right)
    error = refused(lambda: place.generate("folder", path=str(mine)))
    assert "1 of 18 images" in error and names[4] in error
    (mine / "manifest.jsonl").write_text(right * 2)
    assert (place.generate("folder", path=str(mine))[0]["status"] == "ok").all()


def test_missing_failed_and_equal_images(place: Place) -> None:
    names = list(place.prompts["file_name"])
    mine = make(place.root / "made", names)
    write_manifest(mine, place.prompts[:9])
    write_manifest(mine, place.prompts[9:].assign(status=["ok"] * 8 + ["refused"], seed=3))
    manifest, summary = place.generate("folder", path=str(mine))
    assert summary["missing"]["count"] == 1 and manifest["status"].iloc[-1] == "missing"
    one = (mine / names[0]).read_bytes()
    for name in names:
        (mine / name).write_bytes(one)
    (mine / "manifest.jsonl").unlink()
    with pytest.raises(
        UserError,
        match=r"17 of 18 images are equal to that of another text.*draw an image for each",
    ):
        place.generate("folder", place.prompts.assign(text=names), path=str(mine))
    mine = make(place.root / "shown", names)
    chosen = folder.Settings(path=str(mine))
    assert folder.preview(chosen, place.prompts) == ""
    (mine / names[3]).unlink()
    assert (
        folder.preview(chosen, place.prompts)
        == "1 of 18 images are missing and would count as wrong, the first "
        "mine/color/test_seen/s/2/1.png"
    )
    (mine / names[5]).write_bytes(b"<html>")
    with pytest.raises(UserError, match=r"not a readable image .*make it again"):
        folder.preview(chosen, place.prompts)


def test_a_folder_for_other_prompts_or_that_changes_during_a_run_is_refused(place: Place) -> None:
    prompts = make_prompts({"test_unseen": ["u/1", "u/2"]}, captions=1)
    names = [f"{HOME}/test_unseen/u/{number}/0.png" for number in range(1, 6)]
    mine = make(place.root / "made", names[:4])
    # A killed generator leaves few images, but all are of prompts; and models draw more images than
    # are asked for.
    more = make(mine, [f"{HOME}/test_unseen/u/1/0_{draw}.png" for draw in range(1, 10)])
    assert (
        place.generate("folder", prompts, path=str(mine))[1]["files_without_prompt"]["count"] == 11
    )
    for file in more.rglob("0_*.png"):
        file.unlink()
    make(mine, names[4:])
    with pytest.raises(
        UserError,
        match=r"only 2 of 5 images are of this composition's prompts; give .*manifest.jsonl",
    ):
        place.generate("folder", prompts, path=str(mine))
    write_manifest(mine, prompts)
    assert (place.generate("folder", prompts, path=str(mine))[0]["status"] == "ok").all()
    mine = make(place.root / "changing", list(place.prompts["file_name"]))
    before = folder.fingerprint(folder.Settings(path=str(mine)), place.root / "cache")
    place.generate("folder", contents=before, path=str(mine))
    picture(mine / place.prompts["file_name"][0], 7)
    with pytest.raises(UserError, match="generator it: files changed since the run started"):
        place.generate("folder", contents=before, path=str(mine))


def test_images_are_kept_as_people_see_them_and_counted(place: Place) -> None:
    names = list(place.prompts["file_name"])
    mine = make(place.root / "made", names)
    (mine / names[0]).write_bytes(turned(3, "PNG"))
    (mine / names[1]).with_suffix(".jpg").write_bytes(saved(FIELDS, "JPEG", icc_profile=EXCHANGED))
    (mine / names[1]).unlink()
    manifest, summary = place.generate("folder", path=str(mine))
    assert summary["images_rotated"] == {"count": 1, "names": [names[0]]}
    assert summary["images_other_colors"] == {"count": 1, "names": [names[1]]}
    assert "images_transparent" not in summary
    kept = [Image.open(place.root / "results" / path) for path in manifest["path"][:2]]
    np.testing.assert_array_equal(np.asarray(kept[0]), np.asarray(FIELDS)[::-1, ::-1])
    np.testing.assert_array_equal(
        np.asarray(kept[1]), np.asarray(read_rgb((mine / names[1]).with_suffix(".jpg")))
    )
    assert (manifest["status"] == "ok").all()
    clean = make(place.root / "clean", names)
    assert not [
        key for key in place.generate("folder", path=str(clean))[1] if key.startswith("images_")
    ]
