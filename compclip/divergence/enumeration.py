"""List the connected parts of a tree: small sets of nodes with few children, and downward paths of
any length.

The functions are compiled and work on flat arrays. Functions that call each other are in one file,
because numba's cache of a function ignores changes in other files.
"""

from typing import NamedTuple

import numpy as np
from numba import njit, uint64


class Parts(NamedTuple):
    """The compounds of a tree: first the sets, then longer paths."""

    order: np.ndarray  # the tree's nodes in preorder; the fields below number nodes in this order
    parents: np.ndarray
    sets: np.ndarray  # (s, nodes), ascending rows that end with -1
    paths: np.ndarray  # (p, 3): lower end, top, number of nodes
    codes: np.ndarray  # (s + p,), a 64-bit hash of words and relations
    inner: np.ndarray  # of each, the compounds within it that are one node smaller
    inner_counts: np.ndarray  # (s + p,), how many these are


@njit(cache=True)
def _preorder(heads):
    """Renumber nodes so that a subtree is a range: order, parents (-1 at roots), sizes of subtrees,
    depths from 1.
    """
    n = len(heads)
    order, place, stack = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    parents, depths, sizes = np.empty(n, np.int64), np.empty(n, np.int64), np.ones(n, np.int64)
    v, filled = -1, 0
    for i in range(n):
        for child in range(n - 1, -1, -1):
            if heads[child] == v:
                stack[filled] = child
                filled += 1
        filled -= 1
        v = stack[filled]
        order[i], place[v] = v, i
        parents[i] = place[heads[v]] if heads[v] >= 0 else -1
        depths[i] = depths[parents[i]] + 1 if heads[v] >= 0 else 1
    for i in range(n - 1, -1, -1):
        if parents[i] >= 0:
            sizes[parents[i]] += sizes[i]
    return order, parents, sizes, depths


@njit(cache=True)
def _list_sets(parents, sizes, branching, sets):
    """Fill ``sets`` with the connected sets of at least 2 nodes, as far as there is room.

    A set grows by nodes after its last one: the first possible node is v + 1 if v is in the set,
    else v + sizes[v]. Returns the number of sets.
    """
    filled, nodes = 0, sets.shape[1]
    chosen, below = (
        np.empty(nodes, np.int64),
        np.zeros(len(parents), np.int64),
    )  # below: number of chosen children
    for root in range(len(parents)):
        end = root + sizes[root]
        chosen[0], k, v = root, 1, root + 1
        while filled < len(sets):
            if k < nodes and v < end:
                if below[parents[v]] == branching:
                    v += sizes[v]
                    continue
                chosen[k] = v
                below[parents[v]] += 1
                k += 1
                sets[filled, :k] = chosen[:k]
                sets[filled, k:] = -1
                filled += 1
                v += 1
            elif k > 1:
                k -= 1
                v = chosen[k]
                below[parents[v]] -= 1
                v += sizes[v]
            else:
                break
    return filled


@njit(cache=True)
def _mix(x):
    """Map 64 bits one to one, so that each bit depends on all bits (the finalizer of
    splitmix64).
    """
    x = (x ^ (x >> uint64(30))) * uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> uint64(27))) * uint64(0x94D049BB133111EB)
    return x ^ (x >> uint64(31))


@njit(cache=True)
def _encode_set(members, parents, labels, relations, position, above, children, sums):
    """Return the code of a set, its size, and bit i for each member without which the rest is
    connected.

    These members are leaves, and a root with one child. The last four arguments are buffers.
    """
    k = 0
    while k < len(members) and members[k] >= 0:
        v = members[k]
        position[v], children[k], sums[k] = k, 0, labels[v]
        if k:
            above[k] = position[parents[v]]
            children[above[k]] += 1
        k += 1
    removable = int(children[0] == 1)
    for i in range(k - 1, 0, -1):
        removable |= int(children[i] == 0) << i
        # A head's code has a sum over its children, so that their order does not matter.
        sums[above[i]] += _mix(_mix(sums[i]) ^ relations[members[i]])
    return _mix(sums[0]), k, removable


@njit(cache=True)
def list_parts(heads, labels, relations, branching, room):
    """Return the ``Parts`` of a tree, or none and whether there are more than the rows of ``room``
    (limit, nodes).

    Args:
        heads: (n,) number of each node's head; -1 for roots.
        labels, relations: (n,) 64-bit hashes.
    """
    order, parents, sizes, depths = _preorder(heads)
    n, nodes = len(order), room.shape[1]
    labels, relations = labels[order], relations[order]
    n_sets = _list_sets(parents, sizes, branching, room)
    sets, total = room[:n_sets], n_sets + np.maximum(depths - nodes, 0).sum()
    too_many = total >= len(room)
    if too_many:
        sets, n_sets, total, n = sets[:0], 0, 0, 0
    codes, keys, counts = (
        np.empty(total, np.uint64),
        np.empty(total, np.uint64),
        np.zeros(total, np.uint8),
    )
    paths, inside = np.empty((total - n_sets, 3), np.int64), np.empty(total * nodes, np.uint64)
    # The key of a set of nodes is the XOR of its members' keys.
    key_of = np.empty(n, np.uint64)
    for v in range(n):
        key_of[v] = _mix(uint64(v + 1))
    removable = np.empty(n_sets, np.int64)
    position, above, children = (
        np.empty(n, np.int64),
        np.empty(nodes, np.int64),
        np.empty(nodes, np.int64),
    )
    sums = np.empty(nodes, np.uint64)
    for o in range(n_sets):
        codes[o], size, mask = _encode_set(
            sets[o], parents, labels, relations, position, above, children, sums
        )
        removable[o] = mask if size > 2 else 0
        keys[o] = 0
        for i in range(size):
            keys[o] ^= key_of[sets[o, i]]
    at = n_sets
    for v in range(n):
        code, key, top = _mix(labels[v]), key_of[v], v
        for size in range(2, depths[v] + 1):
            code = _mix(labels[parents[top]] + _mix(code ^ relations[top]))
            top = parents[top]
            key ^= key_of[top]
            if size > nodes:
                codes[at], keys[at] = code, key
                paths[at - n_sets] = np.array((v, top, size))
                at += 1
    filled = 0
    for o in range(n_sets):
        for i in range(nodes):
            if removable[o] >> i & 1:
                inside[filled] = keys[o] ^ key_of[sets[o, i]]
                filled += 1
                counts[o] += 1
    for o in range(n_sets, total):
        for end in paths[o - n_sets, :2]:
            inside[filled] = keys[o] ^ key_of[end]
            filled += 1
        counts[o] = 2
    by_key = np.argsort(keys)
    inner = by_key[np.searchsorted(keys[by_key], inside[:filled])].astype(np.int32)
    return Parts(order, parents, sets, paths, codes, inner, counts), too_many
