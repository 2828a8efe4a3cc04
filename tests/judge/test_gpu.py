"""What a GPU would run, on a simulated one: every tensor is there, and results are equal except for
rounding.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import nn

from compclip.clip.device import settle
from compclip.clip.model import load_judge
from compclip.judge import train_judge, training
from tests.accelerator import accelerator, waits

from .conftest import PUBLISHED, Model, Train, assert_alike, untrained


@pytest.mark.parametrize(
    ("name", "settings", "free"),
    [
        ("sketch", {}, 2**33),
        ("resnet", {"trainable": PUBLISHED, "captions": 2}, 2**10),
        pytest.param("vit", {}, 2**33, marks=pytest.mark.slow),
        ("trunk", {}, 2**33),
    ],
    ids=["default", "published, little memory", "a transformer", "timm's"],
)
def test_the_judge_is_trained_and_judges(
    train: Train, model: Model, squares: Path, name: str, settings: dict[str, Any], free: int
) -> None:
    if name != "sketch":
        settings = {"model": model(name), "lr": 0.002, **settings}
    here = train("here", cache="one", **settings)
    with accelerator(free):
        there = train("there", cache="two", **settings)
    assert_alike(untrained(squares, here.parent / "start", **settings), here, there)
    items = [(file, None) for file in sorted((squares / "images").iterdir())[:10]]
    texts = ["a red square on a blue ground", "The ground is pink."]
    with accelerator():
        judges = [load_judge(here, 1, device) for device in ("cpu", "auto")]
        embeddings = [
            (judge.encode_images(items, 4), judge.encode_texts(texts, 4)) for judge in judges
        ]
    assert [judge.device.type for judge in judges] == ["cpu", "simulated"]
    for cpu, simulated in zip(*embeddings, strict=True):
        np.testing.assert_allclose(cpu, simulated, atol=1e-6)


@pytest.mark.parametrize("precision", ["amp_bf16", "amp_fp16"])
def test_mixed_precision(
    train: Train, model: Model, monkeypatch: pytest.MonkeyPatch, precision: str
) -> None:
    """With a GPU's types on the CPU, where amp_fp16 is refused because it is slow."""
    monkeypatch.setattr(train_judge, "check_precision", lambda *_: None)
    # One step per epoch: the first loss is that of the initial weights.
    settings = {"model": model("resnet"), "trainable": PUBLISHED, "batch": 112, "lr": 0.002}
    fine = pd.read_csv(train("fp32", cache="one", **settings) / "log.csv")
    folder = train(precision, cache="two", **settings, precision=precision)
    coarse = pd.read_csv(folder / "log.csv")
    assert coarse["loss"][0] != fine["loss"][0] and coarse["loss"][0] == pytest.approx(
        fine["loss"][0], rel=0.02
    )
    types = {tensor.dtype for tensor in load_file(folder / "weights.safetensors").values()}
    assert types == {torch.float32, torch.int64}


def test_the_simulation_refuses_what_a_gpu_does() -> None:
    """Otherwise the tests above could not fail."""
    settle(1)
    assert not torch.backends.cudnn.allow_tf32 and torch.get_float32_matmul_precision() == "highest"
    layer = nn.Linear(4, 2)
    with accelerator() as device:
        layer.to(device)
        with pytest.raises(RuntimeError, match="tensors on two devices"):
            layer(torch.ones(3, 4))
        pooled = F.adaptive_avg_pool2d(torch.ones(1, 1, 5, 5, device=device, requires_grad=True), 2)
        with pytest.raises(
            RuntimeError, match="does not have a deterministic implementation on CUDA"
        ):
            pooled.sum().backward()
            torch.ones(1, device=device)
        # A tensor without dimensions may be on any device, and so may indices.
        assert (torch.ones(3, device=device) * torch.tensor(2.0))[torch.tensor([1])].item() == 2


@pytest.mark.parametrize(
    ("name", "free", "settings"),
    [
        ("resnet", 2**33, {"trainable": PUBLISHED, "captions": 2}),
        ("resnet", 2**10, {"trainable": PUBLISHED, "precision": "amp_bf16"}),
        ("resnet", 2**33, {"trainable": ["*"], "augment": "mild", "epochs": 4}),
        ("vit", 2**33, {"trainable": ["*"], "precision": "amp_fp16"}),
    ],
    ids=["activations on the GPU", "activations in memory", "augmented pixels", "whole towers"],
)
def test_a_step_does_not_wait(
    train: Train,
    model: Model,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    free: int,
    settings: dict[str, Any],
) -> None:
    """Of all steps, in every epoch: the progress shows no loss before 15 seconds."""
    waits_of_steps = []
    whole_step = training._Trainer.train_step

    def counted_step(*arguments: Any) -> torch.Tensor:
        waits.clear()
        loss = whole_step(*arguments)
        waits_of_steps.append(list(waits))
        return loss

    monkeypatch.setattr(training._Trainer, "train_step", counted_step)
    settings = {"model": model(name), "lr": 0.002, "epochs": 2, **settings}
    with accelerator(free):
        train("there", **settings)
    assert waits_of_steps == [[]] * (4 * settings["epochs"])


def test_the_simulation_notes_what_waits() -> None:
    with accelerator() as device:
        waits.clear()
        there = torch.ones(3).pin_memory().to(device, non_blocking=True)
        there[torch.tensor([0, 2]).pin_memory().to(device, non_blocking=True)] += 1
        assert waits == []
        for wait in (
            there.sum().item,
            there.tolist,
            there.cpu,
            there.nonzero,
            there.unique,
            lambda: there[there > 0],
            lambda: there[torch.tensor([0])],
            lambda: torch.ones(3).to(device),
            lambda: torch.ones(3).to(device, non_blocking=True),
            lambda: torch.ones(3).pin_memory().to(device),
        ):
            wait()
            assert waits
            waits.clear()
