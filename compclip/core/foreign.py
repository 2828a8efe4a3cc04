"""Refuse code in the model folders of others: JSON that names code, and files that hold it.

transformers and diffusers import a Python file that a folder's JSON names, or ask on a terminal whether they may.
compclip passes ``trust_remote_code=False`` where it calls them, but open_clip does not, so files are checked before a
library reads them.
"""

import json
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from compclip.core.errors import UserError, require
from compclip.core.hub import hub_folder

# Keys by which a JSON file makes transformers or diffusers load code.
CODE_KEYS = {"auto_map", "custom_pipelines", "custom_pipeline", "trust_remote_code", "kernel_config", "use_kernels"}
# Files that Python imports or unpickles.
CODE_SUFFIXES = {
    ".py", ".pyc", ".pyd", ".pyo", ".pyw", ".pyz", ".egg", ".whl", ".so", ".dll", ".dylib",
    ".pkl", ".pickle", ".joblib", ".dill",
}  # fmt: skip
# All that a tokenizer of transformers needs; sentencepiece's models end in .model.
TOKENIZER_SUFFIXES = {".json", ".txt", ".model"}
REMEDY = "compclip runs no code of a model; choose a model without"


def _check_entries(entries: list[tuple[str, Any]]) -> str:
    """Refuse an object of JSON that names code; return its texts, which replace it in the objects around it."""
    for key, value in entries:
        # Attention or experts with a slash in their name are compiled code from the Hub.
        is_kernel = key.endswith("_implementation") and "/" in str(value)
        # In a vocabulary, a token of this name has a number.
        is_code = key in CODE_KEYS and value is not None and type(value) is not int
        if is_kernel or is_code:
            raise UserError(f"{key} names code; {REMEDY}")
    return " ".join(value for _, value in entries if isinstance(value, str))


def refuse_code(files: Iterable[Path], suffixes: Collection[str] | None = None) -> None:
    """Raise UserError if a file may hold code, or is JSON that names code at any depth or cannot be read.

    Args:
        files: of a model; other folders among them are skipped.
        suffixes: of the only files that are allowed; then folders are refused, too.
    """
    for file in files:
        suffix = file.suffix.lower()
        if suffixes is not None:
            fault = f"neither text nor JSON nor a sentencepiece model ({', '.join(sorted(suffixes))})"
            require(suffix in suffixes and file.is_file(), file, fault, "remove it; only these are read")
        require(suffix not in CODE_SUFFIXES, file, "may hold code", REMEDY)
        if suffix == ".json" and file.is_file():
            try:
                json.loads(file.read_bytes(), object_pairs_hook=_check_entries)
            except UserError as error:
                raise UserError(f"{file}: {error}") from None
            except (ValueError, RecursionError) as error:
                raise UserError(f"{file}: not readable JSON ({error}); get it again") from error


def model_folder(name: str, patterns: list[str]) -> Path:
    """Return the folder ``name``, or that of the Hub's model with the files that match ``patterns``, without code."""
    folder = Path(name)
    if folder.is_dir():
        refuse_code(folder.iterdir())
        return folder
    folder = hub_folder(name, patterns)
    # The cache may also contain code that another program downloaded; only JSON makes a library read it.
    refuse_code(folder.glob("*.json"))
    return folder
