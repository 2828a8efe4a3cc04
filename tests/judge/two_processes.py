"""What two processes of test_parallel run: a gradient of half a batch and, by torchrun, a training.

The training is run whole, then killed in its second epoch and resumed. The argument is a JSON text: the step's options
without cache and judge, and ``place``, the folder of both.
"""

import json
import sys
from pathlib import Path

import torch
from torch import nn

from compclip.clip.device import settle
from compclip.core import cli
from compclip.judge import checkpoint, train_judge, training
from compclip.judge.parallel import Group, joined
from compclip.judge.steps import TrainJudge


class Killed(Exception):
    pass


def main(group: Group, options: dict, place: Path) -> None:
    def run(name: str) -> None:
        step = TrainJudge(**options, cache=place / f"{name}_cache", judge=place / name)
        train_judge.train_judge(step, torch.device("cpu"), group)

    run("whole")
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
        run("cut")
    except Killed:
        group.wait()
    training.clip_loss = real
    assert not (place / "cut").exists()
    run("cut")


def gradients_of_a_half(rank: int, folder: str, rows: torch.Tensor) -> None:
    """Write the gradient that one of two processes has after it is averaged, from its half of ``rows``."""
    store = f"file://{folder}/store"
    torch.distributed.init_process_group("gloo", init_method=store, rank=rank, world_size=2)
    group, weight = Group(rank, 2), nn.Parameter(torch.eye(3))
    everyones = group.gather(rows[group.share(len(rows))] @ weight)
    everyones.square().cumsum(0).mean().backward()
    group.average([weight, nn.Parameter(torch.ones(1))])  # the second has no gradient
    torch.save(weight.grad, Path(folder) / f"{rank}.pt")
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    settle(given["threads"])
    folder = Path(given.pop("place"))
    cli.start_logging(folder / "judge.log")
    with joined(2, torch.device("cpu"), "judge.gpus") as together:
        main(together, given, folder)
