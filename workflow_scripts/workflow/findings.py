"""What is wrong with the files and devices that a config names, found before anything is computed."""

import errno
import glob
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

from compclip.core.documents import no_such
from compclip.core.errors import UserError
from compclip.core.pictures import SUFFIXES

# Files that their authors publish in folders from which only a browser downloads, by pattern of their names.
DRIVE = "https://drive.google.com/drive/folders"
BY_HAND = {
    **dict.fromkeys(("split.pkl", "data.pkl"), f"{DRIVE}/1jOnNp0RkUN_QFa-GvfitbKh8YTthLtgl"),
    **dict.fromkeys(("C_CUB_*.pt", "C_Flowers_*.pt"), f"{DRIVE}/1A2I6uSnrFEgu-7QIpcxjDXE7m5799UCy"),
}
# Device files of GPUs: NVIDIA's (a container may have any of them), AMD's, and WSL's.
GPU_FILES = ("/dev/nvidia[0-9]*", "/dev/kfd", "/dev/dxg")


@dataclass
class Findings:
    """What checks find."""

    here: bool = True  # whether steps run on this machine, in this environment
    errors: list[str] = field(default_factory=list)
    downloads: list[str] = field(default_factory=list)  # files that the run will download

    def error(self, key: str, message: str) -> None:
        self.errors.append(f"{key}: {message}".replace("\n", "\\n"))  # a line each

    @contextmanager
    def errors_of(self, key: str) -> Iterator[None]:
        """Turn a UserError into an error of ``key``."""
        try:
            yield
        except UserError as error:
            self.error(key, str(error))

    def exists(self, key: str, path: str | Path | None, kind: str = "file") -> bool:
        """Return whether ``path`` is a readable ``kind`` (file, folder, file or folder); add an error if it is not.

        None is a file that the config does not ask for.
        """
        if path is None:
            return False
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

    def has_images(self, key: str, folder: str) -> None:
        """Add an error if ``folder`` is not a folder with images."""
        if self.exists(key, folder, "folder") and not any(
            name.lower().endswith(SUFFIXES) for _, _, names in os.walk(folder) for name in names
        ):
            self.error(key, f"{folder}: contains no jpg, jpeg, png or webp; correct the path")

    def device(self, key: str, device: str) -> None:
        """Add an error if a GPU is asked for and this machine, on which steps run, has none; torch is not imported."""
        if device == "cuda" and self.here and not any(map(glob.glob, GPU_FILES)):
            self.error(key, "cuda, but this machine has no GPU; use auto or cpu")
