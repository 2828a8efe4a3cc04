"""What two processes of test_parallel run: a gradient of half a batch and, as the script of a rule, a training.

The training is run whole, then killed in its second epoch and resumed.
"""

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from compclip.judge import checkpoint, training
from compclip.judge.parallel import Group, joined
from workflow_scripts.job import Job, run
from workflow_scripts.judge import train_judge


class Killed(Exception):
    pass


def train_twice(job: Job, group: Group) -> None:
    def train(name: str) -> None:
        folder = getattr(job.output, name)
        params = SimpleNamespace(**vars(job.params) | {"cache": Path(f"{name}_cache")})
        train_judge.main(replace(job, output=SimpleNamespace(judge=folder), params=params))

    train("whole")
    real, checkpoint.EVERY = training.clip_loss, 0
    losses = 0

    def dying(*arguments: torch.Tensor) -> torch.Tensor:
        nonlocal losses
        losses += 1
        if losses > 10:  # in the second of two epochs of four steps of two losses
            raise Killed
        return real(*arguments)

    training.clip_loss = dying
    try:
        train("cut")
    except Killed:
        group.wait()
    training.clip_loss = real
    assert not job.output.cut.exists()
    train("cut")


def main(job: Job) -> None:
    # A process can join only once.
    with joined(2, torch.device("cpu"), "judge.gpus") as together, pytest.MonkeyPatch.context() as patch:
        patch.setattr(train_judge, "joined", lambda *_: nullcontext(together))
        train_twice(job, together)


def gradients_of_a_half(rank: int, folder: str, rows: torch.Tensor) -> None:
    """Write the gradient that one of two processes has after it is averaged, from its half of ``rows``."""
    store = f"file://{folder}/store"
    torch.distributed.init_process_group("gloo", init_method=store, rank=rank, world_size=2)
    group, weight = Group(rank, 2), nn.Parameter(torch.eye(3))
    all_rows = group.gather(rows[group.share(len(rows))] @ weight)
    all_rows.square().cumsum(0).mean().backward()
    group.average([weight, nn.Parameter(torch.ones(1))])  # the second has no gradient
    torch.save(weight.grad, Path(folder) / f"{rank}.pt")
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    run(main)
