"""The checkpoints of a training, from which it resumes after it was killed."""

import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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


@dataclass
class Checkpoint:
    """The state of a training in ``file``. The last state stays, so a finished training is not
    repeated.

    ``unit`` is what a row of the log covers. Writing checkpoints takes at most ``fraction`` of the
    time.
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
        self.written_at = time.monotonic()
        self.cost = 0.0  # seconds that the last checkpoint took to write

    def keep(self, rows: list[dict[str, Any]], last: bool) -> None:
        """Write the state after ``rows`` if ``EVERY`` seconds have passed, or if it is the
        ``last``.
        """
        begun_at = time.monotonic()
        interval = max(EVERY, self.cost / self.fraction)
        if not last and begun_at - self.written_at < interval:
            return
        weights = self.model.state_dict()
        state = {
            "model": {name: weights[name] for name in weights if name in self.names},
            "optimizer": self.optimizer.state_dict(),
            "scaler": self.scaler.state_dict(),
            "rows": rows,
        }
        with sealed(self.file) as file:
            torch.save(state, file)
        self.written_at = time.monotonic()
        self.cost = self.written_at - begun_at

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
