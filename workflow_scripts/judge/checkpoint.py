"""What a training keeps of itself while it works: with it, one that was killed goes on."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import torch
from torch import nn

from workflow_scripts.core.cli import log
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import atomic

# Seconds of work that a kill may cost; what is done sooner after the last state kept is not kept.
EVERY = 20.0


def moving(model: nn.Module) -> set[str]:
    """The names of the tensors that training changes: parameters that train, buffers of parts in training mode."""
    buffers = {
        f"{prefix}.{name}" if prefix else name
        for prefix, module in model.named_modules()
        if module.training
        for name, _ in module.named_buffers(recurse=False)
    }
    trained = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    return (trained | buffers) & set(model.state_dict())


class Checkpoint:
    """The state of a training in ``file``, of a model that is in the mode in which it trains.

    unit: what a row of its log is of, an epoch or a step.
    """

    def __init__(
        self, file: Path, model: nn.Module, optimizer: torch.optim.Optimizer, scale: torch.amp.GradScaler, unit: str
    ) -> None:
        self.file, self.model, self.optimizer, self.scale, self.unit = file, model, optimizer, scale, unit
        self.names = moving(model)
        self.kept = time.monotonic()

    def keep(self, rows: list[dict[str, Any]], last: bool) -> None:
        """Write the state behind the last of ``rows``, where it is time or the ``last`` of all is done."""
        if not last and time.monotonic() - self.kept < EVERY:
            return
        state = {
            "model": self._state(),
            "optimizer": self.optimizer.state_dict(),
            "scaler": self.scale.state_dict(),
            "rows": rows,
        }
        # Into an open file: of a full disk torch then tells.
        with atomic(self.file) as temporary, temporary.open("wb") as file:
            torch.save(state, file)
        self.kept = time.monotonic()

    def resume(self) -> list[dict[str, Any]]:
        """Load the state, where there is one; returns the rows of what is done.

        A file that cannot be read counts as none. Raises UserError for one of another model.
        """
        if not self.file.is_file():
            return []
        try:
            state = torch.load(self.file, map_location="cpu", weights_only=True)
        except Exception:  # as many kinds as there are bytes to damage
            log.warning("%s: damaged, so the training starts anew", self.file)
            return []
        own = {name: tensor.shape for name, tensor in self._state().items()}
        if own != {name: tensor.shape for name, tensor in state["model"].items()}:
            raise UserError(f"{self.file}: the checkpoint of another model: delete it, then run again")
        self.model.load_state_dict(state["model"], strict=False)
        self.optimizer.load_state_dict(state["optimizer"])
        self.scale.load_state_dict(state["scaler"])
        log.info("resumed behind %s %d", self.unit, len(state["rows"]))
        return state["rows"]

    def _state(self) -> dict[str, torch.Tensor]:
        return {name: tensor for name, tensor in self.model.state_dict().items() if name in self.names}
