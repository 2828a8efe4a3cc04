"""The device that torch computes on, the settings that make its results reproducible, and the
precision of training.
"""

import ctypes
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch

from compclip.core.errors import require

WORKSPACE = "CUBLAS_WORKSPACE_CONFIG"


def settle(threads: int) -> None:
    """Make torch's results reproducible in the whole process, for a script, whose process is its
    own.

    That fixes the number of threads, uses deterministic algorithms, and disables TF32.
    """
    _keep_memory()
    os.environ.setdefault(WORKSPACE, ":4096:8")
    torch.set_num_threads(threads)
    # Like use_deterministic_algorithms(True), without importing torch's compiler, which takes a
    # second.
    torch.set_deterministic_debug_mode("error")
    # Filling guards against reads of uninitialized memory, but costs a fifth of the time.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    # On a GPU torch would round the inputs of convolutions to 19 bits, and scores would differ.
    torch.backends.cudnn.allow_tf32 = False


@contextmanager
def settled(threads: int) -> Iterator[None]:
    """Do the same only inside the block, after which settings and random streams are the caller's
    again.
    """
    cudnn, deterministic = torch.backends.cudnn, torch.utils.deterministic
    before, mode = torch.get_num_threads(), torch.get_deterministic_debug_mode()
    filled, tf32 = deterministic.fill_uninitialized_memory, cudnn.allow_tf32  # type: ignore[attr-defined]
    has_workspace = WORKSPACE in os.environ
    gpus = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
    with torch.random.fork_rng(gpus):
        settle(threads)
        try:
            yield
        finally:
            torch.set_num_threads(before)
            torch.set_deterministic_debug_mode(mode)
            deterministic.fill_uninitialized_memory = filled  # type: ignore[attr-defined]
            cudnn.allow_tf32 = tf32
            if not has_workspace:
                del os.environ[WORKSPACE]


def _keep_memory() -> None:
    """Let glibc's malloc keep memory that torch frees.

    Otherwise the kernel allocates and clears pages for every large tensor: a fifth of a training's
    time. It changes no result.
    """
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        for parameter in (-1, -3):  # M_TRIM_THRESHOLD, M_MMAP_THRESHOLD
            libc.mallopt(parameter, 2**30)


def find_device(name: str, key: str = "judge.device") -> torch.device:
    """Return the device auto, cpu or cuda; auto is a GPU if there is one; errors name the config's
    ``key``.
    """
    require(
        name != "cuda" or torch.cuda.is_available(),
        key,
        "cuda, but torch sees no GPU",
        "use auto or cpu",
    )
    return torch.device("cuda" if name != "cpu" and torch.cuda.is_available() else "cpu")


def is_gpu(device: torch.device) -> bool:
    return device.type == "cuda"


def check_precision(precision: str, device: torch.device, setting: str) -> None:
    """Raise UserError, which names ``setting``, for amp_fp16 without a GPU: CPUs have no fast path
    for it.
    """
    require(
        precision != "amp_fp16" or is_gpu(device),
        setting,
        "amp_fp16 needs a GPU",
        "use fp32 or amp_bf16",
    )


def autocast(precision: str, device: torch.device) -> AbstractContextManager:
    """Return the context of a forward pass in training; weights, gradients and the optimizer stay
    in 32 bits.
    """
    if precision == "fp32":
        return nullcontext()
    return torch.autocast(device.type, torch.bfloat16 if precision == "amp_bf16" else torch.float16)


def scaler(precision: str, device: torch.device) -> torch.amp.GradScaler:
    """Return a scaler of the loss, so that float16 gradients do not vanish; disabled for other
    precisions.
    """
    return torch.amp.GradScaler(device.type, enabled=precision == "amp_fp16")
