"""The checkpoints of a training, from which it resumes after it was killed."""

import math
import time
from pathlib import Path
from typing import Any

import torch
from torch import nn

from compclip.core.log import log
from compclip.core.sealed import is_whole, sealed

EVERY = 20.0  # seconds between two checkpoints, which a kill may cost


def moving(model: nn.Module) -> set[str]:
    """Return the names of the tensors that training changes: trained parameters, and buffers in
    training mode.
    """
    in_training = [(prefix, module) for prefix, module in model.named_modules() if module.training]
    buffers = {
        name
        for prefix, module in in_training
        for name, _ in module.named_buffers(prefix, recurse=False)
    }
    trained = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    return (trained | buffers) & set(model.state_dict())


class Checkpoint:
    """The state of a training in ``file``. The last state stays, so a finished training is not
    repeated.

    ``unit`` is what a row of the log covers. Writing checkpoints takes at most ``fraction`` of the
    time.
    """

    def __init__(
        self,
        file: Path,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        scale: torch.amp.GradScaler,
        unit: str,
        fraction: float = math.inf,
    ) -> None:
        self.file, self.model, self.optimizer, self.scale, self.unit = (
            file,
            model,
            optimizer,
            scale,
            unit,
        )
        self.names, self.fraction = moving(model), fraction
        self.written, self.cost = time.monotonic(), 0.0

    def keep(self, rows: list[dict[str, Any]], last: bool) -> None:
        """Write the state after ``rows`` if ``EVERY`` seconds have passed, or if it is the
        ``last``.
        """
        begun = time.monotonic()
        if not last and begun - self.written < max(EVERY, self.cost / self.fraction):
            return
        state = {
            "model": {
                name: tensor
                for name, tensor in self.model.state_dict().items()
                if name in self.names
            },
            "optimizer": self.optimizer.state_dict(),
            "scaler": self.scale.state_dict(),
            "rows": rows,
        }
        with sealed(self.file) as file:
            torch.save(state, file)
        self.written = time.monotonic()
        self.cost = self.written - begun

    def resume(self) -> list[dict[str, Any]]:
        """Load the state if it exists undamaged, and return the rows of the finished units."""
        if not is_whole(self.file, "the training starts again"):
            return []
        state = torch.load(self.file, map_location="cpu", weights_only=True)
        self.model.load_state_dict(state["model"], strict=False)
        self.optimizer.load_state_dict(state["optimizer"])
        self.scale.load_state_dict(state["scaler"])
        log.info("resumed after %s %d", self.unit, len(state["rows"]))
        return state["rows"]
