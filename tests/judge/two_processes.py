"""What two processes of test_parallel run, in a module that they can import."""

from pathlib import Path

import torch
from torch import nn

from compclip.judge.parallel import Group


def gradient_of_a_half(rank: int, folder: str, rows: torch.Tensor) -> None:
    """Write the gradient that one of two processes has after it is averaged, from its half of
    ``rows``.
    """
    store = f"file://{folder}/store"
    torch.distributed.init_process_group("gloo", init_method=store, rank=rank, world_size=2)
    group, weight = Group(rank, 2), nn.Parameter(torch.eye(3))
    all_rows = group.gather(rows[group.share(len(rows))] @ weight)
    all_rows.square().cumsum(0).mean().backward()
    group.average([weight, nn.Parameter(torch.ones(1))])  # the second has no gradient
    torch.save(weight.grad, Path(folder) / f"{rank}.pt")
    torch.distributed.destroy_process_group()
