"""Classification by texts: against open_clip, torchmetrics and brute force; ImageNet's and CIFAR's layouts."""

import json
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from pydantic import ValidationError

from tests.score.world import FakeJudge
from tests.specs.evaluated import drawn, picture, real_judge, refused, run
from workflow_scripts.clip.vision import import_torchvision
from workflow_scripts.specs import zero_shot
from workflow_scripts.specs.zero_shot import (
    ZeroShot,
    class_vectors,
    default_names,
    ensemble_vectors,
    make_classes,
    make_prompts,
    read_cifar,
    read_classified,
    read_folders,
    read_names,
    read_templates,
    top_k,
)


def embed(texts: list[str]) -> np.ndarray:
    return np.stack([FakeJudge.embed(text) for text in texts])


def test_ensembles_equal_open_clip(tmp_path: Path) -> None:
    from workflow_scripts.clip.model import load_judge
    from workflow_scripts.clip.vision import open_clip

    judge = load_judge(real_judge(tmp_path / "judge"), 1, "cpu")
    names, templates = ["red wing", "blue bill", "tail"], ["a bird with a {}", "{} and red", "green {}"]
    ours = class_vectors(lambda texts: judge.encode_texts(texts, 4), make_prompts(names, templates))
    theirs = open_clip().build_zero_shot_classifier(judge.model, judge.tokenizer, names, templates)
    assert ours == pytest.approx(theirs.T.numpy(), abs=1e-6)


def test_mean_of_similarities() -> None:
    """Classes with different numbers of example captions: the mean of their similarities, not their sum."""
    prompts = [["red wing"], ["blue wing", "blue bill", "red tail"], ["green", "red"]]
    image = embed(["red wing blue tail"])[0]
    classes = class_vectors(embed, prompts, "similarities")
    assert classes @ image == pytest.approx([np.mean(embed(texts) @ image) for texts in prompts], abs=1e-6)
    lengths = np.linalg.norm(class_vectors(embed, prompts), axis=1)
    assert lengths == pytest.approx([1, 1, 1], abs=1e-6)


def test_top_k_equals_torchmetrics() -> None:
    import_torchvision()
    from torchmetrics.classification import MulticlassAccuracy

    random = np.random.default_rng(0)
    images, classes = random.standard_normal((200, 6)).astype(np.float32), random.standard_normal((9, 6))
    labels, classes = random.integers(9, size=200), classes.astype(np.float32)
    found = top_k(images, labels, classes)
    for place, k in enumerate(zero_shot.KS):
        accuracy = MulticlassAccuracy(9, top_k=k, average="micro")
        value = accuracy(torch.from_numpy(images @ classes.T), torch.from_numpy(labels)).item()
        assert found[:, place].mean() == pytest.approx(value)


def test_classes_with_equal_names_tie() -> None:
    classes = class_vectors(embed, make_prompts(["crane", "crane", "wing"], ["a {}", "the {}"]))
    assert top_k(embed(["crane", "wing"]), np.array([1, 2]), classes, (1, 2)).tolist() == [[0.5, 1], [1, 1]]


WNIDS = {"n02119789": "red wing", "n01440764": "blue bill", "n03000000": "green tail"}
SYNSETS = "n01440764 blue bill, Tinca\nn02119789 red wing, fox, Vulpes\n\nn03000000 green tail\nn09999999 other\n"


def write_imagenet(folder: Path) -> Path:
    shown = {"n01440764": ["blue bill", "blue", "red wing blue"], "n02119789": ["red wing"], "n03000000": []}
    for wnid, texts in shown.items():
        (folder / wnid).mkdir(parents=True)
        for number, text in enumerate(texts):
            drawn(folder / wnid / f"ILSVRC2012_val_{number:08d}.JPEG", text)
    (folder / "n01440764" / "notes.txt").write_text("no image")
    return folder


def test_imagenet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = write_imagenet(tmp_path / "val")
    (tmp_path / "synsets.txt").write_text(SYNSETS)
    (tmp_path / "templates.txt").write_text("a {}\nthe {} red\n")
    names = tmp_path / "synsets.txt"
    templates = str(tmp_path / "templates.txt")
    found, judge = run(zero_shot, tmp_path, monkeypatch, data=data, classes=names, templates=templates)
    names = ["blue bill", "red wing", "green tail"]
    classes = np.stack([np.mean(embed([f"a {n}", f"the {n} red"]), axis=0) for n in names])
    classes /= np.linalg.norm(classes, axis=1, keepdims=True)
    best = (embed(["blue bill", "blue", "red wing blue", "red wing"]) @ classes.T).argmax(axis=1)
    assert found["top-1"]["value"] == pytest.approx(np.mean(best == [0, 0, 0, 1]), abs=1e-6)
    assert found["top-1"]["n"] == 4 and found["top-5"]["value"] == 1 and found["classes"] == 3 and found["texts"] == 6
    assert found["left_out"] == {"classes without an image, candidates still": {"count": 1, "names": ["n03000000"]}}
    assert sorted(judge.texts_seen) == sorted(f for n in names for f in (f"a {n}", f"the {n} red"))


def test_names_of_classes(tmp_path: Path) -> None:
    keys = sorted(WNIDS)
    (tmp_path / "a.txt").write_text(SYNSETS)
    assert read_names(tmp_path / "a.txt", keys) == [WNIDS[key] for key in keys]
    (tmp_path / "b.txt").write_text("one\ntwo, too\nthree\n")
    assert read_names(tmp_path / "b.txt", keys) == ["one", "two, too", "three"]
    (tmp_path / "c.txt").write_text("one\ntwo\n")
    assert "2 lines for 3 classes, none starts with n01440764" in refused(lambda: read_names(tmp_path / "c.txt", keys))
    # Without a file: the folders' own, or CLIP's for all of ImageNet.
    assert default_names(tmp_path, ["great_auk", "wren"]) == ["great auk", "wren"]
    thousand = [f"n{number:08d}" for number in range(1000)]
    assert default_names(tmp_path, thousand)[:2] == ["tench", "goldfish"]
    assert "3 of ImageNet's 1000 classes" in refused(lambda: default_names(tmp_path, keys))


def test_templates(tmp_path: Path) -> None:
    assert len(read_templates("imagenet")) == 80 and len(read_templates("simple")) == 7
    assert all(template.count("{}") == 1 for template in read_templates("imagenet"))
    (tmp_path / "t.txt").write_text("a photo\n")
    assert "'a photo': write one template a line" in refused(lambda: read_templates(str(tmp_path / "t.txt")))
    assert "no such file; use imagenet, simple" in refused(lambda: read_templates("none"))
    assert make_prompts(["{x}"], ["a {}"]) == [["a {x}"]]


CAPTIONS = {
    "n01440764": ["blue bill", "a blue thing", "bill tail"],
    "red wing": ["red wing", "is red"],
    "n03000000": ["tail", "green"],
}


@pytest.mark.parametrize("kind", ["captions", "descriptions"])
@pytest.mark.parametrize("examples", [None, 2])
def test_captions_in_prompts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, examples: int | None) -> None:
    """Compun's prompts (its appendix A.2), each caption by two templates, computed by the definition."""
    data = write_imagenet(tmp_path / "val")
    (tmp_path / "synsets.txt").write_text(SYNSETS)
    (tmp_path / "templates.txt").write_text("a {}\nthe {} red.\n")
    (tmp_path / "texts.json").write_text(json.dumps(CAPTIONS))
    means = []
    for (key, texts), name in zip(CAPTIONS.items(), ["blue bill", "red wing", "green tail"], strict=True):
        means.append([])
        for text in texts[:examples]:
            end = f". An example of {name} in an image is {text}"
            if kind == "descriptions":
                end = f", which {'' if text == 'is red' else 'has '}{text}"
            vector = embed([f"a {name}{end}", f"the {name} red{end}"]).astype(float).mean(axis=0)
            means[-1].append(vector / np.linalg.norm(vector))
        assert len(means[-1]) == min(len(texts), examples or 3), key
    classes = np.stack([np.mean(some, axis=0) for some in means])
    best = (embed(["blue bill", "blue", "red wing blue", "red wing"]) @ classes.T).argmax(axis=1)
    templates = str(tmp_path / "templates.txt")
    settings = {"data": data, "classes": tmp_path / "synsets.txt", kind: tmp_path / "texts.json", "examples": examples}
    found, _ = run(zero_shot, tmp_path, monkeypatch, templates=templates, **settings)
    assert found["top-1"]["value"] == pytest.approx(np.mean(best == [0, 0, 0, 1]), abs=1e-6)
    assert found["texts"] == 2 * sum(map(len, means)) and found["combine"] == "ensembles"
    assert found["prompts"] == "texts.json" and found["templates"] == "templates.txt"
    step = ZeroShot(judge=tmp_path, output=tmp_path, templates=templates, **settings)
    keys, names = list(WNIDS)[1::-1] + ["n03000000"], ["blue bill", "red wing", "green tail"]
    ours = ensemble_vectors(embed, make_classes(step, keys, names)[0])
    assert ours == pytest.approx(classes, abs=1e-6)
    # Without --templates, the paper's own alone.
    found, judge = run(zero_shot, tmp_path, monkeypatch, **settings)
    assert found["templates"] == "photo" and found["texts"] == sum(map(len, means))
    assert all(text.startswith("a photo of a ") for text in judge.texts_seen)


def test_bad_texts_of_classes(tmp_path: Path) -> None:
    data = write_imagenet(tmp_path / "val")
    (tmp_path / "texts.json").write_text(json.dumps({"n01440764": ["x"], "n03000000": ["y"]}))
    (tmp_path / "synsets.txt").write_text(SYNSETS)
    settings = {"data": data, "captions": tmp_path / "texts.json", "classes": tmp_path / "synsets.txt"}
    said = refused(lambda: run(zero_shot, tmp_path, **settings))
    assert "class 'n02119789': no list of texts (1 classes without)" in said
    said = refused(lambda: run(zero_shot, tmp_path, **settings, descriptions=tmp_path / "texts.json"))
    assert "--captions and --descriptions exclude each other" in said
    with pytest.raises(ValidationError, match="examples"):
        ZeroShot(judge=tmp_path, output=tmp_path, **settings, examples=0)


def python_2(value: Any) -> bytes:
    """Pickle a dict with texts as bytes, as Python 2 wrote them."""

    def raw(value: Any) -> Any:
        if isinstance(value, dict):
            return {raw(key): raw(content) for key, content in value.items()}
        return value.encode() if isinstance(value, str) else [*map(raw, value)] if isinstance(value, list) else value

    return pickle.dumps(raw(value), 3)


def write_cifar(folder: Path, kind: str, labels: list[int], pixels: np.ndarray) -> Path:
    folder.mkdir(parents=True)
    key = {"CIFAR-10": "labels", "CIFAR-100": "fine_labels"}[kind]
    names = ["aquarium_fish", "red_wing", "bill"]
    batch = {"batch_label": "testing batch 1 of 1", key: labels, "data": pixels, "filenames": ["x.png"] * len(labels)}
    meta = {"CIFAR-10": ("batches.meta", "label_names"), "CIFAR-100": ("meta", "fine_label_names")}[kind]
    if kind == "CIFAR-100":
        batch["coarse_labels"] = labels
    (folder / {"CIFAR-10": "test_batch", "CIFAR-100": "test"}[kind]).write_bytes(python_2(batch))
    (folder / meta[0]).write_bytes(python_2({"num_cases_per_batch": 10000, meta[1]: names, "num_vis": 3072}))
    return folder


PIXELS = np.random.default_rng(0).integers(256, size=(5, 3072)).astype(np.uint8)


@pytest.mark.parametrize("kind", ["CIFAR-10", "CIFAR-100"])
def test_cifar(tmp_path: Path, kind: str) -> None:
    data = write_cifar(tmp_path / "data", kind, [0, 2, 1, 1, 0], PIXELS)
    # Python's own unpickler reads the same.
    name = {"CIFAR-10": "test_batch", "CIFAR-100": "test"}[kind]
    own = pickle.loads((data / name).read_bytes(), encoding="bytes")
    assert np.array_equal(own[b"data"], PIXELS)
    found = read_classified(data, None, tmp_path / "cache")
    assert found.keys == ["aquarium_fish", "red_wing", "bill"] and found.names == ["aquarium fish", "red wing", "bill"]
    assert found.labels == [0, 2, 1, 1, 0]
    shown = np.stack([np.asarray(Image.open(path)) for path in found.paths])
    # Red, green and blue planes, each row by row.
    assert shown.shape == (5, 32, 32, 3) and shown[4, 3, 7].tolist() == PIXELS[4, [103, 1127, 2151]].tolist()
    assert np.array_equal(shown, PIXELS.reshape(5, 3, 32, 32).transpose(0, 2, 3, 1))
    # A damaged image is written again.
    whole = found.paths[2].read_bytes()
    found.paths[2].write_bytes(whole[:-20] + bytes([whole[-20] ^ 1]) + whole[-19:])
    assert read_classified(data, None, tmp_path / "cache").paths[2].read_bytes() == whole
    result, _ = run(zero_shot, tmp_path, data=data, templates="simple", judge=real_judge(tmp_path / "judge"))
    assert result["top-1"]["n"] == 5 and result["classes"] == 3 and result["texts"] == 21
    assert str(tmp_path) not in json.dumps(result)


def test_bad_cifar(tmp_path: Path) -> None:
    def said(name: str, content: Any) -> str:
        (tmp_path / "c" / name).write_bytes(content if isinstance(content, bytes) else python_2(content))
        return refused(lambda: read_cifar(tmp_path / "c", "CIFAR-10", tmp_path / "cache"))

    write_cifar(tmp_path / "c", "CIFAR-10", [0, 1, 2, 0, 3], PIXELS)
    assert "label 3 of 3 classes" in refused(lambda: read_cifar(tmp_path / "c", "CIFAR-10", tmp_path / "cache"))
    good = {"labels": [0], "data": PIXELS[:1]}
    assert "data of shape (1, 3000) for 1 labels" in said("test_batch", {**good, "data": PIXELS[:1, :3000]})
    assert "no list 'labels'" in said("test_batch", {"fine_labels": [0], "data": PIXELS[:1]})
    assert "data are not bytes" in said("test_batch", {**good, "data": [[300] * 3072]})
    assert "expected a dict, got a list" in said("test_batch", [1])
    assert "truncated" in said("test_batch", python_2(good)[:-50])

    class Evil:
        def __reduce__(self) -> Any:
            return os.system, ("true",)

    assert "refused, because it would build posix.system" in said("test_batch", pickle.dumps({"data": Evil()}))
    assert not (tmp_path / "cache").exists()


def test_bad_folders(tmp_path: Path) -> None:
    assert "no such folder" in refused(lambda: read_classified(tmp_path / "none", None, tmp_path))
    assert "no folder of a class with images" in refused(lambda: read_folders(tmp_path, None))
    (tmp_path / "val" / "n01440764").mkdir(parents=True)
    assert "val are splits, not classes" in refused(lambda: read_folders(tmp_path, None))


def test_unreadable_images_are_named(tmp_path: Path) -> None:
    for number, color in enumerate([(200, 30, 30), (20, 90, 200), (10, 200, 90)]):
        picture(tmp_path / "birds" / ("wing" if number else "bill") / f"{number}.png", color)
    (tmp_path / "birds" / "wing" / "3.png").write_text("no image")
    judge = real_judge(tmp_path / "judge")
    found, _ = run(zero_shot, tmp_path, data=tmp_path / "birds", templates="simple", judge=judge)
    assert found["left_out"] == {"images unreadable": {"count": 1, "names": ["wing/3.png"]}}
    assert found["top-1"]["n"] == 3 and found["top-5"]["value"] == 1
