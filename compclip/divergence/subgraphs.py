"""Find the compounds of dependency trees (Keysers et al. 2020, section 2.1 and appendix L.4).

A compound is a connected part of a tree, identified by its words and relations regardless of the
order of children: 2 to ``nodes`` words, each with at most ``branching`` children inside it, or a
downward path of any length.

The weight of a compound G in a sample R is W(G,R) = max over its occurrences g in R of 1 - max over
G' around g of P(G'|G). A compound's name determines its structure, so P(G'|G) = samples(G') /
samples(G). This falls as G' grows, and two nested compounds have one of every size in between, so
it suffices to consider compounds that are one node larger.
"""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from numba import njit

from compclip.core.log import log
from compclip.core.progress import Progress
from compclip.divergence.chernoff import Totals
from compclip.divergence.enumeration import Parts, list_parts
from compclip.divergence.samples import Bags, Weighing
from compclip.pairs.tree import Tree

# Largest number of compounds of a text; captions have hundreds.
MAX_OCCURRENCES = 65_535
# Labels that need no quotes in a name.
UNQUOTED = re.compile(r"[^\s():\"]+")


@njit(cache=True)
def _excess(number, compounds, inner, inner_counts):
    """Return samples(G) - samples(G') of each occurrence; G' is the most frequent compound with one
    more node.
    """
    largest, at = np.zeros(len(compounds), np.int32), 0
    for o in range(len(compounds)):
        value = number[compounds[o]]
        for inside in inner[at : at + inner_counts[o]]:
            largest[inside] = max(largest[inside], value)
        at += inner_counts[o]
    for o in range(len(compounds)):
        largest[o] = number[compounds[o]] - largest[o]
    return largest


@njit(cache=True)
def _sum(sample_begins, texts, begins, compounds, excess, n):
    """Return, for each of ``n`` compounds, the sum over samples of the largest excess of its
    occurrences there.

    With an excess of samples(G) - samples(G'), this is the sum of samples(G) W(G,R).
    ``latest`` packs the last sample of each compound and the maximum in it into one number, for a
    single read.
    """
    latest, total = np.zeros(n, np.int64), np.zeros(n, np.int64)
    for r in range(len(sample_begins) - 1):
        sample = (r + 1) << 32
        for t in texts[sample_begins[r] : sample_begins[r + 1]]:
            for o in range(begins[t], begins[t + 1]):
                before, now = max(sample, latest[compounds[o]]), sample + excess[o]
                if now > before:
                    latest[compounds[o]] = now
                    total[compounds[o]] += now - before
    return total


class Forest:
    """The dependency trees of texts as flat arrays; a text without words has an empty tree."""

    def __init__(self, trees: Sequence[Tree]) -> None:
        self.offsets = np.cumsum([0, *(len(tree.heads) for tree in trees)])
        self.heads = np.array([head for tree in trees for head in tree.heads], np.int32)
        self.label_names, self.labels, self._label_hashes = _encode([tree.labels for tree in trees])
        self.relation_names, self.relations, self._relation_hashes = _encode(
            [tree.relations for tree in trees]
        )

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def nodes(self, text: int) -> slice:
        return slice(self.offsets[text], self.offsets[text + 1])

    def parts(self, text: int, branching: int, room: np.ndarray) -> tuple[Parts, bool]:
        nodes = self.nodes(text)
        labels, relations = (
            self._label_hashes[self.labels[nodes]],
            self._relation_hashes[self.relations[nodes]],
        )
        return list_parts(self.heads[nodes], labels, relations, branching, room)


def _encode(words: Sequence[Sequence[str]]) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Return the distinct words, sorted; the position of each word among them; and the words'
    64-bit hashes.
    """
    codes, names = pd.factorize(
        np.array([word for of_text in words for word in of_text], object), sort=True
    )
    hashes = [
        int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")
        for name in names
    ]
    return names.tolist(), codes.astype(np.int32), np.array(hashes, np.uint64)


@dataclass(frozen=True)
class FoundSubgraphs:
    """The occurrences of compounds in a forest: texts are searched once, then any samples can be
    weighed.
    """

    forest: Forest
    branching: int
    room: np.ndarray
    begins: np.ndarray  # begins of each text's occurrences, and the end
    compounds: np.ndarray  # of each occurrence, its compound's number
    codes: np.ndarray  # the hash of each compound
    first: np.ndarray  # the first occurrence of each compound
    inner: np.ndarray  # of each occurrence, the occurrences inside it that are one node smaller
    inner_counts: np.ndarray  # how many these are
    skipped: np.ndarray  # whether each text has more than ``MAX_OCCURRENCES``
    _names: dict[int, str] = field(default_factory=dict, repr=False)

    def names(self, compounds: np.ndarray) -> list[str]:
        """Return readable, unique names: ``bird(amod:yellow det:a)``, children sorted, words with
        signs quoted.
        """
        unnamed = np.array(sorted({int(c) for c in compounds} - self._names.keys()), dtype=np.int64)
        # Compounds are numbered in the order of the texts.
        texts = np.searchsorted(self.begins, self.first[unnamed], "right") - 1
        of_texts = np.split(unnamed, np.flatnonzero(np.diff(texts)) + 1)
        for text, of_text in zip(np.unique(texts).tolist(), of_texts, strict=False):
            self._name(text, of_text.tolist())
        return [self._names[int(c)] for c in compounds]

    def _name(self, text: int, compounds: Sequence[int]) -> None:
        parts, _ = self.forest.parts(text, self.branching, self.room)
        nodes = self.forest.nodes(text)
        labels, relations = (
            self.forest.labels[nodes][parts.order],
            self.forest.relations[nodes][parts.order],
        )
        for compound in compounds:
            o = self.first[compound] - self.begins[text]
            if o < len(parts.sets):
                members = [v for v in parts.sets[o].tolist() if v >= 0]
            else:
                v, _, size = parts.paths[o - len(parts.sets)].tolist()
                members = [v]
                while len(members) < size:
                    members.insert(0, int(parts.parents[members[0]]))
            children: dict[int, list[str]] = {v: [] for v in members}
            for v in reversed(members):
                name = self.forest.label_names[labels[v]]
                if not UNQUOTED.fullmatch(name):
                    name = json.dumps(name, ensure_ascii=False)
                if children[v]:
                    name += f"({' '.join(sorted(children[v]))})"
                if v == members[0]:
                    self._names[compound] = name
                else:
                    children[parts.parents[v]].append(
                        f"{self.forest.relation_names[relations[v]]}:{name}"
                    )

    def weigh(self, pool: Bags, keep: int) -> Weighing:
        """Return the weighing by P(G'|G) and the ``keep`` heaviest compounds in ``pool``, samples
        of the forest.
        """
        ones = np.ones(len(self.compounds), np.int32)
        number = _sum(*pool, self.begins, self.compounds, ones, len(self.first)).astype(np.int32)
        excess = _excess(number, self.compounds, self.inner, self.inner_counts)
        total = _sum(*pool, self.begins, self.compounds, excess, len(self.first))
        kept = self._heaviest(
            np.divide(total, number, out=np.zeros(len(total)), where=number > 0), keep
        )
        column = np.full(len(self.first), -1, np.int32)
        column[kept] = np.arange(len(kept))
        columns = column[self.compounds]
        counted = np.flatnonzero((columns >= 0) & (excess > 0))
        begins = np.searchsorted(counted, self.begins)
        columns, excess = columns[counted], excess[counted]

        def totals(samples: Bags) -> Totals:
            times = np.bincount(samples.items, minlength=len(self.forest))
            words = np.repeat(times, np.diff(self.forest.offsets))
            labels = np.bincount(self.forest.labels, words, len(self.forest.label_names))
            return Totals(labels, _sum(*samples, begins, columns, excess, len(kept)) / number[kept])

        return Weighing(
            self.forest.label_names.__getitem__, lambda row: self.names(kept[[row]])[0], totals
        )

    def _heaviest(self, weights: np.ndarray, keep: int) -> np.ndarray:
        """Return the ``keep`` compounds of largest weight above 0, ties by name, in the same order
        for all forests.
        """
        heavy = np.flatnonzero(weights)
        if len(heavy) > keep:
            least = np.partition(weights[heavy], -keep)[-keep]
            tied, heavy = np.flatnonzero(weights == least), heavy[weights[heavy] > least]
            names = self.names(tied)
            first = sorted(range(len(tied)), key=names.__getitem__)[: keep - len(heavy)]
            heavy = np.concatenate((heavy, tied[first]))
        return heavy[np.argsort(self.codes[heavy])]


def find_subgraphs(forest: Forest, nodes: int = 5, branching: int = 2) -> FoundSubgraphs:
    """Find all compounds of up to ``nodes`` nodes with at most ``branching`` children, and all
    downward paths.

    Compounds are identified by 64-bit hashes of words and relations: among ten million, two collide
    with probability 3e-6. Texts with more than ``MAX_OCCURRENCES`` occurrences are skipped and
    marked.
    """
    room, begin = np.empty((MAX_OCCURRENCES + 1, nodes), np.int64), 0
    skipped = np.zeros(len(forest), bool)
    codes, inner, inner_counts = (
        [np.empty(0, np.uint64)],
        [np.empty(0, np.int32)],
        [np.empty(0, np.uint8)],
    )
    with Progress(len(forest), "texts") as progress:
        for text in range(len(forest)):
            parts, skipped[text] = forest.parts(text, branching, room)
            codes.append(parts.codes)
            inner.append(parts.inner + np.int32(begin))
            inner_counts.append(parts.inner_counts)
            begin += len(parts.codes)
            progress.add(1)
    begins = np.cumsum([len(of_text) for of_text in codes])
    codes = [np.concatenate(codes)]  # frees its parts
    numbers, distinct = pd.factorize(codes.pop())
    compounds = numbers.astype(np.int32)
    del numbers
    # Compounds are numbered in the order of their first occurrences.
    first = np.flatnonzero(np.diff(np.maximum.accumulate(compounds), prepend=-1))
    log.info("%d occurrences of %d compounds in %d texts", begin, len(first), len(forest))
    within = np.concatenate(inner), np.concatenate(inner_counts)
    return FoundSubgraphs(
        forest, branching, room, begins, compounds, distinct, first, *within, skipped
    )
