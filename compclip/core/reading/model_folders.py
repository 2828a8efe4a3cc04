"""Refuse code in the model folders of others: JSON that names code, and files that hold it.

transformers and diffusers import a Python file that a folder's JSON names, or ask on a terminal
whether they may. compclip passes ``trust_remote_code=False`` where it calls them, but open_clip
does not, so files are checked before a library reads them.
"""

import json
from collections.abc import Collection, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from compclip.core.errors import require
from compclip.core.reading.hub import hub_folder

# Keys by which a JSON file makes transformers or diffusers load code.
CODE_KEYS = {
    "auto_map",
    "custom_pipelines",
    "custom_pipeline",
    "trust_remote_code",
    "kernel_config",
    "use_kernels",
}
# Files that Python imports or unpickles.
CODE_SUFFIXES = set(
    ".py .pyc .pyd .pyo .pyw .pyz .egg .whl .so .dll .dylib .pkl .pickle .joblib .dill".split()
)
REMEDY = "compclip runs no code of a model; choose a model without"


def refuse_code(files: Iterable[Path], suffixes: Collection[str] = ()) -> None:
    """Raise UserError if one of a model's files may hold code, or is JSON that names code at any
    depth.

    Args:
        files: folders among them are skipped.
        suffixes: of the only files that are allowed, if any; then folders are refused, too.
    """
    for file in files:
        suffix = file.suffix.lower()
        if suffixes:
            remedy = f"remove it; only files with the ending {', '.join(suffixes)} are read"
            require(suffix in suffixes and file.is_file(), file, "not allowed here", remedy)
        require(suffix not in CODE_SUFFIXES, file, "may hold code", REMEDY)
        if suffix == ".json" and file.is_file():
            # What is not JSON makes no library load code.
            with suppress(ValueError, RecursionError):
                json.loads(file.read_bytes(), object_pairs_hook=partial(_check_object, file))


def _check_object(file: Path, entries: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Refuse an object of JSON that names code."""
    for key, value in entries:
        # In a vocabulary, a token of this name has a number.
        is_harmless = value is None or type(value) is int
        require(key not in CODE_KEYS or is_harmless, file, f"{key} names code", REMEDY)
    return entries


def model_folder(name: str, patterns: list[str], revision: str | None = None) -> Path:
    """Return the folder ``name``, or that of the Hub's model with the files that match
    ``patterns``, without code; ``revision`` is a commit on the Hub.
    """
    folder = Path(name)
    if folder.is_dir():
        refuse_code(folder.iterdir())
        return folder
    folder = hub_folder(name, patterns, revision)
    # The cache may also contain code that another program downloaded; only JSON makes a library
    # read it.
    refuse_code(folder.glob("*.json"))
    return folder
