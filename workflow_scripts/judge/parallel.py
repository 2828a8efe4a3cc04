"""Several processes, one for each GPU and started by torchrun, that train as one process would on their batches.

Each encodes its part of a batch, all compute the loss of the whole batch, and the gradients are averaged. They may run
on several hosts (``launch``), which share the files: the first process writes them, and the others read them.
"""

import logging
import math
import os
import platform
import threading
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from workflow_scripts.clip.device import is_gpu
from workflow_scripts.core.cli import log, one_line
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import write_text

# By when a host that lost its power or network is noticed.
SILENCE = timedelta(minutes=10)
# Seconds between two beats of a pulse.
BEAT = 0.2


class Pulse(threading.Thread):
    """Counts, together with the other processes, how often all of them have come to ``wait``.

    They count from the start to the end, so one that falls silent is noticed even where another works for hours before
    it comes, as the first one does when it evaluates.
    """

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.group = dist.new_group(timeout=SILENCE, backend="gloo")
        self.own = self.least = 0.0
        self.over = False
        self.lost: RuntimeError | None = None
        self.changed = threading.Condition()
        self.start()

    def run(self) -> None:
        try:
            while not self.over and self.least < math.inf:
                counts = torch.tensor(self.own)
                dist.all_reduce(counts, dist.ReduceOp.MIN, self.group)
                with self.changed:
                    self.least = counts.item()
                    self.changed.notify_all()
                    self.changed.wait_for(lambda: self.own > self.least or self.over, BEAT)
        except RuntimeError as error:
            with self.changed:
                self.lost = error
                self.changed.notify_all()

    def wait(self, times: float = 1) -> None:
        """Wait until all processes have come here; infinitely often is the last time. RuntimeError: one is lost."""
        with self.changed:
            self.own += times
            self.changed.notify_all()
            self.changed.wait_for(lambda: self.lost or self.least >= self.own)
            if self.lost:
                raise self.lost

    def end(self) -> None:
        """Stop, so that the process can end; the others notice it when it does."""
        with self.changed:
            self.over = True
            self.changed.notify_all()
        self.join(5)


@dataclass(frozen=True)
class Group:
    """This process, ``rank`` of ``count``; only the first writes."""

    rank: int = 0
    count: int = 1
    pulse: Pulse | None = None

    @property
    def first(self) -> bool:
        return self.rank == 0

    def share(self, n: int) -> slice:
        """Return this process's part of a batch of ``n``, which is divisible by ``count``."""
        each = n // self.count
        return slice(self.rank * each, (self.rank + 1) * each)

    def gather(self, rows: torch.Tensor) -> torch.Tensor:
        """Return (count * n, d) of all processes, in order of rank, for (n, d) of this one; gradients flow back."""
        return rows if self.count == 1 else _Gather.apply(rows, self)

    def average(self, parameters: Iterable[nn.Parameter]) -> None:
        """Replace each gradient by its mean over the processes."""
        if self.count > 1:
            for gradient in (p.grad for p in parameters if p.grad is not None):
                dist.all_reduce(gradient)
                gradient /= self.count

    def wait(self) -> None:
        """Wait until all processes have come here."""
        if self.pulse:
            self.pulse.wait()


ALONE = Group()


class _Gather(torch.autograd.Function):
    """Concatenates the processes' rows.

    Every process computes the same loss from them, so the gradient of its own rows, times ``count``, is the sum over
    the processes, of which ``Group.average`` takes the mean.
    """

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
    """Return the device, of the kind of ``device``, of this process, one of ``gpus`` on this host.

    ``asked`` is the device in the config: several processes share the CPU only if it is cpu.
    """
    if asked == "cpu" or max(gpus, int(os.environ.get("WORLD_SIZE", 1))) == 1:
        return device
    available = torch.cuda.device_count() if is_gpu(device) else 0
    if gpus > available:
        raise UserError(f"{setting}: {gpus}, but torch sees {available or 'no'} GPU{'s' if available > 1 else ''}")
    own = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
    torch.cuda.set_device(own)
    return own


@contextmanager
def joined(gpus: int, device: torch.device, setting: str, module: str, hosts: int = 1) -> Iterator[Group]:
    """Join the group of ``gpus`` processes on each of ``hosts`` that torchrun started; a single process is alone."""
    started = int(os.environ.get("WORLD_SIZE", 1))
    if started != gpus * hosts:
        on_hosts = f" on each of {hosts} hosts" if hosts > 1 else ""
        raise UserError(
            f"{setting}: {gpus}{on_hosts}, but started as {started} processes; start it by torchrun"
            f" --nnodes={hosts} --nproc-per-node={gpus} -m -- {module} … (docs/cluster.md)"
        )
    if started == 1:
        yield ALONE
        return
    try:
        dist.init_process_group("nccl" if is_gpu(device) else "gloo", timeout=SILENCE)
        pulse = Pulse()
        try:
            group = Group(dist.get_rank(), dist.get_world_size(), pulse)
            if not group.first:
                # The others log only errors, with their tracebacks.
                log.addFilter(lambda record: record.levelno >= logging.ERROR or record.exc_info is not None)
            yield group
            # The first process finishes last.
            pulse.wait(math.inf)
        finally:
            pulse.end()
    except RuntimeError as error:
        if not isinstance(error, dist.DistError) and "gloo" not in str(error):
            raise
        raise UserError(
            f"{setting}: lost another of the {started} processes ({one_line(error)[:200]}); see that process's log,"
            " then run again to resume"
        ) from error
    # Not after a failure: it would wait for lost processes.
    dist.destroy_process_group()


def check_shared(folder: Path, group: Group, hosts: int, setting: str) -> None:
    """Raise UserError, which names ``setting``, on a host that does not see what the first one writes in ``folder``."""
    if hosts == 1:
        return
    name = [uuid.uuid4().hex]
    dist.broadcast_object_list(name)
    file = folder / f".{name[0]}"
    if group.first:
        write_text("", file)
    group.wait()
    is_shared = file.is_file()
    group.wait()
    if group.first:
        file.unlink()
    if not is_shared:
        raise UserError(
            f"{setting}: {platform.node()} does not see in {folder} what the first host wrote there; all hosts must"
            " share the cache's folder, see the same files, and be of one kind"
        )


def synchronise_norms(model: nn.Module, group: Group, device: torch.device, setting: str) -> None:
    """Let the batch norms in training mode see the batch of all processes; names stay."""
    if group.count == 1 or not any(
        isinstance(m, nn.modules.batchnorm._BatchNorm) and m.training for m in model.modules()
    ):
        return
    if not is_gpu(device):
        raise UserError(f"{setting}: batch norms that train can be synchronised only on GPUs; set it to 1")
    nn.SyncBatchNorm.convert_sync_batchnorm(model)
