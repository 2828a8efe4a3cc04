"""Words, lexicons and the language pipeline."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]
# A checkout has it beside the package, an installed package inside.
_PLACES = (_PACKAGE.parent / "lexicons", _PACKAGE / "_workflow" / "lexicons")
LEXICONS = next(folder for folder in _PLACES if folder.is_dir())
