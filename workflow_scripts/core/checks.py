"""Collect what is wrong with a config before anything is computed, and what its run will do.

A stage contributes ``<stage>/check.py`` with ``check(config, findings)``, which reads files' names, sizes and first
rows, not all their content, because every run begins with it.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

from workflow_scripts.core.documents import no_such
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.pictures import SUFFIXES

# Seconds in which images are counted, of a folder and in all.
PATIENCE, PATIENCE_IN_ALL = 0.5, 1.5
# Files that their authors publish in folders from which only a browser downloads, by pattern of their names.
DRIVE = "https://drive.google.com/drive/folders"
BY_HAND = {
    **dict.fromkeys(("split.pkl", "data.pkl"), f"{DRIVE}/1jOnNp0RkUN_QFa-GvfitbKh8YTthLtgl"),
    **dict.fromkeys(("C_CUB_*.pt", "C_Flowers_*.pt"), f"{DRIVE}/1A2I6uSnrFEgu-7QIpcxjDXE7m5799UCy"),
}
# Device files of GPUs: NVIDIA's, AMD's, and WSL's.
GPU_FILES = ("/dev/nvidia0", "/dev/kfd", "/dev/dxg")


@dataclass
class Findings:
    """What checks find."""

    errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    plan: list[tuple[str, str]] = field(default_factory=list)  # a title and what the run does
    bytes: int = 0  # estimated, in the results folder and the cache
    here: bool = True  # whether steps run on this machine, in this environment
    patience: float = PATIENCE_IN_ALL

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
        """Return whether ``path`` is a ``kind`` (file, folder, or file or folder); add an error if it is not.

        Addresses are not checked.
        """
        if "://" in str(path):
            return True
        place = Path(path)
        try:
            right = {"file": place.is_file, "folder": place.is_dir}.get(kind, place.exists)()
        except OSError as error:  # a name that is too long
            self.error(key, f"{str(path)[:80]}: {error.strerror}; correct the path")
            return False
        if not right and place.exists():
            self.error(key, f"{path}: not a {kind}; give the path of a {kind}")
        elif not right:
            by_hand = next((folder for name, folder in BY_HAND.items() if fnmatch(place.name, name)), None)
            self.error(
                key,
                f"{path}: no such file; download it from {by_hand} to this path" if by_hand else no_such(path, kind),
            )
        elif not os.access(place, os.R_OK):
            right = False
            self.error(key, f"{path}: not readable; fix its permissions")
        return right

    def count_images(self, key: str, folder: str) -> "Counted":
        """Count the images of a folder; add an error if there are none."""
        begun = time.monotonic()
        counted = count_images(Path(folder), min(PATIENCE, self.patience))
        self.patience -= time.monotonic() - begun
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
    """Images of a folder."""

    images: int
    bytes: int
    complete: bool

    def __str__(self) -> str:
        return f"{'' if self.complete else 'more than '}{self.images:,} image{'s' * (self.images != 1)}"


def count_images(folder: Path, patience: float) -> Counted:
    """Count the images in a folder and its subfolders, at least to the first, for ``patience`` seconds at most."""
    deadline = time.monotonic() + patience
    images = size = 0
    for place, _, names in os.walk(folder):
        for name in names:
            if name.lower().endswith(SUFFIXES):
                images += 1
                try:
                    size += os.stat(os.path.join(place, name)).st_size
                except OSError:  # a broken link
                    images -= 1
                if time.monotonic() > deadline:
                    return Counted(images, size, False)
    return Counted(images, size, True)


def has_gpu() -> bool:
    """Return whether this machine has a GPU, without importing torch."""
    return any(os.path.exists(file) for file in GPU_FILES)
