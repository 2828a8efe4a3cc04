"""Lexicons: which surface forms stand for which word. Data that users edit (``lexicons/``)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import yaml

from workflow_scripts.core.errors import UserError


@dataclass(frozen=True)
class Lexicon:
    """``forms`` maps each lower-case surface form, the canonical word's own included, to the canonical word.

    A form may hold spaces (``eye ring``). Inflected forms (``wings``) are listed like any other, so that
    a reader of tokens needs no lemmatizer.
    """

    name: str
    forms: dict[str, str]

    @property
    def words(self) -> tuple[str, ...]:
        """The canonical words, sorted."""
        return tuple(sorted(set(self.forms.values())))


def load_lexicon(path: str | Path) -> Lexicon:
    """Read a YAML file ``canonical: [other forms]``.

    Raises UserError for a file that is not of that shape and for a form that stands in two places.
    """
    path = Path(path)
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        known = ", ".join(sorted(p.stem for p in path.parent.glob("*.yaml"))) or "none"
        raise UserError(f"{path}: no such lexicon; there are: {known}") from error
    except yaml.YAMLError as error:
        raise UserError(f"{path}: not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(content, dict) or not content:
        raise UserError(f"{path}: must map each word to a list of its other forms")
    forms: dict[str, str] = {}
    for word, others in content.items():
        if not isinstance(word, str) or not (others is None or isinstance(others, list)):
            raise UserError(f"{path}: {word!r}: must be a word followed by a list of its other forms")
        for form in [word, *(others or [])]:
            if not isinstance(form, str) or not form.strip() or form != form.lower():
                raise UserError(f"{path}: {word}: {form!r} must be a lower-case word (quote yes, no, on, off)")
            if form in forms:
                raise UserError(f"{path}: {form!r} stands under {forms[form]!r} and under {word!r}: keep one")
            forms[form] = word
    return Lexicon(path.stem, forms)


def merge(lexicons: Iterable[Lexicon]) -> Lexicon:
    """One lexicon from several; UserError where two of them claim the same form."""
    forms: dict[str, str] = {}
    owner: dict[str, str] = {}
    names = []
    for lexicon in lexicons:
        names.append(lexicon.name)
        for form, word in lexicon.forms.items():
            if form in forms:
                raise UserError(f"lexicons {owner[form]} and {lexicon.name}: {form!r} stands in both: keep it in one")
            forms[form], owner[form] = word, lexicon.name
    return Lexicon("+".join(names), forms)
