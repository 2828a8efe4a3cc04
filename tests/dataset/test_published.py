"""A published data.pkl as a data set."""

import pickle
from pathlib import Path
from typing import Any

import pytest

from compclip.core.errors import UserError
from compclip.dataset.source import Loaded
from compclip.dataset.sources import published
from tests.dataset.conftest import BIRDS, jpeg

CHANGE = {"noun": "wing", "original_adj": "red", "new_adj": "tan"}
DATA = {
    BIRDS[2]: {0: {"text": "a red wing", "swapped_text": "a tan wing", "changes_made": CHANGE}, 4: {"text": "x"}},
    BIRDS[0]: {0: {"text": "y"}},
    BIRDS[3]: {},
}


def load(folder: Path, data: Any = DATA, limit: int | None = None, **settings: Any) -> Loaded:
    (folder / "data.pkl").write_bytes(pickle.dumps(data))
    (folder / "out").mkdir(exist_ok=True)
    chosen = published.Settings(data=str(folder / "data.pkl"), **settings)
    return published.load(chosen, seed=0, limit=limit, folder=folder / "out", cache=folder)


def test_captions_and_classes(tmp_path: Path) -> None:
    loaded = load(tmp_path)
    assert loaded.captions.values.tolist() == [
        [BIRDS[0], 0, "001", "y"], [BIRDS[2], 0, "182", "a red wing"], [BIRDS[2], 4, "182", "x"],
    ]  # fmt: skip
    assert loaded.images["path"].isna().all()
    assert loaded.summary["images_without_captions_in_file"] == {"count": 1, "names": [BIRDS[3]]}
    assert loaded.summary["captions_swapped_in_file"] == 1
    assert load(tmp_path, limit=1).captions["image_id"].nunique() == 1


def test_images_of_a_folder(tmp_path: Path) -> None:
    file = tmp_path / "images" / f"{BIRDS[2]}.jpg"
    file.parent.mkdir(parents=True)
    file.write_bytes(jpeg())
    loaded = load(tmp_path, images=str(tmp_path / "images"))
    assert loaded.images.set_index("image_id")["path"].dropna().to_dict() == {BIRDS[2]: f"{BIRDS[2]}.jpg"}
    assert (tmp_path / "out" / f"{BIRDS[2]}.jpg").read_bytes() == jpeg()
    assert published.Settings(data="data.pkl").reads() == ["data.pkl", None, None]
    assert published.Settings(data="data.pkl", images="i", classes="c").reads() == ["data.pkl", "i", "c"]


def test_classes_of_a_file(tmp_path: Path) -> None:
    flowers = {"image_00001": {0: {"text": "x"}}, "image_00002": {0: {"text": "y"}}}
    with pytest.raises(UserError, match="'image_00001': expected a number before a dot"):
        load(tmp_path, flowers)
    assert load(tmp_path, flowers, classes=None).captions["class_id"].isna().all()
    file = tmp_path / "class_ids.txt"
    file.write_text("image_00001\t77\n\n")
    loaded = load(tmp_path, flowers, classes=str(file))
    assert loaded.captions["class_id"].fillna("none").tolist() == ["77", "none"]
    assert loaded.summary["images_without_class"]["names"] == ["image_00002"]
    for text, message in (("image_00001 77\n", "line 1"), ("a\t1\na\t2\n", "line 2: image 'a' has a second class")):
        file.write_text(text)
        with pytest.raises(UserError, match=message):
            load(tmp_path, flowers, classes=str(file))
