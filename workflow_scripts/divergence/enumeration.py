"""List the connected parts of trees: sets of few nodes and children, and downward paths of any length.

Compiled, over flat arrays. Functions that call each other are in one file, because numba's cache of a function does not
notice changes in other files.
"""

from typing import NamedTuple

import numpy as np
from numba import njit, uint64


class Trees(NamedTuple):
    """The trees of all texts, one after the other."""

    heads: np.ndarray  # of each node, a position in its own tree; -1 at roots
    labels: np.ndarray  # of each node, a position in ``label_hashes``
    relations: np.ndarray  # likewise
    label_hashes: np.ndarray  # of 64 bits
    relation_hashes: np.ndarray
    offsets: np.ndarray  # where each tree begins, and the end
    largest: np.ndarray  # the size up to which each tree is searched


class Found(NamedTuple):
    """The occurrences of compounds in a block of texts: in each the sets first, then longer paths by their lower ends.

    Room for more than a block's; ``search`` returns how much it filled.
    """

    codes: np.ndarray  # of each occurrence, a 64-bit hash of its words and relations
    inner: np.ndarray  # of each, the occurrences inside it that are one node smaller, as positions in its text
    inner_counts: np.ndarray  # how many these are
    inner_ends: np.ndarray  # of each text, where its last ones end in ``inner``


class Tree(NamedTuple):
    """A tree in preorder; ``depths`` count from 1."""

    parents: np.ndarray
    sizes: np.ndarray
    depths: np.ndarray
    labels: np.ndarray
    relations: np.ndarray
    keys: np.ndarray  # of nodes; a set's key is the XOR of its members'


@njit(cache=True)
def _preorder(heads):
    """Renumber nodes so that a subtree is a range: order, parents (-1 at roots), sizes of subtrees, depths."""
    n = len(heads)
    child, sibling, top = np.full(n, -1, np.int64), np.full(n, -1, np.int64), -1
    for v in range(n - 1, -1, -1):
        if heads[v] < 0:
            sibling[v], top = top, v
        else:
            sibling[v], child[heads[v]] = child[heads[v]], v
    order, place, stack = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n + 1, np.int64)
    stack[0] = top
    filled, at = int(top >= 0), 0
    while filled:
        filled -= 1
        v = stack[filled]
        order[at], place[v] = v, at
        at += 1
        if sibling[v] >= 0:
            stack[filled] = sibling[v]
            filled += 1
        if child[v] >= 0:
            stack[filled] = child[v]
            filled += 1
    parents, depths, sizes = np.empty(n, np.int64), np.empty(n, np.int64), np.ones(n, np.int64)
    for i in range(n):
        head = heads[order[i]]
        parents[i] = place[head] if head >= 0 else -1
        depths[i] = depths[parents[i]] + 1 if head >= 0 else 1
    for i in range(n - 1, -1, -1):
        if parents[i] >= 0:
            sizes[parents[i]] += sizes[i]
    return order, parents, sizes, depths


@njit(cache=True)
def _count(parents, depths, nodes, branching):
    """Count the compounds of each size in a tree, in closed form: there may be too many to list."""
    n = len(parents)
    longest = depths.max() if n else 0
    counts = np.zeros(max(nodes, longest) + 1)
    # ways[v, c, k]: ways to choose c children of v, with k nodes in total at and below them.
    ways = np.zeros((n, branching + 1, nodes))
    ways[:, 0, 0] = 1
    own = np.empty(nodes + 1)
    for v in range(n - 1, -1, -1):
        own[0] = 0
        for k in range(nodes):
            own[k + 1] = ways[v, :, k].sum()
        for k in range(2, nodes + 1):
            counts[k] += own[k]
        for size in range(nodes + 1, depths[v] + 1):
            counts[size] += 1
        if parents[v] >= 0:
            above = ways[parents[v]]
            for c in range(branching - 1, -1, -1):
                for k in range(nodes - 1):
                    for more in range(1, nodes - k):
                        above[c + 1, k + more] += above[c, k] * own[more]
    return counts


@njit(cache=True)
def plan(heads, offsets, nodes, branching, limit):
    """Return for each tree the largest size with at most ``limit`` compounds up to it, their number, and the rest's."""
    trees = len(offsets) - 1
    largest, found, cut = np.empty(trees, np.int64), np.empty(trees, np.int64), np.empty(trees)
    for t in range(trees):
        _, parents, _, depths = _preorder(heads[offsets[t] : offsets[t + 1]])
        counts = _count(parents, depths, nodes, branching)
        size, total = 1, 0.0
        while size + 1 < len(counts) and total + counts[size + 1] <= limit:
            size += 1
            total += counts[size]
        largest[t], found[t], cut[t] = size, total, counts.sum() - total
    return largest, found, cut


@njit(cache=True)
def _sets(parents, sizes, nodes, branching, sets):
    """Fill ``sets`` with all connected sets of 2 to ``nodes`` nodes, as ascending rows that end with -1.

    A set grows by nodes after its last one: the first that may follow is v + 1 if v is taken, v + sizes[v] if not.
    Returns the number of sets.
    """
    found, chosen = 0, np.empty(nodes, np.int64)
    below = np.zeros(len(parents), np.int64)  # children chosen
    for root in range(len(parents)):
        end = root + sizes[root]
        chosen[0], k, v = root, 1, root + 1
        while True:
            if k < nodes and v < end:
                if below[parents[v]] == branching:
                    v += sizes[v]
                    continue
                chosen[k] = v
                below[parents[v]] += 1
                k += 1
                sets[found, :k] = chosen[:k]
                sets[found, k:] = -1
                found += 1
                v += 1
            elif k > 1:
                k -= 1
                v = chosen[k]
                below[parents[v]] -= 1
                v += sizes[v]
            else:
                break
    return found


@njit(cache=True)
def _mix(x):
    """Map 64 bits one to one so that each bit depends on all (the finalizer of splitmix64)."""
    x = (x ^ (x >> uint64(30))) * uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> uint64(27))) * uint64(0x94D049BB133111EB)
    return x ^ (x >> uint64(31))


@njit(cache=True)
def _edge(relation, code):
    """Return what a child adds to its head's code: a sum, so that the order of children does not matter."""
    return _mix(code ^ relation)


@njit(cache=True)
def _slot(table, keys, key):
    """Return the slot of ``key`` in a hash table of positions in ``keys``, or the free slot where it belongs."""
    slot = key & uint64(len(table) - 1)
    while table[slot] >= 0 and keys[table[slot]] != key:
        slot = (slot + uint64(1)) & uint64(len(table) - 1)
    return slot


@njit(cache=True)
def _encode_sets(tree, sets, codes):
    """Fill the ``codes`` of the sets; return their sizes, their keys, and bit i for each member that may go.

    A member may go if the rest is connected: a leaf, or a root with one child.
    """
    nodes = sets.shape[1]
    sizes, keys = np.empty(len(sets), np.int64), np.empty(len(sets), np.uint64)
    removable = np.empty(len(sets), np.int64)
    position, above = np.empty(len(tree.parents), np.int64), np.empty(nodes, np.int64)
    children, sums = np.empty(nodes, np.int64), np.empty(nodes, np.uint64)
    for o in range(len(sets)):
        members, k, key = sets[o], 0, uint64(0)
        while k < nodes and members[k] >= 0:
            v = members[k]
            key ^= tree.keys[v]
            position[v], children[k], sums[k] = k, 0, tree.labels[v]
            if k:
                above[k] = position[tree.parents[v]]
                children[above[k]] += 1
            k += 1
        mask = int(children[0] == 1)
        for i in range(k - 1, 0, -1):
            mask |= int(children[i] == 0) << i
            sums[above[i]] += _edge(tree.relations[members[i]], _mix(sums[i]))
        codes[o], sizes[o], keys[o], removable[o] = _mix(sums[0]), k, key, mask
    return sizes, keys, removable


@njit(cache=True)
def _link_sets(tree, sets, sizes, keys, removable, inner, inner_counts):
    """Find for each set the sets inside it that lack one node; return how much of ``inner`` is filled."""
    length = 2
    while length < 2 * len(sets):
        length *= 2
    table = np.full(length, -1, np.int32)
    for o in range(len(sets)):
        table[_slot(table, keys, keys[o])] = o
    filled = 0
    for o in range(len(sets)):
        begun = filled
        if sizes[o] > 2:
            for i in range(sizes[o]):
                if removable[o] >> i & 1:
                    inner[filled] = table[_slot(table, keys, keys[o] ^ tree.keys[sets[o, i]])]
                    filled += 1
        inner_counts[o] = filled - begun
    return filled


@njit(cache=True)
def _extend_paths(tree, sets, sizes, nodes, largest, codes, inner, inner_counts, filled):
    """Add the downward paths of more than ``nodes`` nodes; return how much of ``inner`` is filled."""
    n = len(tree.parents)
    paths = np.full(n, -1, np.int64)  # sets that are paths of ``nodes`` nodes, by their lower ends
    for o in range(len(sets)):
        if sizes[o] == nodes:
            members = sets[o]
            straight = True
            for k in range(1, nodes):
                if tree.parents[members[k]] != members[k - 1]:
                    straight = False
            if straight:
                paths[members[nodes - 1]] = o
    begins = np.empty(n, np.int64)  # of the longer paths, by their lower ends
    at = len(sets)
    for v in range(n):
        begins[v] = at
        longest = min(tree.depths[v], largest)
        at += max(0, longest - nodes)
        code, top = _mix(tree.labels[v]), v
        for size in range(2, longest + 1):
            code = _mix(tree.labels[tree.parents[top]] + _edge(tree.relations[top], code))
            top = tree.parents[top]
            if size > nodes:
                o = begins[v] + size - nodes - 1
                codes[o] = code
                inner_counts[o] = 2
                for lower in (v, tree.parents[v]):
                    inner[filled] = paths[lower] if size == nodes + 1 else begins[lower] + size - nodes - 2
                    filled += 1
    return filled


@njit(cache=True)
def search(trees, begins, nodes, branching, first, last, found):
    """List the compounds of the trees from ``first`` to ``last``, and what is inside each, into ``found``.

    ``begins`` tells how many there are in each text. Returns how much of ``found.inner`` is filled.
    """
    room = np.empty((max(1, (begins[first + 1 : last + 1] - begins[first:last]).max()), nodes), np.int64)
    filled = 0
    for t in range(first, last):
        nodes_of = slice(trees.offsets[t], trees.offsets[t + 1])
        order, parents, sizes, depths = _preorder(trees.heads[nodes_of])
        keys = np.empty(len(order), np.uint64)
        for v in range(len(keys)):
            keys[v] = _mix(uint64(v + 1))
        labels = trees.label_hashes[trees.labels[nodes_of][order]]
        relations = trees.relation_hashes[trees.relations[nodes_of][order]]
        tree = Tree(parents, sizes, depths, labels, relations, keys)
        largest = trees.largest[t]
        sets = room[: _sets(parents, sizes, min(nodes, largest), branching, room)]
        own = slice(begins[t] - begins[first], begins[t + 1] - begins[first])
        codes, counts, inner = found.codes[own], found.inner_counts[own], found.inner[filled:]
        set_sizes, set_keys, removable = _encode_sets(tree, sets, codes)
        added = _link_sets(tree, sets, set_sizes, set_keys, removable, inner, counts)
        if largest > nodes:
            added = _extend_paths(tree, sets, set_sizes, nodes, largest, codes, inner, counts, added)
        filled += added
        found.inner_ends[t - first] = filled
    return filled


@njit(cache=True)
def listed(heads, largest, nodes, branching, found):
    """Return order, parents, depths and sets of one tree, in the order of ``search``."""
    order, parents, sizes, depths = _preorder(heads)
    sets = np.empty((found, nodes), np.int64)
    return order, parents, depths, sets[: _sets(parents, sizes, min(nodes, largest), branching, sets)]
