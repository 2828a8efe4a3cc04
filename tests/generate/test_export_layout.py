"""The data folders are read and sampled as AttnGAN and its successors do, and the samples are read back."""

import hashlib
import os
import pickle
import random
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from tests.generate.conftest import Place, picture
from workflow_scripts.core import tables
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import read_json, read_table, write_table
from workflow_scripts.generate import export_layout
from workflow_scripts.generate.export_layout import cycled, entries_of, main, number_classes, padded, words_of
from workflow_scripts.generate.steps import ExportLayout

TEXTS = {
    "182.Yellow/Bird_0026_17": ["a Yellow bird,\nwith wings", "its bill is black.", "a tan crown"],
    "182.Yellow/Bird_0027_18": ["the caf\u00e9 bird's belly", "!?", "red\ufffd\ufffdwing"],
    "007.Auk/Auk_0001_9": ["an orange auk", "\u00e9", "a small\u2028auk\rwith red feet"],
    "007.Auk/Auk_0002_3": ["a gray auk"],
    "1.A/seen_1": ["a red bird", "a blue wing", "a tan bill"],
    "1.A/seen_2": ["a pink bird", "its tail is red", "a long bill"],
    "2.B/unseen_1": ["a purple bill", "the sky"],
    "2.B/no_file": ["a purple wing"],
}
SPLIT_OF = {"1.": "test_seen", "2.": "test_unseen"}


@dataclass
class World:
    results: Path

    @property
    def output(self) -> Path:
        return self.results / "mine" / "color" / "layout"

    def export(self, batch: int = 4) -> Path:
        place = self.results / "mine"
        main(
            ExportLayout(
                captions=place / "captions.parquet", images=place / "images.parquet",
                splits=place / "color" / "splits.parquet", prompts=place / "color" / "prompts.parquet",
                layout={"batch": batch}, results=self.results, dataset="mine", folder=self.output,
            )
        )  # fmt: skip
        return self.output


def make_world(root: Path, boxes: bool = True) -> World:
    place = root / "results" / "mine"
    captions = [(i, c, i.split(".")[0], t) for i, texts in TEXTS.items() for c, t in enumerate(texts)]
    captions = pd.DataFrame(captions, columns=list(tables.CAPTIONS.columns))
    write_table(captions, place / "captions.parquet", tables.CAPTIONS)
    images = pd.DataFrame({"image_id": list(TEXTS)})
    for number, image_id in enumerate(TEXTS):
        if image_id != "2.B/no_file":
            picture(place / "images" / f"{image_id}.png", number)
    images["path"] = [f"mine/images/{i}.png" if i != "2.B/no_file" else None for i in TEXTS]
    for column, value in (("width", 30), ("height", 20)):
        images[column] = pd.array([value if path else None for path in images["path"]], dtype="Int64")
    for column, value in (("x", 3.0), ("y", 2.0), ("w", 10.0), ("h", 8.0)):
        images[f"bbox_{column}"] = [value if boxes and i != "1.A/seen_2" else np.nan for i in TEXTS]
    write_table(images, place / "images.parquet", tables.IMAGES)
    splits = pd.DataFrame([(i, SPLIT_OF.get(i[:2], "train")) for i in TEXTS], columns=["image_id", "split"])
    write_table(splits, place / "color" / "splits.parquet", tables.SPLIT)
    asked = [
        ("1.A/seen_1", 0, "test_seen", "a red bird"),
        ("1.A/seen_1", 2, "test_seen", "a tan bill"),
        ("1.A/seen_2", 1, "test_seen", "its tail is red"),
        ("2.B/unseen_1", 0, "test_unseen", "a purple bill"),
        ("2.B/no_file", 0, "test_unseen", "a purple wing"),
        ("1.A/seen_1", 0, "test_swapped", "a violet bird"),
        ("1.A/seen_2", 1, "test_swapped", "its tail is ultramarine"),
    ]
    prompts = pd.DataFrame(
        [(i, c, d, s, t, None, f"{s}/{i}/{c}_{d}.png") for i, c, s, t in asked for d in (0, 1)],
        columns=list(tables.PROMPTS.columns),
    ).astype({"pair": "str"})
    write_table(prompts, place / "color" / "prompts.parquet", tables.PROMPTS)
    return World(root / "results")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return make_world(tmp_path)


class Reader:
    """What the models' dataset class opens, and in which order: names, captions as words, classes, boxes, images."""

    def __init__(
        self, data_dir: Path, split: str, captions_per_image: int, kept: str | None = "captions.pickle"
    ) -> None:
        self.data_dir, self.per_image = data_dir, captions_per_image
        self.boxes = self._boxes() if "birds" in str(data_dir) else None
        names = {s: self._load(f"{s}/filenames.pickle") for s in ("train", "test")}
        if kept is None:
            captions = {s: [c for name in names[s] for c in self._text(name)] for s in names}
        else:
            train, test, words, numbers = self._load(kept)
            assert numbers == {w: n for n, w in words.items()} and words[0] == "<end>"
            assert sorted(words) == list(range(len(words)))
            captions = {s: [[words[n] for n in c] for c in part] for s, part in (("train", train), ("test", test))}
            self.numbers = numbers
        self.names, self.captions = names[split], captions[split]
        self.classes = self._load(f"{split}/class_info.pickle")

    def _load(self, name: str) -> object:
        with (self.data_dir / name).open("rb") as file:
            return pickle.load(file, encoding="bytes")

    def _boxes(self) -> dict[str, list[int]]:
        place = self.data_dir / "CUB_200_2011"
        boxes = pd.read_csv(place / "bounding_boxes.txt", sep=r"\s+", header=None).astype(int)
        names = pd.read_csv(place / "images.txt", sep=r"\s+", header=None)[1].tolist()
        return {name[:-4]: boxes.iloc[i][1:].tolist() for i, name in enumerate(names)}

    def _text(self, name: str) -> list[list[str]]:
        found = []
        with open(self.data_dir / "text" / f"{name}.txt", encoding="utf-8") as file:
            for caption in file.read().split("\n"):
                if not caption:
                    continue
                tokens = re.findall(r"\w+", caption.replace("\ufffd\ufffd", " ").lower())
                assert tokens
                found.append([t for t in (t.encode("ascii", "ignore").decode() for t in tokens) if t])
                if len(found) == self.per_image:
                    break
        assert len(found) == self.per_image
        return found

    def item(self, index: int, sentence: int) -> tuple[str, list[str], int, tuple[int, int]]:
        """Name, words, class, and the size of the image as it is cropped."""
        name = self.names[index]
        folder = self.data_dir / "CUB_200_2011" if self.boxes is not None else self.data_dir
        image = Image.open(folder / "images" / f"{name}.jpg").convert("RGB")
        if self.boxes is not None:
            x, y, w, h = self.boxes[name]
            reach, column, row = int(max(w, h) * 0.75), int((2 * x + w) / 2), int((2 * y + h) / 2)
            image = image.crop(
                (max(0, column - reach), max(0, row - reach), min(image.width, column + reach),
                 min(image.height, row + reach))
            )  # fmt: skip
        return name, self.captions[index * self.per_image + sentence], self.classes[index], image.size


@pytest.mark.parametrize("kept", ["captions.pickle", "captions_DAMSM.pickle", None])
def test_models_train_on_train(world: World, kept: str | None) -> None:
    reader = Reader(world.export() / "birds" / "train", "train", 3, kept)
    trained = sorted(i for i in TEXTS if i[:3] in ("182", "007"))
    assert reader.names == trained and len(reader.captions) == 3 * len(trained)
    for index, name in enumerate(reader.names):
        items = [reader.item(index, sentence) for sentence in range(3)]
        said = [words_of(text) for text in TEXTS[name] if words_of(text)]
        # Each sentence is one of its own, and each of its own is there.
        assert {tuple(words) for _, words, _, _ in items} == {tuple(words) for words in said}
        assert all(number == int(name[:3]) and size == (14, 13) for _, _, number, size in items)
    validation = Reader(world.output / "birds" / "train", "test", 3, kept)
    assert validation.names == ["1.A/seen_1", "1.A/seen_2"] and validation.classes == [1, 1]
    # An image without a box is seen whole.
    assert validation.item(1, 0)[3] == (30, 20)


@pytest.mark.parametrize("kept", ["captions.pickle", None])
def test_models_draw_exactly_the_prompts(world: World, kept: str | None) -> None:
    folder = world.export(batch=4) / "birds"
    prompts = read_table(world.results / "mine/color/prompts.parquet", tables.PROMPTS)
    for split in tables.TESTS:
        asked = prompts[(prompts["split"] == split) & (prompts["image_id"] != "2.B/no_file")]
        said = {f"{i}_{c}": t for i, c, t in zip(asked["image_id"], asked["caption_id"], asked["text"], strict=True)}
        for part in ("test", "train"):
            reader = Reader(folder / split, part, 3, kept)
            # Whatever its order, no name is lost with a batch that is not full.
            assert set(reader.names) == set(said) and len(reader.names) == 4
            for index, name in enumerate(reader.names):
                for sentence in range(3):
                    assert reader.item(index, sentence)[:2] == (name, words_of(said[name]))
        listed = pd.read_csv(folder / split / "prompts.csv")
        assert dict(zip(listed["name"], listed["text"], strict=True)) == said


def test_all_folders_number_the_words_alike(world: World) -> None:
    folder = world.export() / "birds"
    numbers = [Reader(path, "test", 3).numbers for path in sorted(folder.iterdir())]
    assert len(numbers) == 4 and all(n == numbers[0] for n in numbers)
    assert {"violet", "ultramarine", "purple", "caf"} <= set(numbers[0])
    # Train comes first, its images by name. What is asked for changes nothing, as long as its words are known.
    change(world, "color/prompts.parquet", tables.PROMPTS, lambda t: t[t["split"] == "test_swapped"][:1])
    fewer = Reader(world.export() / "birds" / "train", "test", 3).numbers
    assert fewer == {word: number for word, number in numbers[0].items() if word != "ultramarine"}
    assert list(numbers[0])[:4] == ["<end>", "an", "orange", "auk"]


def test_samples_are_read_back(world: World) -> None:
    prompts = read_table(world.results / "mine/color/prompts.parquet", tables.PROMPTS)
    place = Place(world.results.parent, prompts)
    made = {}
    forms = {"test_seen": "_s-1_{}.png", "test_unseen": "_s-1_{}_R_7.png", "test_swapped": "_ {:>2}.png"}
    for split, form in forms.items():
        reader = Reader(world.export() / "birds" / split, "test", 3)
        out = place.root / f"netG_{split}" / "valid" / "single"
        order = list(range(len(reader.names)))
        for draw in (0, 1):
            random.Random(draw).shuffle(order)
            for index in order:
                name = reader.item(index, random.Random(index).randrange(3))[0]
                picture(out / (name + form.format(draw)), len(split) + draw)
        made[split] = str(out)
    manifest, summary = place.generate("folder", path=made)
    there = manifest["image_id"] != "2.B/no_file"
    assert set(manifest["status"][there]) == {"ok"} and set(manifest["status"][~there]) == {"missing"}
    assert summary["missing"]["count"] == 2 and summary["files_without_prompt"]["count"] == 0
    first = manifest[(manifest["split"] == "test_swapped") & (manifest["draw"] == 1)].iloc[0]
    file = Path(made["test_swapped"]) / f"{first['image_id']}_{first['caption_id']}_  1.png"
    assert (place.root / "results" / first["path"]).read_bytes() == file.read_bytes()


def test_equal_bytes_and_links_that_may_move(world: World, tmp_path: Path) -> None:
    def content(root: Path) -> dict[str, str]:
        return {
            path.relative_to(root).as_posix(): os.readlink(path)
            if path.is_symlink()
            else hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(root.rglob("*"))
            if path.is_symlink() or path.is_file()
        }

    before = content(world.export())
    shutil.rmtree(world.output)
    assert content(world.export()) == before
    assert not any(link.startswith("/") or str(tmp_path) in link for link in before.values())
    links = [path for path in world.output.rglob("*.jpg") if path.is_symlink()]
    assert len(links) > 10 and sum(path.lstat().st_size for path in links) < 100 * len(links)
    shutil.move(world.results, tmp_path / "elsewhere")
    moved = tmp_path / "elsewhere" / "mine" / "color" / "layout" / "birds" / "test_seen"
    assert Reader(moved, "test", 3).item(0, 0)[3] == (14, 13)


def test_without_boxes_images_are_where_flowers_are_expected(tmp_path: Path) -> None:
    world = make_world(tmp_path, boxes=False)
    folder = world.export() / "mine" / "train"
    assert Reader(folder, "train", 3).item(0, 0)[3] == (30, 20)
    assert (folder / "oxford-102-flowers" / "images" / "007.Auk" / "Auk_0001_9.jpg").is_file()
    # A path that happens to have birds in it cuts nothing off.
    shutil.copytree(folder, world.output / "mine" / "birds", symlinks=True)
    assert Reader(world.output / "mine" / "birds", "train", 3).item(0, 0)[3] == (30, 20)


def test_what_is_skipped_is_named(world: World) -> None:
    summary = read_json(world.export() / "layout.json")
    assert summary["images_without_file"] == {"count": 1, "names": ["2.B/no_file"]}
    assert summary["prompts_without_file"]["names"] == ["test_unseen 2.B/no_file 0"]
    assert summary["captions_without_word"]["names"] == ["007.Auk/Auk_0001_9 1", "182.Yellow/Bird_0027_18 1"]
    assert summary["images_repeating_captions"] == 3 and summary["captions_per_image"] == 3
    assert summary["train"] == {"images": 4, "test": 2}
    assert summary["prompts"] == {"test_seen": 3, "test_unseen": 1, "test_swapped": 2}
    assert summary["longest_caption"] == 6 and summary["captions_longer_than"] == {"18": 0, "25": 0}


def change(world: World, name: str, schema: object, edit: object) -> None:
    path = world.results / "mine" / name
    write_table(edit(read_table(path, schema)), path, schema)


def test_bad_input(world: World) -> None:
    change(world, "captions.parquet", tables.CAPTIONS, lambda t: t.assign(
        text=t["text"].where(~t["image_id"].str.match("182|007"), "?!")))  # fmt: skip
    with pytest.raises(UserError, match="no image of train has both a file and a caption with words; check both"):
        world.export()
    blank = {"image_id": "1.A/seen 3", "path": "mine/images/x.png", "width": 3, "height": 3}
    images = read_table(world.results / "mine/images.parquet", tables.IMAGES)
    change(world, "images.parquet", tables.IMAGES, lambda t: pd.concat([t, pd.DataFrame([blank]).astype(
        {"width": "Int64", "height": "Int64"})], ignore_index=True))  # fmt: skip
    with pytest.raises(UserError, match="image '1.A/seen 3' has a blank, at which the models split names"):
        world.export()
    change(world, "images.parquet", tables.IMAGES, lambda t: images.assign(path=None).astype({"path": "str"}))
    with pytest.raises(UserError, match="no image has a file"):
        world.export()
    assert not world.output.exists()


@given(st.text())
def test_words(text: str) -> None:
    spaced = "".join(c if c.isalnum() or c == "_" else " " for c in text.lower())
    expected = ["".join(c for c in word if c.isascii()) for word in spaced.split()]
    assert words_of(text) == [word for word in expected if word] or "\ufffd\ufffd" in text
    assert words_of(" ".join(text.split())) == words_of(text)


@given(st.integers(0, 50), st.integers(1, 20))
def test_padding_fills_the_last_batch(number: int, batch: int) -> None:
    rows = pd.DataFrame({"image_id": [f"i{n:02d}" for n in range(number)], "caption_id": 0, "text": "a bird"})
    entries = entries_of(rows, prompts=True)[0]
    longer = padded(entries, batch)
    assert len(longer) % batch == 0 and len(longer) < number + batch and longer[:number] == entries
    assert {e.name for e in longer} == {e.name for e in entries}


def test_classes_and_cycles() -> None:
    rows = pd.DataFrame({"image_id": ["a", "a", "b", "c", "d"], "class_id": ["x", "x", "w", None, None]})
    assert number_classes(rows) == {"a": 2, "b": 1, "c": 3, "d": 4}
    assert number_classes(rows.assign(class_id=["007", "007", "12", None, None])) == {"a": 7, "b": 12, "c": 13, "d": 14}
    assert cycled(["p", "q"], 5) == ["p", "q", "p", "q", "p"] and cycled(["p", "q"], 1) == ["p"]
    assert export_layout.PROTOCOL == 2
