"""Compounds of trees: against the definition, checked node set by node set, and against the general
weights.
"""

from itertools import chain, combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compclip.divergence import subgraphs
from compclip.divergence.samples import Samples, collect_bags, from_bags
from compclip.divergence.subgraphs import Forest, FoundSubgraphs, find_subgraphs
from compclip.pairs.tree import Tree
from tests.divergence.test_samples import Occurrence, bags, weight

ALL = 10**9


@st.composite
def trees(draw: st.DrawFn, most: int = 8, least: int = 0) -> Tree:
    """A forest of few words, so that the same compounds come again; heads before and behind their
    children.
    """
    n = draw(st.integers(least, most))
    heads = [draw(st.integers(-1, v - 1)) for v in range(n)]
    order = draw(st.permutations(range(n)))  # node v stands at order[v]
    shuffled = [0] * n
    for v, head in enumerate(heads):
        shuffled[order[v]] = order[head] if head >= 0 else -1
    labels = [draw(st.sampled_from("ab")) for _ in range(n)]
    return Tree(labels, shuffled, [draw(st.sampled_from("rs")) for _ in range(n)])


def named(tree: Tree, members: tuple[int, ...]) -> str | None:
    """The name of a set of nodes written from its definition; None where it is not connected."""
    tops = [v for v in members if tree.heads[v] not in members]
    if len(tops) != 1:
        return None

    def name(v: int) -> str:
        below = sorted(f"{tree.relations[c]}:{name(c)}" for c in members if tree.heads[c] == v)
        return tree.labels[v] + (f"({' '.join(below)})" if below else "")

    return name(tops[0])


def listed(tree: Tree, nodes: int, branching: int) -> list[tuple[frozenset[int], str]]:
    """All compounds of a tree."""
    found = []
    every = range(len(tree.labels))
    for members in chain.from_iterable(combinations(every, k) for k in range(2, len(every) + 1)):
        children = [sum(tree.heads[c] == v for c in members) for v in members]
        name = named(tree, members)
        if name and (max(children) <= 1 or max(children) <= branching and len(members) <= nodes):
            found.append((frozenset(members), name))
    return found


def weights(samples: list[list[Tree]], nodes: int, branching: int) -> list[dict[str, float]]:
    """W(G,R) of each sample as the definition has it: over all compounds around an occurrence, of
    any size.
    """
    found = [
        [
            Occurrence(name, frozenset((t, v) for v in members), frozenset())
            for t, tree in enumerate(part)
            for members, name in listed(tree, nodes, branching)
        ]
        for part in samples
    ]
    every = [{name: weight(name, part, found) for name in {g.name for g in part}} for part in found]
    return [
        {name: value for name, value in of_sample.items() if value > 1e-12} for of_sample in every
    ]


def samples_of(found: FoundSubgraphs, texts: list[list[int]], keep: int = 100_000) -> Samples:
    """Counts of words, and W(G,R) of the ``keep`` heaviest, of samples of texts; without columns of
    zeros.
    """
    weighing = found.weigh(collect_bags(texts), keep)
    bags = []
    for totals in (weighing.totals(collect_bags([sample])) for sample in texts):
        kinds = zip((weighing.atom_name, weighing.compound_name), totals, strict=True)
        bags.append([{name(row): of[row] for row in np.flatnonzero(of)} for name, of in kinds])
    return from_bags([atoms for atoms, _ in bags], [compounds for _, compounds in bags])


def split(trees: list[Tree], sizes: list[int]) -> list[list[int]]:
    """Positions of the trees in samples of these sizes, the last one taking the rest."""
    ends = np.cumsum([0, *sizes]).clip(max=len(trees))
    return [list(range(a, b)) for a, b in zip(ends, [*ends[1:], len(trees)], strict=True)]


@settings(max_examples=150)
@given(
    st.lists(trees(), max_size=6),
    st.lists(st.integers(0, 2), max_size=4),
    st.integers(2, 5),
    st.integers(1, 3),
)
def test_equals_the_definition(
    forest: list[Tree], sizes: list[int], nodes: int, branching: int
) -> None:
    texts = split(forest, sizes)
    got = samples_of(find_subgraphs(Forest(forest), nodes, branching), texts, ALL)
    expected = weights([[forest[t] for t in part] for part in texts], nodes, branching)
    assert got.compound_names == sorted({name for bag in expected for name in bag})
    for (_, bag), wanted in zip(bags(got), expected, strict=True):
        assert bag == pytest.approx(wanted)


def test_names_are_unique_and_explosive_trees_end_and_are_counted() -> None:
    odd = ["a", "a(r:b)", "b", "a b", "a:b", 'a"b', '"a b"', "a\\", "ä", "a)"]
    forest = [
        Tree([one, other], [-1, 0], ["ROOT", rel])
        for one in odd
        for other in odd
        for rel in ("r", "r:a")
    ]
    found = find_subgraphs(Forest(forest))
    assert len(set(found.names(np.arange(len(found.first))))) == len(found.first) == len(forest)
    n = 5000
    star = Tree(["a", *(f"b{v}" for v in range(n))], [-1] + [0] * n, ["r"] * (n + 1))
    long = Tree([f"c{v}" for v in range(n)], [-1, *range(n - 1)], ["r"] * n)
    small = Tree(["x", "c", "a", "b"], [-1, 0, 1, 1], ["r"] * 4)
    found = find_subgraphs(Forest([star, long, small]))
    assert found.skipped.tolist() == [True, True, False] and np.diff(found.begins).tolist() == [
        0,
        0,
        7,
    ]
    assert samples_of(found, [[0], [1], [2]], ALL).atoms.sum(axis=1).tolist() == [n + 1, n, 4]


@settings(max_examples=40)
@given(st.lists(trees(), min_size=1, max_size=4), st.integers(1, 12))
def test_the_heaviest_are_kept_ties_by_name(forest: list[Tree], keep: int) -> None:
    found = find_subgraphs(Forest(forest))
    texts = [[t] for t in range(len(forest))]
    every = samples_of(found, texts, ALL)
    heaviest = sorted(
        zip(-np.round(every.compounds.sum(axis=0), 9), every.compound_names, strict=True)
    )
    kept = samples_of(found, texts, keep)
    assert kept.compound_names == sorted(name for _, name in heaviest[:keep])
    columns = [every.compound_names.index(name) for name in kept.compound_names]
    np.testing.assert_array_equal(kept.compounds.toarray(), every.compounds[:, columns].toarray())


@settings(max_examples=40)
@given(st.lists(trees(), min_size=1, max_size=3), st.integers(0, 40))
def test_a_text_with_too_many_is_skipped(forest: list[Tree], limit: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subgraphs, "MAX_OCCURRENCES", limit)
        found = find_subgraphs(Forest(forest))
        names = found.names(found.compounds)
    for t, tree in enumerate(forest):
        every = sorted(name for _, name in listed(tree, 5, 2))
        mine = sorted(names[found.begins[t] : found.begins[t + 1]])
        assert mine == (every if len(every) <= limit else [])
        assert found.skipped[t] == (len(every) > limit)
