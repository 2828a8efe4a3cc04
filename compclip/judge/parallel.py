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
        size = n // self.count
        first = self.rank * size
        return slice(first, first + size)

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
            gradients = [p.grad for p in parameters if p.grad is not None]
            for gradient in gradients:
                dist.all_reduce(gradient)  # the sum over the processes
                gradient.div_(self.count)

    def wait(self) -> None:
        """Wait until all processes call this."""
        if self.count > 1:
            dist.barrier()


ALONE = Group()


def own_device(device: torch.device, gpus: int, configured: str, setting: str) -> torch.device:
    """Return this process's device, of the type of ``device``; the host runs ``gpus`` processes.

    ``configured`` is the device in the config: several processes share the CPU only if it is cpu.
    """
    # torchrun sets WORLD_SIZE (processes on all hosts) and LOCAL_RANK (this one's number on its
    # host).
    processes = max(gpus, int(os.environ.get("WORLD_SIZE", 1)))
    if configured == "cpu" or processes == 1:
        return device
    available = torch.cuda.device_count() if is_gpu(device) else 0
    if gpus > available:
        plural = "s" if available > 1 else ""
        fault = f"{gpus}, but torch sees {available or 'no'} GPU{plural}"
        raise UserError(f"{setting}: {fault}")
    gpu = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
    torch.cuda.set_device(gpu)  # NCCL communicates by the current device
    return gpu


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
    backend = "nccl" if is_gpu(device) else "gloo"
    dist.init_process_group(backend, timeout=GROUP_TIMEOUT)
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
    if group.count == 1:
        return
    kinds = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
    norms = [module for module in model.modules() if isinstance(module, kinds)]
    if any(norm.training for norm in norms):
        fault = "batch norms that train can be synchronised only on GPUs"
        require(is_gpu(device), setting, fault, "set it to 1")
        nn.SyncBatchNorm.convert_sync_batchnorm(model)
