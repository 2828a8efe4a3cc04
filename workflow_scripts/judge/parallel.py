"""Several GPUs, a process each, started by torchrun: together they train as one process would on their batches.

Each encodes its share of a batch, all compute the loss of the whole batch, and the gradients are averaged.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from workflow_scripts.common.cli import log
from workflow_scripts.common.errors import UserError

# The others wait while the first reads the images; torchrun ends them all where one dies.
PATIENCE = timedelta(days=2)


@dataclass(frozen=True)
class Group:
    """This process, ``rank`` of ``count``; only the first writes."""

    rank: int = 0
    count: int = 1

    @property
    def first(self) -> bool:
        return self.rank == 0

    def share(self, n: int) -> slice:
        """This process's part of a batch of ``n``, a multiple of ``count``."""
        each = n // self.count
        return slice(self.rank * each, (self.rank + 1) * each)

    def gather(self, rows: torch.Tensor) -> torch.Tensor:
        """(n, d) of this process to (count * n, d) of all, in order of rank; gradients flow back to each."""
        return rows if self.count == 1 else _Gather.apply(rows, self)

    def average(self, parameters: Iterable[nn.Parameter]) -> None:
        """Replace each gradient by its mean over the processes."""
        if self.count > 1:
            for gradient in (p.grad for p in parameters if p.grad is not None):
                dist.all_reduce(gradient)
                gradient /= self.count

    def wait(self) -> None:
        """Go on when all processes have come here."""
        if self.count > 1:
            dist.barrier()


ALONE = Group()


class _Gather(torch.autograd.Function):
    """Every process computes the same loss from the gathered rows, so that what flows back to its own rows, times
    ``count``, is the sum over the processes, of which ``Group.average`` makes the mean again."""

    @staticmethod
    def forward(context: Any, rows: torch.Tensor, group: Group) -> torch.Tensor:
        context.group, context.n = group, len(rows)
        parts = [torch.empty_like(rows) for _ in range(group.count)]
        dist.all_gather(parts, rows.contiguous())
        return torch.cat(parts)

    @staticmethod
    def backward(context: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        group = context.group
        return gradient[group.share(context.n * group.count)] * group.count, None


def own_device(device: torch.device, gpus: int, asked: str, setting: str) -> torch.device:
    """The device of this process, of ``gpus`` of them on ``device``'s kind.

    asked: the device that the user named; on the CPU it must be that. Raises UserError, which names ``setting``,
    where there are fewer GPUs.
    """
    if gpus == 1 or asked == "cpu":
        return device
    there = torch.cuda.device_count() if device.type == "cuda" else 0
    if gpus > there:
        raise UserError(f"{setting}: {gpus}, but torch sees {there or 'no'} GPU{'s' if there > 1 else ''}")
    own = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
    torch.cuda.set_device(own)
    return own


@contextmanager
def joined(gpus: int, device: torch.device, setting: str, module: str) -> Iterator[Group]:
    """The group of ``gpus`` processes that torchrun started this one in; alone where that is one.

    Raises UserError, which names ``setting`` and how to start ``module``, where it was started otherwise.
    """
    started = int(os.environ.get("WORLD_SIZE", 1))
    if started != gpus:
        raise UserError(
            f"{setting}: {gpus}, but started as {started}: the command is"
            f" torchrun --nproc-per-node {gpus} -m -- {module} …"
        )
    if gpus == 1:
        yield ALONE
        return
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo", timeout=PATIENCE)
    group = Group(dist.get_rank(), dist.get_world_size())
    if not group.first:
        log.setLevel(logging.ERROR)
        for handler in [h for h in log.handlers if isinstance(h, logging.FileHandler)]:
            log.removeHandler(handler)
    yield group
    # Not where something failed: it would wait for processes that are gone.
    dist.destroy_process_group()


def synchronise_norms(model: nn.Module, group: Group, device: torch.device, setting: str) -> None:
    """Let the batch norms see the batch of all processes, where ``model`` is in training mode; names stay.

    Raises UserError, which names ``setting``, on a CPU, where torch cannot.
    """
    if group.count == 1 or not any(
        isinstance(m, nn.modules.batchnorm._BatchNorm) and m.training for m in model.modules()
    ):
        return
    if device.type != "cuda":
        raise UserError(f"{setting}: batch norms that train can be synchronised on GPUs alone: set it to 1")
    nn.SyncBatchNorm.convert_sync_batchnorm(model)
