"""Words, lexicons and the language pipeline."""

from pathlib import Path

from compclip.core.identity.installation import shipped_folder

LEXICONS = shipped_folder(Path(__file__).resolve().parents[1]) / "lexicons"
