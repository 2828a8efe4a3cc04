"""The data folders are read and sampled as AttnGAN and its successors do, and the samples are read
back.
"""

import pickle
import random
import re
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from PIL import Image

from compclip.core import tables
from compclip.core.artifacts.files import read_json
from compclip.core.artifacts.parquet import read_table
from compclip.core.errors import UserError
from compclip.core.identity.code import ROOT
from compclip.generate.export_layout import SAMPLER_BATCH, export_layout, model_words
from compclip.split.make_prompts import MATCHED_DRAWS
from tests.generate.conftest import Place, picture
from tests.project import Project
from workflow_scripts.inputs import SCHEMAS

# Captions of the first image of train, which the layout could break; another image of train has no
# file.
HOSTILE = [
    "a Yellow bird,\nwith wings",
    "the café bird’s belly",
    "red\ufffd\ufffdwing\rand feet",
    "!?",
    "é",
]


class Exported:
    """The layout of the small run, with hostile captions, a box of the first image, and an image
    without a file.
    """

    def __init__(self, run: Project, root: Path) -> None:
        self.results, self.place = root / "results", root / "results" / "sketch"
        shutil.copytree(run.root / "results" / "sketch" / "images", self.place / "images")
        files = [
            run.root / "results" / "sketch" / f"{name}.parquet" for name in ("captions", "images")
        ]
        files += [
            run.root / "results" / "sketch" / "color" / f"{name}.parquet"
            for name in ("splits", "prompts")
        ]
        self.read = {file.stem: read_table(file, SCHEMAS[file.stem]) for file in files}
        train = self.read["splits"].query("split == 'train'")["image_id"].tolist()
        self.first, self.without = train[:2]
        own = self.read["captions"]["image_id"] == self.first
        self.read["captions"].loc[
            own & (self.read["captions"]["caption_id"] < len(HOSTILE)), "text"
        ] = HOSTILE
        images = self.read["images"].set_index("image_id", drop=False)
        images.loc[self.first, ["bbox_x", "bbox_y", "bbox_w", "bbox_h"]] = 3.0, 2.0, 10.0, 8.0
        images.loc[self.without, ["path", "width", "height"]] = None
        self.read["images"] = images.reset_index(drop=True)

    def export(self) -> Path:
        folder = self.place / "color" / "layout"
        export_layout(folder, **self.read, results=self.results, dataset="sketch")
        return folder


@pytest.fixture
def world(first_run: Project, tmp_path: Path) -> Exported:
    return Exported(first_run, tmp_path)


def read(folder: Path, part: str, captions: str | None = "captions.pickle") -> dict[str, list[Any]]:
    """Read as the models' ``datasets.py``: class, captions in words and crop of each name, from
    pickle or from text.
    """
    names, classes = (
        pickle.loads((folder / part / f"{n}.pickle").read_bytes())
        for n in ("filenames", "class_info")
    )
    boxes = [
        line.split()[1:]
        for line in (folder / "CUB_200_2011/bounding_boxes.txt").read_text().splitlines()
    ]
    listed = [
        line.split()[1][:-4]
        for line in (folder / "CUB_200_2011/images.txt").read_text().splitlines()
    ]
    if captions:
        *in_numbers, words, numbers = pickle.loads((folder / captions).read_bytes())
        assert numbers == {word: number for number, word in words.items()} and words[0] == "<end>"
        every = [[words[number] for number in text] for text in in_numbers[part == "test"]]
        by_name = [
            every[len(every) // len(names) * i :][: len(every) // len(names)]
            for i in range(len(names))
        ]
    else:
        texts = [(folder / "text" / f"{name}.txt").read_text().split("\n")[:-1] for name in names]
        by_name = [[model_words(text) for text in of_name] for of_name in texts]
    content = {}
    for name, number, texts in zip(names, classes, by_name, strict=True):
        image = Image.open(folder / "images" / f"{name}.jpg").size
        content[name] = [number, texts, image, tuple(map(float, boxes[listed.index(name)]))]
    return content


@pytest.mark.parametrize("captions", ["captions.pickle", "captions_DAMSM.pickle", None])
def test_models_train_on_train_and_draw_exactly_the_prompts(
    world: Exported, captions: str | None
) -> None:
    folder = world.export() / "birds"
    texts, prompts = world.read["captions"], world.read["prompts"]
    split = world.read["splits"].set_index("image_id")["split"]
    train = read(folder / "train", "train", captions)
    assert {*train} == {*split.index[split == "train"]} - {world.without}
    assert {*read(folder / "train", "test", captions)} == {*split.index[split == "test_seen"]}
    most = read_json(folder.parent / "layout.json")["captions_per_image"]
    classes = texts.drop_duplicates("image_id").set_index("image_id")["class_id"]
    assert (
        len({(classes[name], number) for name, (number, *_) in train.items()})
        == classes[[*train]].nunique()
    )
    for name, (_, of_name, size, box) in train.items():
        said = {
            tuple(model_words(text)) for text in texts.loc[texts["image_id"] == name, "text"]
        } - {()}
        assert {*map(tuple, of_name)} == said and len(of_name) == most and size == (96, 96)
        # An image without a box is seen whole.
        assert box == ((3, 2, 10, 8) if name == world.first else (0, 0, 96, 96))
    for test, asked in prompts.groupby("split"):
        said = {
            f"{row.image_id}_{row.caption_id}": model_words(row.text) for row in asked.itertuples()
        }
        for part in ("train", "test"):
            drawn = read(folder / test, part, captions)
            assert {name: of_name for name, (_, of_name, *_) in drawn.items()} == {
                n: [w] * most for n, w in said.items()
            }
            names = pickle.loads((folder / test / part / "filenames.pickle").read_bytes())
            assert len(names) % SAMPLER_BATCH == 0, "no name is lost with a batch that is not full"


def test_all_folders_number_the_words_alike_and_links_may_move(world: Exported) -> None:
    folder = world.export() / "birds"
    numbers = [
        pickle.loads((place / "captions.pickle").read_bytes())[3]
        for place in sorted(folder.iterdir())
    ]
    assert (
        len(numbers) == 4
        and all(each == numbers[0] for each in numbers)
        and {"caf", "feet"} <= {*numbers[0]}
    )
    moved = shutil.move(world.results, world.results.with_name("elsewhere"))
    assert read(Path(moved, "sketch/color/layout/birds/train"), "train")[world.first][2] == (96, 96)
    images = world.read["images"]
    for changed, message in (
        (
            images.assign(image_id=images["image_id"].replace(world.first, "a b")),
            r"\['a b'\] has a blank, at which",
        ),
        (
            images.assign(path=pd.Series(None, dtype="str")),
            "no image of train has a file and a caption",
        ),
    ):
        world.read["images"] = changed
        with pytest.raises(UserError, match=message):
            world.export()


def test_samples_are_read_back_by_the_documented_renaming(
    world: Exported, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout, prompts = world.export(), world.read["prompts"]
    sampled = world.results.parent / "made"
    # Of a matched seen prompt, further draws are wanted.
    draws = [f"_s-1_{draw}.png" for draw in range(MATCHED_DRAWS)]
    for number, (test, forms) in enumerate(
        zip(tables.TESTS, (draws, ["_s-1_0_R_7.png"], ["_  0.png"]), strict=True)
    ):
        names = [name + form for name in read(layout / "birds" / test, "test") for form in forms]
        for place, name in enumerate(random.Random(number).sample(names, len(names))):
            picture(sampled / test.removeprefix("test_") / "single" / name, 1000 * number + place)
    monkeypatch.chdir(world.results.parent)
    recipe = re.search(
        r"```python\n(import re\n.*?)```", (ROOT / "docs/generators.md").read_text(), re.DOTALL
    )
    exec(recipe[1].replace("results/presets/published_birds/C-CUB/color/layout", str(layout)), {})
    manifest, summary = Place(world.results.parent, prompts).generate("folder", path="made/dmgan")
    assert {*manifest["status"]} == {"ok"} and prompts["draw"].max() == MATCHED_DRAWS - 1
    seen = prompts[prompts["split"] == "test_seen"]
    without = MATCHED_DRAWS * (seen["draw"] == 0).sum() - len(seen)
    assert summary["files_without_prompt"]["count"] == without
