"""Where files are: the workflow's own, which may be read-only, and those of the working folder.

A run writes only to the working folder. Paths of the workflow's files are relative where this
folder is the workflow's own, so that results of a checkout stay valid; elsewhere they are absolute.
"""

import os
import tempfile
from pathlib import Path

from compclip.core.errors import UserError
from compclip.core.identity.code import ROOT
from compclip.core.reading.documents import no_such
from compclip.text.lexicon import SHARED, lexicons_of
from workflow_scripts.root import WORKFLOW_ROOT

# The config of a working folder, if no other is named.
DEFAULT_CONFIG = "config.yaml"
CONFIG_SUFFIXES = (".yaml", ".yml")


def shipped(path: str, root: Path = WORKFLOW_ROOT) -> str:
    """Return the path of a file that comes with the workflow, relative to ``root`` if this is the
    working folder.
    """
    return path if os.path.samefile(".", root) else str(root / path)


def packaged(path: str) -> str:
    """Return the path of a file in package ``compclip``, likewise."""
    return shipped(path, ROOT)


def users_or_shipped(path: str) -> str:
    """Return the path of the user's file or, if there is none, of the file that comes with the
    workflow.
    """
    for candidate in (path, shipped(path), packaged(path)):
        if os.path.exists(candidate):
            return candidate
    return path


def lexicon_file(kind: str, name: str) -> str:
    """Return the path of a lexicon of this kind, such as ``adjectives``."""
    return users_or_shipped(f"lexicons/{kind}/{name}.yaml")


def adjective_lexicons(composition: str) -> list[str]:
    """Return the adjective lexicons with which a composition's captions are read; of "", the shared
    ones.
    """
    names = list(SHARED)
    if composition:
        names = lexicons_of(Path(lexicon_file("adjectives", composition)))
    return [lexicon_file("adjectives", name) for name in names]


def check_writable(folder: Path) -> None:
    """Raise UserError unless files can be written to ``folder`` or, if it does not exist, to the
    folder above.
    """
    if folder.is_symlink() and not folder.exists():
        raise UserError(no_such(folder, "folder"))
    candidates = [folder.absolute(), *folder.absolute().parents]
    existing = next(path for path in candidates if path.exists())
    try:
        # Permissions alone do not tell: the disk may be full, or mounted read-only.
        tempfile.TemporaryFile(dir=existing).close()
    except OSError as error:
        reason = (error.strerror or "").lower()
        raise UserError(
            f"{folder}: not writable ({reason}); fix its permissions or choose another folder"
        ) from error
