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
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby
from typing import NamedTuple

import numpy as np
import pandas as pd
from numba import njit
from scipy import sparse

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
    largest = np.zeros(len(compounds), np.int32)
    begin = 0
    for occurrence in range(len(compounds)):
        value = number[compounds[occurrence]]
        end = begin + inner_counts[occurrence]
        # The occurrences within this one that have one node less.
        for smaller in inner[begin:end]:
            largest[smaller] = max(largest[smaller], value)
        begin = end
    for occurrence in range(len(compounds)):
        largest[occurrence] = number[compounds[occurrence]] - largest[occurrence]
    return largest


@njit(cache=True)
def _sum(sample_begins, texts, begins, compounds, excess, n):
    """Return, for each of ``n`` compounds, the sum over samples of the largest excess of its
    occurrences there.

    With an excess of samples(G) - samples(G'), this is the sum of samples(G) W(G,R).
    ``latest`` packs the last sample of each compound and the maximum in it into one number, for a
    single read.
    """
    latest = np.zeros(n, np.int64)
    total = np.zeros_like(latest)
    for row in range(len(sample_begins) - 1):
        # The number of the sample, from 1, in the upper 32 bits: larger than any earlier one.
        sample = (row + 1) << 32
        for text in texts[sample_begins[row] : sample_begins[row + 1]]:
            for occurrence in range(begins[text], begins[text + 1]):
                compound = compounds[occurrence]
                largest = max(sample, latest[compound])
                packed = sample + excess[occurrence]
                if packed > largest:
                    latest[compound] = packed
                    total[compound] += packed - largest
    return total


@njit(cache=True)
def _keep(begins, compounds, excess, column_of):
    """Return the occurrences with an excess of compounds that have a column: where those of each
    text begin, their columns and their excess.
    """
    kept_begins = np.zeros_like(begins)
    columns = np.empty(len(compounds), np.int32)
    kept_excess = np.empty(len(compounds), np.int32)
    filled = 0
    for text in range(len(begins) - 1):
        for occurrence in range(begins[text], begins[text + 1]):
            column = column_of[compounds[occurrence]]
            if column >= 0 and excess[occurrence] > 0:
                columns[filled] = column
                kept_excess[filled] = excess[occurrence]
                filled += 1
        kept_begins[text + 1] = filled
    return kept_begins, columns[:filled], kept_excess[:filled]


class Forest:
    """The dependency trees of texts as flat arrays; a text without words has an empty tree."""

    def __init__(self, trees: Sequence[Tree]) -> None:
        sizes = [len(tree.heads) for tree in trees]
        self.offsets = np.cumsum([0, *sizes])
        heads = chain.from_iterable(tree.heads for tree in trees)
        self.heads = np.array(list(heads), np.int32)
        self.labels = _encode(tree.labels for tree in trees)
        self.relations = _encode(tree.relations for tree in trees)
        codes = self.labels.codes
        # (texts, words), how often each text has each word: a product sums equal entries.
        self.words = sparse.csr_array(
            (np.ones(len(codes)), codes, self.offsets), (len(trees), len(self.labels.names))
        )

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def nodes(self, text: int) -> slice:
        return slice(self.offsets[text], self.offsets[text + 1])

    def parts(self, text: int, branching: int, buffer: np.ndarray) -> tuple[Parts, bool]:
        """Return what ``list_parts`` does of the tree of a text."""
        nodes = self.nodes(text)
        labels = self.labels.node_hashes(nodes)
        relations = self.relations.node_hashes(nodes)
        return list_parts(self.heads[nodes], labels, relations, branching, buffer)


class EncodedWords(NamedTuple):
    """The words of all nodes of a forest."""

    names: list[str]  # distinct, sorted
    hashes: np.ndarray  # of the names, 64 bits each
    codes: np.ndarray  # of each node, the position of its word among the names

    def node_hashes(self, nodes: slice) -> np.ndarray:
        return self.hashes[self.codes[nodes]]

    def node_names(self, nodes: slice) -> list[str]:
        return [self.names[code] for code in self.codes[nodes]]


def _encode(words: Iterable[Sequence[str]]) -> EncodedWords:
    node_words = np.array(list(chain.from_iterable(words)), object)
    codes, names = pd.factorize(node_words, sort=True)
    hashes = np.array([_hash(name) for name in names], np.uint64)
    return EncodedWords(names.tolist(), hashes, codes.astype(np.int32))


def _hash(name: str) -> int:
    digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")


@dataclass(frozen=True)
class FoundSubgraphs:
    """The occurrences of compounds in a forest: texts are searched once, then any samples can be
    weighed.
    """

    forest: Forest
    branching: int
    buffer: np.ndarray
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
        numbers = [int(compound) for compound in compounds]
        unnamed = sorted(set(numbers) - self._names.keys())
        occurrences = self.first[unnamed]
        texts = np.searchsorted(self.begins, occurrences, "right") - 1
        text_of = dict(zip(unnamed, texts.tolist(), strict=True))
        # Compounds are numbered in the order of the texts, so those of a text are in a row.
        for text, compounds_of_text in groupby(text_of, text_of.__getitem__):
            self._name(text, list(compounds_of_text))
        return [self._names[number] for number in numbers]

    def _name(self, text: int, compounds: Sequence[int]) -> None:
        """Name compounds whose first occurrences are in a text."""
        tree_parts, _ = self.forest.parts(text, self.branching, self.buffer)
        nodes = self.forest.nodes(text)
        labels = self.forest.labels.node_names(nodes)
        relations = self.forest.relations.node_names(nodes)
        for compound in compounds:
            number = self.first[compound] - self.begins[text]
            self._names[compound] = _write_name(tree_parts, number, labels, relations)

    def weigh(self, pool: Bags, keep: int) -> Weighing:
        """Return the weighing by P(G'|G) and the ``keep`` heaviest compounds in ``pool``, samples
        of the forest.
        """
        n_compounds = len(self.first)
        # With an excess of 1 everywhere, the sum counts the samples with a compound.
        ones = np.ones(len(self.compounds), np.int32)
        number = _sum(*pool, self.begins, self.compounds, ones, n_compounds)
        number = number.astype(np.int32)
        excess = _excess(number, self.compounds, self.inner, self.inner_counts)
        total = _sum(*pool, self.begins, self.compounds, excess, n_compounds)
        weights = np.divide(total, number, out=np.zeros(len(total)), where=number > 0)
        heaviest = self._heaviest(weights, keep)
        # Only occurrences that can weigh are kept for the many sums to come.
        column_of = np.full(n_compounds, -1, np.int32)
        column_of[heaviest] = np.arange(len(heaviest))
        begins, columns, excess = _keep(self.begins, self.compounds, excess, column_of)

        def totals(samples: Bags) -> Totals:
            sums = _sum(*samples, begins, columns, excess, len(heaviest))
            times = np.bincount(samples.items, minlength=len(self.forest))
            return Totals(times @ self.forest.words, sums / number[heaviest])

        def compound_name(column: int) -> str:
            return self.names(heaviest[[column]])[0]

        return Weighing(self.forest.labels.names.__getitem__, compound_name, totals)

    def _heaviest(self, weights: np.ndarray, keep: int) -> np.ndarray:
        """Return the ``keep`` compounds of largest weight above 0, ties by name, in the same order
        for all forests.
        """
        heavy = np.flatnonzero(weights)
        if len(heavy) > keep:
            heavy_weights = weights[heavy]
            threshold = np.partition(heavy_weights, -keep)[-keep]
            tied = np.flatnonzero(weights == threshold)
            heavy = heavy[heavy_weights > threshold]
            # Only ties are named: naming lists the parts of a text again.
            names = self.names(tied)
            by_name = sorted(range(len(tied)), key=names.__getitem__)
            n_tied = keep - len(heavy)
            heavy = np.concatenate((heavy, tied[by_name[:n_tied]]))
        # By hash: numbers depend on which texts the forest has, hashes do not.
        by_hash = np.argsort(self.codes[heavy])
        return heavy[by_hash]


def _members(tree_parts: Parts, number: int) -> list[int]:
    """Return the nodes of one of the parts, ascending."""
    n_sets = len(tree_parts.sets)
    if number < n_sets:
        # A row of a smaller set ends with -1.
        return [node for node in tree_parts.sets[number].tolist() if node >= 0]
    # A path is stored as its lower end and its size; its other nodes are parents.
    node, _, size = tree_parts.paths[number - n_sets].tolist()
    members = [node]
    for _ in range(size - 1):
        node = int(tree_parts.parents[node])
        members.append(node)
    return members[::-1]


def _write_name(tree_parts: Parts, number: int, labels: list[str], relations: list[str]) -> str:
    """Return the name of one of the parts, given the words and relations of the tree's nodes."""
    members = _members(tree_parts, number)
    children: dict[int, list[str]] = {member: [] for member in members}
    # Backwards, because a node has a smaller number than its children.
    for member in reversed(members):
        node = tree_parts.order[member]
        name = labels[node]
        if not UNQUOTED.fullmatch(name):
            name = json.dumps(name, ensure_ascii=False)
        if children[member]:
            name += f"({' '.join(sorted(children[member]))})"
        if member == members[0]:
            break
        parent = tree_parts.parents[member]
        children[parent].append(f"{relations[node]}:{name}")
    return name


def find_subgraphs(forest: Forest, nodes: int = 5, branching: int = 2) -> FoundSubgraphs:
    """Find all compounds of up to ``nodes`` nodes with at most ``branching`` children, and all
    downward paths.

    Compounds are identified by 64-bit hashes of words and relations: among ten million, two collide
    with probability 3e-6. Texts with more than ``MAX_OCCURRENCES`` occurrences are skipped and
    marked.
    """
    buffer = np.empty((MAX_OCCURRENCES + 1, nodes), np.int64)
    skipped = np.zeros(len(forest), bool)
    # The lists start with an empty array, because a forest may be empty.
    codes = [np.empty(0, np.uint64)]
    inner = [np.empty(0, np.int32)]
    inner_counts = [np.empty(0, np.uint8)]
    begin = 0
    with Progress(len(forest), "texts") as progress:
        for text in range(len(forest)):
            tree_parts, skipped[text] = forest.parts(text, branching, buffer)
            codes.append(tree_parts.codes)
            inner.append(tree_parts.inner + np.int32(begin))
            inner_counts.append(tree_parts.inner_counts)
            begin += len(tree_parts.codes)
            progress.add(1)
    begins = np.cumsum([len(codes_of_text) for codes_of_text in codes])
    # Arrays of this size are freed early, so that fewer of them are in memory at once.
    codes = [np.concatenate(codes)]
    numbers, distinct = pd.factorize(codes.pop())
    compounds = numbers.astype(np.int32)
    del numbers
    # Compounds are numbered in the order of their first occurrences.
    first = np.flatnonzero(np.diff(np.maximum.accumulate(compounds), prepend=-1))
    log.info("%d occurrences of %d compounds in %d texts", begin, len(first), len(forest))
    return FoundSubgraphs(
        forest,
        branching,
        buffer,
        begins,
        compounds,
        codes=distinct,
        first=first,
        inner=np.concatenate(inner),
        inner_counts=np.concatenate(inner_counts),
        skipped=skipped,
    )
