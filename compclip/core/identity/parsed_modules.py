"""Keep what is known of parsed modules: parsing those of a run takes a CPU second, at each start.

The index is a file, ignored if it is damaged or was written by another version of this code or of
Python, and not written where that is not allowed.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from compclip.core.artifacts.sealed import read_sealed, seal, sealed
from compclip.core.errors import UserError

# A file may change twice within one tick of the file system's clock, which is at most this long
# (FAT), without a change of its times. Younger files are therefore not indexed.
TICK = 2_000_000_000  # ns


class ParsedModule(NamedTuple):
    """A module's digest, and the dotted names in the project's packages that it imports."""

    digest: str
    names: list[str]


class ParsedModules:
    """Parsed modules by file, each with the size and times of its file."""

    def __init__(self) -> None:
        self._file: Path | None = None
        self._version = ""
        self._modules: dict[str, tuple[list[int], ParsedModule]] = {}
        self._is_changed = False

    def keep_in(self, file: Path, version: bytes) -> None:
        """Read the index ``file``, which ``save`` then writes.

        Args:
            version: what decides how modules are parsed, besides Python.
        """
        self._file = file
        self._version = seal(version + sys.version.encode()).hexdigest()
        with suppress(OSError, ValueError):
            index = json.loads(read_sealed(file) or b"{}")
            if index.get("version") == self._version:
                for path, (status, digest, names) in index["modules"].items():
                    self._modules[path] = (status, ParsedModule(digest, names))

    def get(self, file: Path, parse: Callable[[Path], ParsedModule]) -> ParsedModule:
        """Return a module, which is parsed if its file has changed."""
        status = _status(file)  # before it is read
        known_status, module = self._modules.get(str(file), (None, None))
        if module is not None and known_status == status:
            return module
        module = parse(file)
        _, *times = status
        if max(times) + TICK < time.time_ns():
            self._modules[str(file)] = (status, module)
            self._is_changed = True
        return module

    def save(self) -> None:
        """Write the index if modules were added."""
        if self._file is None or not self._is_changed:
            return
        self._is_changed = False
        modules = {path: [status, *module] for path, (status, module) in self._modules.items()}
        index = {"version": self._version, "modules": modules}
        # It only saves time.
        with suppress(OSError, UserError), sealed(self._file) as file:
            file.write(json.dumps(index).encode())


def _status(file: Path) -> list[int]:
    """Return the size and times of a file; copying can restore all but the last."""
    status = os.stat(file)
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns]
