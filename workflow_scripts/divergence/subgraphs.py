"""Find the compounds of dependency trees (Keysers et al. 2020, section 2.1 and appendix L.4).

A compound is a connected part of a tree, identified by its words and relations regardless of the order of children: 2
to ``nodes`` words of which none has more than ``branching`` children inside it, and downward paths of any length.

The weight of a compound G in a sample R is W(G,R) = max over its occurrences g in R of 1 - max over G' around g of
P(G'|G). A compound's name determines its structure, so P(G'|G) = samples(G') / samples(G). This falls as G' grows, and
between two nested compounds there is one of every size in between; so those one node larger suffice.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numba import njit
from scipy.sparse import csr_array

from workflow_scripts.core.cli import log
from workflow_scripts.core.progress import Progress
from workflow_scripts.divergence.enumeration import Occurrences, Trees, listed, plan, search_all
from workflow_scripts.divergence.samples import Samples
from workflow_scripts.divergence.trees import Forest

# Most occurrences in one text, whose positions fit 16 bits; captions have hundreds.
LIMIT = 65_535
# Texts between two updates of the progress.
BLOCK = 2048
# A label that needs no quotes in a name.
PLAIN = re.compile(r"[^\s():\"]+")


@njit(cache=True)
def _samples_with(pool, texts, begins, compounds, n):
    """Count the samples in which each of ``n`` compounds occurs."""
    seen, number = np.full(n, -1, np.int64), np.zeros(n, np.int64)
    for r in range(len(pool) - 1):
        for t in texts[pool[r] : pool[r + 1]]:
            for o in range(begins[t], begins[t + 1]):
                c = compounds[o]
                if seen[c] != r:
                    seen[c] = r
                    number[c] += 1
    return number


class Entries(NamedTuple):
    """Entries of a sparse matrix of weights, as whole numbers: sample, compound and samples(G) W(G,R)."""

    rows: np.ndarray
    columns: np.ndarray
    excess: np.ndarray


@njit(cache=True)
def _weigh(pool, texts, found, number, column, entries):
    """Compute W(G,R) as whole numbers: samples(G) W(G,R) = samples(G) - min over g of max over G' of samples(G').

    ``number`` is samples(G). ``entries``, unless empty, is filled with the weights above zero of compounds whose
    ``column`` is not -1. Returns the number of entries, and the sum of each compound over the samples.
    """
    begins, compounds = found.begins, found.compounds
    n = len(number)
    seen, touched = np.full(n, -1, np.int64), np.empty(n, np.int64)
    most, total = np.zeros(n, np.int64), np.zeros(n, np.int64)
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
            at = found.inner_begins[t]
            for o in range(size):
                own = number[compounds[begin + o]]
                for _ in range(found.inner_counts[begin + o]):
                    around[found.inner[at]] = max(around[found.inner[at]], own)
                    at += 1
            for o in range(size):
                c = compounds[begin + o]
                if seen[c] != r:
                    seen[c], most[c], touched[met] = r, 0, c
                    met += 1
                most[c] = max(most[c], number[c] - around[o])
        for c in touched[:met]:
            total[c] += most[c]
            if len(entries.rows) and column[c] >= 0 and most[c]:
                entries.rows[filled], entries.columns[filled], entries.excess[filled] = r, column[c], most[c]
                filled += 1
    return filled, total


def _hash(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")


@dataclass(frozen=True)
class Subgraphs:
    """The compounds of a forest: all texts are searched once, then any choice of samples can be weighed."""

    forest: Forest
    nodes: int
    branching: int
    occurrences: Occurrences  # compounds are numbers (int32)
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

    def samples(self, texts: Sequence[Sequence[int]], keep: int = 100_000) -> Samples:
        """Return samples of texts (positions in the forest): counts of words, and W(G,R) of the ``keep`` heaviest."""
        return self.weigh(texts, keep).samples(texts).trimmed()

    def weigh(self, texts: Sequence[Sequence[int]], keep: int = 100_000) -> Weighing:
        """Determine P(G'|G) and the ``keep`` heaviest compounds from a pool of samples."""
        pool, flat = self._flat(texts)
        number = _samples_with(pool, flat, self.occurrences.begins, self.occurrences.compounds, len(self.first))
        none = np.empty(0, np.int64)
        _, total = _weigh(pool, flat, self.occurrences, number, none, Entries(none, none, none))
        kept = self._heaviest(total, number, keep)
        names = self.names(kept)
        order = sorted(range(len(kept)), key=names.__getitem__)
        return Weighing(self, number, kept[order], [names[k] for k in order])

    @cached_property
    def words(self) -> tuple[csr_array, list[str]]:
        """Return the counts of words, texts × words, and the words by name."""
        forest = self.forest
        order = sorted(range(len(forest.label_names)), key=forest.label_names.__getitem__)
        ones = np.ones(len(forest.labels))
        words = csr_array((ones, forest.labels, forest.offsets), shape=(len(forest), len(order)))
        return csr_array(words[:, order]), [forest.label_names[k] for k in order]

    def _flat(self, texts: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
        """Return where each sample begins, and the end, and the texts of all samples in one array."""
        pool = np.concatenate(([0], np.cumsum([len(sample) for sample in texts]))).astype(np.int64)
        flat = np.fromiter((t for sample in texts for t in sample), dtype=np.int64, count=pool[-1])
        if len(flat) and not 0 <= flat.min() <= flat.max() < len(self.forest):
            # Compiled code would not notice.
            raise IndexError(f"expected texts from 0 to {len(self.forest) - 1}")
        return pool, flat

    def _heaviest(self, total: np.ndarray, number: np.ndarray, keep: int) -> np.ndarray:
        """Return the ``keep`` compounds of largest W = total / number above zero, ties by name."""
        candidates = np.flatnonzero(total)
        weights = total[candidates] / number[candidates]
        if len(candidates) <= keep:
            return candidates
        least = np.partition(weights, len(weights) - keep)[len(weights) - keep]
        above, tied = candidates[weights > least], candidates[weights == least]
        names = self.names(tied)
        order = sorted(range(len(tied)), key=names.__getitem__)
        return np.concatenate((above, tied[order[: keep - len(above)]]))


@dataclass(frozen=True)
class Weighing:
    """Weighs any samples by what ``Subgraphs.weigh`` determined from a pool."""

    subgraphs: Subgraphs
    number: np.ndarray  # samples(G) in the pool, of each compound
    kept: np.ndarray  # the compounds that count, by name
    names: list[str]

    def samples(self, texts: Sequence[Sequence[int]]) -> Samples:
        """Return the samples of ``texts``, with columns for all words and all kept compounds."""
        found = self.subgraphs.occurrences
        pool, flat = self.subgraphs._flat(texts)
        column = np.full(len(self.number), -1, np.int64)
        column[self.kept] = np.arange(len(self.kept))
        room = int((found.begins[flat + 1] - found.begins[flat]).sum())
        entries = Entries(*(np.empty(room, np.int64) for _ in Entries._fields))
        filled, _ = _weigh(pool, flat, found, self.number, column, entries)
        rows, columns, excess = (values[:filled] for values in entries)
        weights = excess / self.number[self.kept][columns]
        compounds = csr_array((weights, (rows, columns)), shape=(len(texts), len(self.kept)))
        compounds.sort_indices()
        members = csr_array((np.ones(len(flat)), flat, pool), shape=(len(texts), len(self.subgraphs.forest)))
        words, word_names = self.subgraphs.words
        atoms = csr_array(members @ words)
        atoms.sort_indices()
        return Samples(atoms, compounds, word_names, self.names)


def find_subgraphs(forest: Forest, nodes: int = 5, branching: int = 2) -> Subgraphs:
    """Find all compounds of up to ``nodes`` nodes with at most ``branching`` children, and all downward paths.

    Compounds are identified by 64-bit hashes of words and relations: among ten million, two share one with probability
    3e-6. In a text with more than ``LIMIT`` occurrences, only the smaller ones are listed, up to the size that fits;
    the others are counted.
    """
    if nodes < 2 or branching < 1:
        raise ValueError(f"expected nodes >= 2 and branching >= 1, got {nodes} and {branching}")
    largest, counts, cut = plan(forest.heads, forest.offsets, nodes, branching, LIMIT)
    begins = np.concatenate(([0], np.cumsum(counts)))
    total = int(begins[-1])
    log.info("%d occurrences of compounds in %d texts: about %d MB", total, len(forest), total * 60 // 1_000_000 + 1)
    if cut.any():
        log.warning(
            "warning: %d texts have more than %d compounds each; their largest, %.0f in total, are skipped",
            np.count_nonzero(cut), LIMIT, cut.sum(),
        )  # fmt: skip
    labels, relations = (
        np.array([_hash(name) for name in names], np.uint64)[codes]
        for names, codes in ((forest.label_names, forest.labels), (forest.relation_names, forest.relations))
    )
    trees = Trees(forest.heads, labels, relations, forest.offsets, largest)
    found = Occurrences(
        begins,
        np.empty(total, np.uint64),
        np.empty(total * nodes, np.uint16),  # more than enough: only what is written takes memory
        np.empty(total, np.uint8),
        np.zeros(len(forest) + 1, np.int64),
    )
    with Progress(len(forest), "texts") as progress:
        for start in range(0, len(forest), BLOCK):
            end = min(start + BLOCK, len(forest))
            search_all(trees, found, nodes, branching, start, end)
            progress.add(end - start)
    _, first, compounds = np.unique(found.compounds, return_index=True, return_inverse=True)
    found = found._replace(compounds=compounds.astype(np.int32), inner=found.inner[: found.inner_begins[-1]].copy())
    return Subgraphs(forest, nodes, branching, found, first, largest, int(cut.sum()), int(np.count_nonzero(cut)))
