"""Find the compounds of dependency trees (Keysers et al. 2020, section 2.1 and appendix L.4).

A compound is a connected part of a tree, identified by its words and relations regardless of the order of children: 2
to ``nodes`` words of which none has more than ``branching`` children inside it, and downward paths of any length.

The weight of a compound G in a sample R is W(G,R) = max over its occurrences g in R of 1 - max over G' around g of
P(G'|G). A compound's name determines its structure, so P(G'|G) = samples(G') / samples(G). This falls as G' grows, and
between two nested compounds there is one of every size in between; so those one node larger suffice.
"""

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numba import njit, uint64

from workflow_scripts.core.cli import log
from workflow_scripts.core.progress import Progress
from workflow_scripts.divergence.chernoff import Totals
from workflow_scripts.divergence.enumeration import Found, Trees, listed, plan, search
from workflow_scripts.divergence.samples import Bags
from workflow_scripts.divergence.scratch import Scratch
from workflow_scripts.divergence.trees import Forest

# Most occurrences in one text, whose positions fit 16 bits; captions have hundreds.
LIMIT = 65_535
# Occurrences that are searched, and weighed, between two updates of the progress and releases of memory.
BLOCK = 1 << 20
# Occurrences whose compounds are numbered at once, by a table of their codes in memory; compounds weighed at once.
NUMBERED = 1 << 24
# Texts of samples that are weighed between two releases of memory.
TEXTS = 1 << 14
# A label that needs no quotes in a name.
PLAIN = re.compile(r"[^\s():\"]+")


class Occurrences(NamedTuple):
    """The occurrences of compounds in all texts, in the order of ``enumeration.Found``."""

    begins: np.ndarray  # where each text's begin, and the end
    compounds: np.ndarray  # of each, its compound's number (int32)
    inner: np.ndarray
    inner_counts: np.ndarray
    inner_begins: np.ndarray  # where those of each text begin in ``inner``, and the end


class Numbers(NamedTuple):
    """A hash table of the distinct codes found so far."""

    table: np.ndarray  # positions in ``keys``, -1 where free; a power of two, at least twice as long
    keys: np.ndarray  # codes, in the order of their first occurrences
    first: np.ndarray  # where each occurs first
    n: int  # how many there are


@njit(cache=True)
def _number(codes, begin, end, shift, part, base, known, numbers):
    """Number the codes from ``begin`` to ``end`` whose bits from ``shift`` are ``part``, from ``base``.

    Codes get numbers in the order of their first occurrences. Returns ``known`` with the new ones.
    """
    table, keys, first, n = known
    for o in range(begin, end):
        code = codes[o]
        if code >> uint64(shift) >> uint64(1) != part:
            continue
        slot = code & uint64(len(table) - 1)
        while table[slot] >= 0 and keys[table[slot]] != code:
            slot = (slot + uint64(1)) & uint64(len(table) - 1)
        if table[slot] < 0:
            if n == len(keys):
                keys, first = np.concatenate((keys, keys)), np.concatenate((first, first))
                table = np.full(2 * len(table), -1, np.int32)
                for i in range(n):
                    slot = keys[i] & uint64(len(table) - 1)
                    while table[slot] >= 0:
                        slot = (slot + uint64(1)) & uint64(len(table) - 1)
                    table[slot] = i
                slot = code & uint64(len(table) - 1)
                while table[slot] >= 0:
                    slot = (slot + uint64(1)) & uint64(len(table) - 1)
            table[slot], keys[n], first[n] = n, code, o
            n += 1
        numbers[o] = base + table[slot]
    return Numbers(table, keys, first, n)


@njit(cache=True)
def _count(samples, first, last, begins, compounds, low, seen, number):
    """Add the samples from ``first`` to ``last`` to the ``number`` of those with each compound, from ``low`` on."""
    for r in range(first, last):
        for t in samples.items[samples.begins[r] : samples.begins[r + 1]]:
            for o in range(begins[t], begins[t + 1]):
                c = compounds[o] - low
                if 0 <= c < len(seen) and seen[c] != r + 1:
                    seen[c] = r + 1
                    number[c] += 1


@njit(cache=True)
def _excess(texts, found, number, ends, compounds, excess):
    """Find samples(G) - max over G' around g of samples(G'), where above zero, for each occurrence g in ``texts``.

    Fills ``compounds`` and ``excess``, and where each text ends there; returns the last end.
    """
    widest = 0
    for t in texts:
        widest = max(widest, found.begins[t + 1] - found.begins[t])
    own, around = np.empty(widest, np.int32), np.empty(widest, np.int32)
    filled = 0
    for i in range(len(texts)):
        t = texts[i]
        begin, at = found.begins[t], found.inner_begins[t]
        size = found.begins[t + 1] - begin
        for o in range(size):
            own[o], around[o] = number[found.compounds[begin + o]], 0
        for o in range(size):
            for _ in range(found.inner_counts[begin + o]):
                inside = found.inner[at]
                around[inside] = max(around[inside], own[o])
                at += 1
        for o in range(size):
            if own[o] > around[o]:
                compounds[filled], excess[filled] = found.compounds[begin + o], own[o] - around[o]
                filled += 1
        ends[i] = filled
    return filled


@njit(cache=True)
def _sum(samples, first, last, begins, columns, excess, low, latest, total):
    """Add samples(G) W(G,R), the maximum over the occurrences in R, of the samples from ``first`` to ``last``.

    ``latest`` and ``total`` are of the compounds from ``low`` on.
    ``latest`` holds the last sample of each compound and the maximum in it, in one number that is read at once.
    """
    for r in range(first, last):
        sample = (r + 1) << 32
        for t in samples.items[samples.begins[r] : samples.begins[r + 1]]:
            for i in range(begins[t], begins[t + 1]):
                c = columns[i] - low
                if 0 <= c < len(latest):
                    before, now = max(sample, latest[c]), sample + excess[i]
                    if now > before:
                        latest[c] = now
                        total[c] += now - before


@njit(cache=True)
def _choose(column, ends, columns, excess, i, filled):
    """Keep the entries from ``i`` of compounds that have a ``column``, in place; return the number of all kept.

    Makes ``ends``, of texts in the order of entries, those of what is kept.
    """
    for t in range(len(ends)):
        while i < ends[t]:
            c = column[columns[i]]
            if c >= 0:
                columns[filled], excess[filled] = c, excess[i]
                filled += 1
            i += 1
        ends[t] = filled
    return filled


@njit(cache=True)
def _words(texts, offsets, labels, total):
    """Add the counts of words in ``texts``."""
    for t in texts:
        for label in labels[offsets[t] : offsets[t + 1]]:
            total[label] += 1


def blocks(begins: np.ndarray, size: int) -> Iterator[tuple[int, int]]:
    """Yield where blocks of about ``size`` items, at least one bag each, begin and end."""
    first = 0
    while first < len(begins) - 1:
        last = max(first + 1, int(np.searchsorted(begins, begins[first] + size, "right")) - 1)
        yield first, last
        first = last


class Excess(NamedTuple):
    """samples(G) - max over G' around g of samples(G'), where above zero, for each occurrence g in texts."""

    positions: np.ndarray  # of all texts in ``begins``; -1 where not among these
    begins: np.ndarray  # where each text's begin, and the end
    columns: np.ndarray  # the compound of each
    values: np.ndarray

    def sums(self, samples: Bags, n: int, scratch: Scratch) -> np.ndarray:
        """Return samples(G) W(G,R), summed over samples of these texts, of each of ``n`` compounds."""
        total = scratch.zeros(n, np.int64)
        samples = Bags(samples.begins, self.positions[samples.items])
        if (samples.items < 0).any():
            raise IndexError("expected texts of the samples that were weighed")
        # In the order of their texts, so that each block of samples reads few pages.
        samples = samples.take(np.argsort(np.append(samples.items, 0)[samples.begins[:-1]], kind="stable"))
        for low in range(0, n, NUMBERED):
            part = total[low : low + NUMBERED]
            latest = np.zeros_like(part)
            for first, last in blocks(samples.begins, TEXTS):
                _sum(samples, first, last, self.begins, self.columns, self.values, low, latest, part)
                scratch.release()
        return total


def _hash(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")


@dataclass(frozen=True)
class Subgraphs:
    """The compounds of a forest: all texts are searched once, then any choice of samples can be weighed."""

    forest: Forest
    nodes: int
    branching: int
    occurrences: Occurrences
    first: np.ndarray  # the first occurrence of each compound
    largest: np.ndarray  # the size up to which each text was searched, below what was asked only in texts that were cut
    cut: int  # number of larger occurrences in texts that have more than ``LIMIT``
    cut_texts: int  # number of these texts
    _names: dict[int, str] = field(default_factory=dict, repr=False)

    def names(self, compounds: np.ndarray) -> list[str]:
        """Return readable, unique names: ``bird(amod:yellow det:a)``, children sorted; words with signs are quoted."""
        unnamed = np.array(sorted({int(c) for c in compounds} - self._names.keys()), dtype=np.int64)
        texts = np.searchsorted(self.occurrences.begins, self.first[unnamed], "right") - 1
        by_text = np.argsort(texts, kind="stable")
        for rows in np.split(by_text, np.flatnonzero(np.diff(texts[by_text])) + 1) if len(unnamed) else []:
            self._name(int(texts[rows[0]]), unnamed[rows])
        return [self._names[int(c)] for c in compounds]

    def _name(self, text: int, compounds: np.ndarray) -> None:
        forest, begins = self.forest, self.occurrences.begins
        begin = begins[text]
        nodes = slice(forest.offsets[text], forest.offsets[text + 1])
        largest = self.largest[text]
        order, parents, depths, sets = listed(
            forest.heads[nodes], largest, self.nodes, self.branching, begins[text + 1] - begin
        )
        labels, relations = forest.labels[nodes][order], forest.relations[nodes][order]
        # Longer paths follow the sets, by their lower ends, then by length.
        longer = len(sets) + np.cumsum(np.maximum(0, np.minimum(depths, largest) - self.nodes))
        for compound in compounds:
            o = self.first[compound] - begin
            if o < len(sets):
                members = [v for v in sets[o].tolist() if v >= 0]
            else:
                v = int(np.searchsorted(longer, o, "right"))
                size = self.nodes + 1 + o - (longer[v - 1] if v else len(sets))
                members = [v]
                while len(members) < size:
                    members.insert(0, int(parents[members[0]]))
            children: dict[int, list[str]] = {v: [] for v in members}
            for v in reversed(members):
                name = forest.label_names[labels[v]]
                if not PLAIN.fullmatch(name):
                    name = json.dumps(name, ensure_ascii=False)
                if children[v]:
                    name += f"({' '.join(sorted(children[v]))})"
                if v == members[0]:
                    self._names[int(compound)] = name
                else:
                    children[parents[v]].append(f"{forest.relation_names[relations[v]]}:{name}")

    def weigh(self, samples: Bags, keep: int, more: Bags) -> "Weighing":
        """Determine P(G'|G) and the ``keep`` heaviest compounds from ``samples``.

        Args:
            samples: of texts, as positions in the forest.
            more: further samples that ``Weighing.totals`` may be asked for; their texts do not count here.
        """
        n, found, scratch = len(self.first), self.occurrences, Scratch(self.forest.scratch.folder)
        number = scratch.zeros(n, np.int32)
        texts = np.unique(np.concatenate((samples.items, more.items)))
        if len(texts) and not 0 <= texts[0] <= texts[-1] < len(self.forest):
            # Compiled code would not notice.
            raise IndexError(f"expected texts from 0 to {len(self.forest) - 1}")
        for low in range(0, n, NUMBERED):
            part = number[low : low + NUMBERED]
            seen = np.zeros_like(part)
            for first, last in blocks(samples.begins, TEXTS):
                _count(samples, first, last, found.begins, found.compounds, low, seen, part)
                self.forest.scratch.release()
            scratch.release()
        excess = self._excess(texts, number, scratch)
        total = excess.sums(samples, n, scratch)
        kept = self._heaviest(total, number, keep, scratch)
        names = self.names(kept)
        order = sorted(range(len(kept)), key=names.__getitem__)
        kept = kept[order]
        column = scratch.zeros(n, np.int32)
        column[:] = -1
        column[kept] = np.arange(len(kept))
        filled, all_begins = 0, excess.begins.copy()
        for first, last in blocks(all_begins, BLOCK):
            ends = excess.begins[first + 1 : last + 1]
            filled = _choose(column, ends, excess.columns, excess.values, all_begins[first], filled)
            scratch.release()
        label_order = sorted(range(len(self.forest.label_names)), key=self.forest.label_names.__getitem__)
        return Weighing(
            self, excess, scratch, number[kept], label_order,
            [self.forest.label_names[k] for k in label_order], [names[k] for k in order],
        )  # fmt: skip

    def _excess(self, texts: np.ndarray, number: np.ndarray, scratch: Scratch) -> Excess:
        """Return what the occurrences in ``texts``, ascending, weigh."""
        found = self.occurrences
        begins = np.concatenate(([0], np.cumsum(found.begins[texts + 1] - found.begins[texts])))
        ends = np.zeros(len(texts) + 1, np.int64)
        with scratch.file() as columns, scratch.file() as values:
            for first, last in blocks(begins, BLOCK):
                room = np.empty((2, begins[last] - begins[first]), np.int32)
                filled = _excess(texts[first:last], found, number, ends[first + 1 : last + 1], room[0], room[1])
                ends[first + 1 : last + 1] += ends[first]
                columns.write(room[0, :filled].data)
                values.write(room[1, :filled].data)
                self.forest.scratch.release()
            positions = np.full(len(self.forest), -1, np.int64)
            positions[texts] = np.arange(len(texts))
            return Excess(positions, ends, scratch.map(columns, np.int32), scratch.map(values, np.int32))

    def _heaviest(self, total: np.ndarray, number: np.ndarray, keep: int, scratch: Scratch) -> np.ndarray:
        """Return the ``keep`` compounds of largest W = total / number above zero, ties by name."""

        def weights() -> Iterator[tuple[np.ndarray, np.ndarray]]:
            for low in range(0, len(total), BLOCK):
                compounds = low + np.flatnonzero(total[low : low + BLOCK])
                yield compounds, total[compounds] / number[compounds]
                scratch.release()

        largest = np.empty(0)
        for _, of_block in weights():
            largest = np.concatenate((largest, of_block))
            if len(largest) > keep:
                largest = np.partition(largest, len(largest) - keep)[-keep:]
        least = largest.min() if len(largest) == keep else 0
        above = np.concatenate([np.empty(0, np.int64), *(compounds[of > least] for compounds, of in weights())])
        tied = np.concatenate([np.empty(0, np.int64), *(compounds[of == least] for compounds, of in weights())])
        names = self.names(tied)
        order = sorted(range(len(tied)), key=names.__getitem__)
        return np.concatenate((above, tied[order[: keep - len(above)]]))


@dataclass(frozen=True)
class Weighing:
    """Weighs any samples by what ``Subgraphs.weigh`` determined from a pool."""

    subgraphs: Subgraphs
    excess: Excess  # of the compounds that count
    scratch: Scratch
    number: np.ndarray  # samples(G) in the pool, of each of these
    label_order: list[int]
    atom_names: list[str]
    compound_names: list[str]

    def totals(self, samples: Bags) -> Totals:
        """Return the counts of words, and the sums of W(G,R) over ``samples``."""
        forest = self.subgraphs.forest
        words = np.zeros(len(self.label_order), np.int64)
        _words(samples.items, forest.offsets, forest.labels, words)
        forest.scratch.release()
        return Totals(words[self.label_order], self.excess.sums(samples, len(self.number), self.scratch) / self.number)


def find_subgraphs(forest: Forest, nodes: int = 5, branching: int = 2) -> Subgraphs:
    """Find all compounds of up to ``nodes`` nodes with at most ``branching`` children, and all downward paths.

    Compounds are identified by 64-bit hashes of words and relations: among ten million, two share one with probability
    3e-6. In a text with more than ``LIMIT`` occurrences, only the smaller ones are listed, up to the size that fits;
    the others are counted. What is found goes to files in the forest's folder.
    """
    largest, counts, cut = plan(forest.heads, forest.offsets, nodes, branching, LIMIT)
    begins = np.concatenate(([0], np.cumsum(counts)))
    total = int(begins[-1])
    log.info("%d occurrences of compounds in %d texts", total, len(forest))
    if cut.any():
        log.warning(
            "warning: %d texts have more than %d compounds each; their largest, %.0f in total, are skipped",
            np.count_nonzero(cut), LIMIT, cut.sum(),
        )  # fmt: skip
    labels, relations = (
        np.array([_hash(name) for name in names], np.uint64) for names in (forest.label_names, forest.relation_names)
    )
    trees = Trees(forest.heads, forest.labels, forest.relations, labels, relations, forest.offsets, largest)
    scratch = forest.scratch
    codes, inner_counts = scratch.zeros(total, np.uint64), scratch.zeros(total, np.uint8)
    inner_ends = np.zeros(len(forest) + 1, np.int64)
    with Progress(len(forest), "texts") as progress, scratch.file() as inner:
        for first, last in blocks(begins, BLOCK):
            own, ends = slice(begins[first], begins[last]), slice(first + 1, last + 1)
            room = np.empty((begins[last] - begins[first]) * nodes, np.uint16)
            filled = search(
                trees, begins, nodes, branching, first, last,
                Found(codes[own], room, inner_counts[own], inner_ends[ends]),
            )  # fmt: skip
            inner_ends[ends] += inner_ends[first]
            inner.write(room[:filled].data)
            scratch.release()
            progress.add(last - first)
        links = scratch.map(inner, np.uint16)
    numbers, base = scratch.zeros(total, np.int32), 0
    bits = max(0, (total - 1) // NUMBERED).bit_length()
    with scratch.file() as firsts:
        for part in range(1 << bits):
            keys, places = np.empty(1 << 15, np.uint64), np.empty(1 << 15, np.int64)
            known = Numbers(np.full(1 << 16, -1, np.int32), keys, places, 0)
            for begin in range(0, total, BLOCK):
                end = min(begin + BLOCK, total)
                known = _number(codes, begin, end, 63 - bits, np.uint64(part), base, known, numbers)
                scratch.release()
            firsts.write(known.first[: known.n].data)
            base += known.n
        first_ones = scratch.map(firsts, np.int64)
    found = Occurrences(begins, numbers, links, inner_counts, inner_ends)
    cut_texts = int(np.count_nonzero(cut))
    return Subgraphs(forest, nodes, branching, found, first_ones, largest, int(cut.sum()), cut_texts)
