"""The device that torch computes on, and the settings that make its results reproducible."""

import ctypes
import os

import torch

from workflow_scripts.core.errors import UserError


def settle(threads: int) -> None:
    """Make torch give the same bytes again: a fixed number of threads, deterministic algorithms, no TF32."""
    _keep_memory()
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.set_num_threads(threads)
    # As use_deterministic_algorithms(True), but without importing torch's compiler, which takes a second.
    torch.set_deterministic_debug_mode("error")
    # It guards against reading uninitialized memory, and takes a fifth of the time.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    # On a GPU torch would round the inputs of convolutions to 19 bits, and scores would differ.
    torch.backends.cudnn.allow_tf32 = False


def _keep_memory() -> None:
    """Let glibc's malloc keep what torch frees.

    Otherwise every large tensor comes anew from the kernel, which first clears its pages: a fifth of a training's time.
    """
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        for parameter in (-1, -3):  # M_TRIM_THRESHOLD, M_MMAP_THRESHOLD
            libc.mallopt(parameter, 2**30)


def find_device(name: str, key: str = "judge.device") -> torch.device:
    """Return the device called auto, cpu or cuda; auto is a GPU if there is one; errors name the config's ``key``."""
    if name == "cuda" and not torch.cuda.is_available():
        raise UserError(f"{key}: cuda, but torch sees no GPU; use auto or cpu")
    return torch.device("cuda" if name != "cpu" and torch.cuda.is_available() else "cpu")


def is_gpu(device: torch.device) -> bool:
    return device.type == "cuda"
