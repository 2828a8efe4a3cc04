"""The English words by which captions are read (``lexicons/grammar.yaml``), which are part of the code's identity.

``WORDS.copulas`` is the list of that name, as a frozenset; ``WORDS.clashes`` is a table: a list for each word.
"""

from types import SimpleNamespace
from typing import Any

from compclip.core.documents import decode, parse_yaml
from compclip.text import LEXICONS


def _read(content: Any) -> Any:
    """Return the words of a sentence or of several; of a table, those of each word."""
    if isinstance(content, dict):
        return {word: _read(sentence) for words, sentence in content.items() for word in words.split()}
    sentences = [content] if isinstance(content, str) else content
    return frozenset().union(*(s.split() if isinstance(s, str) else _read(s) for s in sentences))


_CONTENT = parse_yaml(decode(LEXICONS / "grammar.yaml"))
WORDS = SimpleNamespace(**{name: _read(content) for name, content in _CONTENT.items()})
