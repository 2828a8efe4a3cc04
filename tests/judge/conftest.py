"""A data set that is easy to learn: a square of one color on a ground of another."""

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

from compclip.core import tables
from compclip.core.artifacts.parquet import read_table, write_table
from compclip.judge.config import Training
from tests.clip.conftest import PUBLISHED, RESNET, TINY, TRUNK, VIT, Model, model  # noqa: F401
from tests.scripts import job
from tests.split.worlds import captions_table, images_table
from workflow_scripts.job import Job

COLORS = {
    "red": (220, 30, 30),
    "green": (30, 180, 60),
    "blue": (40, 70, 220),
    "yellow": (240, 220, 40),
    "pink": (250, 130, 190),
    "black": (20, 20, 20),
    "white": (240, 240, 240),
    "brown": (120, 70, 30),
}

# A training that several processes must reproduce: without batch norms, which the CPU cannot
# synchronise.
TOGETHER = {
    "epochs": 2,
    "batch": 28,
    "lr": 0.002,
    "captions": 2,
    "device": "cpu",
    "trainable": [
        "visual.transformer.resblocks.1.*",
        "visual.proj",
        "transformer.*",
        "logit_scale",
    ],
}

Train = Callable[..., Path]


def squares_settings(squares: Path, **settings: Any) -> dict[str, Any]:
    """Return the settings of a training on the squares."""
    defaults = {
        "model": str(squares / "tiny.json"),
        "trainable": ["*"],
        "epochs": 2,
        "batch": 28,
        "lr": 0.01,
    }
    return defaults | settings


def squares_job(squares: Path, place: Path, name: str, cache: str, **settings: Any) -> Job:
    """Return the job that trains judge ``name`` in ``place`` on the squares."""
    files = {file: squares / f"{file}.parquet" for file in ("captions", "images")}
    files |= {"splits": [squares / "splits.parquet"]}
    made = job(
        files,
        {"judge": place / name},
        cache=place / cache,
        settings=squares_settings(squares, **settings),
        results=str(squares),
        judge_half=0,
        seed=0,
    )
    made.params.threads = 1
    return made


def squares_training_data(squares: Path, settings: Training) -> Any:
    """Return what a judge of these settings learns from."""
    from compclip.judge.train_judge import find_training_data

    schemas = {"captions": tables.CAPTIONS, "images": tables.IMAGES, "splits": tables.SPLIT}
    read = {
        name: read_table(squares / f"{name}.parquet", schema) for name, schema in schemas.items()
    }
    return find_training_data(
        **read | {"splits": [read["splits"]]}, settings=settings, folder=squares
    )


def assert_alike(start: Path, one: Path, other: Path, *, coarse: bool = False) -> None:
    """Check that both trained the same judge, except for rounding, ``coarse`` by half precision;
    start: untrained.
    """
    logs = [pd.read_csv(folder / "log.csv") for folder in (one, other)]
    np.testing.assert_allclose(logs[1]["loss"], logs[0]["loss"], rtol=2e-3 if coarse else 1e-5)
    untrained, *weights = (
        load_file(folder / "weights.safetensors") for folder in (start, one, other)
    )
    for name, tensor in weights[0].items():
        # A key's bias shifts all similarities of a query equally and so changes no attention: its
        # gradient is rounding, which Adam scales to full steps.
        if not name.endswith(("in_proj_bias", "k_proj.bias")):
            moved, off = ((tensor - of[name]).float().norm() for of in (untrained, weights[1]))
            assert off <= (0.2 if coarse else 2e-3) * moved, name
    assert any((tensor != weights[0][name]).any() for name, tensor in untrained.items())


def untrained(squares: Path, folder: Path, **settings: Any) -> Path:
    """Return the folder of the judge that a training with ``settings`` starts from."""
    from compclip.clip.model import build, save_judge
    from compclip.core.seeds import derive_seed

    config = Training.model_validate(squares_settings(squares, **settings))
    texts = squares_training_data(squares, config).texts
    save_judge(build(config, texts, derive_seed(0, "train_judge")), "start", None, folder)
    return folder


@pytest.fixture(scope="session")
def squares(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a results folder with four pictures each of 56 pairs of colors, and a model config."""
    results = tmp_path_factory.mktemp("squares")
    draw = np.random.default_rng(0)
    captions, images, splits = [], [], []
    (results / "images").mkdir()
    for number, ((inner, outer), _) in enumerate(
        itertools.product(itertools.permutations(COLORS, 2), range(4))
    ):
        image_id = f"{number:03d}"
        picture = np.full((32, 32, 3), COLORS[outer], np.uint8)
        row, column = draw.integers(4, 12, size=2)
        picture[row : row + 16, column : column + 16] = COLORS[inner]
        Image.fromarray(picture).save(results / "images" / f"{image_id}.png")
        images.append(image_id)
        captions += [
            (image_id, 0, f"a {inner} square on a {outer} ground"),
            (image_id, 1, f"The ground is {outer}, the square is {inner}."),
        ]
        splits.append((image_id, ("train", "train", "test_seen", "test_unseen")[number % 4]))
    write_table(captions_table(captions), results / "captions.parquet", tables.CAPTIONS)
    files = [f"images/{image_id}.png" for image_id in images]
    write_table(images_table(images, files), results / "images.parquet", tables.IMAGES)
    write_table(
        pd.DataFrame(splits, columns=["image_id", "split"]),
        results / "splits.parquet",
        tables.SPLIT,
    )
    (results / "tiny.json").write_text(json.dumps(TINY))
    return results


@pytest.fixture
def train(squares: Path, tmp_path: Path) -> Train:
    """``train(name, cache=…, **settings)`` trains on the squares and returns the judge's folder."""
    from workflow_scripts.judge.train_judge import main

    def run(name: str, cache: str = "cache", **settings: Any) -> Path:
        main(squares_job(squares, tmp_path, name, cache, **settings))
        return tmp_path / name

    return run
