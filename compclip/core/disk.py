"""Check and announce the disk space that a step needs, before it starts."""

import shutil
from pathlib import Path

from compclip.core.errors import require
from compclip.core.log import log


def check_space(needed: int, folder: Path, what: str) -> None:
    """Log that ``what`` needs so many bytes; raise UserError if the disk has not enough."""
    free = shutil.disk_usage(folder).free
    need, left = size_text(needed), size_text(free)
    log.info("%s: %s on disk (%s free)", what, need, left)
    require(needed <= free, folder, f"{what} needs {need}, but {left} are free", "free some disk space")


def size_text(size: int) -> str:
    """Return a number of bytes with its unit: ``1.5 GB``."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if size >= scale:
            return f"{size / scale:.1f} {unit}"
    return f"{size} bytes"
