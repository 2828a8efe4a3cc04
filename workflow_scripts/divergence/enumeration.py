"""The connected parts of trees, listed: those of few nodes and children, and downward paths of any length.

Compiled, over flat arrays. All that calls one another stands here: what numba keeps of a function does not know when
one in another file changes.
"""

from __future__ import annotations

import numpy as np
from numba import njit, uint64


@njit(cache=True)
def _preorder(heads):
    """Nodes renumbered so that a subtree is a range: order, parents (-1 at roots), sizes of subtrees, depths."""
    n = len(heads)
    child = np.full(n, -1, np.int64)
    sibling = np.full(n, -1, np.int64)
    top = -1
    for v in range(n - 1, -1, -1):
        if heads[v] < 0:
            sibling[v] = top
            top = v
        else:
            sibling[v] = child[heads[v]]
            child[heads[v]] = v
    order = np.empty(n, np.int64)
    place = np.empty(n, np.int64)
    stack = np.empty(n + 1, np.int64)
    stack[0] = top
    filled = 1 if top >= 0 else 0
    at = 0
    while filled:
        filled -= 1
        v = stack[filled]
        order[at] = v
        place[v] = at
        at += 1
        if sibling[v] >= 0:
            stack[filled] = sibling[v]
            filled += 1
        if child[v] >= 0:
            stack[filled] = child[v]
            filled += 1
    parents = np.empty(n, np.int64)
    depths = np.empty(n, np.int64)
    sizes = np.ones(n, np.int64)
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
    """How many compounds of each size a tree holds, in closed form: they may be far too many to list."""
    n = len(parents)
    longest = depths.max() if n else 0
    counts = np.zeros(max(nodes, longest) + 1)
    # ways[v, c, k]: to choose c children of v, with k nodes in all at and below them.
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
    """For each tree: the largest size whose compounds, with all smaller ones, are at most ``limit``; how many these
    are; how many larger ones are cut."""
    trees = len(offsets) - 1
    largest = np.empty(trees, np.int64)
    found = np.empty(trees, np.int64)
    cut = np.empty(trees)
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
    """All connected sets of 2 to ``nodes`` nodes, each once, as ascending rows of ``sets`` (-1 behind); their number.

    A set grows by nodes behind its last one: v + 1 is the first that may follow when v is taken, v + sizes[v] when
    it is not.
    """
    found = 0
    chosen = np.empty(nodes, np.int64)
    below = np.zeros(len(parents), np.int64)  # children chosen
    for root in range(len(parents)):
        end = root + sizes[root]
        chosen[0] = root
        k = 1
        v = root + 1
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
    """A bijection of 64 bits after which each bit depends on all (the finalizer of splitmix64)."""
    x = (x ^ (x >> uint64(30))) * uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> uint64(27))) * uint64(0x94D049BB133111EB)
    return x ^ (x >> uint64(31))


@njit(cache=True)
def _join(code, child):
    """A node's code with one more child, in the order in which the children are given."""
    return _mix(code * uint64(0x9E3779B97F4A7C15) + child)


@njit(cache=True)
def _edge(relation, code):
    """A child's code with the edge above it."""
    return _mix(_mix(code + uint64(0xD1B54A32D192ED03)) ^ relation)


@njit(cache=True)
def _code(members, k, parents, labels, relations, position, children, codes):
    """The code of one set, equal for sets of equal words and relations; the last three are room to work in."""
    for i in range(k):
        position[members[i]] = i
        children[i] = 0
    for i in range(k - 1, -1, -1):
        v = members[i]
        row = codes[i, : children[i]]
        row.sort()
        code = _mix(labels[v])
        for child in row:
            code = _join(code, child)
        if i == 0:
            return code
        above = position[parents[v]]
        codes[above, children[above]] = _edge(relations[v], code)
        children[above] += 1
    return uint64(0)


@njit(cache=True)
def _slot(table, keys, key):
    """Where ``key`` stands, or would stand, in a table of positions in ``keys``."""
    slot = _mix(key) & uint64(len(table) - 1)
    while table[slot] >= 0 and keys[table[slot]] != key:
        slot = (slot + uint64(1)) & uint64(len(table) - 1)
    return slot


@njit(cache=True)
def _search(heads, labels, relations, largest, nodes, branching, sets, codes, inner, inner_counts):
    """All compounds of one tree, with those inside each that are one node smaller.

    Args:
        sets: room for the sets of up to ``nodes`` nodes
        codes, inner_counts: filled, one for each occurrence: the sets first, then longer paths by their lower ends
        inner: filled, positions among these occurrences

    Returns how much of ``inner`` is filled.
    """
    order, parents, sizes, depths = _preorder(heads)
    labels, relations = labels[order], relations[order]
    n = len(order)
    small = min(nodes, largest)
    found = _sets(parents, sizes, small, branching, sets)
    length = 2
    while length < 2 * found:
        length *= 2
    table = np.full(length, -1, np.int64)
    keys = np.empty(found, np.uint64)
    counts = np.empty(found, np.int64)
    position = np.empty(n, np.int64)
    children = np.empty(nodes, np.int64)
    room = np.empty((nodes, branching), np.uint64)
    paths = np.full(n, -1, np.int64)  # of ``nodes`` nodes, by their lower ends
    for o in range(found):
        members = sets[o]
        k = 0
        key = uint64(0)
        straight = True
        while k < nodes and members[k] >= 0:
            if k and parents[members[k]] != members[k - 1]:
                straight = False
            key ^= _mix(uint64(members[k] + 1))
            k += 1
        counts[o] = k
        codes[o] = _code(members, k, parents, labels, relations, position, children, room)
        keys[o] = key
        if k < small:
            table[_slot(table, keys, key)] = o
        elif k == nodes and straight:
            paths[members[k - 1]] = o
    filled = 0
    for o in range(found):
        members, k = sets[o], counts[o]
        begun = filled
        if k > 2:
            children[:k] = 0
            for i in range(k):
                position[members[i]] = i
            for i in range(1, k):
                children[position[parents[members[i]]]] += 1
            for left_out in range(k):
                if children[left_out] == 0 or left_out == 0 and children[0] == 1:
                    inner[filled] = table[_slot(table, keys, keys[o] ^ _mix(uint64(members[left_out] + 1)))]
                    filled += 1
        inner_counts[o] = filled - begun
    if largest <= nodes:
        return filled
    begins = np.empty(n, np.int64)  # of the longer paths, by their lower ends
    at = found
    for v in range(n):
        begins[v] = at
        at += max(0, min(depths[v], largest) - nodes)
        code = _mix(labels[v])
        top = v
        for size in range(2, min(depths[v], largest) + 1):
            code = _join(_mix(labels[parents[top]]), _edge(relations[top], code))
            top = parents[top]
            if size > nodes:
                o = begins[v] + size - nodes - 1
                codes[o] = code
                inner_counts[o] = 2
                for lower in (v, parents[v]):
                    inner[filled] = paths[lower] if size == nodes + 1 else begins[lower] + size - nodes - 2
                    filled += 1
    return filled


@njit(cache=True)
def search_all(
    heads, labels, relations, offsets, largest, nodes, branching, begins, codes, inner, inner_counts, inner_begins,
    first, last,
):  # fmt: skip
    """``_search`` in the trees from ``first`` to ``last``, into arrays over all trees."""
    sets = np.empty((max(1, (begins[first + 1 : last + 1] - begins[first:last]).max()), nodes), np.int64)
    for t in range(first, last):
        a, b = offsets[t], offsets[t + 1]
        c, d = begins[t], begins[t + 1]
        filled = _search(
            heads[a:b], labels[a:b], relations[a:b], largest[t], nodes, branching,
            sets, codes[c:d], inner[inner_begins[t] :], inner_counts[c:d],
        )  # fmt: skip
        inner_begins[t + 1] = inner_begins[t] + filled


@njit(cache=True)
def listed(heads, largest, nodes, branching, found):
    """Order, parents, depths and sets of one tree, as ``_search`` meets them."""
    order, parents, sizes, depths = _preorder(heads)
    sets = np.empty((found, nodes), np.int64)
    return order, parents, depths, sets[: _sets(parents, sizes, min(nodes, largest), branching, sets)]
