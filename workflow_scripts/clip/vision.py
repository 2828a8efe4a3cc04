"""Import torchvision where its compiled operators do not match torch's build.

The CPU wheel of torch beside the ordinary wheel of torchvision registers no ``torchvision::nms``, and the
import fails. open_clip needs torchvision's transforms alone, so the operators' names are enough.
"""

from __future__ import annotations

import sys

import torch

_kept: list[torch.library.Library] = []


def import_torchvision() -> None:
    """Make ``import torchvision`` work; does nothing where it works by itself."""
    try:
        import torchvision  # noqa: F401
    except RuntimeError as error:
        if "torchvision::nms" not in str(error):
            raise
        for name in [n for n in sys.modules if n.split(".")[0] == "torchvision"]:
            del sys.modules[name]
        library = torch.library.Library("torchvision", "FRAGMENT")
        library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        library.define(
            "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
        )
        _kept.append(library)
        import torchvision  # noqa: F401
