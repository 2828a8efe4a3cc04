"""Arrays in temporary files, for what may exceed memory."""

import mmap
import os
import sys
import tempfile
from pathlib import Path
from typing import IO, Any

import numpy as np

# Smaller arrays of known size, in bytes, are in memory.
SMALL = 1 << 26


class Scratch:
    """Makes arrays in files of a folder that have no names, so that they end with the process."""

    def __init__(self, folder: Path | None = None) -> None:
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.maps: list[mmap.mmap] = []

    def file(self) -> IO[bytes]:
        return tempfile.TemporaryFile(dir=self.folder)

    def zeros(self, n: int, dtype: Any) -> np.ndarray:
        size = n * np.dtype(dtype).itemsize
        if size < SMALL:
            return np.zeros(n, dtype)
        with self.file() as file:
            if sys.platform == "linux":
                # Otherwise a full disk would end the process by a signal, without an error.
                os.posix_fallocate(file.fileno(), 0, size)
            else:
                file.truncate(size)
            return self.map(file, dtype)

    def map(self, file: IO[bytes], dtype: Any) -> np.ndarray:
        """Return the content of ``file``; changes of the array go to the file."""
        file.flush()
        if not os.fstat(file.fileno()).st_size:
            return np.empty(0, dtype)
        pages = mmap.mmap(file.fileno(), 0)
        self.maps.append(pages)
        return np.frombuffer(pages, dtype)

    def release(self) -> None:
        """Give back the memory of all pages; the system reads them again from the files or its cache of them."""
        for pages in self.maps:
            pages.madvise(mmap.MADV_DONTNEED)
