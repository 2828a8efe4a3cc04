"""Lexicons (``lexicons/``, edited by users): surface forms and their canonical words."""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compclip.core.artifacts.heldout import split_pair
from compclip.core.errors import UserError, require
from compclip.core.reading.documents import decode, nearest, parse_yaml
from compclip.core.settings.calls import checked
from compclip.text import LEXICONS

# Compositions whose lexicons are also used for all others: they share the data set's pairs.
SHARED = ("color", "shape")
# Compounds that are read as one noun with any noun lexicon.
COMMON_COMPOUNDS = LEXICONS / "compounds" / "common.yaml"


@dataclass(frozen=True)
class Lexicon:
    """A named mapping of lower-case surface forms, including canonical words, to canonical words.

    A form may contain spaces (``eye ring``). Inflected forms (``wings``) are listed, so a
    lemmatizer is not needed. Canonical words of a group exclude each other: a thing is at most one
    of them. Without groups, all words do.
    """

    name: str
    forms: dict[str, str]
    groups: tuple[tuple[str, ...], ...] = ()

    @property
    def words(self) -> tuple[str, ...]:
        """Return the canonical words, sorted."""
        return tuple(sorted(set(self.forms.values())))

    def excluded_by(self, word: str) -> set[str]:
        """Return the words that cannot be true of a thing if ``word`` is."""
        excluded: set[str] = set()
        for group in self.groups or [self.words]:
            if word in group:
                excluded.update(group)
        return excluded - {word}

    def excludes(self, changes: Iterable[tuple[str, str]]) -> bool:
        """Return whether each change, from one word to another, is to one that cannot be true if
        the first is.

        Only then does the image of a caption certainly not show what the swapped caption states.
        Without changes, the answer is no.
        """
        excluded = [new in self.excluded_by(original) for original, new in changes]
        return bool(excluded) and all(excluded)


@checked
def load_lexicon(path: str | Path) -> Lexicon:
    """Read a lexicon.

    Args:
        path: a YAML file that maps each canonical word to a list of its other forms and,
            optionally, ``groups`` to lists of words that exclude each other; a word may be in
            several.

    Raises:
        UserError: there is no such file, its content is not a lexicon, or it lists a form twice.
    """
    path = Path(path)
    if not path.is_file():
        # A folder of the user's need not have the lexicons that come with compclip.
        folders = {path.parent, LEXICONS / path.parent.name}
        names = sorted({file.stem for folder in folders for file in folder.glob("*.yaml")})
        remedy = f"{nearest(path.stem, names)}choose one of: {', '.join(names) or 'none'}"
        raise UserError(f"{path}: no such lexicon; {remedy}")
    try:
        content = parse_yaml(decode(path))
    except ValueError as error:
        raise UserError(f"{path}: not valid YAML; fix it ({error})") from error
    # YAML may also be a list or a text.
    groups = content.pop("groups", []) if isinstance(content, dict) else []
    is_mapping = isinstance(content, dict) and content
    require(is_mapping, path, "expected a mapping", "map each word to a list of other forms")
    forms = _read_forms(content, path)
    exclusive = _read_groups(groups, content, f"{path}: groups")
    return Lexicon(path.stem, forms, exclusive)


def _read_forms(content: Mapping[Any, Any], path: Path) -> dict[str, str]:
    """Return the canonical words of a lexicon by form; UserError names the first faulty entry."""
    forms: dict[str, str] = {}
    for word, further in content.items():
        is_entry = isinstance(word, str) and (further is None or isinstance(further, list))
        remedy = "write word: [form, form]"
        require(is_entry, f"{path}: {word!r}", "expected a list of other forms", remedy)
        for form in [word, *(further or [])]:
            is_word = isinstance(form, str) and form.strip() and form == form.lower()
            fault = "expected a lower-case word"
            # YAML reads unquoted yes and no as true and false.
            remedy = "quote yes, no, on and off"
            require(is_word, f"{path}: {word}: {form!r}", fault, remedy)
            fault = f"duplicate entry {form!r} under {forms.get(form)!r} and {word!r}"
            require(form not in forms, path, fault, "remove one")
            forms[form] = word
    return forms


def _read_groups(groups: Any, words: Collection[str], where: str) -> tuple[tuple[str, ...], ...]:
    """Return the groups of a lexicon; UserError names the first faulty one."""
    is_list = isinstance(groups, list) and all(isinstance(group, list) for group in groups)
    require(is_list, where, "expected lists of words", "write [[long, short], …]")
    for group in groups:
        for word in group:
            fault = f"{word!r} is not a word of the lexicon"
            # A list, because a word may be of a type that has no hash.
            require(word in [*words], where, fault, "remove it or add it")
        is_group = len({*group}) > 1
        fault = "expected at least two words"
        remedy = "complete or remove the group"
        require(is_group, f"{where}: {group!r}", fault, remedy)
    return tuple(map(tuple, groups))


def find_lexicon(lexicon: Lexicon | str, kind: str) -> Lexicon:
    """Return a lexicon, given itself or its name in ``lexicons/<kind>``, such as ``color`` in
    ``adjectives``.
    """
    if isinstance(lexicon, Lexicon):
        return lexicon
    return load_lexicon(LEXICONS / kind / f"{lexicon}.yaml")


def forms_of(
    adjectives: Lexicon | str, nouns: Lexicon | str | None
) -> tuple[dict[str, str], dict[str, str] | None]:
    """Return the forms of two lexicons, given themselves or their names; None without nouns."""
    noun_forms = find_lexicon(nouns, "nouns").forms if nouns else None
    return find_lexicon(adjectives, "adjectives").forms, noun_forms


def lexicons_of(file: Path, folder: Path = LEXICONS / "adjectives") -> list[str]:
    """Return the names of the lexicons that are used to read the captions of a composition, whose
    own lexicon is ``file``; the shared ones are in ``folder``.

    Listed words are read differently from words that only the tagger knows, so further lexicons
    change the pairs of all adjectives. Therefore a composition is read with only the shared
    lexicons and its own, which replaces shared ones that list one of its words.
    """
    if file.stem in SHARED:
        return list(SHARED)
    own = load_lexicon(file)
    shared = [other.name for other in shared_beside(own.forms, folder)]
    return [*shared, own.name]


def shared_beside(
    forms: Mapping[str, str], folder: Path = LEXICONS / "adjectives"
) -> list[Lexicon]:
    """Return the shared lexicons that do not list any of these forms of adjectives."""
    shared = [load_lexicon(folder / f"{name}.yaml") for name in SHARED]
    return [lexicon for lexicon in shared if forms.keys().isdisjoint(lexicon.forms)]


def plural(noun: str) -> str:
    """Return the regular plural of a noun."""
    if re.search("[^aeiou]y$", noun):
        return f"{noun[:-1]}ies"
    return noun + ("es" if re.search("(s|x|z|ch|sh)$", noun) else "s")


def surface_forms(nouns: Mapping[str, str], compounds: Lexicon) -> dict[str, str]:
    """Return the canonical words of nouns and compounds, by surface form.

    A compound that ``nouns`` does not list maps to the listed noun at its end: with only `slide`, a
    `water slide` is a slide.
    """
    forms = {}
    for form, word in compounds.forms.items():
        last_word = re.split("[ -]", form)[-1]
        forms[form] = nouns.get(last_word, word)
    return forms | dict(nouns)


def require_distinct(lexicons: Iterable[Lexicon]) -> None:
    """Raise UserError if two lexicons list the same form."""
    owner: dict[str, str] = {}
    for lexicon in lexicons:
        for form in lexicon.forms:
            where = f"lexicons {owner.get(form)} and {lexicon.name}"
            require(form not in owner, where, f"duplicate entry {form!r}", "remove one")
            owner[form] = lexicon.name


def fold(
    adjective: str, noun: str, adjectives: Mapping[str, str], nouns: Mapping[str, str] | None
) -> str | None:
    """Return the canonical ``adjective_noun``, None if a word is in no lexicon; without ``nouns``,
    any noun will do.
    """
    canonical_adjective = adjectives.get(adjective.lower())
    noun = noun.lower().replace("_", " ")
    canonical_noun = nouns.get(noun) if nouns is not None else noun
    if canonical_adjective is None or not canonical_noun:
        return None
    return f"{canonical_adjective}_{canonical_noun}"


def require_occurring(
    heldout: Iterable[str],
    occurring: Collection[str],
    adjectives: Lexicon | str,
    nouns: Lexicon | str | None,
) -> None:
    """Raise UserError for a held-out pair that occurs nowhere, unless both of its words are known.

    Without a lexicon of nouns, those of the occurring pairs are known.
    """
    adjective_words = find_lexicon(adjectives, "adjectives").words
    noun_words: Collection[str]
    if nouns:
        noun_words = find_lexicon(nouns, "nouns").words
    else:
        noun_words = {split_pair(pair)[1] for pair in occurring}
    absent = set(heldout).difference(occurring)
    for pair in sorted(absent):
        adjective, noun = split_pair(pair)
        # A pair of listed words may be held out although nobody wrote it.
        is_listed = adjective in adjective_words and noun in noun_words
        fault = f"{ascii(pair)[:100]} occurs in no caption"
        remedy = f"{nearest(pair, occurring)}correct or remove it"
        require(is_listed, "heldout", fault, remedy)
