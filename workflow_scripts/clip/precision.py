"""The precision of a forward pass: 32 bits, or mixed with bfloat16 or float16."""

from contextlib import AbstractContextManager, nullcontext

import torch

from workflow_scripts.clip.device import is_gpu
from workflow_scripts.core.errors import UserError

MIXED = {"amp_bf16": torch.bfloat16, "amp_fp16": torch.float16}


def check_precision(precision: str, device: torch.device, setting: str) -> None:
    """Raise UserError, which names ``setting``, for amp_fp16 without a GPU: CPUs have no fast path for it."""
    if precision == "amp_fp16" and not is_gpu(device):
        raise UserError(f"{setting}: amp_fp16 needs a GPU; use fp32 or amp_bf16")


def autocast(precision: str, device: torch.device) -> AbstractContextManager:
    """Return the context of a forward pass in training; weights, gradients and the optimizer stay in 32 bits."""
    if precision == "fp32":
        return nullcontext()
    return torch.autocast(device.type, MIXED[precision])


def scaler(precision: str, device: torch.device) -> torch.amp.GradScaler:
    """Return a scaler of the loss, so that float16 gradients do not vanish; otherwise it does nothing."""
    return torch.amp.GradScaler(device.type, enabled=precision == "amp_fp16")
