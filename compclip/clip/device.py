"""The device that torch computes on, the settings that make its results reproducible, and the
precision of training.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch

from compclip.clip.config import gains_from_gpu
from compclip.core.errors import require
from compclip.core.log import log
from compclip.core.memory import keep_freed_memory

WORKSPACE = "CUBLAS_WORKSPACE_CONFIG"


def settle(threads: int) -> None:
    """Make torch's results reproducible in the whole process, for a script, whose process is its
    own.

    That fixes the number of threads, uses deterministic algorithms, and disables TF32.
    """
    keep_freed_memory()
    # torch's deterministic algorithms require this of cuBLAS.
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
    """Apply the settings of ``settle`` only inside the block, after which settings and random
    streams are the caller's again.
    """
    deterministic: Any = torch.utils.deterministic
    callers_threads = torch.get_num_threads()
    callers_mode = torch.get_deterministic_debug_mode()
    callers_filling = deterministic.fill_uninitialized_memory
    callers_tf32 = torch.backends.cudnn.allow_tf32
    has_workspace = WORKSPACE in os.environ
    # To ask for a GPU's random state would initialize it.
    gpus = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
    with torch.random.fork_rng(gpus):
        settle(threads)
        try:
            yield
        finally:
            torch.set_num_threads(callers_threads)
            torch.set_deterministic_debug_mode(callers_mode)
            deterministic.fill_uninitialized_memory = callers_filling
            torch.backends.cudnn.allow_tf32 = callers_tf32
            if not has_workspace:
                del os.environ[WORKSPACE]


def find_device(
    name: str, key: str = "judge.device", model_cfg: Mapping[str, Any] | None = None
) -> torch.device:
    """Return the device auto, cpu or cuda; errors name the config's ``key``.

    auto is a GPU if there is one, and if the model of ``model_cfg`` gains from it.
    """
    if name == "cpu":
        return torch.device("cpu")
    has_gpu = torch.cuda.is_available()
    fault = "cuda, but torch sees no GPU"
    require(name != "cuda" or has_gpu, key, fault, "use auto or cpu")
    if has_gpu and name == "auto" and model_cfg and not gains_from_gpu(model_cfg):
        log.info("%s: auto takes the CPU, as fast as a GPU for a model this small", key)
        return torch.device("cpu")
    return torch.device("cuda" if has_gpu else "cpu")


def is_gpu(device: torch.device) -> bool:
    return device.type == "cuda"


def to_device(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    """Return ``tensor`` on ``device``; for a GPU without waiting for it."""
    if is_gpu(device) and not is_gpu(tensor.device):
        # A GPU copies pinned memory beside the program; other memory only while that waits.
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


def to_device_at_once(tensors: Sequence[torch.Tensor], device: torch.device) -> list[torch.Tensor]:
    """Return tensors of one type on ``device``, in one copy, without waiting for a GPU."""
    flat = torch.cat([tensor.flatten() for tensor in tensors])
    chunks = to_device(flat, device).split([tensor.numel() for tensor in tensors])
    return [chunk.view(tensor.shape) for chunk, tensor in zip(chunks, tensors, strict=True)]


def check_precision(precision: str, device: torch.device, setting: str) -> None:
    """Raise UserError, which names ``setting``, for amp_fp16 without a GPU: CPUs have no fast path
    for it.
    """
    is_fast = precision != "amp_fp16" or is_gpu(device)
    require(is_fast, setting, "amp_fp16 needs a GPU", "use fp32 or amp_bf16")


def autocast(precision: str, device: torch.device) -> AbstractContextManager:
    """Return the context of a forward pass in training; weights, gradients and the optimizer stay
    in 32 bits.
    """
    if precision == "fp32":
        return nullcontext()
    dtype = torch.bfloat16 if precision == "amp_bf16" else torch.float16
    return torch.autocast(device.type, dtype)


def scaler(precision: str, device: torch.device) -> torch.amp.GradScaler:
    """Return a scaler of the loss, so that float16 gradients do not vanish; disabled for other
    precisions.
    """
    return torch.amp.GradScaler(device.type, enabled=precision == "amp_fp16")
