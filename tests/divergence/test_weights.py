"""W(G, R): the walk-through's toy case and others by hand, and brute force straight from the formula."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from tests.divergence.graphs import Bag, Occurrence, bags, weight
from workflow_scripts.divergence.weights import containments, heaviest, occurrence_weights


def path(name: str, *nodes: int) -> Occurrence:
    """A chain of nodes."""
    return Occurrence(name, frozenset(nodes), frozenset(zip(nodes, nodes[1:], strict=False)))


def weigh(samples: list[Bag]) -> tuple[list[str], np.ndarray]:
    """The names, and samples × names of weights."""
    names = sorted({g.name for sample in samples for g in sample})
    rows, columns, starts, elements = [], [], [0], []
    for row, sample in enumerate(samples):
        # Nodes and edges numbered together.
        number = {
            element: i for i, element in enumerate(sorted({e for g in sample for e in (*g.nodes, *g.edges)}, key=str))
        }
        for g in sample:
            rows.append(row)
            columns.append(names.index(g.name))
            elements += [number[element] for element in (*g.nodes, *g.edges)]
            starts.append(len(elements))
    arrays = (np.array(values, dtype=np.int64) for values in (rows, columns, starts, elements))
    return names, occurrence_weights(*arrays, (len(samples), len(names))).toarray()


def test_the_walk_through() -> None:
    """G1 only ever occurs inside G2; G2 occurs in three samples, in surroundings that they do not share."""
    names, weights = weigh([[path("G1", 0, 1), path("G2", 0, 1, 2)]] * 3)
    assert names == ["G1", "G2"] and weights.tolist() == [[0, 1]] * 3


G, H = path("G", 0, 1), path("H", 0, 1, 2)
TRIANGLE = Occurrence("T", frozenset((0, 1, 2)), frozenset(((0, 1), (1, 2), (0, 2))))
SUBJECT = Occurrence("G", frozenset((0, 1)), frozenset(((0, 1, "subject"),)))
OBJECT = Occurrence("H", frozenset((0, 1, 2)), frozenset(((0, 1, "object"), (1, 2, "subject"))))
BY_HAND = {
    "the freest occurrence counts": ([[G, path("G", 3, 4), H], [G, H]], [[1, 1], [0, 1]]),
    "a sample counts once": ([[G, H, path("G", 3, 4), path("H", 3, 4, 2)], [G]], [[1 / 2, 1], [1, 0]]),
    "larger but elsewhere explains nothing": ([[G, path("H", 1, 2, 3)]] * 2, [[1, 1], [1, 1]]),
    "the same nodes with more edges are larger": ([[path("P", 0, 1, 2), TRIANGLE]], [[0, 1]]),
    "an edge with another label is another edge": ([[SUBJECT, OBJECT]], [[1, 1]]),
    "the same occurrence under two names is not larger": ([[G, path("H", 0, 1), G]], [[1, 1]]),
    "no occurrences": ([[], []], np.zeros((2, 0))),
}


@pytest.mark.parametrize("case", BY_HAND)
def test_by_hand(case: str) -> None:
    samples, expected = BY_HAND[case]
    assert weigh(samples)[1] == pytest.approx(np.array(expected))


@settings(max_examples=300)
@given(st.lists(bags(), min_size=1, max_size=5))
def test_brute_force(samples: list[Bag]) -> None:
    names, weights = weigh(samples)
    expected = [[weight(name, sample, samples) for name in names] for sample in samples]
    assert weights == pytest.approx(np.array(expected).reshape(weights.shape), abs=1e-12)


@given(bags(), st.integers(1, 9))
def test_containments_in_blocks(sample: Bag, block: int) -> None:
    """More than 64 elements, and blocks that do not divide the occurrences."""
    far = [Occurrence(g.name, frozenset(n + 100 for n in g.nodes), g.edges) for g in sample]
    sample = [*sample, *far, path("long", *range(100))]
    elements = sorted({e for g in sample for e in (*g.nodes, *g.edges)}, key=str)
    dense = np.array([[e in g.nodes or e in g.edges for e in elements] for g in sample], dtype=float)
    found = {(int(a), int(b)) for a, b in zip(*containments(sparse.csr_array(dense), block), strict=True)}
    assert found == {(i, j) for i, g in enumerate(sample) for j, h in enumerate(sample) if g.within(h)}


def test_the_heaviest() -> None:
    totals = np.array([1.0, 3.0, 0.0, 2.0, 1.0 + 1e-13, 3.0])
    assert heaviest(totals, 2).tolist() == [1, 5]
    # Ties, sums that differ by rounding among them, to the first; those of 0 never.
    assert heaviest(totals, 4).tolist() == [0, 1, 3, 5]
    assert heaviest(totals, 9).tolist() == [0, 1, 3, 4, 5]
