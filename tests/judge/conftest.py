"""A data set that anybody can learn: a square of one color on a ground of another."""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from safetensors.torch import load_file

from workflow_scripts.core import tables
from workflow_scripts.core.io import write_table

COLORS = {
    "red": (220, 30, 30), "green": (30, 180, 60), "blue": (40, 70, 220), "yellow": (240, 220, 40),
    "pink": (250, 130, 190), "black": (20, 20, 20), "white": (240, 240, 240), "brown": (120, 70, 30),
}  # fmt: skip

TINY = {
    "embed_dim": 32,
    "vision_cfg": {"tower": "conv", "image_size": 32, "widths": [8, 16], "depths": [0, 1], "features": 32},
    "text_cfg": {"tower": "words", "context_length": 12, "width": 16, "hidden": 32, "window": 3},
}

# The judge of the paper, of which there is little: the parts of its appendix train.
RESNET = {
    "embed_dim": 16,
    "vision_cfg": {"image_size": 32, "layers": [1, 2, 1, 1], "width": 8, "head_width": 64},
    "text_cfg": {"context_length": 12, "width": 16, "heads": 2, "layers": 2},
}
PUBLISHED = [
    "visual.layer4.*", "visual.attnpool.*", "transformer.resblocks.1.*", "ln_final.*", "text_projection", "logit_scale",
]  # fmt: skip
# No batch norm.
VIT = {**RESNET, "vision_cfg": {"image_size": 32, "layers": 2, "width": 16, "head_width": 8, "patch_size": 8}}
TRUNK = {
    "embed_dim": 16,
    "vision_cfg": {"timm_model_name": "test_resnet", "image_size": 32},
    "text_cfg": {"tower": "words", "vocab_size": 20, "context_length": 12, "width": 16, "hidden": 32, "window": 3},
}

# A training whose result several processes can be held to: without batch norms, which are of a process on the CPU.
TOGETHER = {
    "epochs": 2, "batch": 28, "lr": 0.002, "captions": 2, "device": "cpu",
    "trainable": ["visual.transformer.resblocks.1.*", "visual.proj", "transformer.*", "logit_scale"],
}  # fmt: skip

Train = Callable[..., Path]
Model = Callable[[str], str]


def assert_alike(start: Path, one: Path, several: Path) -> None:
    """Several processes trained to what one did, but for rounding; start: the folder of the untrained judge."""
    logs = [pd.read_csv(folder / "log.csv") for folder in (one, several)]
    np.testing.assert_allclose(logs[1]["loss"], logs[0]["loss"], rtol=1e-5)
    untrained, *weights = (load_file(folder / "weights.safetensors") for folder in (start, one, several))
    for name, tensor in weights[0].items():
        if not name.endswith(("in_proj_bias", "k_proj.bias")):  # of keys: no gradient but rounding
            moved = (tensor - untrained[name]).float().norm()
            assert (tensor - weights[1][name]).float().norm() <= 2e-3 * moved, name
    assert any((tensor != weights[0][name]).any() for name, tensor in untrained.items())


@pytest.fixture(scope="session")
def squares(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results folder: captions, images and splits of 56 pairs of colors, four pictures each, and a model config."""
    results = tmp_path_factory.mktemp("squares")
    draw = np.random.default_rng(0)
    captions, images, splits = [], [], []
    (results / "images").mkdir()
    for number, ((inner, outer), _) in enumerate(itertools.product(itertools.permutations(COLORS, 2), range(4))):
        image_id = f"{number:03d}"
        picture = np.full((32, 32, 3), COLORS[outer], np.uint8)
        row, column = draw.integers(4, 12, size=2)
        picture[row : row + 16, column : column + 16] = COLORS[inner]
        Image.fromarray(picture).save(results / "images" / f"{image_id}.png")
        images.append((image_id, f"images/{image_id}.png"))
        captions += [
            (image_id, 0, None, f"a {inner} square on a {outer} ground"),
            (image_id, 1, None, f"The ground is {outer}, the square is {inner}."),
        ]
        splits.append((image_id, ("train", "train", "test_seen", "test_unseen")[number % 4]))
    table = pd.DataFrame(captions, columns=["image_id", "caption_id", "class_id", "text"])
    write_table(table.astype({"class_id": "str"}).assign(class_id=None), results / "captions.parquet", tables.CAPTIONS)
    frame = pd.DataFrame(images, columns=["image_id", "path"])
    frame["width"] = frame["height"] = pd.array([32] * len(frame), dtype="Int64")
    for column in ("bbox_x", "bbox_y", "bbox_w", "bbox_h"):
        frame[column] = np.nan
    write_table(frame, results / "images.parquet", tables.IMAGES)
    write_table(pd.DataFrame(splits, columns=["image_id", "split"]), results / "splits.parquet", tables.SPLIT)
    (results / "tiny.json").write_text(json.dumps(TINY))
    return results


@pytest.fixture
def model(tmp_path: Path) -> Model:
    """``model("resnet")``, vit or trunk: the path of its config, for ``judge.model``."""

    def write(name: str) -> str:
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps({"resnet": RESNET, "vit": VIT, "trunk": TRUNK}[name]))
        return str(path)

    return write


@pytest.fixture
def train(squares: Path, tmp_path: Path) -> Train:
    """``train(name, cache=…, **settings)`` trains on the squares and returns the judge's folder."""
    from workflow_scripts.judge.train_judge import main

    def run(name: str, cache: str = "cache", **settings: Any) -> Path:
        chosen = {"model": str(squares / "tiny.json"), "epochs": 2, "batch": 28, "lr": 0.01, **settings}
        main(
            argparse.Namespace(
                captions=squares / "captions.parquet", images=squares / "images.parquet",
                splits=squares / "splits.parquet", results=squares, settings=json.dumps(chosen), seed=0, threads=1,
                cache=tmp_path / cache, folder=tmp_path / name,
            )
        )  # fmt: skip
        return tmp_path / name

    return run
