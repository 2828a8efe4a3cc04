"""Checkpoints are written beside the training, and hold the state in which they were asked for."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from torch import nn

from compclip.core.artifacts.sealed import sealed
from compclip.judge import checkpoint
from compclip.judge.checkpoint import Checkpoint


def of_layer(file: Path) -> Checkpoint:
    torch.manual_seed(0)
    layer = nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(layer.parameters())
    return Checkpoint(file, layer, optimizer, torch.amp.GradScaler("cpu", enabled=False), "step")


def take_step(state: Checkpoint) -> None:
    state.model(torch.ones(1, 3)).sum().backward()
    state.optimizer.step()


def test_later_steps_do_not_change_a_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "EVERY", 0)
    training_goes_on = threading.Event()

    @contextmanager
    def slow(path: Path) -> Iterator[object]:
        assert training_goes_on.wait(60)
        with sealed(path) as file:
            yield file

    monkeypatch.setattr(checkpoint, "sealed", slow)
    rows = [{"step": 1}]
    with of_layer(tmp_path / "state.pt") as state:
        take_step(state)
        weight = state.model.weight.detach().clone()
        moments = {name: x.clone() for name, x in state.optimizer.state[state.model.weight].items()}
        state.keep(rows, last=False)
        take_step(state)
        rows.append({"step": 2})
        training_goes_on.set()
    resumed = of_layer(tmp_path / "state.pt")
    assert resumed.resume() == [{"step": 1}]
    assert torch.equal(resumed.model.weight, weight)
    for name, tensor in resumed.optimizer.state[resumed.model.weight].items():
        assert torch.equal(tensor, moments[name]), name


def test_an_error_of_the_thread_ends_the_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "EVERY", 0)
    (tmp_path / "state.pt").mkdir()
    for last in (False, True):
        with of_layer(tmp_path / "state.pt") as state, pytest.raises(Exception, match=r"state\.pt"):
            state.keep([], last=last)
            state.keep([], last=True)
