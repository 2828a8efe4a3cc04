"""Several GPUs, a process each, started by torchrun: together they train as one process would on their batches.

Each encodes its share of a batch, all compute the loss of the whole batch, and the gradients are averaged. They may be
of several hosts (``launch``), which share the files: the first process of all writes them, and the others read them.
"""

from __future__ import annotations

import logging
import os
import platform
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from threading import Event, Thread
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from workflow_scripts.clip.device import is_gpu
from workflow_scripts.core.cli import log, one_line
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import write_text

# The others wait while the first reads the images; torchrun ends those of a host where one dies, and `watched` those
# of the other hosts.
PATIENCE = timedelta(days=2)
# Seconds between two signs of life of a host, and without one until the others give it up.
BEAT, SILENCE = 5.0, 60.0


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
    """The device of this process, of ``gpus`` of them on this host, of ``device``'s kind.

    asked: the device that the user named; on the CPU it must be that. Raises UserError, which names ``setting``,
    where there are fewer GPUs.
    """
    if asked == "cpu" or max(gpus, int(os.environ.get("WORLD_SIZE", 1))) == 1:
        return device
    there = torch.cuda.device_count() if is_gpu(device) else 0
    if gpus > there:
        raise UserError(f"{setting}: {gpus}, but torch sees {there or 'no'} GPU{'s' if there > 1 else ''}")
    own = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
    torch.cuda.set_device(own)
    return own


@contextmanager
def joined(gpus: int, device: torch.device, setting: str, module: str, hosts: int = 1) -> Iterator[Group]:
    """The group of ``gpus`` processes on each of ``hosts`` that torchrun started this one in; alone where that is one.

    Raises UserError, which names ``setting`` and how to start ``module``, where it was started otherwise, and where
    another process is lost.
    """
    started = int(os.environ.get("WORLD_SIZE", 1))
    if started != gpus * hosts:
        several = f" on each of {hosts} hosts" if hosts > 1 else ""
        raise UserError(
            f"{setting}: {gpus}{several}, but started as {started}: the command is"
            f" python -m workflow_scripts.judge.launch --hosts {hosts} --gpus {gpus} -- {module} …"
        )
    if started == 1:
        yield ALONE
        return
    try:
        dist.init_process_group("nccl" if is_gpu(device) else "gloo", timeout=PATIENCE)
        group = Group(dist.get_rank(), dist.get_world_size())
        if not group.first:
            # What went wrong in the others is said too, with its traceback in the log.
            log.addFilter(lambda record: record.levelno >= logging.ERROR or record.exc_info is not None)
        with watched(hosts, setting):
            yield group
            # The first is the last to have something to do.
            group.wait()
    except RuntimeError as error:
        if not isinstance(error, dist.DistError) and "gloo" not in str(error):
            raise
        raise UserError(
            f"{setting}: lost another of the {started} processes ({one_line(error)[:200]}): it says itself what was"
            " wrong; run again to resume"
        ) from error
    # Not where something failed: it would wait for processes that are gone.
    dist.destroy_process_group()


@contextmanager
def watched(hosts: int, setting: str) -> Iterator[None]:
    """End this process, with one line that names ``setting``, where another host falls silent.

    A process that dies closes its connections, and the others see it. A machine that loses its power or its network
    does not: all would wait for it for ``PATIENCE``. So a process of each host gives a sign every ``BEAT`` seconds.
    """
    if hosts == 1 or os.environ["LOCAL_RANK"] != "0":
        if hosts > 1:
            dist.barrier()
        yield
        return
    own = int(os.environ["GROUP_RANK"])
    others = [host for host in range(hosts) if host != own]
    # A connection of its own: one that waits for an answer serves nobody else.
    store = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), timeout=PATIENCE)
    store.set(f"name/{own}", platform.node())
    store.set(f"alive/{own}", "0")
    dist.barrier()
    names = [store.get(f"name/{host}").decode() for host in others]
    last: list[bytes] = [b""] * len(others)
    heard = [time.monotonic()] * len(others)
    ended = Event()

    def give_signs() -> None:
        number = 0
        while not ended.wait(BEAT):
            number += 1
            try:
                store.set(f"alive/{own}", str(number))
                signs = store.multi_get([f"alive/{host}" for host in others])
            except RuntimeError:  # the first host, which keeps them, is gone: no sign comes any more
                return
            for place, sign in enumerate(signs):
                if sign != last[place]:
                    last[place], heard[place] = sign, time.monotonic()

    def watch() -> None:
        while not ended.wait(BEAT / 5):
            silent = [n for n, at in zip(names, heard, strict=True) if time.monotonic() - at > SILENCE]
            if silent:
                log.error(
                    "error: %s: no sign of %s for %.0f s: see what became of it; run again to resume",
                    setting, silent[0], SILENCE,
                )  # fmt: skip
                os._exit(1)

    for work in (give_signs, watch):
        Thread(target=work, daemon=True).start()
    try:
        yield
    finally:
        ended.set()


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
    seen = file.is_file()
    group.wait()
    if group.first:
        file.unlink()
    if not seen:
        raise UserError(
            f"{setting}: {platform.node()} does not see in {folder} what the first host wrote there: all hosts must"
            " share the cache's folder, see the same files, and be of one kind"
        )


def synchronise_norms(model: nn.Module, group: Group, device: torch.device, setting: str) -> None:
    """Let the batch norms see the batch of all processes, where ``model`` is in training mode; names stay.

    Raises UserError, which names ``setting``, on a CPU, where torch cannot.
    """
    if group.count == 1 or not any(
        isinstance(m, nn.modules.batchnorm._BatchNorm) and m.training for m in model.modules()
    ):
        return
    if not is_gpu(device):
        raise UserError(f"{setting}: batch norms that train can be synchronised on GPUs alone: set it to 1")
    nn.SyncBatchNorm.convert_sync_batchnorm(model)
