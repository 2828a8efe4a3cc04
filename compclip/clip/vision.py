"""Import torchvision and open_clip lazily, also where torchvision's compiled operators do not match
torch's build.

The CPU wheel of torch next to the ordinary wheel of torchvision registers no ``torchvision::nms``,
and the import fails. open_clip needs only torchvision's transforms, so defining the operators'
names is enough.
"""

import sys
from types import ModuleType

import torch

_libraries: list[torch.library.Library] = []  # keeps the definitions of the operators alive


def import_torchvision() -> None:
    """Make ``import torchvision`` work where torchvision's operators do not match torch's build."""
    try:
        import torchvision  # noqa: F401
    except RuntimeError as error:
        if "torchvision::nms" not in str(error):
            raise
        # The failed import has left some modules, which the next one would use.
        for name in [n for n in sys.modules if n.split(".")[0] == "torchvision"]:
            del sys.modules[name]
        library = torch.library.Library("torchvision", "FRAGMENT")
        library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        library.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        _libraries.append(library)
        import torchvision  # noqa: F401


def open_clip() -> ModuleType:
    """Return open_clip, whose import takes seconds; call this only for its models, tags or
    tokenizers.
    """
    if "open_clip" not in sys.modules:
        import_torchvision()
    import open_clip as library

    return library
