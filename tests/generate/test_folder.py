"""Images are found by their names or a manifest; missing and broken ones are named."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from PIL import Image

from tests.generate.conftest import Place, make_prompts, picture
from workflow_scripts.core.errors import UserError
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
    (mine / "test_seen/s/1/0.png").write_bytes(b"no image")
    whole = (mine / "test_seen/s/1/1.png").read_bytes()
    (mine / "test_seen/s/1/1.png").write_bytes(whole[: len(whole) // 2])
    make(mine, ["test_seen/s/1/7.png", "test_seen/other/0.png", "elsewhere/s/2/0.png"])
    (mine / "test_seen" / "notes.txt").write_text("not an image")
    manifest, summary = place.generate("folder", path=str(mine))
    assert manifest["status"].value_counts().to_dict() == {"missing": 14, "unreadable": 2, "ok": 2}
    assert manifest["path"].isna().sum() == 16
    assert summary["unreadable"]["names"] == ["test_seen s/1 0 0", "test_seen s/1 1 0"]
    assert summary["missing"]["count"] == 14
    assert summary["splits"]["test_unseen"] == {"ok": 0, "missing": 6, "unreadable": 0}
    assert summary["files_without_prompt"]["names"] == ["test_seen/other/0.png", "test_seen/s/1/7.png"]
    assert len([p for p in (place.target / "images").rglob("*") if p.is_file()]) == 2


def test_no_files(place: Place) -> None:
    mine = make(place.root / "made", ["a.png", "s/x/0.png"])
    with pytest.raises(UserError, match="the first should be test_seen/s/1/0.png; it contains 1 files"):
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
    assert manifest["path"][1].endswith("images/test_seen/s/1/1.png")


def test_a_folder_without_splits_cannot_serve_a_caption_and_its_swap(place: Place) -> None:
    mine = make(place.root / "made", ["s/1/0.png"])
    with pytest.raises(UserError, match="s/1 caption 0: test_seen and test_swapped have different prompts") as error:
        place.generate("folder", path=str(mine))
    assert "folders named test_seen, test_unseen, test_swapped" in str(error.value)


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


def test_new_files_change_the_fingerprint(place: Place) -> None:
    mine = make(place.root / "made", ["a.png"])
    chosen = folder.Settings(path=str(mine))
    before = folder.fingerprint(chosen)
    assert before == folder.fingerprint(chosen)
    make(mine, ["b.png"])
    assert folder.fingerprint(chosen) != before


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
