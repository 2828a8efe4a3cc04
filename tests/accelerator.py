"""A simulated accelerator, to test on a CPU what a GPU would run.

Its tensors report another device and are computed on the CPU, so results are equal except for
rounding (attention takes another path). As on a GPU,

- an operation takes tensors of one device,
- deterministic mode refuses what CUDA computes with races,
- ``waits`` lists the operations for which the host waits for the device.

Mixed precision computes in 32 bits there.
"""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.backend_registration import (
    _DummyBackendModule,
    _setup_privateuseone_for_python_backend,
)

from compclip.clip import device as real

aten = torch.ops.aten

# Operations that move tensors between devices, and those that take indices of any device.
MOVES = {aten._to_copy.default, aten.copy_.default, aten._local_scalar_dense.default}
INDEXED = {
    aten.index.Tensor,
    aten.index_put.default,
    aten.index_put_.default,
    aten._index_put_impl_.default,
}

# Operations whose result has a shape that depends on values, so that CUDA reads it back.
SHAPED_BY_VALUES = {
    "nonzero",
    "masked_select",
    "unique_consecutive",
    "unique_dim",
    "_unique",
    "_unique2",
    "repeat_interleave",
}

# Operations that raise on CUDA by torch's notes on use_deterministic_algorithms, and that call
# alertNotDeterministic in the libtorch_cuda.so of torch 2.13.
RACING = {
    "_adaptive_avg_pool2d_backward",
    "_adaptive_avg_pool3d_backward",
    "adaptive_max_pool2d_backward",
    "avg_pool3d_backward",
    "max_pool3d_with_indices_backward",
    "fractional_max_pool2d_backward",
    "fractional_max_pool3d_backward",
    "max_unpool2d",
    "max_unpool3d",
    "reflection_pad1d_backward",
    "reflection_pad3d_backward",
    "replication_pad1d_backward",
    "replication_pad2d_backward",
    "replication_pad3d_backward",
    "upsample_linear1d_backward",
    "upsample_bilinear2d_backward",
    "upsample_bicubic2d_backward",
    "upsample_trilinear3d_backward",
    "_upsample_bilinear2d_aa_backward",
    "_upsample_bicubic2d_aa_backward",
    "grid_sampler_2d_backward",
    "grid_sampler_3d_backward",
    "nll_loss2d_forward",
    "_ctc_loss_backward",
    "scatter_reduce",
    "index_reduce",
    "index_reduce_",
    "histc",
    "bincount",
    "median",
}


class _Backend(_DummyBackendModule):
    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.float16, torch.bfloat16]


_setup_privateuseone_for_python_backend("simulated", _Backend())
DEVICE = torch.device("simulated", 0)
_precision = torch.library.Library("_", "IMPL", "AutocastPrivateUse1")
_precision.fallback(torch.library.fallthrough_kernel)


class There(torch.Tensor):
    """A tensor on the simulated device; ``here`` holds its numbers."""

    @staticmethod
    def __new__(cls, here: torch.Tensor) -> "There":
        made = torch.Tensor._make_wrapper_subclass(
            cls,
            here.shape,
            strides=here.stride(),
            storage_offset=here.storage_offset(),
            dtype=here.dtype,
            device=DEVICE,
        )
        made.here = here
        return made

    def tolist(self) -> Any:
        waits.append("tolist")
        return self.here.tolist()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.here.detach().__reduce_ex__(protocol)

    @classmethod
    def __torch_dispatch__(
        cls, operation: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return _run(operation, args, kwargs or {})


def _is_there(device: Any) -> bool:
    return device is not None and torch.device(device).type == "simulated"


# Operations for which the host would wait until the device has done all that was launched.
waits: list[str] = []


def _note_wait(operation: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
    """Append ``operation`` to ``waits`` if it takes values from the device, or memory that is not
    pinned to it.
    """
    values, *others = [x for x in tree_leaves((arguments, named)) if isinstance(x, torch.Tensor)]
    name = operation.overloadpacket.__name__
    if name == "_local_scalar_dense" or name in SHAPED_BY_VALUES:
        is_wait = isinstance(values, There)
    elif name in ("_to_copy", "copy_"):
        # of ``copy_`` the second tensor is the source
        source = others[0] if others else values
        to = values.device if others else named.get("device") or source.device
        leaves = isinstance(source, There) and not _is_there(to)
        enters = _is_there(to) and not isinstance(source, There)
        is_pinned = getattr(source, "pinned", False)
        without_waiting = named.get("non_blocking") or arguments[2:3] == (True,)
        is_wait = leaves or (enters and not (is_pinned and without_waiting))
    elif operation in INDEXED:
        # A mask is turned into numbers, and numbers on the CPU are copied.
        indices = tree_leaves(arguments[1])
        are_plain = [
            isinstance(x, There) and x.dtype != torch.bool for x in indices if x is not None
        ]
        is_wait = isinstance(values, There) and not all(are_plain)
    else:
        return
    if is_wait:
        waits.append(f"{operation} {tuple(values.shape)}")


# Faults of a backward pass, whose thread must not raise, or torch ends the process.
_faults: list[str] = []


def _raise_faults() -> None:
    if _faults and threading.current_thread() is threading.main_thread():
        message = "; ".join(_faults)
        _faults.clear()
        raise RuntimeError(message)


def _check(operation: Any, arguments: tuple[Any, ...], leaves: list[torch.Tensor]) -> None:
    """Note what CUDA would refuse; only tensors without dimensions may be on any device."""
    if operation in INDEXED:
        leaves = [arguments[0], *(x for x in arguments[2:3] if isinstance(x, torch.Tensor))]
    apart = [tuple(x.shape) for x in leaves if not isinstance(x, There) and x.dim()]
    if apart and operation not in MOVES:
        _faults.append(f"{operation}: tensors on two devices; on the CPU: {apart}")
    strict = (
        torch.are_deterministic_algorithms_enabled()
        and not torch.is_deterministic_algorithms_warn_only_enabled()
    )
    counts = operation is aten.bincount.default and len(leaves) == 1  # it races only with weights
    if strict and operation.overloadpacket.__name__ in RACING and not counts:
        _faults.append(f"{operation} does not have a deterministic implementation on CUDA")


def _run(operation: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    leaves = [x for x in tree_leaves((arguments, named)) if isinstance(x, torch.Tensor)]
    there = [x for x in leaves if isinstance(x, There)]
    if operation is aten._pin_memory.default:
        pinned = arguments[0].clone()
        pinned.pinned = True
        return pinned
    if leaves:
        _note_wait(operation, arguments, named)
    if there:
        _check(operation, arguments, leaves)
    _raise_faults()
    to = named.get("device")
    inner = {**named, "device": "cpu"} if _is_there(to) else named
    result = operation(*tree_map(_here, arguments), **tree_map(_here, inner))
    if operation is aten.copy_.default:
        return arguments[0]
    if not (_is_there(to) if to is not None else there):
        return result
    # A tensor that was changed in place stays the same object.
    own = {id(x.here): x for x in there}

    def wrap(value: Any) -> Any:
        return (
            own[id(value)]
            if id(value) in own
            else There(value)
            if isinstance(value, torch.Tensor)
            else value
        )

    return tree_map(wrap, result)


def _here(value: Any) -> Any:
    return value.here if isinstance(value, There) else value


class _Simulated(TorchDispatchMode):
    """Makes tensors that are created on the device, or moved to it, There."""

    def __torch_dispatch__(
        self, operation: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return _run(operation, args, kwargs or {})


@contextmanager
def accelerator(free: int = 2**33) -> Iterator[torch.device]:
    """Let ``find_device("auto")``, also in loaded modules, return the simulated device, with
    ``free`` bytes.
    """

    def find_device(
        name: str, key: str = "judge.device", model_cfg: dict[str, Any] | None = None
    ) -> torch.device:
        return torch.device("cpu") if name == "cpu" else DEVICE

    def is_gpu(device: torch.device) -> bool:
        return device.type == "simulated"

    overwrite = torch.__future__.get_overwrite_module_params_on_conversion()
    with pytest.MonkeyPatch.context() as patch:
        for name, module in list(sys.modules.items()):
            for fake in (find_device, is_gpu):
                if name.startswith(("compclip.", "workflow_scripts.")) and hasattr(
                    module, fake.__name__
                ):
                    patch.setattr(module, fake.__name__, fake)
        assert real.find_device is find_device
        patch.setattr(torch.cuda, "mem_get_info", lambda device: (free, 2 * free))
        # Its tensors cannot be wrapped.
        patch.setattr(torch, "inference_mode", torch.no_grad)
        torch.__future__.set_overwrite_module_params_on_conversion(True)
        try:
            with _Simulated():
                yield DEVICE
            _raise_faults()
        finally:
            _faults.clear()
            torch.__future__.set_overwrite_module_params_on_conversion(overwrite)
