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


class Hashes(NamedTuple):
    """64-bit hashes of the nodes in preorder."""

    labels: np.ndarray
    relations: np.ndarray  # to the parent
    keys: np.ndarray  # of the node itself; the key of a set of nodes is the XOR of its members'


class Scratch(NamedTuple):
    """Buffers of ``_encode_set``; the last three number the members of a set."""

    positions: np.ndarray  # of each node, its number among the members
    parents: np.ndarray
    children: np.ndarray  # how many
    sums: np.ndarray  # of the label's hash and the codes below it


@njit(cache=True)
def _preorder(heads):
    """Renumber nodes so that a subtree is a range: order, parents (-1 at roots), sizes of subtrees,
    depths from 1.
    """
    n = len(heads)
    order = np.empty(n, np.int64)
    positions = np.empty_like(order)  # of each node in ``order``
    parents = np.empty_like(order)
    depths = np.empty_like(order)
    sizes = np.ones(n, np.int64)
    stack = np.empty_like(order)
    node = -1  # the head of roots
    filled = 0
    for i in range(n):
        # Backwards, so that the first child comes from the stack first.
        for child in range(n - 1, -1, -1):
            if heads[child] == node:
                stack[filled] = child
                filled += 1
        filled -= 1
        node = stack[filled]
        order[i] = node
        positions[node] = i
        if heads[node] >= 0:
            parents[i] = positions[heads[node]]
            depths[i] = depths[parents[i]] + 1
        else:
            parents[i] = -1
            depths[i] = 1
    # Backwards, because a subtree is complete before its parent.
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
    filled = 0
    max_nodes = sets.shape[1]
    chosen = np.empty(max_nodes, np.int64)
    chosen_children = np.zeros(len(parents), np.int64)  # of each node, how many
    for root in range(len(parents)):
        end = root + sizes[root]
        chosen[0] = root
        size = 1
        node = root + 1
        while filled < len(sets):
            if size < max_nodes and node < end:
                if chosen_children[parents[node]] == branching:
                    node += sizes[node]
                    continue
                chosen[size] = node
                chosen_children[parents[node]] += 1
                size += 1
                # A loop: numba takes seconds to compile an assignment to a slice.
                for i in range(max_nodes):
                    sets[filled, i] = chosen[i] if i < size else -1
                filled += 1
                node += 1
            elif size > 1:
                # Go on without the last node, and so without its subtree.
                size -= 1
                node = chosen[size]
                chosen_children[parents[node]] -= 1
                node += sizes[node]
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
def _encode_set(members, parents, hashes, scratch):
    """Return the code of a set, its size, and bit i for each member without which the rest is
    connected.

    These members are leaves, and a root with one child.
    """
    positions, member_parents, children, sums = scratch
    size = 0
    while size < len(members) and members[size] >= 0:
        node = members[size]
        positions[node] = size
        children[size] = 0
        sums[size] = hashes.labels[node]
        # The first member is the set's root, whose parent is not a member.
        if size:
            parent = positions[parents[node]]
            member_parents[size] = parent
            children[parent] += 1
        size += 1
    removable = int(children[0] == 1)
    for i in range(size - 1, 0, -1):
        removable |= int(children[i] == 0) << i
        # A head's code has a sum over its children, so that their order does not matter.
        code = _mix(sums[i]) ^ hashes.relations[members[i]]
        sums[member_parents[i]] += _mix(code)
    return _mix(sums[0]), size, removable


@njit(cache=True)
def _encode_sets(sets, parents, hashes, codes, keys):
    """Fill ``codes`` and ``keys`` of the sets; return the removable members of each, as bits."""
    max_nodes = sets.shape[1]
    scratch = Scratch(
        np.empty(len(parents), np.int64),
        np.empty(max_nodes, np.int64),
        np.empty(max_nodes, np.int64),
        np.empty(max_nodes, np.uint64),
    )
    removable = np.empty(len(sets), np.int64)
    for number in range(len(sets)):
        members = sets[number]
        code, size, mask = _encode_set(members, parents, hashes, scratch)
        codes[number] = code
        # Without a member, two nodes leave a single word, which is an atom.
        if size <= 2:
            mask = 0
        removable[number] = mask
        keys[number] = 0
        for node in members[:size]:
            keys[number] ^= hashes.keys[node]
    return removable


@njit(cache=True)
def _list_paths(parents, depths, max_nodes, hashes, codes, keys):
    """Return the downward paths of more than ``max_nodes`` nodes; fill their ``codes`` and
    ``keys``.
    """
    paths = np.empty((len(codes), 3), np.int64)
    filled = 0
    for node in range(len(parents)):
        # The path grows upward, so that each code is computed from the one below it.
        top = node
        code = _mix(hashes.labels[node])
        key = hashes.keys[node]
        for size in range(2, depths[node] + 1):
            code_below = _mix(code ^ hashes.relations[top])
            code = _mix(hashes.labels[parents[top]] + code_below)
            top = parents[top]
            key ^= hashes.keys[top]
            if size > max_nodes:
                codes[filled] = code
                keys[filled] = key
                paths[filled, 0] = node
                paths[filled, 1] = top
                paths[filled, 2] = size
                filled += 1
    return paths


@njit(cache=True)
def _find(keys, by_key, key):
    """Return the number of ``key`` among ``keys``, which ``by_key`` sorts."""
    low = 0
    high = len(keys)
    while low < high:
        middle = (low + high) // 2
        if keys[by_key[middle]] < key:
            low = middle + 1
        else:
            high = middle
    return by_key[low]


@njit(cache=True)
def _list_inner(sets, removable, paths, keys, node_keys):
    """Return the compounds within each compound that are one node smaller, and their counts."""
    max_nodes = sets.shape[1]
    by_key = np.argsort(keys)
    inner = np.empty(len(keys) * max_nodes, np.int32)
    counts = np.zeros(len(keys), np.uint8)
    filled = 0
    for number in range(len(sets)):
        for i in range(max_nodes):
            if removable[number] >> i & 1:
                # XOR with a member's key takes the member out of the set.
                key = keys[number] ^ node_keys[sets[number, i]]
                inner[filled] = _find(keys, by_key, key)
                filled += 1
                counts[number] += 1
    # A path loses its lower end or its top.
    for number in range(len(sets), len(keys)):
        for end in range(2):
            node = paths[number - len(sets), end]
            inner[filled] = _find(keys, by_key, keys[number] ^ node_keys[node])
            filled += 1
        counts[number] = 2
    return inner[:filled].copy(), counts


@njit(cache=True)
def list_parts(heads, labels, relations, branching, buffer):
    """Return the ``Parts`` of a tree, or none, and whether there are too many for the rows of
    ``buffer`` (limit, nodes).

    Args:
        heads: (n,) number of each node's head; -1 for roots.
        labels, relations: (n,) 64-bit hashes.
    """
    order, parents, sizes, depths = _preorder(heads)
    max_nodes = buffer.shape[1]
    n_sets = _list_sets(parents, sizes, branching, buffer)
    # A node of depth d is the lower end of one path of each size up to d; the small ones are sets.
    total = n_sets + np.maximum(depths - max_nodes, 0).sum()
    n_nodes = len(order)
    too_many = total >= len(buffer)
    if too_many:
        n_sets, total, n_nodes = 0, 0, 0
    sets = buffer[:n_sets]
    node_keys = np.empty(n_nodes, np.uint64)
    for node in range(n_nodes):
        node_keys[node] = _mix(uint64(node + 1))
    hashes = Hashes(labels[order], relations[order], node_keys)
    codes = np.empty(total, np.uint64)
    keys = np.empty_like(codes)
    listed = parents[:n_nodes]
    removable = _encode_sets(sets, listed, hashes, codes, keys)
    path_codes = codes[n_sets:]
    path_keys = keys[n_sets:]
    paths = _list_paths(listed, depths, max_nodes, hashes, path_codes, path_keys)
    inner, counts = _list_inner(sets, removable, paths, keys, node_keys)
    return Parts(order, parents, sets, paths, codes, inner, counts), too_many
