"""Which adjective lexicons captions are read with.

A word that a lexicon lists is read differently from one that only a tagger knows, so more lexicons change the pairs of
all adjectives. A composition's pairs therefore depend on its own lexicon and on the shared ones, not on the others of
the config.
"""

from pathlib import Path

from workflow_scripts.core.layout import SHARED
from workflow_scripts.text.lexicon import load_lexicon


def lexicons_of(composition: str, folder: Path) -> list[str]:
    """Return the names of the lexicons in ``folder`` with which a composition's captions are read.

    These are the shared ones and its own, which replaces a shared one that lists one of its words.
    """
    if composition in SHARED:
        return list(SHARED)
    own = load_lexicon(folder / f"{composition}.yaml").forms.keys()
    kept = [name for name in SHARED if own.isdisjoint(load_lexicon(folder / f"{name}.yaml").forms)]
    return [*kept, composition]
