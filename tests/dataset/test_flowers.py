"""Source flowers reads the published layout, from small files."""

from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from compclip.core import tables
from compclip.core.artifacts.files import read_json
from compclip.core.artifacts.parquet import read_table
from compclip.core.errors import UserError
from compclip.dataset.download import FileLocation
from compclip.dataset.source import Loaded
from compclip.dataset.sources import flowers
from tests.dataset.conftest import Site, flowers_files, jpeg, load_job, tar
from workflow_scripts.dataset import load_dataset

LABELS = [77, 77, 1, 102]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    return flowers_files(tmp_path / "files", LABELS)


def load(root: Path, folder: Path, limit: int | None = None, **settings: object) -> Loaded:
    folder.mkdir(exist_ok=True)
    chosen = flowers.Settings(root=str(root), **settings)
    return flowers.load(chosen, seed=0, limit=limit, folder=folder, cache=folder / "cache")


def test_small_files_and_wrong_labels(files: Path, tmp_path: Path) -> None:
    loaded = load(files, tmp_path / "images")
    captions = loaded.captions.set_index(["image_id", "caption_id"])
    assert (
        len(captions) == 8 and captions.loc[("image_00003", 1), "text"] == "its petals are long 3"
    )
    assert captions["class_id"].groupby(level=0).first().tolist() == ["77", "77", "1", "102"]
    assert loaded.images["path"].tolist() == [f"image_{n:05d}.jpg" for n in range(1, 5)]
    assert "bbox_x" not in loaded.images
    assert (tmp_path / "images" / "image_00004.jpg").read_bytes() == jpeg(4)
    assert loaded.summary["photographs_in_archive"] == 4
    assert all(
        value["count"] == 0
        for value in loaded.summary.values()
        if isinstance(value, dict) and "count" in value
    )
    assert {key: len(sha256) for key, sha256 in loaded.summary["files"].items()} == dict.fromkeys(
        ("captions", "labels", "images"), 64
    )
    whole = (files / "imagelabels.mat").read_bytes()
    with pytest.raises(UserError, match="none.mat: no such file"):
        load(files, tmp_path / "images", labels="none.mat")
    for raw in (b"", whole[:60], whole[:140], b"<html>" * 99, b"MATLAB 5.0" * 40):
        (files / "imagelabels.mat").write_bytes(raw)
        with pytest.raises(UserError, match="imagelabels.mat: not the labels of the images"):
            load(files, tmp_path / "images")
    for content in ({"labels": np.array([["a", "b"]])}, {"trnid": [[1]]}):
        savemat(files / "imagelabels.mat", content)
        with pytest.raises(UserError, match="imagelabels.mat: not the labels of the images"):
            load(files, tmp_path / "images")
    for labels in ([77, 77, 1], [77, 77, 1, 102, 102]):
        savemat(files / "imagelabels.mat", {"labels": np.array([labels], dtype="uint8")})
        for images in ("102flowers.tgz", None):
            with pytest.raises(
                UserError,
                match=rf"expected 4 labels, the number of the last image, got {len(labels)}",
            ):
                load(files, tmp_path / "images", images=images)


def test_captions_of_unknown_images_and_classes_are_named(tmp_path: Path) -> None:
    root = flowers_files(tmp_path / "files", LABELS, captioned=[1, 2, 4, 9])
    members = {
        "text_c10/class_00077/image_00001.txt": b"one\n",
        "text_c10/class_00077/image_00003.txt": b"three\n",
        "text_c10/class_00001/image_00009.txt": b"nine\n",
    }
    loaded = load(root, tmp_path / "images")
    assert loaded.summary["caption_files_of_unknown_images"] == {
        "count": 1,
        "names": ["image_00009"],
    }
    assert loaded.summary["photographs_without_captions"] == {"count": 1, "names": ["image_00003"]}
    tar(root / "cvpr2016_flowers.tar.gz", members)
    loaded = load(root, tmp_path / "images")
    # The label overrides the folder.
    assert loaded.captions.set_index("image_id")["class_id"].to_dict() == {
        "image_00001": "77",
        "image_00003": "1",
    }
    tar(
        root / "cvpr2016_flowers.tar.gz",
        {**members, "text_c10/class_00001/image_00003.txt": b"again\n"},
    )
    with pytest.raises(UserError, match="image_00003 has several caption files; keep one of them"):
        load(root, tmp_path / "images")
    tar(root / "cvpr2016_flowers.tar.gz", {"text_c10/class_00001/image_00009.txt": b"nine\n"})
    with pytest.raises(UserError, match="none of its images is among the 4 labelled ones"):
        load(root, tmp_path / "images")
    # Other archives.
    for name in ("102flowers.tgz", "cvpr2016_flowers.tar.gz"):
        tar(flowers_files(tmp_path / name, LABELS) / name, {"readme.txt": b"x"})
        with pytest.raises(UserError, match=r"contains no (jpg/image|text_c10/class)_<number>"):
            load(tmp_path / name, tmp_path / "images")


def test_from_public_addresses(
    files: Path, tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once; a broken photograph is named."""
    tar(
        files / "102flowers.tgz",
        {f"jpg/image_{n:05d}.jpg": jpeg(n)[: 300 if n == 2 else None] for n in range(1, 5)},
    )
    known = {name: FileLocation(f"{site.address}/{name}") for name in flowers.PUBLISHED_FILES}
    site.files = {f"/{name}": (files / name).read_bytes() for name in known}
    monkeypatch.setattr(flowers.Settings, "published", known)
    made = load_job(tmp_path, "flowers")
    for _ in range(2):
        load_dataset.main(made)
        assert len(read_table(made.output.captions, tables.CAPTIONS)) == 8
    assert sorted(site.asked) == sorted(site.files)
    images, summary = read_table(made.output.images, tables.IMAGES), read_json(made.output.summary)
    assert (
        images["path"].isna().tolist() == [False, True, False, False]
        and images["bbox_w"].isna().all()
    )
    assert summary["images_broken"]["count"] == 1 and summary["classes"] == 3
    assert str(tmp_path) not in made.output.summary.read_text()
