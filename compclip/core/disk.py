"""Check and announce the disk space that a step needs, before it starts."""

import shutil
from pathlib import Path

from compclip.core.errors import require
from compclip.core.log import log

MOUNTS = Path("/proc/self/mounts")  # of Linux
# Types of network file systems, and the mount options with which other hosts do not see a lock.
LOCAL_LOCKS = {
    "nfs": {"nolock", "local_lock=all", "local_lock=posix"},
    "cifs": {"nobrl"},
    "smb3": {"nobrl"},
    "lustre": {"localflock"},
}
NO_LOCKS = {"fuse.sshfs"}


def check_locks(folder: Path) -> None:
    """Raise UserError if a folder is on a network file system whose locks other hosts do not
    see.
    """
    place, kind, options, depth = folder.resolve(), "", "", 0
    for line in MOUNTS.read_text(errors="replace").splitlines() if MOUNTS.is_file() else ():
        _, escaped, mounted, its_options, *_ = line.split(" ")
        point = Path(escaped.replace("\\040", " "))
        # Of two mounts at one path, the later one is visible.
        if place.is_relative_to(point) and len(point.parts) >= depth:
            kind, options, depth = mounted, its_options, len(point.parts)
    unseen = kind in NO_LOCKS or LOCAL_LOCKS.get(kind, set()) & {*options.split(",")}
    fault = f"on a file system ({kind}) whose locks other hosts do not see"
    require(
        not unseen, folder, fault, "set `cache` to a folder on another disk, or mount it with locks"
    )


def check_space(needed: int, folder: Path, what: str) -> None:
    """Log that ``what`` needs ``needed`` bytes; raise UserError if the disk has fewer."""
    free = shutil.disk_usage(folder).free
    need, left = size_text(needed), size_text(free)
    log.info("%s: %s on disk (%s free)", what, need, left)
    require(
        needed <= free, folder, f"{what} needs {need}, but {left} are free", "free some disk space"
    )


def size_text(size: int) -> str:
    """Return a number of bytes with its unit: ``1.5 GB``."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if size >= scale:
            return f"{size / scale:.1f} {unit}"
    return f"{size} bytes"
