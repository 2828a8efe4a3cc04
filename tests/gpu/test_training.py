"""Training and scoring on a GPU: the CPU's results within stated tolerances, and the same bytes
each time.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from compclip.clip.model import load_judge
from compclip.judge import checkpoint, training
from tests.gpu.two_processes import train_together
from tests.judge.conftest import PUBLISHED, TOGETHER, Model, Train, assert_alike, untrained

EMBEDDING_TOLERANCE = 1e-4  # of a coordinate of a vector of unit length
# The parts of the paper's judge that train, in small, and whole towers.
MODELS = [
    ("resnet", {"trainable": PUBLISHED, "captions": 2}),
    ("vit", {"trainable": ["*"]}),
    ("resnet", {"trainable": ["*"], "augment": "mild", "epochs": 4}),
]
IDS = ["published", "transformers", "augmented"]


def settings_of(model: Model, name: str, **settings: Any) -> dict[str, Any]:
    return {"model": model(name), "lr": 0.002, "device": "cuda", **settings}


def read_files(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@pytest.mark.parametrize(("name", "more"), MODELS, ids=IDS)
def test_a_training_is_that_of_the_cpu(
    train: Train, model: Model, squares: Path, name: str, more: dict[str, Any]
) -> None:
    """Losses within 0.2 %, weights within a fifth of how far they moved."""
    settings = settings_of(model, name, **more)
    gpu = train("gpu", cache="one", **settings)
    cpu = train("cpu", cache="two", **settings | {"device": "cpu"})
    start = untrained(squares, cpu.parent / "start", **settings)
    assert_alike(start, cpu, gpu, coarse=True)


@pytest.mark.parametrize(("name", "more"), MODELS, ids=IDS)
def test_a_killed_training_resumes_to_the_same_bytes(
    train: Train,
    model: Model,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    more: dict[str, Any],
) -> None:
    settings = settings_of(model, name, **more)
    whole = train("whole", cache="one", **settings)
    monkeypatch.setattr(checkpoint, "EVERY", 0)
    step = training._Trainer.train_step
    steps = 0

    def killed(*arguments: Any) -> torch.Tensor:
        nonlocal steps
        steps += 1
        if steps == 7:  # in the second epoch of four steps
            raise KeyboardInterrupt
        return step(*arguments)

    monkeypatch.setattr(training._Trainer, "train_step", killed)
    with pytest.raises(KeyboardInterrupt):
        train("cut", cache="two", **settings)
    assert read_files(train("cut", cache="two", **settings)) == read_files(whole)
    expected = 4 * settings.get("epochs", 2) + 3  # its three steps of the second epoch again
    assert steps == expected


@pytest.mark.parametrize("name", ["resnet", "vit", "trunk", "sketch"])
def test_scores_are_those_of_the_cpu(train: Train, model: Model, squares: Path, name: str) -> None:
    settings = {"device": "cpu", "epochs": 1}
    if name != "sketch":
        settings |= {"model": model(name), "lr": 0.002}
    folder = train("judge", **settings)
    items = [(file, None) for file in sorted((squares / "images").iterdir())[:50]]
    texts = ["a red square on a blue ground", "The ground is pink."]
    cpu = load_judge(folder, 1, "cpu")
    gpu = load_judge(folder, 1, "cuda")
    for ours, theirs in (
        (gpu.encode_images(items, 16), cpu.encode_images(items, 16)),
        (gpu.encode_texts(texts, 16), cpu.encode_texts(texts, 16)),
    ):
        np.testing.assert_allclose(ours, theirs, atol=EMBEDDING_TOLERANCE)


@pytest.mark.parametrize("precision", ["amp_bf16", "amp_fp16"])
def test_mixed_precision_starts_at_the_loss_of_single(
    train: Train, model: Model, precision: str
) -> None:
    """One step an epoch, so that the first loss is that of the initial weights."""
    settings = settings_of(model, "resnet", trainable=PUBLISHED, batch=112)
    single = pd.read_csv(train("fp32", cache="one", **settings) / "log.csv")["loss"]
    mixed_folder = train("mixed", cache="two", **settings, precision=precision)
    mixed = pd.read_csv(mixed_folder / "log.csv")["loss"]
    assert mixed[0] != single[0]
    assert mixed[0] == pytest.approx(single[0], rel=0.02)
    assert mixed.iloc[-1] == pytest.approx(single.iloc[-1], rel=0.1)


@contextmanager
def refusing_to_wait() -> Iterator[None]:
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("precision", ["fp32", "amp_bf16", "amp_fp16"])
@pytest.mark.parametrize(("name", "more"), MODELS, ids=IDS)
def test_a_step_does_not_wait(
    train: Train,
    model: Model,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    more: dict[str, Any],
    precision: str,
) -> None:
    """As torch itself finds; its first step may, to prepare its libraries."""
    step = training._Trainer.train_step
    steps = 0

    def strict(*arguments: Any) -> torch.Tensor:
        nonlocal steps
        steps += 1
        if steps == 1:
            return step(*arguments)
        with refusing_to_wait():
            return step(*arguments)

    monkeypatch.setattr(training._Trainer, "train_step", strict)
    train("judge", **settings_of(model, name, **more, precision=precision))
    assert steps > 1


def test_two_gpus_train_as_one(train: Train, model: Model, squares: Path, tmp_path: Path) -> None:
    if torch.cuda.device_count() < 2:
        pytest.skip("optional: fewer than two GPUs")
    settings = {"model": model("vit"), **TOGETHER, "device": "cuda"}
    one = train("one", **settings)
    arguments = (str(squares), str(tmp_path), settings | {"gpus": 2})
    torch.multiprocessing.spawn(train_together, arguments, nprocs=2)
    start = untrained(squares, tmp_path / "start", **settings)
    assert_alike(start, one, tmp_path / "two", coarse=True)
