"""Read adjectives and their nouns from the order of words alone, with the lexicons' surface forms.

This module imports no pair extraction, so it finds faults there.

A pair counts (``stated``) if the adjective is before the noun (`black and white wings`, `white
breast and belly`, also among adjectives of other lexicons, `a long black bill`), its predicate
(`the bill is mostly black`, `wings that are brown`, `a bird whose spot is yellow`) or its color
(`wings of a bright yellow color`). Words such as `colored` after an adjective add nothing (`a
bright red colored crown`). A word list cannot distinguish `a black wing with` from `black wing
tips`, whose tips are black: a noun before an unlisted word counts only if that word is a function
word. The first of several nouns in a row takes the adjective (`yellow breast belly sides`), unless
the second names a mark or feathers on it (`black cheek patch`); without a noun lexicon, they are a
compound (`green water slide`), which counts only if it is listed.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from compclip.core.heldout import split_pair
from compclip.core.normal import normalize
from compclip.split.denials import denied
from compclip.text.grammar import WORDS
from compclip.text.lexicon import (
    COMMON_COMPOUNDS,
    Lexicon,
    load_lexicon,
    plural,
    shared_beside,
    surface_forms,
)

TOKEN = re.compile(r"[^\W_]+(?:['’][^\W_]+)?|[^\w\s]|_")
MODIFYING = ("adjective", "modifier")
# After an adjective they add nothing: `a red colored crown`, `a small sized bill`.
SUFFIXES = WORDS.transparent & WORDS.plain_ed
# Before a predicate they add nothing: `the bill is mostly bright yellow`.
GRADES = WORDS.degree_adverbs.union(
    WORDS.clashes, "very quite mostly mainly partly also both all solid".split()
)
COLOR = re.compile("colou?r")  # the beginning of words that name a color: `a bill of black color`
MAX_DISTANCE = 3  # the largest distance, in words, of an adjective and a noun that are a suspicion


@dataclass(slots=True)  # not frozen, which would take three times as long
class TextItem:
    """A word, a form of several words or a sign of a text, from character ``start`` to ``end``
    (exclusive).
    """

    kind: (
        str  # adjective, noun, modifier (an adjective of another lexicon), or other (in no lexicon)
    )
    word: str  # canonical if listed
    start: int
    end: int


class Reader:
    """Reads texts as items, by mappings from surface forms of adjectives and nouns to canonical
    words.

    Args:
        modifiers: forms of adjectives of other lexicons; their pairs are not read.
        has_compounds: the last of several nouns in a row is the noun; the others modify it (`water
            slide`).
    """

    def __init__(
        self,
        adjectives: Mapping[str, str],
        nouns: Mapping[str, str],
        modifiers: Iterable[str] = (),
        has_compounds: bool = False,
    ) -> None:
        self.has_compounds = has_compounds
        self.forms: dict[tuple[str, ...], tuple[str, str]] = {}
        others = {form: form for form in modifiers}
        for kind, forms in (("modifier", others), ("noun", nouns), ("adjective", adjectives)):
            for form, canonical in forms.items():
                self.forms[tuple(m.group() for m in self._tokens(normalize(form.lower()).text))] = (
                    kind,
                    canonical,
                )
        # The length of the longest form by its first token; most tokens of a text do not begin a
        # form.
        self.longest: dict[str, int] = {}
        for first, *more in self.forms:
            self.longest[first] = max(self.longest.get(first, 0), 1 + len(more))

    @staticmethod
    def _tokens(text: str) -> list[re.Match[str]]:
        """Return the tokens; hyphens separate tokens, as spaces do."""
        return [m for m in TOKEN.finditer(text) if m.group() != "-"]

    def read(self, text: str) -> list[TextItem]:
        """Return the items of a normalized text, with offsets as given; of several matching forms,
        the longest.
        """
        as_read = normalize(text)
        tokens = self._tokens(as_read.text)
        lowers = [m.group().lower() for m in tokens]
        items: list[TextItem] = []
        i = 0
        while i < len(tokens):
            length, kind, word = 1, "other", lowers[i]
            for longer in range(min(self.longest.get(word, 0), len(tokens) - i), 0, -1):
                if known := self.forms.get(tuple(lowers[i : i + longer])):
                    length, (kind, word) = longer, known
                    break
            if kind == "noun" and items and items[-1].kind == "noun" and self.has_compounds:
                items[-1] = replace(items[-1], kind="other")
            start, end = as_read.given(tokens[i].start(), tokens[i + length - 1].end())
            items.append(TextItem(kind, word, start, end))
            i += length
        return items

    def pairs(self, text: str) -> tuple[list[TextItem], "Reading"]:
        """Return the items of a text and the pairs that it states."""
        items = self.read(text)
        return items, stated(text, items)


Reading = list[tuple[TextItem, TextItem]]  # pairs of an adjective and its noun


def _is_participle(text: str, noun: TextItem) -> bool:
    """Return whether a noun is used as a participle: `red headed`."""
    return normalize(text[noun.start : noun.end]).text.lower().endswith("ed")


def _ends_phrase(text: str, items: list[TextItem], noun: int) -> bool:
    """Return whether the noun is surely the last of its phrase, not the first half of a
    compound.
    """
    # `red headed bird`; but a `red feathered tip` is a red tip.
    if (
        _is_participle(text, items[noun])
        and items[noun].word not in WORDS.marks_and_feathers
        or noun + 1 == len(items)
    ):
        return True
    after = items[noun + 1]
    return (
        after.kind != "other" or after.word in WORDS.function_words or not after.word[0].isalnum()
    )


def _bearer(text: str, items: list[TextItem], noun: int) -> int | None:
    """Return which of the consecutive nouns from ``noun`` on the adjective before them modifies."""
    while noun + 1 < len(items) and items[noun + 1].kind == "noun":
        if (
            items[noun + 1].word not in WORDS.marks_and_feathers
            and items[noun].word not in WORDS.ordinals
        ):
            break
        noun += 1
        if (
            noun + 1 < len(items) and items[noun + 1].word in WORDS.be
        ):  # `a red bill feathers are black`
            return None
    return noun if _ends_phrase(text, items, noun) else None


def _joined(items: list[TextItem], index: int, step: int, *kinds: str) -> int | None:
    """Return the item of these kinds that `and`, a comma or both join to the item at ``index``."""
    i = index + step
    while 0 <= i < len(items) and items[i].word in WORDS.joins:
        i += step
    return i if abs(i - index) > 1 and 0 <= i < len(items) and items[i].kind in kinds else None


def _is_predicate(items: list[TextItem], adjective: int) -> bool:
    """Return whether a verb is before the adjective: `a tail that is red and pink wings` states no
    red wings.
    """
    stops = WORDS.function_words - WORDS.joins - GRADES
    before = (
        item.word
        for item in reversed(items[:adjective])
        if item.kind == "noun" or item.word in stops
    )
    return next(before, "") in WORDS.verbs


def _opens_clause(items: list[TextItem], noun: int) -> bool:
    """Return whether a verb follows the nouns from ``noun`` on: `the crown is red throat and belly
    are blue`.
    """
    after = (
        item.word for item in items[noun:] if item.kind != "noun" and item.word not in WORDS.joins
    )
    return next(after, "") in WORDS.verbs


def _adjectives_before(text: str, items: list[TextItem], noun: int) -> list[TextItem]:
    """Return the adjectives before a noun, coordinated or of different lexicons; [] if they are a
    predicate.
    """
    if noun == 0 or items[noun - 1].kind not in MODIFYING:
        return []
    if _is_predicate(items, noun - 1) and _opens_clause(items, noun):
        return []
    # `a small white bellied bird`: the bird is small.
    is_stack = not _is_participle(text, items[noun])
    adjectives = [items[noun - 1]]
    i = _modifier_before(items, noun - 1, is_stack)
    while i is not None and not _is_predicate(items, i):
        adjectives.append(items[i])
        i = _modifier_before(items, i, is_stack)
    return [item for item in adjectives if item.kind == "adjective"]


def _modifier_before(items: list[TextItem], i: int, is_stack: bool) -> int | None:
    """Return the adjective joined to the item at ``i``; in a stack, also one of another lexicon (`a
    long red bill`).
    """
    if is_stack and i and {items[i].kind, items[i - 1].kind} == set(MODIFYING):
        return i - 1
    return _joined(items, i, -1, *MODIFYING)


def _bearers(text: str, items: list[TextItem], first: int) -> list[TextItem]:
    """Return the nouns that the adjectives before the noun ``first`` modify."""
    noun = _bearer(text, items, first)
    bearers: list[TextItem] = []
    while noun is not None:
        bearers.append(items[noun])
        # `red headed and tailed bird` is only a suspicion.
        joined = None if _is_participle(text, items[noun]) else _joined(items, noun, 1, "noun")
        noun = None if joined is None else _bearer(text, items, joined)
        if noun is not None and _has_predicate(items, noun):
            break
    return bearers


def _has_predicate(items: list[TextItem], noun: int) -> bool:
    """Return whether a coordinated noun has a predicate of its own: `black head and wings that are
    white`.

    A relative clause without a listed adjective does not count: `brown tarsus and feet that is
    flappy`. A color of its own does: `black head and wings of a brown color`.
    """
    if _color_of(items, noun):
        return True
    after = [item.word for item in items[noun + 1 : noun + 3]]
    if after and after[0] in WORDS.relatives:
        is_listed = any(item.kind == "adjective" for item in items[noun + 3 : noun + 6])
        return after[-1] not in WORDS.verbs or is_listed
    return bool(WORDS.predicate_openers.intersection(after))


def _of_pattern(items: list[TextItem], noun: int) -> TextItem | None:
    """Return the adjective of a pattern's ground: black in `black with white speckled feathers`."""
    if noun < 4 or items[noun - 1].word not in WORDS.patterns or items[noun - 3].word != "with":
        return None
    is_phrase = items[noun - 4].kind == items[noun - 2].kind == "adjective" and not _is_predicate(
        items, noun - 4
    )
    return items[noun - 4] if is_phrase else None


def _before_noun(text: str, items: list[TextItem]) -> Reading:
    """Return the pairs with the adjective before the noun: `black and white wings`, `white breast
    and belly`.
    """
    pairs: Reading = []
    for index, item in enumerate(items):
        adjectives = _adjectives_before(text, items, index) if item.kind == "noun" else []
        if item.kind == "noun" and (ground := _of_pattern(items, index)):
            adjectives = [ground]
        if adjectives:
            bearers = _bearers(text, items, index)
            pairs.extend((adjective, bearer) for adjective in adjectives for bearer in bearers)
    return pairs


def _is_subject(items: list[TextItem], noun: int) -> bool:
    """Return whether the noun heads `whose …`, or `the …` or `its …` that does not follow a
    preposition.
    """
    passed = WORDS.joins | WORDS.sides
    i = noun - 1
    # `the bird's upper wings`
    while i >= 0 and (
        items[i].kind != "other" or items[i].word in passed or items[i].word.endswith(("'s", "’s"))
    ):
        i -= 1
    if i >= 0 and items[i].word == "whose":
        return True
    return (
        i >= 0
        and items[i].word in WORDS.owners
        and (i == 0 or items[i - 1].word not in WORDS.prepositions)
    )


def _other_subjects(items: list[TextItem], noun: int) -> list[int]:
    """Return the nouns coordinated with a subject: `a crown and nape that are`, `the crown down to
    nape are`.

    [] if one of them has an adjective: in `a black crown and nape that are gray`, the crown is
    ambiguous.
    """
    others = []
    while (other := _span_top(items, noun)) is not None or (
        other := _joined(items, noun, -1, "noun")
    ) is not None:
        others.append(noun := other)
    has_determiner = noun == 0 or items[noun - 1].word in WORDS.determiners | WORDS.prepositions | {
        "and",
        "has",
        "whose",
    }
    return others if has_determiner else []


def _span_top(items: list[TextItem], noun: int) -> int | None:
    """Return the noun from which a span extends down to ``noun``: crown in `the crown down to the
    nape`.
    """
    i = noun - (noun > 0 and items[noun - 1].word in WORDS.owners)
    before = [item.word for item in items[max(0, i - 2) : i]]
    return i - 3 if before == ["down", "to"] and i > 2 and items[i - 3].kind == "noun" else None


def _predicate_start(items: list[TextItem], noun: int) -> int | None:
    """Return where the predicate of a noun begins: after `is` in `its bill is`, after `are` in
    `wings that are`.
    """
    i = noun + 1
    is_relative = i < len(items) and items[i].word in WORDS.relatives
    start = _after_verb(items, i + is_relative)
    if start is None:
        return None
    if is_relative:
        before = {item.word for item in items[max(0, noun - MAX_DISTANCE) : noun]}
        return None if before & (WORDS.prepositions - {"with"}) else start
    if items[i].word in WORDS.painted:  # `on a wall painted red`
        return start
    top = _span_top(items, noun)
    return start if _is_subject(items, noun if top is None else top) else None


def _after_verb(items: list[TextItem], i: int) -> int | None:
    """Return where the predicate after a verb at ``i`` begins: after `is`, `has turned` or `appears
    to be`.
    """
    words = [item.word for item in items[i : i + 3]]
    if len(words) == 3 and words[0] in WORDS.raising and words[1:] == ["to", "be"]:
        return i + 3
    if len(words) > 1 and words[0] in WORDS.has and words[1] in WORDS.becoming:
        return i + 2
    is_verb = bool(words) and words[0] in WORDS.verbs | WORDS.becoming | WORDS.painted
    return i + 1 if is_verb else None


def _coordinated(items: list[TextItem], start: int) -> list[int]:
    """Return the places of the adjectives in a row from ``start`` on: `a bright black, white and
    mostly brown`.
    """
    passed = (
        GRADES
        | SUFFIXES
        | WORDS.joins
        | WORDS.indefinite_articles
        | WORDS.painted
        | WORDS.becoming
        | {"of"}
    )
    places: list[int] = []
    i = start
    while i < len(items):
        if items[i].kind in MODIFYING:
            places.append(i)
            if i + 1 == len(items) or items[i + 1].word not in WORDS.joins:
                break
        elif items[i].word not in passed:
            break
        i += 1
    return places


def _as_predicate(items: list[TextItem]) -> Reading:
    """Return the pairs with the adjective as predicate: `the bill is black and white`, `wings that
    are brown`.
    """
    pairs: Reading = []
    for index, item in enumerate(items):
        start = _predicate_start(items, index) if item.kind == "noun" else None
        if start is None:
            continue
        nouns = [items[noun] for noun in (index, *_other_subjects(items, index))]
        for i in _coordinated(items, start):
            following = items[i + 1].word if i + 1 < len(items) else ""
            ends = (
                not following[:1].isalnum()
                or following in WORDS.function_words
                or COLOR.match(following)
            )
            if ends and items[i].kind == "adjective":
                pairs += [(items[i], noun) for noun in nouns]
    return pairs


def _color_of(items: list[TextItem], noun: int) -> list[TextItem]:
    """Return the adjectives in the color of a noun: `wings of a bright yellow color`, `a belly in
    white color`.
    """
    if noun + 1 == len(items) or items[noun + 1].word not in ("of", "in"):
        return []
    places = _coordinated(items, noun + 2)
    after = places[-1] + 1 if places else len(items)
    if after == len(items) or not COLOR.match(items[after].word):
        return []
    return [items[i] for i in places if items[i].kind == "adjective"]


def _with_color(items: list[TextItem]) -> Reading:
    """Return the pairs of nouns and their colors, as ``_color_of`` reads them."""
    pairs: Reading = []
    for index, item in enumerate(items):
        adjectives = _color_of(items, index) if item.kind == "noun" else []
        others = _other_subjects(items, index) if adjectives else []
        pairs += [(adjective, items[noun]) for adjective in adjectives for noun in (index, *others)]
    return pairs


def _without_suffixes(items: list[TextItem]) -> list[TextItem]:
    """Return the items without those of ``SUFFIXES`` after an adjective."""
    kinds_before = [None, *(item.kind for item in items)]
    return [
        item
        for item, before in zip(items, kinds_before, strict=False)
        if item.word not in SUFFIXES or before not in MODIFYING
    ]


def stated(text: str, items: list[TextItem]) -> Reading:
    """Return the adjective and noun of every pair that word order states, as the module's docstring
    defines.

    A pair that the text denies (``denials``) is not stated.
    """
    plain = _without_suffixes(items)
    pairs = _before_noun(text, plain) + _as_predicate(plain) + _with_color(plain)
    reached = denied([item.word for item in items], [item.kind for item in items])
    starts = {items[i].start for i in reached}
    return [
        (adjective, noun)
        for adjective, noun in pairs
        if starts.isdisjoint((adjective.start, noun.start))
    ]


def near(items: list[TextItem]) -> Reading:
    """Return every adjective and noun at most ``MAX_DISTANCE`` items apart."""
    return [
        (item, other)
        for index, item in enumerate(items)
        if item.kind == "adjective"
        for other in items[max(0, index - MAX_DISTANCE) : index + MAX_DISTANCE + 1]
        if other.kind == "noun"
    ]


def word_pairs(pairs: Iterable[tuple[TextItem, TextItem]]) -> set[tuple[str, str]]:
    return {(adjective.word, noun.word) for adjective, noun in pairs}


def _replaced(word: str, endings: Iterable[tuple[str, str]]) -> set[str]:
    """Return the words that a word becomes if one of these endings is replaced."""
    return {word.removesuffix(end) + other for end, other in endings if word.endswith(end)}


def possible_forms(noun: str) -> set[str]:
    """Return the words that may be forms of a noun, by their endings alone.

    They are its plurals, its singulars if it is a plural itself, and the nouns with the same
    plural: whoever takes `vases` for a plural of `vas` calls a `vase` a `vas`.
    """
    endings = [
        ("", "s"),
        *((end, other) for end, others in WORDS.plural_endings.items() for other in others),
    ]
    singulars = _replaced(noun, [(other, end) for end, other in endings])
    regular = plural(noun)
    with_same = {
        word for word in (regular[:-1], regular[:-2], f"{regular[:-3]}y") if plural(word) == regular
    }
    return _replaced(noun, endings) | singulars | with_same | {regular}


def reader_of(
    heldout: Iterable[str],
    adjectives: Mapping[str, str],
    nouns: Mapping[str, str] | None,
    compounds: Lexicon | None,
) -> Reader:
    """Return a reader of these adjectives and nouns; without ``nouns``, of held-out nouns and their
    possible forms.
    """
    compounds = compounds or load_lexicon(COMMON_COMPOUNDS)
    # The lexicons by which pairs are extracted, so that a change of them reruns the steps that
    # read.
    modifiers = [form for lexicon in shared_beside(adjectives) for form in lexicon.forms]
    if nouns is None:
        held = {split_pair(pair)[1] for pair in heldout}
        # `short` may be a form of `shorts`, `new` of `news`, `to` of `tos`: they are other words.
        others = WORDS.function_words.union(modifiers, WORDS.pointers)
        possible = {form: noun for noun in sorted(held) for form in possible_forms(noun) - others}
        forms = possible | dict(zip(held, held, strict=True))
        return Reader(adjectives, compounds.forms | forms, modifiers, has_compounds=True)
    return Reader(adjectives, surface_forms(nouns, compounds), modifiers)


def swap_faults(
    caption: tuple[list[TextItem], Reading],
    swapped: tuple[list[TextItem], Reading],
    changes: Sequence[dict[str, Any]],
    heldout: Collection[tuple[str, str]],
) -> list[str]:
    """Return the faults in the words of a swapped caption; the texts are as ``Reader.pairs``
    returns them.
    """
    faults = []
    (items, pairs), (new_items, new_pairs) = caption, swapped
    if [i.word for i in items if i.kind == "noun"] != [
        i.word for i in new_items if i.kind == "noun"
    ]:
        faults.append("the nouns changed")
    # Further pairs that only the swapped caption states must be held out, too.
    added = word_pairs(new_pairs) - word_pairs(pairs) - set(heldout)
    faults += [
        f"it also says {adjective}_{noun}, which is not held out"
        for adjective, noun in sorted(added)
    ]
    changed = {change["start"]: change["noun"] for change in changes}
    if any(a.start in changed and n.word != changed[a.start] for a, n in pairs):
        faults.append("the adjective is also about another noun")
    return faults
