"""What a step will take on the disk, said and checked before it starts."""

from __future__ import annotations

import shutil
from pathlib import Path

from workflow_scripts.core.cli import log
from workflow_scripts.core.errors import UserError


def check_space(needed: int, folder: Path, what: str) -> None:
    """Say what ``needed`` bytes of ``what`` will cost; UserError where the disk cannot hold them."""
    free = shutil.disk_usage(folder).free
    log.info("%s: %s on disk (%s free)", what, size_text(needed), size_text(free))
    if needed > free:
        raise UserError(f"{folder}: {what} needs {size_text(needed)}, {size_text(free)} are free: make room")


def size_text(size: int) -> str:
    """Bytes as people read them."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if size >= scale:
            return f"{size / scale:.1f} {unit}"
    return f"{size} bytes"
