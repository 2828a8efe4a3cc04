"""The checkpoints of a training, from which it resumes after it was killed."""

import math
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import torch
from torch import nn

from compclip.core.artifacts.sealed import is_whole, sealed
from compclip.core.log import log

EVERY = 20.0  # seconds between two checkpoints, which a kill may cost


def moving(model: nn.Module) -> set[str]:
    """Return the names of the tensors that training changes: trained parameters, and buffers in
    training mode.
    """
    names = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    for prefix, module in model.named_modules():
        # Batch norms of frozen parts are in evaluation mode and keep their statistics.
        if module.training:
            names.update(name for name, _ in module.named_buffers(prefix, recurse=False))
    # Buffers that are not saved, such as causal masks, do not change either.
    return names & set(model.state_dict())


def _copied(state: Any) -> Any:
    """Return a copy of ``state`` in memory, which further steps do not change."""
    if isinstance(state, torch.Tensor):
        return state.to("cpu", copy=True)
    if isinstance(state, dict):
        return {key: _copied(value) for key, value in state.items()}
    if isinstance(state, list):
        return [_copied(value) for value in state]
    return state


@dataclass
class Checkpoint:
    """The state of a training in ``file``: ``with Checkpoint(...) as checkpoint``.

    A thread writes it while the training goes on. The last state stays, so a finished training is
    not repeated. ``unit`` is what a row of the log covers. Writing checkpoints takes at most
    ``fraction`` of the time.
    """

    file: Path
    model: nn.Module
    optimizer: torch.optim.Optimizer
    scaler: torch.amp.GradScaler
    unit: str
    fraction: float = math.inf

    def __post_init__(self) -> None:
        # Frozen weights are not written: the model is built with them again.
        self.names = moving(self.model)
        self.begun_at = time.monotonic()
        self.cost = 0.0  # seconds that the last checkpoint took to write
        self.writer = ThreadPoolExecutor(1)
        self.writing: Future[None] = Future()
        self.writing.set_result(None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Wait for the thread, also after an error, so that the last checkpoint is complete."""
        self.writer.shutdown()

    def keep(self, rows: list[dict[str, Any]], last: bool) -> None:
        """Write the state after ``rows`` if ``EVERY`` seconds have passed since the last
        checkpoint was begun, or if it is the ``last``, which is complete on return.
        """
        interval = max(EVERY, self.cost / self.fraction)
        if not last and time.monotonic() - self.begun_at < interval:
            return
        # The one before is complete, except on a slow disk; its errors are raised here.
        self.writing.result()
        self.begun_at = time.monotonic()
        weights = self.model.state_dict()
        state = {
            "model": {name: weights[name] for name in weights if name in self.names},
            "optimizer": self.optimizer.state_dict(),
            "scaler": self.scaler.state_dict(),
            "rows": rows,
        }
        self.writing = self.writer.submit(self._write, _copied(state))
        if last:
            self.writing.result()

    def _write(self, state: dict[str, Any]) -> None:
        with sealed(self.file) as file:
            torch.save(state, file)
        self.cost = time.monotonic() - self.begun_at

    def resume(self) -> list[dict[str, Any]]:
        """Load the state if it exists undamaged, and return the rows of the finished units."""
        if not is_whole(self.file, "the training starts again"):
            return []
        state = torch.load(self.file, map_location="cpu", weights_only=True)
        # not strict, since only the tensors that training changes are in the file
        self.model.load_state_dict(state["model"], strict=False)
        self.optimizer.load_state_dict(state["optimizer"])
        self.scaler.load_state_dict(state["scaler"])
        log.info("resumed after %s %d", self.unit, len(state["rows"]))
        return state["rows"]
