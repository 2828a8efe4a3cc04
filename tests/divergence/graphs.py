"""Random samples with structured compounds, and W(G, R) written straight from its formula."""

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st


@dataclass(frozen=True)
class Occurrence:
    name: str
    nodes: frozenset[int]
    edges: frozenset[tuple[Any, ...]]

    def within(self, other: "Occurrence") -> bool:
        """Whether it is a strict subgraph of ``other``."""
        smaller = self.nodes <= other.nodes and self.edges <= other.edges
        return smaller and (self.nodes, self.edges) != (other.nodes, other.edges)


Bag = list[Occurrence]


def occurrences(name: str, sample: Bag) -> Bag:
    return [occurrence for occurrence in sample if occurrence.name == name]


def probability(larger: str, name: str, samples: list[Bag]) -> float:
    """P(larger|name)."""
    pairs = [(occurrences(name, sample), occurrences(larger, sample)) for sample in samples]
    both = [any(g.within(h) for g in inner for h in outer) for inner, outer in pairs if inner]
    return sum(both) / len(both)


def weight(name: str, sample: Bag, samples: list[Bag]) -> float:
    """W(G, R); 0 where G does not occur."""
    around = [[h.name for h in sample if g.within(h)] for g in occurrences(name, sample)]
    return max((1 - max((probability(h, name, samples) for h in larger), default=0) for larger in around), default=0)


def as_json(samples: list[Bag], n_atoms: int) -> list[dict[str, Any]]:
    """The samples as lines of the format; every sample has ``n_atoms`` atoms."""
    return [
        {
            "atoms": [f"a{i}" for i in range(n_atoms)],
            "compounds": [
                {"name": g.name, "atoms": sorted(g.nodes), "edges": [list(edge) for edge in sorted(g.edges)]}
                for g in sample
            ],
        }
        for sample in samples
    ]


NODES = 5


@st.composite
def bags(draw: st.DrawFn) -> Bag:
    """Connected subgraphs of a random graph of five nodes. A name says the size and one letter, no more: compounds
    with the same name lie in different places, and one sample can have several."""
    pairs = [(a, b) for a in range(NODES) for b in range(NODES) if a != b]
    graph = draw(st.lists(st.sampled_from(pairs), max_size=6, unique=True))
    result = []
    for _ in range(draw(st.integers(0, 7))):
        nodes, edges = {draw(st.integers(0, NODES - 1))}, set()
        for _ in range(draw(st.integers(0, 4))):
            beside = [edge for edge in graph if edge not in edges and nodes & set(edge)]
            if not beside:
                break
            edge = draw(st.sampled_from(beside))
            edges.add(edge)
            nodes |= set(edge)
        name = f"{len(nodes)}-{len(edges)}-{draw(st.sampled_from('xy'))}"
        result.append(Occurrence(name, frozenset(nodes), frozenset(edges)))
    return result
