"""The English function words for reading captions (``lexicons/grammar.yaml``), which are part of
the code's identity.

``WORDS.copulas`` is the list of that name, as a frozenset; ``WORDS.clashes`` is a table with a list
for each word.
"""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from compclip.core.reading.documents import decode, parse_yaml
from compclip.text import LEXICONS


def _read(content: Any) -> Any:
    """Return the set of words in a text or in several; of a table, a set for each key."""
    if isinstance(content, str):
        return frozenset(content.split())
    if isinstance(content, dict):
        # A key may list several words with the same entry.
        table = {}
        for words, entry in content.items():
            table.update(dict.fromkeys(words.split(), _read(entry)))
        return table
    return frozenset().union(*map(_read, content))


_CONTENT = parse_yaml(decode(LEXICONS / "grammar.yaml"))
WORDS = SimpleNamespace(**{name: _read(content) for name, content in _CONTENT.items()})

_LETTERS = {phrase: letter for letter, phrases in WORDS.scopes.items() for phrase in phrases}
# The number of words of the longest phrase that begins with a word.
_LONGEST: dict[str, int] = {}
for _phrase in _LETTERS:
    _opener = _phrase.partition("_")[0]
    _LONGEST[_opener] = max(_LONGEST.get(_opener, 0), _phrase.count("_") + 1)
_SUPPOSING = _LETTERS["suppose"]


def _is_inverted(words: Sequence[str], begin: int, letters: str) -> bool:
    """Return whether a clause begins at ``begin`` with a verb before its subject: `had it a red
    bill`.
    """
    if begin + 1 == len(words) or words[begin + 1] not in WORDS.inverted_subjects:
        return False
    return begin == 0 or letters[-1] in ".,"


def _longest_phrase(words: Sequence[str]) -> str:
    """Return the longest phrase in ``scopes`` that ``words`` begin with, "" if there is none."""
    for length in range(len(words), 0, -1):
        phrase = "_".join(words[:length])
        if phrase in _LETTERS:
            return phrase
    return ""


def scope_letters(words: Sequence[str], unlisted: Sequence[str]) -> str:
    """Return the letters of words in ``scopes``, by the longest phrase at each; ``unlisted``: those
    of words that are in no phrase.

    The further words of a phrase are `_`.
    """
    letters = ""
    while len(letters) < len(words):
        begin = len(letters)
        word = words[begin]
        letter = unlisted[begin]
        further = ""
        longest = _LONGEST.get(word.partition("_")[0], 0)
        # Most words begin no phrase.
        if longest:
            phrase = _longest_phrase(words[begin : begin + longest])
            letter = _LETTERS.get(phrase, letter)
            further = "_" * phrase.count("_")
        if word in WORDS.inverted_verbs and _is_inverted(words, begin, letters):
            letter = _SUPPOSING
        letters += letter + further
    return letters
