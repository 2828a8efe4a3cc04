"""Find pairs by the order of words alone.

An adjective belongs to the nearest noun that follows it in its run: a sequence of adjectives,
nouns, conjunctions and modifiers. On captions without commas this is more reliable than a parse:
`white belly grey back` is a white belly and a gray back. A predicate belongs to the noun before its
verb: `the belly is white`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

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
    clause = 0
    i = 0
    while i < len(words):
        # Adjectives of a run wait for a noun; those after a copula have one.
        if words[i].part is not Role.BE:
            i = run.take(i)
            continue
        # No adjective before a verb modifies a noun after it.
        run.end()
        predicate = _predicate(words, i)
        subjects = _subjects_of(words, i, predicate.adjectives, clause)
        for n, noun in enumerate(subjects):
            relation = "shared" if n else "predicative"
            links.extend(Link(adjective, noun, relation) for adjective in predicate.adjectives)
        if subjects:
            i = predicate.end
            # The predicate ends before the subject of the next one.
            clause = i
        else:
            i += 1
    return links, set(run.without_noun)


def _subjects_of(words: list[Word], be: int, adjectives: list[int], clause: int) -> list[int]:
    """Return the subjects of predicated adjectives, from the position ``clause`` on."""
    if not adjectives:
        return []
    # The groups of the predicate decide which nouns can be further subjects.
    groups = {words[adjective].group for adjective in adjectives}
    # Only words after the last predicate can be its subject.
    return [clause + n for n in _subjects(words[clause:], be - clause, groups)]


def _skip(words: list[Word], i: int, *roles: Role) -> int:
    """Return the first position from ``i`` on whose word is none of ``roles``."""
    while i < len(words) and words[i].part in roles:
        i += 1
    return i


def _skip_back(words: list[Word], i: int, *roles: Role) -> int:
    """Return the start of the words of ``roles`` that end before ``i``."""
    while i and words[i - 1].part in roles:
        i -= 1
    return i


class _Run:
    """A sequence of words in which adjectives wait for their noun."""

    def __init__(self, words: list[Word], links: list[Link]) -> None:
        self.words = words
        self.links = links
        self.without_noun: list[int] = []  # adjectives that modify no noun of the caption
        self.end()

    def end(self) -> None:
        """Forget all adjectives: a word ends the run."""
        self.pending: list[int] = []  # adjectives still without a noun
        # Pending adjectives that a conjunction joins to the one before.
        self.joined: set[int] = set()
        self.last: list[int] = []  # adjectives of the last noun, which a coordinated noun shares
        self.conjunction = False
        self.is_single = False  # an article for one thing begins the run

    def take(self, i: int) -> int:
        """Take the word at ``i``, and the nouns that follow a noun; return the position of the next
        word.
        """
        word = self.words[i]
        if word.part is Role.ADJECTIVE:
            self._take_adjective(i)
        elif word.part is Role.NOUN:
            return self._take_nouns(i)
        elif word.lower == "with" and self.pending and self._is_pattern(i):
            # `black with white speckled feathers`: the feathers are black, the speckles white.
            self.without_noun.append(i + 1)
            return i + 2
        elif word.part is Role.AND:
            # A comma between nouns coordinates them only if an `and` follows: `a red shirt, people`
            # are two things.
            self.conjunction = word.lower != "," or bool(self.pending) or _closes(self.words, i)
        elif word.part is not Role.MODIFIER and not self._is_one(word):
            self.end()
            self.is_single = word.lower in WORDS.indefinite_articles
        return i + 1

    def _take_adjective(self, i: int) -> None:
        # `tones of brown and red eyes`: no eyes are brown.
        if self._is_tone(i):
            self.without_noun.append(i)
            return
        if self.words[i].lower in WORDS.edged and self.pending:
            # `black tipped wings`: the tips are black.
            unit = self._unit()
            self.without_noun.extend(self.pending[unit:])
            del self.pending[unit:]
        # `black and white wings`: white is joined to black.
        if self.conjunction and self.pending:
            self.joined.add(i)
        self.pending.append(i)
        self.conjunction = False

    def _take_nouns(self, begin: int) -> int:
        """Take the nouns in a row from ``begin``; return the position after them."""
        # `breast belly sides` are taken together.
        end = _skip(self.words, begin, Role.NOUN)
        heads = _heads(self.words, range(begin, end))
        self._link_nouns(begin, heads, _predicate_groups(self.words, end))
        self.conjunction = False
        return end

    def _is_one(self, word: Word) -> bool:
        """Return whether a word goes on with the run: `one blue and one green car`."""
        return word.lower == "one" and self.conjunction and bool(self.pending)

    def _is_tone(self, i: int) -> bool:
        """Return whether a color is a noun: brown in `tones of brown and red eyes`."""
        words = self.words
        if i < 2 or i + 1 == len(words):
            return False
        if words[i - 1].lower != "of":
            return False
        if words[i - 2].canonical not in WORDS.tones:
            return False
        return words[i + 1].part is Role.AND

    def _is_pattern(self, i: int) -> bool:
        """Return whether `with` at ``i`` begins a pattern on the noun that follows."""
        phrase = self.words[i + 1 : i + 4]
        # `with white speckled feathers`
        if [word.part for word in phrase] != [Role.ADJECTIVE, Role.ADJECTIVE, Role.NOUN]:
            return False
        color, pattern, _ = phrase
        if pattern.lower not in WORDS.patterns_and_edges:
            return False
        last = self.words[self.pending[-1]]
        return color.group != "" and color.group == last.group

    def _unit(self) -> int:
        """Return where the last adjectives that belong together begin: coordinated ones, or two of
        one lexicon.
        """
        # "" for adjectives that no lexicon lists.
        groups = [self.words[adjective].group for adjective in self.pending]
        start = len(self.pending) - 1
        while start:
            is_joined = self.pending[start] in self.joined
            is_same_group = groups[start] != "" and groups[start] == groups[start - 1]
            if not is_joined and not is_same_group:
                break
            start -= 1
        return start

    def _link_nouns(self, begin: int, heads: list[int], predicate: set[str] | None) -> None:
        """Take a sequence of nouns from ``begin``: the first gets the adjectives, the others share
        them.

        ``predicate`` has the groups of the adjectives of the last noun's predicate; None if it has
        none.
        """
        if self.pending:
            self._link_pending(begin, heads, predicate)
            return
        first = heads[0]
        has_modifier = begin < first and not self.words[begin].group  # `and amber belly`
        # `red breast and belly`: the belly shares the adjective.
        if self.conjunction and self.last and not has_modifier:
            self._share(heads, predicate)
        else:
            self.last = []

    def _link_pending(self, begin: int, heads: list[int], predicate: set[str] | None) -> None:
        first = heads[0]
        further = heads[1:]
        is_inner = self._is_inner(first, further)
        start = self._first_of_noun(first, is_inner)
        # They wait for the next noun: small in `small red headed bird`.
        outer = self.pending[:start]
        modifying = self.pending[start:]
        self._link(modifying, first)
        is_alone = begin == first and not self.words[first].group and not further
        if self.conjunction and is_alone:
            # `red and banana`: after a conjunction, a noun alone may be coordinated with a color
            # as a noun.
            self._dispute(modifying)
        if is_inner and further:
            # `small white belly bird`: the bird is small.
            self._link(outer, further[0])
            self.pending = []
            self.last = []
        else:
            self.pending = outer
            self.last = modifying
            self._share(further, predicate)
        # Positions of adjectives that have their noun are of no more use.
        self.joined &= set(self.pending)

    def _is_inner(self, first: int, further: list[int]) -> bool:
        """Return whether a noun only has the adjectives beside it, those before modify the noun
        that follows: `small red headed bird`, `small white belly bird`.
        """
        # `red headed bird`
        if self.words[first].possessed:
            return True
        # `white belly bird`
        return bool(further) and self.words[further[0]].lower in WORDS.birds

    def _first_of_noun(self, noun: int, is_inner: bool) -> int:
        """Return which pending adjective is the first that modifies the noun."""
        last = self.words[self.pending[-1]]
        if self.words[noun].lower in WORDS.features and last.canonical in WORDS.stacking:
            return len(self.pending)  # `a large bearded man`
        return self._unit() if is_inner else 0

    def _link(self, adjectives: list[int], noun: int) -> None:
        for n, adjective in enumerate(adjectives):
            # In `a long red and black bill`, red and black are adjacent, long is not.
            is_direct = all(later in self.joined for later in adjectives[n + 1 :])
            relation = "adjacent" if is_direct else "attributive"
            self.links.append(Link(adjective, noun, relation))

    def _dispute(self, adjectives: list[int]) -> None:
        """Dispute the links of these adjectives, which are the last."""
        for link in self.links[-len(adjectives) :]:
            link.relation = "disputed"

    def _share(self, nouns: list[int], predicate: set[str] | None) -> None:
        for noun in nouns:
            groups = None
            # The predicate is that of the last noun only.
            if noun == nouns[-1]:
                groups = predicate
            # `white breast and belly that is fluffy`: whether the belly is white, too, is open.
            is_clear = groups is None and not self._is_apart(noun)
            relation = "shared" if is_clear else "disputed"
            for adjective in self.last:
                group = self.words[adjective].group
                if groups is None or group not in groups:
                    self.links.append(Link(adjective, noun, relation))

    def _is_apart(self, noun: int) -> bool:
        """Return whether a coordinated noun may have no part in the adjective: `a black shirt and
        jeans`.

        An article for one thing does not reach a plural, nor do the adjectives of things reach
        people. Of listed nouns, which are parts of a thing, all have it.
        """
        word = self.words[noun]
        # Listed nouns are parts of one thing.
        if word.group or self.words[self.links[-1].noun].group:
            return False
        return self.is_single and word.plural or word.canonical in WORDS.people


def _heads(words: list[Word], nouns: Sequence[int]) -> list[int]:
    """Return the nouns of a sequence that are separate things: `breast feathers` is one, `crown
    nape` two.
    """
    heads: list[int] = []
    for n in nouns:
        following = words[n + 1] if n < nouns[-1] else None
        # Only the last noun of a compound is a thing.
        if following is not None and _modifies_noun(words[n], following):
            continue
        # After a compound, a noun that no lexicon lists is often a verb: `a red school bus stops`.
        follows_compound = bool(heads) and words[heads[-1]].group == COMPOUND
        is_verb = follows_compound and not words[n].group
        is_vague_next = following is not None and following.lower in WORDS.vague_nouns
        if is_vague_next or not is_verb:
            heads.append(n)
        if is_vague_next:
            break
    return heads


def _modifies_noun(noun: Word, following: Word) -> bool:
    """Return whether a noun is only part of the name of the next one."""
    # A noun that no lexicon lists, or such as `primary` in `black primary wings`.
    if not noun.group or noun.canonical in WORDS.ordinals:
        return True
    # A compound whose head is the second: `breast feathers`.
    is_mark = noun.canonical in WORDS.marks
    if not is_mark and following.canonical in WORDS.carriers:
        return True
    # `wing coverts`, but a `crown crest` is two things.
    return noun.canonical in WORDS.carriers_of.get(following.canonical, ())


def _closes(words: list[Word], i: int) -> bool:
    """Return whether the list of nouns that the comma at ``i`` continues ends with an `and` and a
    noun.
    """
    while i + 1 < len(words) and words[i].part in (Role.NOUN, Role.AND):
        # `red breast, belly and throat`
        is_and = words[i].part is Role.AND and words[i].lower != ","
        if is_and and words[i + 1].part is Role.NOUN:
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
    # `black head and wings are long` begins a clause at the wings.
    if words[end].part is Role.BE:
        return {word.group for word in words}
    be = _skip(words, end, Role.BE, Role.THAT, Role.MODIFIER) - 1
    predicate = _predicate(words, be)
    return {words[adjective].group for adjective in predicate.adjectives}


def _begins_clause(words: list[Word], i: int) -> bool:
    """Return whether the nouns from ``i`` on are the subject of a copula: `belly and breast are
    white`.
    """
    i = _skip(words, i, Role.NOUN, Role.AND)
    return i < len(words) and words[i].part is Role.BE and words[i - 1].part is Role.NOUN


class _Predicate(NamedTuple):
    """The adjectives that a copula predicates, and where the next phrase begins."""

    adjectives: list[int]
    end: int


class _Coordination(NamedTuple):
    """Adjectives that follow a copula."""

    groups: list[list[int]]  # between conjunctions; the last is empty after a conjunction
    begins: list[int]  # the conjunction before each group
    end: int

    @property
    def adjectives(self) -> list[int]:
        return [adjective for group in self.groups for adjective in group]


def _read_coordination(words: list[Word], begin: int) -> _Coordination:
    groups: list[list[int]] = [[]]
    begins = [begin]
    end = _skip(words, begin, Role.ADJECTIVE, Role.AND, Role.MODIFIER)
    for i in range(begin, end):
        if words[i].part is Role.ADJECTIVE:
            groups[-1].append(i)
        # Of `, and`, only the first begins a group.
        elif words[i].part is Role.AND and groups[-1]:
            groups.append([])
            begins.append(i)
    return _Coordination(groups, begins, end)


def _predicate(words: list[Word], be: int) -> _Predicate:
    """Return what the copula at ``be`` predicates.

    `is short and black and white belly`: the last adjective before a noun belongs to the noun.
    """
    begin = be + 1
    has_article = begin < len(words) and words[begin].lower in WORDS.indefinite_articles
    if has_article:
        begin += 1
    coordination = _read_coordination(words, begin)
    adjectives = coordination.adjectives
    end = coordination.end
    whole = _Predicate(adjectives, end)
    nothing = _Predicate([], be + 1)
    if end == len(words) or words[end].part is not Role.NOUN:
        return whole
    # `is a bright red color`
    if words[end].lower in WORDS.vague_nouns:
        return whole
    # `is a red bird`, `is feathers`
    if has_article or not adjectives:
        return nothing
    if not coordination.groups[-1]:
        return _Predicate(adjectives, coordination.begins[-1])  # `is black and wings`
    # `the crown is red belly and breast are white`
    if _begins_clause(words, end):
        return whole
    if len(adjectives) == 1:
        return nothing  # `is brown feathers`
    # `is short black belly`: the first is predicated, the belly is black.
    if len(coordination.groups) == 1:
        return _Predicate(adjectives[:1], adjectives[1])
    return _before_attributes(words, coordination)


def _before_attributes(words: list[Word], coordination: _Coordination) -> _Predicate:
    """Return a predicate without the groups that belong to the noun after it."""
    names = [[words[adjective].canonical for adjective in g] for g in coordination.groups]
    first = _begin_of_attributes(names)
    predicated = coordination._replace(groups=coordination.groups[:first])
    return _Predicate(predicated.adjectives, coordination.begins[first])


def _begin_of_attributes(groups: list[list[str]]) -> int:
    """Return which group of a predicate's adjectives is the first that belongs to the noun after
    them.

    This is the last group; but a stack begins a noun's phrase (`is white and gray and long black
    and white wings`), and so does a repeated word (`is white and black and white wings`, `is black
    and black and white wings`).
    """
    last = len(groups) - 1
    firsts = [group[0] for group in groups]
    for n in range(1, last):
        # `is white and gray and long black and white wings`
        if len(groups[n]) > 1 or firsts[n] in firsts[:n]:
            return n
    # `is white and black and white wings`: the wings are black and white.
    if last > 1 and firsts[last] in firsts[:last]:
        return last - 1
    return last


def _subjects(words: list[Word], be: int, groups: set[str]) -> list[int]:
    """Return the subjects of the copula at ``be`` for adjectives of ``groups``, the nearest first;
    not pronouns.
    """
    noun = _skip_back(words, be, Role.THAT, Role.MODIFIER) - 1
    # `it is red`
    if noun < 0 or words[noun].part is not Role.NOUN:
        return []
    # `wings that are white`
    is_relative = any(word.part is Role.THAT for word in words[noun + 1 : be])
    plural = _number(words[be].lower)
    top = _top_of_span(words, noun)
    if top is not None:
        # `crown down to nape are gray`
        return [noun, top, *_coordinated(words, top, groups, is_relative, plural is True)]
    governor = _governor(words, noun)
    if governor is not None:
        noun = _agreeing(words, noun, governor, is_relative, plural)
    # `crown and nape are black`: one of them alone cannot be the subject.
    needs_more = plural is True and not words[noun].plural
    return [noun, *_coordinated(words, noun, groups, is_relative, needs_more)]


def _number(verb: str) -> bool | None:
    """Return whether a verb is plural, None if its form does not tell."""
    if verb not in WORDS.numbered_verbs:
        return None
    return verb in WORDS.plural_verbs


def _agreeing(
    words: list[Word], noun: int, governor: int, is_relative: bool, plural: bool | None
) -> int:
    """Return which of a noun and its governor is the subject of a verb.

    `spots on its wings are white`: the spots; `bird with spots on its head that is red`: the head;
    but the other one if only its number is the verb's.
    """
    likely = noun if is_relative else governor
    unlikely = governor if is_relative else noun
    # The verb's number does not speak against the likely one.
    if plural is None or words[likely].plural == plural:
        return likely
    return unlikely if words[unlikely].plural == plural else likely


def _start_of_phrase(words: list[Word], n: int) -> int:
    """Return where the noun phrase of the noun at ``n`` begins."""
    first_adjective = _skip_back(words, n, Role.ADJECTIVE, Role.MODIFIER)
    return _skip_back(words, first_adjective, Role.START)


def _top_of_span(words: list[Word], n: int) -> int | None:
    """Return the noun from which a span goes down to the noun at ``n``: `crown` in `crown down to
    the nape`.
    """
    end = _start_of_phrase(words, n)
    if end < 3 or words[end - 2].lower != "down" or words[end - 1].lower != "to":
        return None
    top = end - 3
    # `crown, down to the nape`
    if words[top].part is Role.AND:
        top -= 1
    return top if top >= 0 and words[top].part is Role.NOUN else None


def _governor(words: list[Word], n: int) -> int | None:
    """Return the noun that is located at the noun at ``n``: `spots` in `spots on its wings`."""
    governor = None
    while True:
        preposition = _start_of_phrase(words, n) - 1
        if preposition >= 1 and words[preposition].lower == "to":
            preposition -= 1  # `compared to its body`
            if words[preposition].part is Role.NOUN:
                return governor
        elif preposition < 1 or words[preposition].part is not Role.PLACE:
            return governor
        if preposition < 1 or words[preposition - 1].part is not Role.NOUN:
            return governor
        # A governor may have a governor itself; the outermost counts.
        governor = preposition - 1
        n = governor


def _coordinated(
    words: list[Word], n: int, groups: set[str], is_relative: bool, needs_more: bool
) -> Sequence[int]:
    """Return further subjects before the noun at ``n``: `crown nape and back are black`.

    A noun with an adjective of the same lexicon is none: `black crown and wings are white`. Neither
    is the object of another phrase, unless the verb's number requires another subject
    (``needs_more``), or a relative clause follows and none of them has any adjective: `a head and
    wings which are brown`.
    """
    skipped = [Role.ADJECTIVE, Role.MODIFIER]
    if needs_more:
        skipped.append(Role.START)
    start = _skip_back(words, n, *skipped)
    if start < 2 or words[start - 1].part is not Role.AND or words[start - 2].part is not Role.NOUN:
        return []
    first = _skip_back(words, start - 2, Role.NOUN)
    subjects = range(start - 2, first - 1, -1)
    begin = _start_of_phrase(words, first)
    opening = words[begin:first]
    # `black crown and wings are white`: only the wings are white.
    if any(word.part is Role.ADJECTIVE and word.group in groups for word in opening):
        return []
    if needs_more:
        return subjects
    previous = words[begin - 1].part if begin > 0 else None
    if not is_relative:
        # `with a crown and wings`
        if previous in (Role.OTHER, Role.PLACE):
            return []
        return subjects
    # A noun and at most a determiner, not itself coordinated.
    is_joined = previous in (Role.AND, Role.NOUN)
    is_bare = start == n and all(word.part is Role.START for word in opening)
    return subjects if is_bare and not is_joined else []
