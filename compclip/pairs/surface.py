"""Find pairs by the order of words alone.

An adjective belongs to the nearest noun that follows it in its run: a sequence of adjectives,
nouns, conjunctions and modifiers. On captions without commas this is more reliable than a parse:
`white belly grey back` is a white belly and a gray back. A predicate belongs to the noun before its
verb: `the belly is white`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from compclip.pairs.words import COMPOUND, Role, Word
from compclip.text.grammar import WORDS


@dataclass(slots=True)
class Link:
    """An adjective and a noun, as positions among the words."""

    adjective: int
    noun: int
    relation: str


def find_by_surface(words: list[Word]) -> tuple[list[Link], set[int]]:
    """Return the pairs that the order of words shows, and the adjectives that it shows to have no
    noun.

    Relations: adjacent, attributive (further left in a stack), predicative, and shared for
    coordinated nouns; disputed for a coordinated noun with a predicate of another kind (`white
    breast and belly that is fluffy`).
    """
    links: list[Link] = []
    run = _Run(words, links)
    i = clause = 0
    while i < len(words):
        if words[i].part is not Role.BE:
            i = run.take(i)
            continue
        run.end()
        adjectives, following = _predicate(words, i)
        # The last predicate ends before this one's subject.
        groups = {words[adjective].group for adjective in adjectives}
        subjects = (
            [clause + n for n in _subjects(words[clause:], i - clause, groups)]
            if adjectives
            else []
        )
        for position, noun in enumerate(subjects):
            links.extend(
                Link(adjective, noun, "shared" if position else "predicative")
                for adjective in adjectives
            )
        i = following if subjects else i + 1
        clause = i if subjects else clause
    return links, set(run.nowhere)


def _skip(words: list[Word], i: int, *parts: Role) -> int:
    """Return the first position from ``i`` on whose word is none of ``parts``."""
    while i < len(words) and words[i].part in parts:
        i += 1
    return i


def _skip_back(words: list[Word], i: int, *parts: Role) -> int:
    """Return the start of the words of ``parts`` that end before ``i``."""
    while i and words[i - 1].part in parts:
        i -= 1
    return i


class _Run:
    """A sequence of words in which adjectives wait for their noun."""

    def __init__(self, words: list[Word], links: list[Link]) -> None:
        self.words, self.links = words, links
        self.nowhere: list[int] = []  # adjectives that modify no noun of the caption
        self.end()

    def end(self) -> None:
        self.pending: list[int] = []  # adjectives still without a noun
        self.joined: set[int] = (
            set()
        )  # pending adjectives that a conjunction joins to the one before
        self.last: list[int] = []  # adjectives of the last noun, which a coordinated noun shares
        self.conjunction = False
        self.is_single = False  # an article for one thing begins the run

    def take(self, i: int) -> int:
        """Take the word at ``i``, and the nouns that follow a noun; return the position of the next
        word.
        """
        word = self.words[i]
        if word.part is Role.ADJECTIVE and self._is_tone(i):
            self.nowhere.append(i)
        elif word.part is Role.ADJECTIVE:
            if word.lower in WORDS.edged and self.pending:
                # `black tipped wings`: the tips are black.
                unit = self._unit()
                self.nowhere.extend(self.pending[unit:])
                del self.pending[unit:]
            if self.conjunction and self.pending:
                self.joined.add(i)
            self.pending.append(i)
            self.conjunction = False
        elif word.part is Role.NOUN:
            end = _skip(self.words, i, Role.NOUN)
            self._nouns(i, _heads(self.words, range(i, end)), _predicate_groups(self.words, end))
            self.conjunction = False
            return end
        elif word.lower == "with" and self.pending and self._is_pattern(i):
            # `black with white speckled feathers`: the feathers are black, the speckles white.
            self.nowhere.append(i + 1)
            return i + 2
        elif word.part is Role.AND:
            # A comma between nouns coordinates them only if an `and` follows: `a red shirt, people`
            # are two things.
            self.conjunction = word.lower != "," or bool(self.pending) or _closes(self.words, i)
        elif word.part is not Role.MODIFIER and not (
            word.lower == "one" and self.conjunction and self.pending
        ):
            self.end()  # but `one blue and one green car` goes on
            self.is_single = word.lower in WORDS.indefinite_articles
        return i + 1

    def _is_tone(self, i: int) -> bool:
        """Return whether a color is a noun: brown in `tones of brown and red eyes`."""
        words = self.words
        tone = i > 1 and words[i - 1].lower == "of" and words[i - 2].canonical in WORDS.tones
        return tone and i + 1 < len(words) and words[i + 1].part is Role.AND

    def _is_pattern(self, i: int) -> bool:
        """Return whether `with` at ``i`` begins a pattern on the noun that follows."""
        after = self.words[i + 1 : i + 4]
        kinds = [Role.ADJECTIVE, Role.ADJECTIVE, Role.NOUN]
        is_phrase = [word.part for word in after] == kinds and after[
            1
        ].lower in WORDS.patterns_and_edges
        return is_phrase and after[0].group == self.words[self.pending[-1]].group != ""

    def _unit(self) -> int:
        """Return where the last adjectives that belong together begin: coordinated ones, or two of
        one lexicon.
        """
        words, pending = self.words, self.pending
        start = len(pending) - 1
        while start and (
            pending[start] in self.joined
            or words[pending[start]].group == words[pending[start - 1]].group != ""
        ):
            start -= 1
        return start

    def _nouns(self, begin: int, heads: list[int], predicate: set[str] | None) -> None:
        """Take a sequence of nouns from ``begin``: the first gets the adjectives, the others share
        them.

        ``predicate`` has the groups of the adjectives of the last noun's predicate; None if it has
        none.
        """
        first, others = heads[0], heads[1:]
        has_modifier = begin < first and not self.words[begin].group  # `and amber belly`
        if self.pending:
            # `red headed bird`, `white belly bird`: adjectives before `red` modify the bird.
            inner = self.words[first].possessed or bool(
                others and self.words[others[0]].lower in WORDS.birds
            )
            start = self._unit() if inner else 0
            if (
                self.words[first].lower in WORDS.features
                and self.words[self.pending[-1]].canonical in WORDS.stacking
            ):
                start = len(self.pending)  # `a large bearded man`
            outer, taken = self.pending[:start], self.pending[start:]
            self._link(taken, first)
            if self.conjunction and begin == first and not self.words[first].group and not others:
                # `red and banana`: after a conjunction, a noun alone may be coordinated with a
                # color as a noun.
                self._dispute(taken)
            if inner and others:
                self._link(outer, others[0])
                self.pending, self.last = [], []
            else:
                self.pending, self.last = outer, taken
                self._share(others, predicate)
            self.joined &= set(self.pending)
        elif self.conjunction and self.last and not has_modifier:
            self._share(heads, predicate)
        else:
            self.last = []

    def _link(self, adjectives: list[int], noun: int) -> None:
        for position, adjective in enumerate(adjectives):
            direct = all(later in self.joined for later in adjectives[position + 1 :])
            self.links.append(Link(adjective, noun, "adjacent" if direct else "attributive"))

    def _dispute(self, adjectives: list[int]) -> None:
        for link in self.links[-len(adjectives) :]:
            link.relation = "disputed"

    def _share(self, nouns: list[int], predicate: set[str] | None) -> None:
        for noun in nouns:
            groups = predicate if noun == nouns[-1] else None
            is_clear = groups is None and not self._is_apart(noun)
            for adjective in self.last:
                if groups is None or self.words[adjective].group not in groups:
                    self.links.append(Link(adjective, noun, "shared" if is_clear else "disputed"))

    def _is_apart(self, noun: int) -> bool:
        """Return whether a coordinated noun may have no part in the adjective: `a black shirt and
        jeans`.

        An article for one thing does not reach a plural, nor do the adjectives of things reach
        people. Of listed nouns, which are parts of a thing, all have it.
        """
        word = self.words[noun]
        is_other = self.is_single and word.plural or word.canonical in WORDS.people
        return is_other and not word.group and not self.words[self.links[-1].noun].group


def _heads(words: list[Word], nouns: Sequence[int]) -> list[int]:
    """Return the nouns of a sequence that are separate things: `breast feathers` is one, `crown
    nape` two.
    """
    heads: list[int] = []
    for n in nouns:
        after = words[n + 1] if n < nouns[-1] else None
        if after and (
            not words[n].group or words[n].canonical in WORDS.ordinals or _carries(words[n], after)
        ):
            continue
        # After a compound, a noun that no lexicon lists is often a verb: `a red school bus stops`.
        is_vague_next = after is not None and after.lower in WORDS.vague_nouns
        if is_vague_next or not heads or words[n].group or words[heads[-1]].group != COMPOUND:
            heads.append(n)
        if is_vague_next:
            break
    return heads


def _carries(noun: Word, after: Word) -> bool:
    """Return whether the two are a compound whose head is the second."""
    is_carrier = after.canonical in WORDS.carriers and noun.canonical not in WORDS.marks
    return is_carrier or noun.canonical in WORDS.carriers_of.get(after.canonical, ())


def _closes(words: list[Word], i: int) -> bool:
    """Return whether the list of nouns that the comma at ``i`` continues ends with an `and` and a
    noun.
    """
    while i + 1 < len(words) and words[i].part in (Role.NOUN, Role.AND):
        if words[i].part is Role.AND and words[i].lower != "," and words[i + 1].part is Role.NOUN:
            return True
        i += 1
    return False


def _predicate_groups(words: list[Word], end: int) -> set[str] | None:
    """Return the lexicons of the own predicate of the noun before ``end``.

    That of `white` in `black head and wings that are white`; None if it has no predicate; all
    lexicons if it begins another clause: `black head and wings are long`.
    """
    if end == len(words) or words[end].part not in (Role.BE, Role.THAT):
        return None
    if words[end].part is Role.BE:
        return {word.group for word in words}
    adjectives, _ = _predicate(words, _skip(words, end, Role.BE, Role.THAT, Role.MODIFIER) - 1)
    return {words[adjective].group for adjective in adjectives}


def _begins_clause(words: list[Word], i: int) -> bool:
    """Return whether the nouns from ``i`` on are the subject of a copula: `belly and breast are
    white`.
    """
    i = _skip(words, i, Role.NOUN, Role.AND)
    return i < len(words) and words[i].part is Role.BE and words[i - 1].part is Role.NOUN


def _predicate(words: list[Word], be: int) -> tuple[list[int], int]:
    """Return the adjectives that the copula at ``be`` predicates, and where the next phrase begins.

    `is short and black and white belly`: the last adjective before a noun belongs to the noun.
    """
    i = be + 1
    article = i < len(words) and words[i].lower in WORDS.indefinite_articles
    i += article
    groups: list[list[int]] = [[]]  # adjectives between conjunctions
    begins = [i]
    while i < len(words) and words[i].part in (Role.ADJECTIVE, Role.AND, Role.MODIFIER):
        if words[i].part is Role.ADJECTIVE:
            groups[-1].append(i)
        elif words[i].part is Role.AND and groups[-1]:
            groups.append([])
            begins.append(i)
        i += 1
    flat = [a for group in groups for a in group]
    if i == len(words) or words[i].part is not Role.NOUN or words[i].lower in WORDS.vague_nouns:
        return flat, i
    if article or not flat:
        return [], be + 1
    if not groups[-1] or len(flat) == 1 and not _begins_clause(words, i):
        # `is black and wings`, `is brown feathers`.
        return (flat, begins[-1]) if not groups[-1] else ([], be + 1)
    if _begins_clause(words, i):
        return flat, i
    if len(groups) > 1:
        begin = _begin_of_attributes([[words[a].canonical for a in group] for group in groups])
        return [a for group in groups[:begin] for a in group], begins[begin]
    return flat[:1], flat[1]


def _begin_of_attributes(groups: list[list[str]]) -> int:
    """Return which group of a predicate's adjectives is the first that belongs to the noun after
    them.

    This is the last group; but a stack begins a noun's phrase (`is white and gray and long black
    and white wings`), and so does a repeated word (`is white and black and white wings`, `is black
    and black and white wings`).
    """
    last = len(groups) - 1
    for n in range(1, last):
        if len(groups[n]) > 1 or groups[n][0] in {group[0] for group in groups[:n]}:
            return n
    return (
        last - 1 if last > 1 and groups[last][0] in {group[0] for group in groups[:last]} else last
    )


def _subjects(words: list[Word], be: int, groups: set[str]) -> list[int]:
    """Return the subjects of the copula at ``be`` for adjectives of ``groups``, the nearest first;
    not pronouns.
    """
    n = _skip_back(words, be, Role.THAT, Role.MODIFIER) - 1
    if n < 0 or words[n].part is not Role.NOUN:
        return []
    that = any(word.part is Role.THAT for word in words[n + 1 : be])
    verb = words[be].lower
    plural = verb in WORDS.plural_verbs if verb in WORDS.numbered_verbs else None
    top = _top_of_span(words, n)
    if top is not None:
        # `crown down to nape are gray`
        return [n, top, *_coordinated(words, top, groups, that, plural is True)]
    governor = _governor(words, n)
    if governor is not None:
        # `spots on its wings are white`: the spots; `bird with spots on its head that is red`: the
        # head.
        first, second = (n, governor) if that else (governor, n)
        agree = plural is None or words[first].plural == plural or words[second].plural != plural
        n = first if agree else second
    return [n, *_coordinated(words, n, groups, that, plural is True and not words[n].plural)]


def _start_of_phrase(words: list[Word], n: int) -> int:
    """Return where the noun phrase of the noun at ``n`` begins."""
    return _skip_back(words, _skip_back(words, n, Role.ADJECTIVE, Role.MODIFIER), Role.START)


def _top_of_span(words: list[Word], n: int) -> int | None:
    """Return the noun from which a span goes down to the noun at ``n``: `crown` in `crown down to
    the nape`.
    """
    to = _start_of_phrase(words, n) - 1
    if to < 2 or (words[to - 1].lower, words[to].lower) != ("down", "to"):
        return None
    top = to - 2
    top -= words[top].part is Role.AND
    return top if top >= 0 and words[top].part is Role.NOUN else None


def _governor(words: list[Word], n: int) -> int | None:
    """Return the noun that is located at the noun at ``n``: `spots` in `spots on its wings`."""
    governor = None
    while True:
        before = _start_of_phrase(words, n if governor is None else governor) - 1
        if before >= 1 and words[before].lower == "to":
            before -= 1  # `compared to its body`
            if words[before].part is Role.NOUN:
                return governor
        elif before < 1 or words[before].part is not Role.PLACE:
            return governor
        if before < 1 or words[before - 1].part is not Role.NOUN:
            return governor
        governor = before - 1


def _coordinated(
    words: list[Word], n: int, groups: set[str], that: bool, many: bool
) -> Sequence[int]:
    """Return further subjects before the noun at ``n``: `crown nape and back are black`.

    A noun with an adjective of the same lexicon is none: `black crown and wings are white`. Neither
    is the object of another phrase, unless the verb's number requires another subject (``many``),
    or a relative clause follows and none of them has any adjective: `a head and wings which are
    brown`.
    """
    start = _skip_back(words, n, Role.ADJECTIVE, Role.MODIFIER, *([Role.START] if many else []))
    if start < 2 or words[start - 1].part is not Role.AND or words[start - 2].part is not Role.NOUN:
        return []
    others = range(start - 2, _skip_back(words, start - 2, Role.NOUN) - 1, -1)
    begin = _start_of_phrase(words, others[-1])
    if any(w.part is Role.ADJECTIVE and w.group in groups for w in words[begin : others[-1]]):
        return []
    if that and not many:
        # A noun and at most a determiner, not itself coordinated.
        is_joined = begin > 0 and words[begin - 1].part in (Role.AND, Role.NOUN)
        is_bare = not is_joined and all(
            word.part is Role.START for word in words[begin : others[-1]]
        )
        return others if start == n and is_bare else []
    is_object = begin > 0 and words[begin - 1].part in (Role.OTHER, Role.PLACE)
    return others if many or not is_object else []
