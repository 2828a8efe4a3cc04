"""Collect what is wrong with a config before anything is computed, and what its run will do.

A stage contributes ``<stage>/check.py`` with ``check(config, findings)``, which reads files' names, sizes and first
rows, not all their content, because every run begins with it.
"""

import errno
import glob
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatch
from itertools import islice
from pathlib import Path

from workflow_scripts.core.documents import no_such
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.pictures import SUFFIXES

# Images of a folder that are counted.
MOST_COUNTED = 10_000
# Files that their authors publish in folders from which only a browser downloads, by pattern of their names.
DRIVE = "https://drive.google.com/drive/folders"
BY_HAND = {
    **dict.fromkeys(("split.pkl", "data.pkl"), f"{DRIVE}/1jOnNp0RkUN_QFa-GvfitbKh8YTthLtgl"),
    **dict.fromkeys(("C_CUB_*.pt", "C_Flowers_*.pt"), f"{DRIVE}/1A2I6uSnrFEgu-7QIpcxjDXE7m5799UCy"),
}
# Device files of GPUs: NVIDIA's, of which a container may have any, AMD's, and WSL's.
GPU_FILES = ("/dev/nvidia[0-9]*", "/dev/kfd", "/dev/dxg")


@dataclass
class Findings:
    """What checks find."""

    errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    plan: list[tuple[str, str]] = field(default_factory=list)  # a title and what the run does
    bytes: int = 0  # estimated, in the results folder and the cache
    here: bool = True  # whether steps run on this machine, in this environment

    def error(self, key: str, message: str) -> None:
        self.errors.append(f"{key}: {message}".replace("\n", "\\n"))  # a line each

    def warn(self, key: str, message: str) -> None:
        self.warnings.append(f"{key}: {message}")

    @contextmanager
    def errors_of(self, key: str) -> Iterator[None]:
        """Turn a UserError into an error of ``key``."""
        try:
            yield
        except UserError as error:
            self.error(key, str(error))

    def exists(self, key: str, path: str | Path, kind: str = "file") -> bool:
        """Return whether ``path`` is a readable ``kind`` (file, folder, file or folder); add an error if it is not."""
        place = Path(path)
        try:
            is_folder = stat.S_ISDIR(place.stat().st_mode)
        except OSError as error:  # a name that is too long, a file in place of a folder
            by_hand = next((folder for name, folder in BY_HAND.items() if fnmatch(place.name, name)), None)
            if error.errno not in (errno.ENOENT, errno.ENOTDIR):
                self.error(key, f"{str(path)[:80]}: {error.strerror}; correct the path")
            elif by_hand:
                self.error(key, f"{path}: no such file; download it from {by_hand} to this path")
            else:
                self.error(key, no_such(path, kind))
            return False
        if kind in ("file", "folder") and is_folder != (kind == "folder"):
            self.error(key, f"{path}: not a {kind}; give the path of a {kind}")
        elif not os.access(place, os.R_OK):
            self.error(key, f"{path}: not readable; fix its permissions")
        else:
            return True
        return False

    def count_images(self, key: str, folder: str) -> "Counted":
        """Count the images of a folder; add an error if there are none."""
        counted = count_images(Path(folder))
        self.bytes += counted.bytes
        if not counted.images:
            self.error(key, f"{folder}: contains no jpg, jpeg, png or webp; correct the path")
        return counted

    def device(self, key: str, device: str) -> None:
        """Add an error if a GPU is asked for and this machine, on which steps run, has none."""
        if device == "cuda" and self.here and not has_gpu():
            self.error(key, "cuda, but this machine has no GPU; use auto or cpu")


@dataclass(frozen=True)
class Counted:
    """Images of a folder: their number and bytes, or at least these."""

    images: int
    bytes: int

    def __str__(self) -> str:
        at_least = "at least " if self.images >= MOST_COUNTED else ""
        return f"{at_least}{self.images:,} image{'s' * (self.images != 1)}"


def count_images(folder: Path) -> Counted:
    """Count the images in a folder and its subfolders; links without a target do not count."""
    names = (os.path.join(place, name) for place, _, names in os.walk(folder) for name in names)
    images = (name for name in names if name.lower().endswith(SUFFIXES) and os.path.exists(name))
    sizes = [os.path.getsize(name) for name in islice(images, MOST_COUNTED)]
    return Counted(len(sizes), sum(sizes))


def has_gpu() -> bool:
    """Return whether this machine has a GPU, without importing torch."""
    return any(glob.glob(pattern) for pattern in GPU_FILES)
