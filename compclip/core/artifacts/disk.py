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
    kind, options = _file_system(folder.resolve())
    are_unseen = kind in NO_LOCKS or LOCAL_LOCKS.get(kind, set()) & {*options.split(",")}
    fault = f"on a file system ({kind}) whose locks other hosts do not see"
    remedy = "set `cache` to a folder on another disk, or mount it with locks"
    require(not are_unseen, folder, fault, remedy)


def _file_system(folder: Path) -> tuple[str, str]:
    """Return the type and the options of the file system that a folder is on; "" if unknown."""
    kind = options = ""
    depth = 0
    lines = MOUNTS.read_text(errors="replace").splitlines() if MOUNTS.is_file() else []
    for line in lines:
        _, escaped, mount_kind, mount_options, *_ = line.split(" ")
        point = Path(escaped.replace("\\040", " "))
        # Of two mounts at one path, the later one is visible.
        if folder.is_relative_to(point) and len(point.parts) >= depth:
            kind = mount_kind
            options = mount_options
            depth = len(point.parts)
    return kind, options


def check_space(size: int, folder: Path, content: str) -> None:
    """Log that ``content`` needs ``size`` bytes; raise UserError if the disk has fewer."""
    free = shutil.disk_usage(folder).free
    size_needed = size_text(size)
    size_free = size_text(free)
    log.info("%s: %s on disk (%s free)", content, size_needed, size_free)
    fault = f"{content} needs {size_needed}, but {size_free} are free"
    require(size <= free, folder, fault, "free some disk space")


def size_text(size: int) -> str:
    """Return a number of bytes with its unit: ``1.5 GB``."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if size >= scale:
            return f"{size / scale:.1f} {unit}"
    return f"{size} bytes"
