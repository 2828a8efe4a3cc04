"""torch on this machine: which device it computes on, and how to make it give the same bytes again."""

from __future__ import annotations

import os

import torch

from workflow_scripts.core.errors import UserError


def settle(threads: int) -> None:
    """Make torch give the same bytes again: a fixed number of threads, no algorithm that races."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(True)
    # A guard against reading memory that nothing wrote; it costs a fifth of the time.
    torch.utils.deterministic.fill_uninitialized_memory = False
    # 32 bits are 32 bits: on a GPU torch rounds what goes into convolutions to 19 (TF32), and scores would differ.
    torch.backends.cudnn.allow_tf32 = False


def find_device(name: str, key: str = "judge.device") -> torch.device:
    """``auto`` is a GPU where there is one; UserError, naming the config's ``key``, for one that is not there."""
    if name == "cuda" and not torch.cuda.is_available():
        raise UserError(f"{key}: cuda, but torch sees no GPU: use auto or cpu")
    return torch.device("cuda" if name != "cpu" and torch.cuda.is_available() else "cpu")


def is_gpu(device: torch.device) -> bool:
    """Whether ``device`` is a GPU."""
    return device.type == "cuda"
