"""Classification by texts against open_clip; classes that tie; folders of classes and CIFAR."""

import hashlib
import itertools
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from compclip.clip.model import load_judge
from compclip.clip.vision import import_torchvision, open_clip
from compclip.specs import zero_shot
from tests.specs.evaluated import picture, real_judge, refused

COLORS = {"red_wing": (200, 30, 30), "blue_bill": (20, 90, 200), "tail": (10, 200, 90)}


def zero_shot_result(folder: Path, **options: Any) -> dict[str, Any]:
    """Return the result of an untrained judge."""
    judge = real_judge(folder / "judge") if not (folder / "judge").exists() else folder / "judge"
    output = folder / "result.json"
    zero_shot.main(
        zero_shot.ZeroShot(judge=judge, batch=4, threads=1, device="cpu", output=output, **options)
    )
    return json.loads(output.read_text())


@given(st.lists(st.integers(0, 3), min_size=1, max_size=5), st.data())
def test_ties_are_in_random_order(similarities: list[int], data: st.DataObject) -> None:
    """The chance of a hit is its mean over all orders of the classes, sorted by similarity."""
    own, k = data.draw(st.integers(0, len(similarities) - 1)), data.draw(st.integers(1, 6))
    orders = itertools.permutations(range(len(similarities)))
    first = [sorted(order, key=lambda place: -similarities[place])[:k] for order in orders]
    chance = zero_shot.chance_among_first(
        np.array([similarities, similarities]), np.array([own, own]), k
    )
    assert chance == pytest.approx([np.mean([own in classes for classes in first])] * 2)


def test_a_folder_of_classes_and_other_folders(tmp_path: Path) -> None:
    """Compared with open_clip's model, classifier and similarities in the plain way."""
    for number, (name, color) in enumerate(COLORS.items()):
        for image in range(number + 1):
            picture(
                tmp_path / "val" / name / f"{image}.png",
                tuple((c + 40 * image) % 256 for c in color),
            )
    result = zero_shot_result(tmp_path, data=tmp_path / "val", templates="simple")
    judge, names = load_judge(tmp_path / "judge", 1, "cpu"), ["blue bill", "red wing", "tail"]
    templates = open_clip().SIMPLE_IMAGENET_TEMPLATES
    classes = open_clip().build_zero_shot_classifier(judge.model, judge.tokenizer, names, templates)
    files = sorted((tmp_path / "val").rglob("*.png"))
    best = (
        torch.from_numpy(judge.encode_images([(file, None) for file in files], 4)) @ classes
    ).argmax(1)
    right = [
        sorted(COLORS)[place] == file.parent.name for place, file in zip(best, files, strict=True)
    ]
    assert result["top-1"]["value"] == pytest.approx(np.mean(right), abs=1e-6)
    assert result["top-5"]["value"] == 1 and result["top-1"]["n"] == 6 and result["classes"] == 3
    (tmp_path / "names.txt").write_text("a\nb\n")
    short = {"data": tmp_path / "val", "classes": tmp_path / "names.txt"}
    assert "2 names for 3 classes" in refused(lambda: zero_shot_result(tmp_path, **short))
    (tmp_path / "other").mkdir()
    for name in ("gone", "other"):
        assert "correct the path" in refused(
            lambda name=name: zero_shot.read_classified(tmp_path / name)
        )
    (tmp_path / "other" / "empty").mkdir()
    assert "no images in its folders" in refused(
        lambda: zero_shot.read_classified(tmp_path / "other")
    )


def test_cifar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small data set in the published layout, with its own checksums."""
    import_torchvision()
    from torchvision.datasets import CIFAR100

    folder = tmp_path / CIFAR100.base_folder
    folder.mkdir()
    pixels = np.random.default_rng(0).integers(256, size=(5, 3072)).astype(np.uint8)
    test = pickle.dumps({"data": pixels, "fine_labels": [0, 2, 1, 1, 0]})
    contents = {
        "test": test,
        "meta": pickle.dumps({"fine_label_names": ["a_b", "c", "d"]}),
        "train": b"",
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    sums = {name: hashlib.md5(content).hexdigest() for name, content in contents.items()}
    monkeypatch.setattr(CIFAR100, "test_list", [["test", sums["test"]]])
    monkeypatch.setattr(CIFAR100, "train_list", [["train", sums["train"]]])
    monkeypatch.setattr(
        CIFAR100, "meta", {"filename": "meta", "key": "fine_label_names", "md5": sums["meta"]}
    )
    names, labels, images = zero_shot.read_classified(folder)
    assert names == ["a_b", "c", "d"] and labels.tolist() == [0, 2, 1, 1, 0] and len(images) == 5
    result = zero_shot_result(tmp_path, data=folder)
    assert result["top-1"]["n"] == 5 and result["templates"] == "imagenet"
    (folder / "test").write_bytes(b"other")
    assert "not found or corrupted" in refused(lambda: zero_shot.read_classified(folder)), (
        "nothing is unpickled"
    )
