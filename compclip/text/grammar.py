"""The English function words for reading captions (``lexicons/grammar.yaml``), which are part of the code's identity.

``WORDS.copulas`` is the list of that name, as a frozenset; ``WORDS.clashes`` is a table with a list for each word.
"""

from types import SimpleNamespace
from typing import Any

from compclip.core.documents import decode, parse_yaml
from compclip.text import LEXICONS


def _read(content: Any) -> Any:
    """Return the set of words in a text or in several; of a table, a set for each key."""
    if isinstance(content, dict):
        return {word: _read(sentence) for words, sentence in content.items() for word in words.split()}
    sentences = [content] if isinstance(content, str) else content
    return frozenset().union(*(s.split() if isinstance(s, str) else _read(s) for s in sentences))


_CONTENT = parse_yaml(decode(LEXICONS / "grammar.yaml"))
WORDS = SimpleNamespace(**{name: _read(content) for name, content in _CONTENT.items()})
