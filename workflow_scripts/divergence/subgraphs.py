"""Compounds of dependency trees (Keysers et al. 2020, section 2.1 and appendix L.4).

A compound is a connected part of a tree, by its words and relations, the order of children aside: up to ``nodes``
words of which none has more than ``branching`` children inside it, and downward paths of any length. One word is
an atom and no compound. All texts are searched once; any choice of samples is weighed from what was found.

A compound's weight in a sample R is W(G,R) = max over its occurrences g in R of 1 - max over G' around g of P(G'|G).
A compound's name determines its structure, so that P(G'|G) = samples(G') / samples(G); this only falls as G' grows,
and between two compounds, one inside the other, stands a compound of every size: those one node larger suffice.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numba import njit
from scipy.sparse import csr_array

from workflow_scripts.core.cli import log
from workflow_scripts.core.progress import Progress
from workflow_scripts.divergence.enumeration import listed, plan, search_all
from workflow_scripts.divergence.samples import Samples
from workflow_scripts.divergence.trees import Forest

LIMIT = 65_535  # occurrences in one text: their positions fit 16 bits; captions have hundreds
BLOCK = 2048  # texts between two signs of progress
PLAIN = re.compile(r"[^\s():\"]+")


@njit(cache=True)
def _samples_with(pool, texts, begins, compounds, n):
    """In how many samples each compound occurs."""
    seen = np.full(n, -1, np.int64)
    number = np.zeros(n, np.int64)
    for r in range(len(pool) - 1):
        for t in texts[pool[r] : pool[r + 1]]:
            for o in range(begins[t], begins[t + 1]):
                c = compounds[o]
                if seen[c] != r:
                    seen[c] = r
                    number[c] += 1
    return number


@njit(cache=True)
def _weigh(pool, texts, begins, compounds, inner, inner_counts, inner_begins, number, column, rows, columns, excess):
    """W(G,R) as whole numbers: samples(G) W(G,R) = samples(G) - min over g of max over G' of samples(G').

    Args:
        number: samples(G)
        column: of each compound, or -1 where it is not wanted
        rows, columns, excess: filled with the wanted ones that are above zero; where empty, nothing is

    Returns their number, and the sum of each compound over the samples.
    """
    n = len(number)
    seen = np.full(n, -1, np.int64)
    most = np.zeros(n, np.int64)
    total = np.zeros(n, np.int64)
    touched = np.empty(n, np.int64)
    widest = 0
    for t in range(len(begins) - 1):
        widest = max(widest, begins[t + 1] - begins[t])
    around = np.empty(widest, np.int64)
    filled = 0
    for r in range(len(pool) - 1):
        met = 0
        for t in texts[pool[r] : pool[r + 1]]:
            begin = begins[t]
            size = begins[t + 1] - begin
            around[:size] = 0
            at = inner_begins[t]
            for o in range(size):
                own = number[compounds[begin + o]]
                for _ in range(inner_counts[begin + o]):
                    around[inner[at]] = max(around[inner[at]], own)
                    at += 1
            for o in range(size):
                c = compounds[begin + o]
                if seen[c] != r:
                    seen[c] = r
                    most[c] = 0
                    touched[met] = c
                    met += 1
                most[c] = max(most[c], number[c] - around[o])
        for c in touched[:met]:
            total[c] += most[c]
            if len(rows) and column[c] >= 0 and most[c]:
                rows[filled], columns[filled], excess[filled] = r, column[c], most[c]
                filled += 1
    return filled, total


def _hash(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")


def _quoted(label: str) -> str:
    """A label that cannot be taken for anything else in a name."""
    return label if PLAIN.fullmatch(label) else json.dumps(label, ensure_ascii=False)


@dataclass(frozen=True)
class Subgraphs:
    """What ``find_subgraphs`` found in a forest.

    Attributes:
        begins: where each text's occurrences begin, and the end
        compounds: the compound of each occurrence (int32, from 0)
        first: of each compound the first occurrence
        inner: for each occurrence, those of its text that are inside it and one node smaller, as positions in the
            text's occurrences; ``inner_counts`` says how many there are, ``inner_begins`` where a text's begin
        largest: for each text the size up to which it was searched, below what was asked only where ``cut``
        cut: the number of larger occurrences in texts that have more than ``LIMIT``
        cut_texts: the number of these texts
    """

    forest: Forest
    nodes: int
    branching: int
    begins: np.ndarray
    compounds: np.ndarray
    first: np.ndarray
    inner: np.ndarray
    inner_counts: np.ndarray
    inner_begins: np.ndarray
    largest: np.ndarray
    cut: int
    cut_texts: int
    _names: dict[int, str] = field(default_factory=dict, repr=False)

    def names(self, compounds: np.ndarray) -> list[str]:
        """Readable and unique: `bird(amod:yellow det:a)`, children sorted; words with signs in them are quoted."""
        unnamed = np.array(sorted({int(c) for c in compounds} - self._names.keys()), dtype=np.int64)
        texts = np.searchsorted(self.begins, self.first[unnamed], "right") - 1
        by_text = np.argsort(texts, kind="stable")
        for part in np.split(by_text, np.flatnonzero(np.diff(texts[by_text])) + 1) if len(unnamed) else []:
            self._name(int(texts[part[0]]), unnamed[part])
        return [self._names[int(c)] for c in compounds]

    def _name(self, text: int, compounds: np.ndarray) -> None:
        """Name compounds that first occur in ``text``."""
        forest, begin = self.forest, self.begins[text]
        nodes = slice(forest.offsets[text], forest.offsets[text + 1])
        largest = self.largest[text]
        order, parents, depths, sets = listed(
            forest.heads[nodes], largest, self.nodes, self.branching, self.begins[text + 1] - begin
        )
        labels, relations = forest.labels[nodes][order], forest.relations[nodes][order]
        # Paths of more than ``nodes`` nodes come after the sets, by their lower ends, then by length.
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
                name = _quoted(forest.label_names[labels[v]])
                if children[v]:
                    name += f"({' '.join(sorted(children[v]))})"
                if v == members[0]:
                    self._names[int(compound)] = name
                else:
                    children[parents[v]].append(f"{forest.relation_names[relations[v]]}:{name}")

    def samples(self, texts: Sequence[Sequence[int]], keep: int = 100_000) -> Samples:
        """The samples whose texts are ``texts`` (positions in the forest), weighed together.

        Atoms are words, repeats counted. Compounds are W(G,R) of the ``keep`` heaviest, ties by name.
        """
        return self.weigh(texts, keep).samples(texts).trimmed()

    def weigh(self, texts: Sequence[Sequence[int]], keep: int = 100_000) -> Weighing:
        """What a pool of samples says of subgraphs: P(G'|G), and which are the ``keep`` heaviest."""
        pool, flat = self._flat(texts)
        number = _samples_with(pool, flat, self.begins, self.compounds, len(self.first))
        none = np.empty(0, np.int64)
        _, total = _weigh(pool, flat, *self._found(), number, none, none, none, none)
        kept = self._heaviest(total, number, keep)
        names = self.names(kept)
        order = sorted(range(len(kept)), key=names.__getitem__)
        return Weighing(self, number, kept[order], [names[k] for k in order])

    @cached_property
    def words(self) -> tuple[csr_array, list[str]]:
        """Texts × words, how often each text has each; the words by name."""
        forest = self.forest
        order = sorted(range(len(forest.label_names)), key=forest.label_names.__getitem__)
        ones = np.ones(len(forest.labels))
        words = csr_array((ones, forest.labels, forest.offsets), shape=(len(forest), len(order)))
        return csr_array(words[:, order]), [forest.label_names[k] for k in order]

    def _found(self) -> tuple[np.ndarray, ...]:
        return self.begins, self.compounds, self.inner, self.inner_counts, self.inner_begins

    def _flat(self, texts: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
        """Where each sample begins, and the end, among all texts."""
        pool = np.concatenate(([0], np.cumsum([len(part) for part in texts]))).astype(np.int64)
        flat = np.fromiter((t for part in texts for t in part), dtype=np.int64, count=pool[-1])
        if len(flat) and not 0 <= flat.min() <= flat.max() < len(self.forest):
            raise IndexError(f"texts are 0 to {len(self.forest) - 1}")  # compiled code would not notice
        return pool, flat

    def _heaviest(self, total: np.ndarray, number: np.ndarray, keep: int) -> np.ndarray:
        """The compounds of largest W = total / number, above zero; ties by name."""
        there = np.flatnonzero(total)
        weights = total[there] / number[there]
        if len(there) <= keep:
            return there
        least = np.partition(weights, len(weights) - keep)[len(weights) - keep]
        above, tied = there[weights > least], there[weights == least]
        names = self.names(tied)
        order = sorted(range(len(tied)), key=names.__getitem__)
        return np.concatenate((above, tied[order[: keep - len(above)]]))


@dataclass(frozen=True)
class Weighing:
    """Weighs any samples as one pool weighs its own (``Subgraphs.weigh``).

    Attributes:
        number: samples(G) in the pool, of each compound
        kept: the compounds that count, by name
    """

    found: Subgraphs
    number: np.ndarray
    kept: np.ndarray
    names: list[str]

    def samples(self, texts: Sequence[Sequence[int]]) -> Samples:
        """The samples of ``texts``, with the columns of all words and of all compounds kept."""
        found = self.found
        pool, flat = found._flat(texts)
        column = np.full(len(self.number), -1, np.int64)
        column[self.kept] = np.arange(len(self.kept))
        room = int((found.begins[flat + 1] - found.begins[flat]).sum())
        rows, columns, excess = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int64)
        filled, _ = _weigh(pool, flat, *found._found(), self.number, column, rows, columns, excess)
        rows, columns, excess = rows[:filled], columns[:filled], excess[:filled]
        weights = excess / self.number[self.kept][columns]
        compounds = csr_array((weights, (rows, columns)), shape=(len(texts), len(self.kept)))
        compounds.sort_indices()
        held = csr_array((np.ones(len(flat)), flat, pool), shape=(len(texts), len(found.forest)))
        words, word_names = found.words
        atoms = csr_array(held @ words)
        atoms.sort_indices()
        return Samples(atoms, compounds, word_names, self.names)


def find_subgraphs(forest: Forest, nodes: int = 5, branching: int = 2) -> Subgraphs:
    """All compounds of up to ``nodes`` nodes, each with at most ``branching`` children, and all downward paths.

    Identities are 64-bit hashes of words and relations: among ten million compounds two share one with a
    probability of 3e-6. In a text with more than ``LIMIT`` occurrences only the smaller ones are listed, up to the
    size that fits; the others are counted.
    """
    if nodes < 2 or branching < 1:
        raise ValueError(f"nodes {nodes}, branching {branching}: at least 2 and 1")
    largest, found, cut = plan(forest.heads, forest.offsets, nodes, branching, LIMIT)
    begins = np.concatenate(([0], np.cumsum(found)))
    total = int(begins[-1])
    log.info("%d occurrences of compounds in %d texts: some %d MB", total, len(forest), total * 60 // 1_000_000 + 1)
    if cut.any():
        log.warning(
            "warning: %d texts have more than %d compounds each: their largest, %.0f in all, are left out",
            np.count_nonzero(cut), LIMIT, cut.sum(),
        )  # fmt: skip
    codes = np.empty(total, np.uint64)
    inner_counts = np.empty(total, np.uint8)
    inner = np.empty(total * nodes, np.uint16)  # more than enough: only what is written takes memory
    inner_begins = np.zeros(len(forest) + 1, np.int64)
    labels = np.array([_hash(name) for name in forest.label_names], np.uint64)[forest.labels]
    relations = np.array([_hash(name) for name in forest.relation_names], np.uint64)[forest.relations]
    with Progress(len(forest), "texts") as progress:
        for start in range(0, len(forest), BLOCK):
            end = min(start + BLOCK, len(forest))
            search_all(
                forest.heads, labels, relations, forest.offsets, largest, nodes, branching,
                begins, codes, inner, inner_counts, inner_begins, start, end,
            )  # fmt: skip
            progress.add(end - start)
    _, first, compounds = np.unique(codes, return_index=True, return_inverse=True)
    return Subgraphs(
        forest, nodes, branching, begins, compounds.astype(np.int32), first,
        inner[: inner_begins[-1]].copy(), inner_counts, inner_begins, largest,
        int(cut.sum()), int(np.count_nonzero(cut)),
    )  # fmt: skip
