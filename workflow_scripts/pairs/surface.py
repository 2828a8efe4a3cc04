"""Pairs by the order of words alone: an adjective belongs to the nearest noun that follows it in its run.

A run is a stretch of adjectives, nouns, conjunctions and what stands inside a phrase. On captions without
commas it is surer than a parse: `white belly grey back` is a white belly and a gray back.
"""

from __future__ import annotations

from dataclasses import dataclass

from workflow_scripts.pairs.words import EDGED, VAGUE, WHOLE, Part, Word

# What is named after another noun and is what the adjective is about: `breast feathers`, `cheek patch`.
CARRIERS = frozenset("feather patch spot stripe eyering wingbar bar ring marking mark streak band line tip".split())


@dataclass(frozen=True, slots=True)
class Link:
    """An adjective and a noun, as positions in the row of words."""

    adjective: int
    noun: int
    relation: str


def _heads(words: list[Word], nouns: list[int], compound: set[int]) -> list[int]:
    """Which of a stretch of nouns are things of their own: `breast feathers` is one, `crown nape` two."""
    heads: list[int] = []
    for position, n in enumerate(nouns):
        following = nouns[position + 1] if position + 1 < len(nouns) else None
        if following is not None:
            after = words[following]
            vague = after.lower in VAGUE or after.lower in WHOLE
            if not (words[n].group and vague) and (
                after.canonical in CARRIERS
                or not words[n].group
                or (n in compound and not after.group)
                or words[n].canonical in ("primary", "secondary")
            ):
                continue
        heads.append(n)
    return heads


def find(words: list[Word], compound: set[int]) -> list[Link]:
    """The pairs of relation adjacent, attributive (further left in a stack) and shared.

    Args:
        words: the caption
        compound: words that the parse takes for the first part of a compound noun
    """
    links: list[Link] = []
    pending: list[int] = []  # adjectives still without a noun
    joined: set[int] = set()  # of these, the ones that a conjunction ties to the one before
    last: list[int] = []  # adjectives of the noun just passed, which a coordinated noun may share
    conjunction = False
    i = 0
    while i < len(words):
        word = words[i]
        if word.part is Part.ADJECTIVE:
            if word.lower in EDGED and pending:
                # `black tipped wings`: the tips are black.
                del pending[_unit(words, pending, joined) :]
            if conjunction and pending:
                joined.add(i)
            pending.append(i)
            conjunction = False
        elif word.part is Part.NOUN:
            nouns = [i]
            while i + 1 < len(words) and words[i + 1].part is Part.NOUN:
                i += 1
                nouns.append(i)
            heads = _heads(words, nouns, compound)
            if pending:
                last = _attach(words, pending, joined, heads, links)
                pending = [p for p in pending if p not in last] if _inner(words, heads) else []
                joined &= set(pending)
            elif conjunction and last and not _own_predicate(words, i):
                links.extend(Link(adjective, heads[0], "shared") for adjective in last)
            else:
                last = []
            conjunction = False
        elif word.part is Part.AND:
            conjunction = True
        elif word.part is not Part.MODIFIER:
            pending, joined, last, conjunction = [], set(), [], False
        i += 1
    return links


def _inner(words: list[Word], heads: list[int]) -> bool:
    """`red headed` before a further noun: what stands before `red` is about that noun."""
    return words[heads[0]].lower.endswith("ed") or len(heads) > 1 and words[heads[1]].lower in WHOLE


def _unit(words: list[Word], pending: list[int], joined: set[int]) -> int:
    """Where the last adjectives that belong together begin: coordinated ones, or two of one lexicon."""
    start = len(pending) - 1
    while start and (pending[start] in joined or words[pending[start]].group == words[pending[start - 1]].group != ""):
        start -= 1
    return start


def _attach(words: list[Word], pending: list[int], joined: set[int], heads: list[int], links: list[Link]) -> list[int]:
    """Link the adjectives to the first of the nouns, and say which of them it took."""
    taken = pending[_unit(words, pending, joined) :] if _inner(words, heads) else list(pending)
    for position, adjective in enumerate(taken):
        direct = all(later in joined for later in taken[position + 1 :])
        links.append(Link(adjective, heads[0], "adjacent" if direct else "attributive"))
    if not _inner(words, heads):
        for other in heads[1:]:
            links.extend(Link(adjective, other, "shared") for adjective in taken)
    elif len(heads) > 1:
        rest = pending[: len(pending) - len(taken)]
        links.extend(Link(adjective, heads[1], "attributive") for adjective in rest)
    return taken


def _own_predicate(words: list[Word], i: int) -> bool:
    """Whether the noun has a predicate of its own: `black head and wings that are white`."""
    after = words[i + 1 : i + 3]
    return bool(after) and (after[0].part is Part.BE or after[0].part is Part.THAT)
