"""Train by several processes, one per GPU, started by torchrun, with the result of one process on
the whole batch.

Each process encodes its part of a batch, all compute the loss of the whole batch, and gradients are
averaged. The first process writes the files, and the others read them.
"""

import logging
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.nn.functional import all_gather

from compclip.clip.device import is_gpu
from compclip.core.errors import UserError, require
from compclip.core.log import log

# Time for which the other processes wait while the first evaluates or reads; torchrun ends them if
# it dies.
GROUP_TIMEOUT = timedelta(days=1)


@dataclass(frozen=True)
class Group:
    """This process, ``rank`` of ``count``; only the first writes."""

    rank: int = 0
    count: int = 1

    @property
    def first(self) -> bool:
        return self.rank == 0

    def share(self, n: int) -> slice:
        """Return this process's part of a batch of ``n``, which is divisible by ``count``."""
        each = n // self.count
        return slice(self.rank * each, (self.rank + 1) * each)

    def gather(self, rows: torch.Tensor) -> torch.Tensor:
        """Return the rows (count * n, d) of all processes, by rank, given this one's (n, d);
        gradients flow back.
        """
        if self.count == 1:
            return rows
        # All processes compute the same loss from these rows, and ``average`` averages their
        # gradients.
        return torch.cat(all_gather(rows.contiguous()))

    def average(self, parameters: Iterable[nn.Parameter]) -> None:
        """Replace each gradient by its mean over the processes."""
        if self.count > 1:
            for gradient in (p.grad for p in parameters if p.grad is not None):
                dist.all_reduce(gradient)
                gradient /= self.count

    def wait(self) -> None:
        """Wait until all processes call this."""
        if self.count > 1:
            dist.barrier()


ALONE = Group()


def own_device(device: torch.device, gpus: int, asked: str, setting: str) -> torch.device:
    """Return this process's device, of the type of ``device``; the host runs ``gpus`` processes.

    ``asked`` is the device in the config: several processes share the CPU only if it is cpu.
    """
    if asked == "cpu" or max(gpus, int(os.environ.get("WORLD_SIZE", 1))) == 1:
        return device
    available = torch.cuda.device_count() if is_gpu(device) else 0
    if gpus > available:
        raise UserError(
            f"{setting}: {gpus}, but torch sees {available or 'no'} "
            f"GPU{'s' if available > 1 else ''}"
        )
    own = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
    torch.cuda.set_device(own)
    return own


@contextmanager
def joined(gpus: int, device: torch.device, setting: str) -> Iterator[Group]:
    """Join the group of processes that torchrun started, ``gpus`` on each host; a single process is
    its own group.
    """
    started = int(os.environ.get("LOCAL_WORLD_SIZE", 1))
    remedy = f"start it by torchrun --nproc-per-node={gpus} (docs/cluster.md)"
    require(started == gpus, setting, f"{gpus}, but started as {started} processes", remedy)
    if int(os.environ.get("WORLD_SIZE", 1)) == 1:
        yield ALONE
        return
    dist.init_process_group("nccl" if is_gpu(device) else "gloo", timeout=GROUP_TIMEOUT)
    group = Group(dist.get_rank(), dist.get_world_size())
    if not group.first:
        # other processes log only errors, with their tracebacks
        log.addFilter(lambda record: record.levelno >= logging.ERROR or record.exc_info is not None)
    yield group
    # not after a failure, which would wait for lost processes
    group.wait()
    dist.destroy_process_group()


def synchronise_norms(model: nn.Module, group: Group, device: torch.device, setting: str) -> None:
    """Synchronize the batch norms in training mode over all processes; names stay."""
    norms = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
    if group.count > 1 and any(isinstance(m, norms) and m.training for m in model.modules()):
        fault = "batch norms that train can be synchronised only on GPUs"
        require(is_gpu(device), setting, fault, "set it to 1")
        nn.SyncBatchNorm.convert_sync_batchnorm(model)
