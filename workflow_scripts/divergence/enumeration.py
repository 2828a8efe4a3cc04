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
    labels: np.ndarray  # 64-bit hashes, of each node
    relations: np.ndarray  # likewise
    offsets: np.ndarray  # where each tree begins, and the end
    largest: np.ndarray  # the size up to which each tree is searched


class Occurrences(NamedTuple):
    """The occurrences of compounds in all texts: in each the sets first, then longer paths by their lower ends."""

    begins: np.ndarray  # where each text's occurrences begin, and the end
    compounds: np.ndarray  # the compound of each: its 64-bit code, or a number once codes are numbered
    inner: np.ndarray  # of each, the occurrences inside it that are one node smaller, as positions in its text
    inner_counts: np.ndarray  # how many these are
    inner_begins: np.ndarray  # where those of each text begin in ``inner``, and the end


class Tree(NamedTuple):
    """A tree in preorder; ``depths`` count from 1."""

    parents: np.ndarray
    sizes: np.ndarray
    depths: np.ndarray
    labels: np.ndarray
    relations: np.ndarray


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
def _join(code, child):
    """Return a node's code with one more child; the order of the children matters."""
    return _mix(code * uint64(0x9E3779B97F4A7C15) + child)


@njit(cache=True)
def _edge(relation, code):
    """Return a child's code with the edge above it."""
    return _mix(_mix(code + uint64(0xD1B54A32D192ED03)) ^ relation)


@njit(cache=True)
def _code(members, k, tree, position, children, codes):
    """Return the code of a set of ``k`` nodes, equal for equal words and relations; the last three are scratch."""
    for i in range(k):
        position[members[i]], children[i] = i, 0
    for i in range(k - 1, -1, -1):
        v = members[i]
        row = codes[i, : children[i]]
        row.sort()
        code = _mix(tree.labels[v])
        for child in row:
            code = _join(code, child)
        if i == 0:
            return code
        above = position[tree.parents[v]]
        codes[above, children[above]] = _edge(tree.relations[v], code)
        children[above] += 1
    return uint64(0)


@njit(cache=True)
def _slot(table, keys, key):
    """Return the slot of ``key`` in a hash table of positions in ``keys``, or the free slot where it belongs."""
    slot = _mix(key) & uint64(len(table) - 1)
    while table[slot] >= 0 and keys[table[slot]] != key:
        slot = (slot + uint64(1)) & uint64(len(table) - 1)
    return slot


@njit(cache=True)
def _encode_sets(tree, sets, nodes, branching, codes):
    """Fill the ``codes`` of the sets; return their sizes and keys, each key the XOR of its members' hashes."""
    sizes, keys = np.empty(len(sets), np.int64), np.empty(len(sets), np.uint64)
    position, children = np.empty(len(tree.parents), np.int64), np.empty(nodes, np.int64)
    scratch = np.empty((nodes, branching), np.uint64)
    for o in range(len(sets)):
        members, k, key = sets[o], 0, uint64(0)
        while k < nodes and members[k] >= 0:
            key ^= _mix(uint64(members[k] + 1))
            k += 1
        sizes[o], keys[o] = k, key
        codes[o] = _code(members, k, tree, position, children, scratch)
    return sizes, keys


@njit(cache=True)
def _link_sets(tree, sets, sizes, keys, inner, inner_counts):
    """Find for each set the sets inside it that lack one node; return how much of ``inner`` is filled."""
    length = 2
    while length < 2 * len(sets):
        length *= 2
    table = np.full(length, -1, np.int64)
    for o in range(len(sets)):
        table[_slot(table, keys, keys[o])] = o
    position, children, filled = np.empty(len(tree.parents), np.int64), np.empty(sets.shape[1], np.int64), 0
    for o in range(len(sets)):
        members, k = sets[o], sizes[o]
        begun = filled
        if k > 2:
            children[:k] = 0
            for i in range(k):
                position[members[i]] = i
            for i in range(1, k):
                children[position[tree.parents[members[i]]]] += 1
            for removed in range(k):
                # A leaf, or a root with one child: the rest is connected.
                if children[removed] == 0 or removed == 0 and children[0] == 1:
                    inner[filled] = table[_slot(table, keys, keys[o] ^ _mix(uint64(members[removed] + 1)))]
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
            code = _join(_mix(tree.labels[tree.parents[top]]), _edge(tree.relations[top], code))
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
def search_all(trees, found, nodes, branching, first, last):
    """List the compounds of the trees from ``first`` to ``last``, and what is inside each, into ``found``."""
    begins = found.begins
    room = np.empty((max(1, (begins[first + 1 : last + 1] - begins[first:last]).max()), nodes), np.int64)
    for t in range(first, last):
        nodes_of = slice(trees.offsets[t], trees.offsets[t + 1])
        order, parents, sizes, depths = _preorder(trees.heads[nodes_of])
        tree = Tree(parents, sizes, depths, trees.labels[nodes_of][order], trees.relations[nodes_of][order])
        largest = trees.largest[t]
        sets = room[: _sets(parents, sizes, min(nodes, largest), branching, room)]
        codes, counts = found.compounds[begins[t] : begins[t + 1]], found.inner_counts[begins[t] : begins[t + 1]]
        inner = found.inner[found.inner_begins[t] :]
        set_sizes, keys = _encode_sets(tree, sets, nodes, branching, codes)
        filled = _link_sets(tree, sets, set_sizes, keys, inner, counts)
        if largest > nodes:
            filled = _extend_paths(tree, sets, set_sizes, nodes, largest, codes, inner, counts, filled)
        found.inner_begins[t + 1] = found.inner_begins[t] + filled


@njit(cache=True)
def listed(heads, largest, nodes, branching, found):
    """Return order, parents, depths and sets of one tree, in the order of ``search_all``."""
    order, parents, sizes, depths = _preorder(heads)
    sets = np.empty((found, nodes), np.int64)
    return order, parents, depths, sets[: _sets(parents, sizes, min(nodes, largest), branching, sets)]
