"""Images are found by their names or a manifest; missing and broken ones are named."""

import hashlib
from pathlib import Path

import pandas as pd
import pytest
from PIL import Image

from tests.generate.conftest import HOME, Place, make_prompts, picture
from workflow_scripts.core.errors import UserError
from workflow_scripts.generate.config import Generator
from workflow_scripts.generate.generators import folder


def make(root: Path, names: list[str]) -> Path:
    for number, name in enumerate(names):
        picture(root / name, number + 100)
    return root


def test_files_named_as_the_prompts(place: Place) -> None:
    mine = make(place.root / "made", list(place.prompts["file_name"]))
    manifest, summary = place.generate("folder", path=str(mine))
    assert (manifest["status"] == "ok").all() and set(manifest["split"]) == set(place.prompts["split"])
    for row, prompt in zip(manifest.itertuples(), place.prompts.itertuples(), strict=True):
        assert row.path == f"mine/color/generated/it/images/{prompt.file_name}"
        assert (place.root / "results" / row.path).read_bytes() == (mine / prompt.file_name).read_bytes()
    assert summary["files_without_prompt"]["count"] == 0


def test_missing_and_unreadable_files_are_named(place: Place) -> None:
    mine = make(place.root / "made", list(place.prompts["file_name"][:4]))
    home = mine / HOME
    (home / "test_seen/s/1/0.png").write_bytes(b"no image")
    whole = (home / "test_seen/s/1/1.png").read_bytes()
    (home / "test_seen/s/1/1.png").write_bytes(whole[: len(whole) // 2])
    make(home, ["test_seen/s/1/7.png", "test_seen/other/0.png", "elsewhere/s/2/0.png"])
    (home / "test_seen" / "notes.txt").write_text("not an image")
    manifest, summary = place.generate("folder", path=str(mine))
    assert manifest["status"].value_counts().to_dict() == {"missing": 14, "unreadable": 2, "ok": 2}
    assert manifest["path"].isna().sum() == 16
    assert summary["unreadable"]["names"] == ["test_seen s/1 0 0", "test_seen s/1 1 0"]
    assert summary["missing"]["count"] == 14
    assert summary["splits"]["test_unseen"] == {"ok": 0, "missing": 6, "unreadable": 0}
    assert summary["files_without_prompt"]["names"] == [
        f"{HOME}/test_seen/other/0.png", f"{HOME}/test_seen/s/1/7.png",
    ]  # fmt: skip
    assert len([p for p in (place.target / "images").rglob("*") if p.is_file()]) == 2


def test_no_files(place: Place) -> None:
    mine = make(place.root / "made", ["a.png", "s/x/0.png"])
    with pytest.raises(UserError, match=r"the first should be mine/color/test_seen/s/1/0.png; .* for example a.png"):
        place.generate("folder", path=str(mine))
    with pytest.raises(UserError, match="none: no such folder or manifest"):
        place.generate("folder", path=str(place.root / "none"))
    with pytest.raises(UserError, match="settings: path: Field required; allowed keys: path"):
        place.generate("folder")


@pytest.mark.parametrize("ending", [".png", ".jpg", ".JPEG", ".webp"])
def test_endings_and_draws(place: Place, ending: str) -> None:
    prompts = make_prompts({"test_unseen": ["u/1"]}, captions=1, draws=2)
    mine = make(place.root / "made", [f"test_unseen/u/1/0{ending}", f"test_unseen/u/1/0_1{ending}"])
    manifest, _ = place.generate("folder", prompts, path=str(mine))
    assert list(manifest["status"]) == ["ok", "ok"]
    assert list(manifest["path"].str.rsplit("/", n=1).str[-1]) == [f"0_0{ending.lower()}", f"0_1{ending.lower()}"]
    assert all(Image.open(place.root / "results" / p).size == (30, 20) for p in manifest["path"])


def test_a_folder_without_splits(place: Place) -> None:
    prompts = make_prompts({"test_seen": ["s/1"], "test_unseen": ["u/1"]})
    mine = make(place.root / "made", ["s/1/0.png", "s/1/1_0.png", "u/1/0.png"])
    manifest, _ = place.generate("folder", prompts, path=str(mine))
    assert list(manifest["status"]) == ["ok", "ok", "ok", "missing"]
    assert manifest["path"][1].endswith(f"images/{HOME}/test_seen/s/1/1.png")


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_a_manifest(place: Place, suffix: str) -> None:
    file = place.root / "made" / f"list{suffix}"
    make(file.parent, ["x/1.png", "2.png", "unused.png"])
    rows = pd.DataFrame(
        {
            "image_id": ["s/1", "s/1", "u/1", "gone", ""],
            "caption_id": [0, 0, 1, 0, 0],
            "split": ["test_seen", "test_swapped", "test_unseen", "test_seen", "test_seen"],
            "path": ["x/1.png", "2.png", "lost.png", "2.png", "2.png"],
        }
    )
    if suffix == ".jsonl":
        rows.to_json(file, orient="records", lines=True)
    else:
        rows.to_csv(file, index=False) if suffix == ".csv" else rows.to_parquet(file)
    manifest, summary = place.generate("folder", path=str(file))
    there = manifest[manifest["status"] == "ok"]
    assert there[["image_id", "caption_id"]].values.tolist() == [["s/1", 0]] * 2
    assert there["split"].tolist() == ["test_seen", "test_swapped"]
    assert summary["rows_unreadable"]["count"] == 1


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("image_id,caption_id\ns/1,0\n", "no column 'path'"),
        ("image_id,caption_id,path\ns/1,0,a.png\ns/1,0,b.png\n", "line 3: a second file for image s/1 caption 0"),
        ("image_id,caption_id,path\ns/1,0,../../a.png\n", "no image of the"),
        ("image_id,caption_id,path\ns/1,0,a.png\n", "test_seen and test_swapped have different prompts"),
    ],
)
def test_refused_manifests(place: Place, rows: str, message: str) -> None:
    file = make(place.root / "made", ["a.png", "b.png"]) / "list.csv"
    picture(place.root / "a.png")
    file.write_text(rows)
    with pytest.raises(UserError, match=message):
        place.generate("folder", path=str(file))


def test_skipped_rows(place: Place) -> None:
    file = make(place.root / "made", ["a.png"]) / "list.csv"
    file.write_text(
        "image_id,caption_id,split,draw,path\n"
        "s/1,0,test_seen,0,a.png\ns/1,x,test_seen,0,a.png\ns/1,1,train,0,a.png\ns/2,0,test_seen,0,/a.png\ns/3\n"
    )
    _, summary = place.generate("folder", path=str(file))
    assert [n.split(":")[0] for n in summary["rows_unreadable"]["names"]] == ["line 6", "line 3", "line 4", "line 5"]
    assert summary["splits"]["test_seen"]["ok"] == 1


def list_texts(place: Place, mine: Path, column: str = "text", names: pd.Series | None = None, **changed: str) -> Path:
    """Write ``manifest.csv`` as the prompts' texts, or their hashes; ``changed`` has other texts by file name."""
    names = place.prompts["file_name"] if names is None else names
    texts = [changed.get(name, text) for name, text in zip(names, place.prompts["text"], strict=True)]
    values = texts if column == "text" else [hashlib.sha256(text.encode()).hexdigest() for text in texts]
    file = mine / "manifest.csv"
    pd.DataFrame({"file_name": names, column: values}).to_csv(file, index=False)
    return file


@pytest.mark.parametrize("column", ["text", "sha256"])
@pytest.mark.parametrize("short", [False, True])
def test_texts_that_the_images_were_made_from(place: Place, column: str, short: bool) -> None:
    names = place.prompts["file_name"].str.removeprefix(f"{HOME}/" if short else "")
    mine = make(place.root / "made", list(names))
    list_texts(place, mine, column, names)
    _, summary = place.generate("folder", path=str(mine))
    assert summary["texts_checked"] == 18
    list_texts(place, mine, column, names, **{names[2]: "a blue bird", names[5]: "a tan bird"})
    with pytest.raises(
        UserError, match=r"2 of 18 images were made from another text than their prompt, the first"
    ) as e:
        place.generate("folder", path=str(mine))
    assert place.prompts["file_name"][2] in str(e.value) and "'a red bird'" in str(e.value)


def test_manifests_of_texts_that_are_refused(place: Place) -> None:
    mine = make(place.root / "made", list(place.prompts["file_name"][:4]))
    for rows, message in (
        ("file_name,words\n", "no column text or sha256"),
        ("name,text\n", "no column 'file_name'"),
        ("file_name,text\nx.png,a\n", "line 2: 'x.png' is no file_name"),
        (f"file_name,text\n{HOME}/test_seen/s/1/0.png\n", "1 rows cannot be read"),
        (f"file_name,text\n{HOME}/test_seen/s/1/0.png,a\n{HOME}/test_seen/s/1/0.jpg,b\n", "line 3: a second text"),
        (f"file_name,text\n{HOME}/test_seen/s/1/0.png,a red bird\n", "no text for 3 of 4 images"),
        ("file_name,text\nmine/shape/test_seen/s/1/0.png,a red bird\n", "no text for 4 of 4 images"),
    ):
        (mine / "manifest.csv").write_text(rows)
        with pytest.raises(UserError, match=message):
            place.generate("folder", path=str(mine))


def test_a_folder_for_other_prompts_is_refused(place: Place) -> None:
    prompts = make_prompts({"test_unseen": ["u/1", "u/2"]}, captions=1)
    mine = make(place.root / "made", ["u/1/0.png", "u/2/0.png", "u/3/0.png", "u/4/0.png"])
    # A killed generator leaves few images, but all are of prompts; and models draw more images than are asked for.
    make(mine, [f"u/1/0_{draw}.png" for draw in range(1, 10)])
    assert place.generate("folder", prompts, path=str(mine))[1]["files_without_prompt"]["count"] == 11
    for draw in range(1, 10):
        (mine / f"u/1/0_{draw}.png").unlink()
    make(mine, ["u/5/0.png"])
    with pytest.raises(UserError, match="only 2 of 5 images are of this composition's prompts; give .*manifest.csv"):
        place.generate("folder", prompts, path=str(mine))
    texts = prompts.set_index("file_name")["text"]
    pd.DataFrame({"file_name": texts.index, "text": texts}).to_csv(mine / "manifest.csv", index=False)
    assert (place.generate("folder", prompts, path=str(mine))[0]["status"] == "ok").all()


def test_one_folder_serves_two_compositions_by_full_names(place: Place) -> None:
    """Names without a composition are only read where no other composition can mean them."""
    mine = make(place.root / "made", list(place.prompts["file_name"][:2]))
    make(mine, ["mine/shape/test_seen/s/1/0.png", "test_seen/s/2/0.png"])
    manifest, _ = place.generate("folder", path=str(mine))
    assert (manifest["status"] == "ok").sum() == 2
    folder.check_shared(folder.Settings(path=str(mine)), "mine", ["color", "shape"])
    old = make(place.root / "old", ["test_seen/s/1/0.png"])
    with pytest.raises(UserError, match="old: does not say which images are for color and which for shape"):
        folder.check_shared(folder.Settings(path=str(old)), "mine", ["color", "shape"])
    folder.check_shared(folder.Settings(path=str(place.root / "none")), "mine", ["color", "shape"])  # not made yet


def test_each_composition_may_have_its_own_folder() -> None:
    generator = Generator(name="it", kind="folder", options={"path": {"test_seen": "made/{composition}/seen"}})
    assert generator.settings("color").path == {"test_seen": "made/color/seen"}


def test_a_folder_that_changes_during_a_run_is_refused(place: Place) -> None:
    mine = make(place.root / "made", list(place.prompts["file_name"]))
    before = folder.fingerprint(folder.Settings(path=str(mine)), place.root / "cache")
    place.generate("folder", contents=before, path=str(mine))
    picture(mine / place.prompts["file_name"][0], 7)
    with pytest.raises(UserError, match="generator it: its files changed since the run started"):
        place.generate("folder", contents=before, path=str(mine))


def test_names_that_the_papers_models_write(place: Place) -> None:
    """Each split has a place of its own there; the same names are in both."""
    seen, swapped = place.root / "seen" / "single", place.root / "swapped" / "single"
    make(seen, ["s/1_0_s-1_0.png", "s/1_1_s-1_0_R_13.png", "s/2_0_s-1.png", "s/2_1_  0.png", "s/3_0_s-2_0.png"])
    make(swapped, ["s/1_0_s-1_0_R_0.png", "s/1_0_s-1_0.png", "test_seen_s-1.png", "s/notes_1_s-1_0_R_.png"])
    manifest, summary = place.generate("folder", path={"test_seen": str(seen), "test_swapped": str(swapped)})
    there = manifest[manifest["status"] == "ok"].set_index(["split", "image_id", "caption_id"])["path"]
    assert sorted(there.index) == [
        ("test_seen", "s/1", 0), ("test_seen", "s/1", 1), ("test_seen", "s/2", 0), ("test_seen", "s/2", 1),
        ("test_swapped", "s/1", 0),
    ]  # fmt: skip
    copied = (place.root / "results" / there["test_seen", "s/2", 1]).read_bytes()
    assert copied == (seen / "s/2_1_  0.png").read_bytes()
    one, other = (place.root / "results" / there[s, "s/1", 0] for s in ("test_seen", "test_swapped"))
    assert one.read_bytes() != other.read_bytes()
    assert summary["files_not_understood"]["names"] == [
        "test_seen/s/3_0_s-2_0.png", "test_swapped/s/1_0_s-1_0_R_0.png", "test_swapped/s/notes_1_s-1_0_R_.png",
        "test_swapped/test_seen_s-1.png",
    ]  # fmt: skip
    assert summary["splits"]["test_unseen"] == {"ok": 0, "missing": 6, "unreadable": 0}


def test_ten_draws_of_a_bird(place: Place) -> None:
    bird = "182.Yellow_Warbler/Yellow_Warbler_0026_176337"
    prompts = make_prompts({"test_swapped": [bird]}, captions=1, draws=10)
    # Ours are numbers below the name; theirs may end with another number of the bird's.
    mine = make(
        place.root / "made", [f"{bird}_0_s-1_{draw}_R_{draw}.png" for draw in range(10)] + [f"{bird}_s-1_0.png"]
    )
    manifest, summary = place.generate("folder", prompts, path=str(mine))
    assert (manifest["status"] == "ok").all()
    assert summary["files_without_prompt"]["names"] == [f"{bird}_s-1_0.png"]


def test_broken_images_of_the_papers_models_are_named(place: Place) -> None:
    mine = make(place.root / "made" / "test_seen", ["s/1_0_s-1_0.png", "s/1_1_s-1_0_R_4.png"]).parent
    broken = mine / "test_seen" / "s" / "1_1_s-1_0_R_4.png"
    broken.write_bytes(broken.read_bytes()[:100])
    manifest, summary = place.generate("folder", path=str(mine))
    assert summary["unreadable"]["names"] == ["test_seen s/1 1 0"] and (manifest["status"] == "ok").sum() == 1


def test_wrong_folders(place: Place) -> None:
    mine = make(place.root / "made", ["s/1_0_s-1_0.png"])
    with pytest.raises(UserError, match="nowhere: no such folder or manifest"):
        place.generate("folder", path={"test_seen": str(mine), "test_unseen": str(place.root / "nowhere")})
    with pytest.raises(UserError, match="train"):
        place.generate("folder", path={"train": str(mine)})
    with pytest.raises(UserError, match="contains no image of the 18 prompts"):
        place.generate("folder", path={"test_unseen": str(mine)})


def test_files_of_another_split_are_skipped(place: Place) -> None:
    mine = make(place.root / "made", ["test_seen/s/1/0.png", "test_unseen/u/1/0.png"])
    manifest, summary = place.generate("folder", path={"test_unseen": str(mine)})
    assert manifest[manifest["status"] == "ok"]["split"].tolist() == ["test_unseen"]
    assert summary["files_not_understood"]["names"] == ["test_unseen/test_seen/s/1/0.png"]
