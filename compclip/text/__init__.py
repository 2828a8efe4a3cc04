"""Words, lexicons and the language pipeline."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]
# In a checkout beside the package, in an installed package inside it.
LEXICONS = next(folder for folder in (_PACKAGE.parent / "lexicons", _PACKAGE / "lexicons") if folder.is_dir())
