"""Read adjectives and their nouns from the order of words alone, with the lexicons' surface forms.

This module imports no pair extraction, so it finds faults there.

A pair counts (``stated_pairs``) if the adjective is before the noun (`black and white wings`,
`white breast and belly`, also among adjectives of other lexicons, `a long black bill`), its
predicate (`the bill is mostly black`, `wings that are brown`, `a bird whose spot is yellow`) or its
color (`wings of a bright yellow color`). Words such as `colored` after an adjective add nothing (`a
bright red colored crown`). A word list cannot distinguish `a black wing with` from `black wing
tips`, whose tips are black: a noun before an unlisted word counts only if that word is a function
word. The first of several nouns in a row takes the adjective (`yellow breast belly sides`), unless
the second names a mark or feathers on it (`black cheek patch`); without a noun lexicon, they are a
compound (`green water slide`), which counts only if it is listed.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Any

from compclip.core.artifacts.heldout import split_pair
from compclip.core.reading.normal import normalize
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

# Hyphens separate tokens, as spaces do.
TOKEN = re.compile(r"[^\W_]+(?:['’][^\W_]+)?|[^\w\s-]|_")
MODIFYING = ("adjective", "modifier")
# After an adjective they add nothing: `a red colored crown`, `a small sized bill`.
SUFFIXES = WORDS.transparent & WORDS.plain_ed
# Before a predicate they add nothing: `the bill is mostly bright yellow`.
GRADES = WORDS.degree_adverbs.union(
    WORDS.clashes, "very quite mostly mainly partly also both all solid".split()
)
COLOR = re.compile("colou?r")  # the beginning of words that name a color: `a bill of black color`
MAX_DISTANCE = 3  # the largest distance, in words, of an adjective and a noun that are a suspicion
WORDS_KEPT = 1 << 12
# Other words in a row of adjectives: `a bright black, white and mostly brown`.
IN_ROW = GRADES.union(
    SUFFIXES, WORDS.joins, WORDS.indefinite_articles, WORDS.painted, WORDS.becoming, ["of"]
)
# Of the words before a predicate, the last of these decides: in `is mostly red and pink`, it is
# `is`.
PREDICATE_OPENERS = WORDS.function_words - WORDS.joins - GRADES
# Before a noun that is the first of its phrase.
PHRASE_OPENERS = WORDS.determiners.union(WORDS.prepositions, ["and", "has", "whose"])


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
        # Kind and canonical word of each form, by its tokens.
        self.forms: dict[tuple[str, ...], tuple[str, str]] = {}
        # The length of the longest form by its first token; most tokens of a text do not begin a
        # form.
        self.longest: dict[str, int] = {}
        # A later kind replaces the forms of those before.
        # Their words are not compared, so a form stands for itself.
        self._add("modifier", {form: form for form in modifiers})
        self._add("noun", nouns)
        self._add("adjective", adjectives)

    def _add(self, kind: str, forms: Mapping[str, str]) -> None:
        for form, canonical in forms.items():
            words = tuple(TOKEN.findall(normalize(form.lower()).text))
            self.forms[words] = (kind, canonical)
            longest = self.longest.get(words[0], 0)
            self.longest[words[0]] = max(longest, len(words))

    def _longest_form(self, lowers: list[str], i: int) -> tuple[int, str, str]:
        """Return the length in tokens, kind and word of the longest form that begins at token
        ``i``, with which some form begins.
        """
        longest = min(self.longest[lowers[i]], len(lowers) - i)
        for length in range(longest, 0, -1):
            entry = self.forms.get(tuple(lowers[i : i + length]))
            if entry is not None:
                kind, word = entry
                return length, kind, word
        return 1, "other", lowers[i]

    def read(self, text: str) -> list[TextItem]:
        """Return the items of a normalized text, with offsets as given; of several matching forms,
        the longest.
        """
        as_read = normalize(text)
        tokens = list(TOKEN.finditer(as_read.text))
        lowers = [token.group().lower() for token in tokens]
        items: list[TextItem] = []
        i = 0
        while i < len(tokens):
            length = 1
            kind = "other"
            word = lowers[i]
            # Most tokens begin no form.
            if word in self.longest:
                length, kind, word = self._longest_form(lowers, i)
                if self.has_compounds and kind == "noun" and items and items[-1].kind == "noun":
                    items[-1] = replace(items[-1], kind="other")
            start = tokens[i].start()
            end = tokens[i + length - 1].end()
            # A normalized text may be shorter or longer than the given one.
            if as_read.spans is not None:
                start, end = as_read.given(start, end)
            items.append(TextItem(kind, word, start, end))
            i += length
        return items

    def pairs(self, text: str) -> tuple[list[TextItem], "Reading"]:
        """Return the items of a text and the pairs that it states."""
        items = self.read(text)
        return items, stated_pairs(text, items)


Reading = list[tuple[TextItem, TextItem]]  # pairs of an adjective and its noun


def _word(items: list[TextItem], i: int) -> str:
    """Return the word of an item, "" outside of the text."""
    return items[i].word if 0 <= i < len(items) else ""


def _is_participle(text: str, noun: TextItem) -> bool:
    """Return whether a noun is used as a participle: `red headed`."""
    return _ends_in_ed(text[noun.start : noun.end])


# Remembered, because a few words are asked for again and again.
@lru_cache(WORDS_KEPT)
def _ends_in_ed(surface: str) -> bool:
    return normalize(surface).text.lower().endswith("ed")


def _ends_phrase(text: str, items: list[TextItem], noun: int) -> bool:
    """Return whether the noun is surely the last of its phrase, not the first half of a
    compound.
    """
    # Nothing follows that could continue a compound.
    if noun + 1 == len(items):
        return True
    # `red headed bird`; but a `red feathered tip` is a red tip.
    is_feather = items[noun].word in WORDS.marks_and_feathers
    if not is_feather and _is_participle(text, items[noun]):
        return True
    following = items[noun + 1]
    is_sign = not following.word[0].isalnum()
    return following.kind != "other" or following.word in WORDS.function_words or is_sign


def _bearer(text: str, items: list[TextItem], noun: int) -> int | None:
    """Return the noun, among those in a row from ``noun``, that the preceding adjective
    modifies.
    """
    while noun + 1 < len(items) and items[noun + 1].kind == "noun":
        is_mark = items[noun + 1].word in WORDS.marks_and_feathers  # `black cheek patch`
        if not is_mark and items[noun].word not in WORDS.ordinals:
            break
        noun += 1
        if _word(items, noun + 1) in WORDS.be:  # `a red bill feathers are black`
            return None
    return noun if _ends_phrase(text, items, noun) else None


def _joined(items: list[TextItem], index: int, step: int, *kinds: str) -> int | None:
    """Return the item of these kinds that `and`, a comma or both join to the item at ``index``."""
    i = index + step
    while 0 <= i < len(items) and items[i].word in WORDS.joins:
        i += step
    is_inside = 0 <= i < len(items)
    has_join = abs(i - index) > 1
    return i if is_inside and has_join and items[i].kind in kinds else None


def _is_predicate(items: list[TextItem], adjective: int) -> bool:
    """Return whether a verb is before the adjective: `a tail that is red and pink wings` states no
    red wings.
    """
    for item in reversed(items[:adjective]):
        if item.kind == "noun" or item.word in PREDICATE_OPENERS:
            return item.word in WORDS.verbs
    return False


def _opens_clause(items: list[TextItem], noun: int) -> bool:
    """Return whether a verb follows the nouns from ``noun`` on: `the crown is red throat and belly
    are blue`.
    """
    for item in items[noun:]:
        # In `throat and belly are`, only `are` decides.
        if item.kind != "noun" and item.word not in WORDS.joins:
            return item.word in WORDS.verbs
    return False


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
    adjectives: list[TextItem] = []
    i: int | None = noun - 1
    while i is not None:
        adjectives.append(items[i])
        i = _modifier_before(items, i, is_stack)
        if i is not None and _is_predicate(items, i):
            break
    return [item for item in adjectives if item.kind == "adjective"]


def _modifier_before(items: list[TextItem], i: int, is_stack: bool) -> int | None:
    """Return the adjective joined to the item at ``i``; in a stack, also one of another lexicon (`a
    long red bill`).
    """
    # One of the two kinds each, in any order.
    if is_stack and i and {items[i].kind, items[i - 1].kind} == set(MODIFYING):
        return i - 1
    return _joined(items, i, -1, *MODIFYING)


def _bearers(text: str, items: list[TextItem], first: int) -> list[TextItem]:
    """Return the nouns that the adjectives before the noun ``first`` modify."""
    bearers: list[TextItem] = []
    noun = _bearer(text, items, first)
    while noun is not None:
        bearers.append(items[noun])
        # `red headed and tailed bird` is only a suspicion.
        if _is_participle(text, items[noun]):
            break
        joined = _joined(items, noun, 1, "noun")
        if joined is None:
            break
        noun = _bearer(text, items, joined)
        # `black head and wings that are white` states no black wings.
        if noun is not None and _has_predicate(items, noun):
            break
    return bearers


def _has_predicate(items: list[TextItem], noun: int) -> bool:
    """Return whether a coordinated noun has a predicate of its own: `black head and wings that are
    white`.

    A relative clause without a listed adjective does not count: `brown tarsus and feet that is
    flappy`. A color of its own does: `black head and wings of a brown color`.
    """
    # `black head and wings of a brown color`
    if _color_of(items, noun):
        return True
    next_words = [item.word for item in items[noun + 1 : noun + 3]]
    if next_words and next_words[0] in WORDS.relatives:
        # `wings that are white`, but not `feet that is flappy`
        is_listed = any(item.kind == "adjective" for item in items[noun + 3 : noun + 6])
        return is_listed or next_words[-1] not in WORDS.verbs
    return bool(WORDS.predicate_openers.intersection(next_words))


def _pattern_ground(items: list[TextItem], noun: int) -> TextItem | None:
    """Return the adjective of a pattern's ground: black in `black with white speckled feathers`."""
    if noun < 4:
        return None
    ground, preposition, color, pattern = items[noun - 4 : noun]
    if pattern.word not in WORDS.patterns or preposition.word != "with":
        return None
    if ground.kind != "adjective" or color.kind != "adjective":
        return None
    return None if _is_predicate(items, noun - 4) else ground


def _before_noun(text: str, items: list[TextItem]) -> Reading:
    """Return the pairs with the adjective before the noun: `black and white wings`, `white breast
    and belly`.
    """
    pairs: Reading = []
    for index, item in enumerate(items):
        if item.kind != "noun":
            continue
        adjectives = _adjectives_before(text, items, index)
        ground = _pattern_ground(items, index)
        if ground is not None:
            # The adjective of the pattern is not the noun's: `white speckled feathers`.
            adjectives = [ground]
        if not adjectives:
            continue
        bearers = _bearers(text, items, index)
        for adjective in adjectives:
            pairs.extend((adjective, bearer) for bearer in bearers)
    return pairs


def _is_subject(items: list[TextItem], noun: int) -> bool:
    """Return whether the noun heads `whose …`, or `the …` or `its …` that does not follow a
    preposition.
    """
    opener = noun - 1
    while opener >= 0 and _is_inside_subject(items[opener]):
        opener -= 1
    if opener < 0:
        return False
    # `a bird whose spot is yellow`
    if items[opener].word == "whose":
        return True
    if items[opener].word not in WORDS.owners:
        return False
    # In `a ring on the bill is red`, the bill is not red.
    return opener == 0 or items[opener - 1].word not in WORDS.prepositions


def _is_inside_subject(item: TextItem) -> bool:
    """Return whether an item may be between a subject's determiner and its noun: `the bird's upper
    wings`.
    """
    if item.kind != "other" or item.word in WORDS.joins or item.word in WORDS.sides:
        return True
    return item.word.endswith(("'s", "’s"))


def _subjects_before(items: list[TextItem], noun: int) -> Iterator[int]:
    """Yield the nouns that a span or a conjunction joins to a subject, from the right."""
    while True:
        previous = _span_top(items, noun)
        if previous is None:
            previous = _joined(items, noun, -1, "noun")
        if previous is None:
            return
        yield previous
        noun = previous


def _other_subjects(items: list[TextItem], noun: int) -> list[int]:
    """Return the nouns coordinated with a subject: `a crown and nape that are`, `the crown down to
    nape are`.

    [] if one of them has an adjective: in `a black crown and nape that are gray`, the crown is
    ambiguous.
    """
    subjects = list(_subjects_before(items, noun))
    # The leftmost, before which a determiner shows that no adjective stands.
    first = subjects[-1] if subjects else noun
    opener = _word(items, first - 1)
    return subjects if opener == "" or opener in PHRASE_OPENERS else []


def _span_top(items: list[TextItem], noun: int) -> int | None:
    """Return the noun from which a span extends down to ``noun``: crown in `the crown down to the
    nape`.
    """
    end = noun
    # `down to the nape`, `down to nape`
    if _word(items, noun - 1) in WORDS.owners:
        end -= 1
    top = end - 3
    if top < 0 or items[top].kind != "noun":
        return None
    is_span = items[end - 2].word == "down" and items[end - 1].word == "to"
    return top if is_span else None


def _predicate_start(items: list[TextItem], noun: int) -> int | None:
    """Return where the predicate of a noun begins: after `is` in `its bill is`, after `are` in
    `wings that are`.
    """
    verb = noun + 1
    is_relative = _word(items, verb) in WORDS.relatives
    if is_relative:
        verb += 1
    start = _after_verb(items, verb)
    if start is None:
        return None
    if is_relative:
        # After a preposition, the clause may be about a noun before it.
        previous = {item.word for item in items[max(0, noun - MAX_DISTANCE) : noun]}
        return None if previous & (WORDS.prepositions - {"with"}) else start
    if items[verb].word in WORDS.painted:  # `on a wall painted red`
        return start
    # Of `the crown down to the nape is red`, the crown must be a subject.
    top = _span_top(items, noun)
    subject = noun if top is None else top
    return start if _is_subject(items, subject) else None


def _after_verb(items: list[TextItem], i: int) -> int | None:
    """Return where the predicate after a verb at ``i`` begins: after `is`, `has turned` or `appears
    to be`.
    """
    verb = _word(items, i)
    following = _word(items, i + 1)
    # `appears to be`
    if verb in WORDS.raising and following == "to" and _word(items, i + 2) == "be":
        return i + 3
    # `has turned`
    if verb in WORDS.has and following in WORDS.becoming:
        return i + 2
    is_verb = verb in WORDS.verbs or verb in WORDS.becoming or verb in WORDS.painted
    return i + 1 if is_verb else None


def _coordinated(items: list[TextItem], start: int) -> list[int]:
    """Return the positions of the adjectives in a row from ``start`` on: `a bright black, white and
    mostly brown`.
    """
    positions: list[int] = []
    for i in range(start, len(items)):
        is_article = i > start and items[i].word in WORDS.indefinite_articles
        if items[i].kind in MODIFYING:
            positions.append(i)
            if _word(items, i + 1) not in WORDS.joins:
                break
        # `its eye is red and a black and white bill`: the row ends, a noun phrase begins.
        elif items[i].word not in IN_ROW or (is_article and _is_phrase(items, i + 1)):
            break
    return positions


def _is_phrase(items: list[TextItem], start: int) -> bool:
    """Return whether the words from ``start`` on are adjectives in a row and their noun."""
    for item in items[start:]:
        if item.kind == "noun":
            return True
        if item.kind not in MODIFYING and item.word not in IN_ROW:
            return False
    return False


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
            # `the bill is black tipped` states no black bill.
            if items[i].kind == "adjective" and _ends_predicate(_word(items, i + 1)):
                pairs += [(items[i], noun) for noun in nouns]
    return pairs


def _ends_predicate(following: str) -> bool:
    """Return whether a predicate may end before this word ("": at the end of the text)."""
    is_sign = not following[:1].isalnum()
    return is_sign or following in WORDS.function_words or bool(COLOR.match(following))


def _color_of(items: list[TextItem], noun: int) -> list[TextItem]:
    """Return the adjectives in the color of a noun: `wings of a bright yellow color`, `a belly in
    white color`.
    """
    if _word(items, noun + 1) not in ("of", "in"):
        return []
    positions = _coordinated(items, noun + 2)
    # `of a bright yellow color`, but not `of a bright yellow bird`
    if not positions or not COLOR.match(_word(items, positions[-1] + 1)):
        return []
    return [items[i] for i in positions if items[i].kind == "adjective"]


def _with_color(items: list[TextItem]) -> Reading:
    """Return the pairs of nouns and their colors, as ``_color_of`` reads them."""
    pairs: Reading = []
    for index, item in enumerate(items):
        adjectives = _color_of(items, index) if item.kind == "noun" else []
        if not adjectives:
            continue
        nouns = (index, *_other_subjects(items, index))
        for adjective in adjectives:
            pairs += [(adjective, items[noun]) for noun in nouns]
    return pairs


def _without_suffixes(items: list[TextItem]) -> list[TextItem]:
    """Return the items without those of ``SUFFIXES`` after an adjective."""
    plain = items[:1]
    for previous, item in pairwise(items):
        if item.word not in SUFFIXES or previous.kind not in MODIFYING:
            plain.append(item)
    return plain


def stated_pairs(text: str, items: list[TextItem]) -> Reading:
    """Return the adjective and noun of every pair that word order states, as the module's docstring
    defines.

    A pair that the text denies (``denials``) is not stated.
    """
    plain = _without_suffixes(items)
    pairs = _before_noun(text, plain) + _as_predicate(plain) + _with_color(plain)
    # Of all items, because their positions are those in ``items``.
    denied_items = denied([item.word for item in items], [item.kind for item in items])
    denied_starts = {items[i].start for i in denied_items}
    stated_pairs: Reading = []
    for adjective, noun in pairs:
        if adjective.start in denied_starts or noun.start in denied_starts:
            continue
        stated_pairs.append((adjective, noun))
    return stated_pairs


def group_by_adjective(pairs: Iterable[tuple[str, str]]) -> dict[str, set[str]]:
    """Return the nouns of each adjective in ``pairs``."""
    nouns: dict[str, set[str]] = defaultdict(set)
    for adjective, noun in pairs:
        nouns[adjective].add(noun)
    return dict(nouns)


def has_both_words(items: Iterable[TextItem], nouns_by_adjective: Mapping[str, set[str]]) -> bool:
    """Return whether a text has the adjective and the noun of one of the ``group_by_adjective``.

    Most texts do not, so they cannot state one of these pairs; reading their pairs would take most
    of the time.
    """
    words = {item.word for item in items}
    adjectives = words & nouns_by_adjective.keys()
    return any(not words.isdisjoint(nouns_by_adjective[adjective]) for adjective in adjectives)


def near(items: list[TextItem]) -> Reading:
    """Return every adjective and noun at most ``MAX_DISTANCE`` items apart."""
    pairs: Reading = []
    for index, item in enumerate(items):
        if item.kind == "adjective":
            first = max(0, index - MAX_DISTANCE)
            window = items[first : index + MAX_DISTANCE + 1]
            pairs += [(item, noun) for noun in window if noun.kind == "noun"]
    return pairs


def word_pairs(pairs: Iterable[tuple[TextItem, TextItem]]) -> set[tuple[str, str]]:
    return {(adjective.word, noun.word) for adjective, noun in pairs}


def _replaced(word: str, endings: Iterable[tuple[str, str]]) -> set[str]:
    """Return the words that a word becomes if one of these endings is replaced."""
    return {word.removesuffix(old) + new for old, new in endings if word.endswith(old)}


def possible_forms(noun: str) -> set[str]:
    """Return the words that may be forms of a noun, by their endings alone.

    They are its plurals, its singulars if it is a plural itself, and the nouns with the same
    plural: whoever takes `vases` for a plural of `vas` calls a `vase` a `vas`.
    """
    endings = [("", "s")]
    for singular, plurals in WORDS.plural_endings.items():
        endings += [(singular, ending) for ending in plurals]
    plurals_of_noun = _replaced(noun, endings)
    # The same rules, read from the plural to the singular.
    singulars_of_noun = _replaced(noun, [(new, old) for old, new in endings])
    regular = plural(noun)
    # Nouns of which -s, -es or -ies makes the same plural.
    candidates = (regular[:-1], regular[:-2], f"{regular[:-3]}y")
    same_plural = {word for word in candidates if plural(word) == regular}
    return plurals_of_noun | singulars_of_noun | same_plural | {regular}


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
    # With a lexicon, its nouns and the compounds are all that is read.
    if nouns is not None:
        return Reader(adjectives, surface_forms(nouns, compounds), modifiers)
    heldout_nouns = {split_pair(pair)[1] for pair in heldout}
    # `short` may be a form of `shorts`, `new` of `news`, `to` of `tos`: they are other words.
    excluded = WORDS.function_words.union(modifiers, WORDS.pointers)
    forms: dict[str, str] = {}
    for noun in sorted(heldout_nouns):
        forms |= dict.fromkeys(possible_forms(noun) - excluded, noun)
    # A noun is always a form of itself.
    forms |= {noun: noun for noun in heldout_nouns}
    return Reader(adjectives, compounds.forms | forms, modifiers, has_compounds=True)


def swap_faults(
    caption: tuple[list[TextItem], Reading],
    swapped: tuple[list[TextItem], Reading],
    changes: Sequence[dict[str, Any]],
    heldout: Collection[tuple[str, str]],
) -> list[str]:
    """Return the faults in the words of a swapped caption; the texts are as ``Reader.pairs``
    returns them.
    """
    items, pairs = caption
    new_items, new_pairs = swapped
    faults = []
    if _nouns(items) != _nouns(new_items):
        faults.append("the nouns changed")
    # Further pairs that only the swapped caption states must be held out, too.
    added = word_pairs(new_pairs) - word_pairs(pairs) - set(heldout)
    for adjective_word, noun_word in sorted(added):
        faults.append(f"it also says {adjective_word}_{noun_word}, which is not held out")
    noun_of_change = {change["start"]: change["noun"] for change in changes}
    for adjective, noun in pairs:
        # The noun itself if the adjective is not changed.
        if noun_of_change.get(adjective.start, noun.word) != noun.word:
            faults.append("the adjective is also about another noun")
            break
    return faults


def _nouns(items: Iterable[TextItem]) -> list[str]:
    return [item.word for item in items if item.kind == "noun"]
