"""Lexicons (``lexicons/``, edited by users): surface forms and their canonical words."""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from compclip.core.documents import decode, nearest, parse_yaml
from compclip.core.errors import UserError, require
from compclip.core.heldout import split_pair
from compclip.core.inputs import checked
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
        return {
            other for group in self.groups or [self.words] if word in group for other in group
        } - {word}

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
    known = ", ".join(sorted(p.stem for p in path.parent.glob("*.yaml"))) or "none"
    require(path.is_file(), path, "no such lexicon", f"choose one of: {known}")
    try:
        content = parse_yaml(decode(path))
    except ValueError as error:
        raise UserError(f"{path}: not valid YAML; fix it ({error})") from error
    groups = content.pop("groups", []) if isinstance(content, dict) else []
    require(
        isinstance(content, dict) and content,
        path,
        "expected a mapping",
        "map each word to a list of other forms",
    )
    forms: dict[str, str] = {}
    for word, others in content.items():
        is_entry = isinstance(word, str) and (others is None or isinstance(others, list))
        require(
            is_entry,
            f"{path}: {word!r}",
            "expected a list of other forms",
            "write word: [form, form]",
        )
        for form in [word, *(others or [])]:
            is_word = isinstance(form, str) and form.strip() and form == form.lower()
            require(
                is_word,
                f"{path}: {word}: {form!r}",
                "expected a lower-case word",
                "quote yes, no, on and off",
            )
            fault = f"duplicate entry {form!r} under {forms.get(form)!r} and {word!r}"
            require(form not in forms, path, fault, "remove one")
            forms[form] = word
    where, is_list = (
        f"{path}: groups",
        isinstance(groups, list) and all(isinstance(group, list) for group in groups),
    )
    require(is_list, where, "expected lists of words", "write [[long, short], …]")
    for group in groups:
        for word in group:
            require(
                word in [*content],
                where,
                f"{word!r} is not a word of the lexicon",
                "remove it or add it",
            )
        require(
            len({*group}) > 1,
            f"{where}: {group!r}",
            "expected at least two words",
            "complete or remove the group",
        )
    return Lexicon(path.stem, forms, tuple(map(tuple, groups)))


def find_lexicon(lexicon: Lexicon | str, kind: str) -> Lexicon:
    """Return a lexicon, given itself or its name in ``lexicons/<kind>``, such as ``color`` in
    ``adjectives``.
    """
    return (
        lexicon
        if isinstance(lexicon, Lexicon)
        else load_lexicon(LEXICONS / kind / f"{lexicon}.yaml")
    )


def forms_of(
    adjectives: Lexicon | str, nouns: Lexicon | str | None
) -> tuple[dict[str, str], dict[str, str] | None]:
    """Return the forms of two lexicons, given themselves or their names; None without nouns."""
    return find_lexicon(adjectives, "adjectives").forms, find_lexicon(
        nouns, "nouns"
    ).forms if nouns else None


def lexicons_of(composition: str, folder: Path) -> list[str]:
    """Return the names of the lexicons in ``folder`` that are used to read a composition's
    captions.

    Listed words are read differently from words that only the tagger knows, so further lexicons
    change the pairs of all adjectives. Therefore a composition is read with only the shared
    lexicons and its own, which replaces shared ones that list one of its words.
    """
    if composition in SHARED:
        return list(SHARED)
    own = load_lexicon(folder / f"{composition}.yaml")
    return [*(lexicon.name for lexicon in shared_beside(own.forms, folder)), composition]


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
    heads = {
        form: nouns.get(re.split("[ -]", form)[-1], word) for form, word in compounds.forms.items()
    }
    return {**heads, **nouns}


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
    adjective, noun = adjective.lower(), noun.lower().replace("_", " ")
    canonical = nouns.get(noun) if nouns is not None else noun
    return f"{adjectives[adjective]}_{canonical}" if adjective in adjectives and canonical else None


def require_occurring(
    heldout: Iterable[str],
    occurring: Collection[str],
    adjectives: Lexicon | str,
    nouns: Lexicon | str | None,
) -> None:
    """Raise UserError for a held-out pair that occurs nowhere, unless both of its words are known.

    Without a lexicon of nouns, those of the occurring pairs are known.
    """
    known = (
        find_lexicon(nouns, "nouns").words if nouns else {split_pair(pair)[1] for pair in occurring}
    )
    listed = find_lexicon(adjectives, "adjectives").words, known
    for pair in sorted({*heldout}.difference(occurring)):
        is_listed = all(word in words for word, words in zip(split_pair(pair), listed, strict=True))
        remedy = f"{nearest(pair, occurring)}correct or remove it"
        require(is_listed, "heldout", f"{ascii(pair)[:100]} occurs in no caption", remedy)
