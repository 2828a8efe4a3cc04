"""Samples from JSON lines: what is counted, what is weighed, and every fault of a file in one
line.
"""

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compclip.core.errors import UserError
from compclip.divergence import samples as step
from compclip.divergence.samples import Samples, read_samples
from tests.specs.evaluated import refused

names = st.text("abcé", max_size=2)
NODES = 5


@dataclass(frozen=True)
class Occurrence:
    name: str
    nodes: frozenset[Any]
    edges: frozenset[tuple[Any, ...]]

    def within(self, other: "Occurrence") -> bool:
        """Whether it is a strict subgraph of ``other``."""
        smaller = self.nodes <= other.nodes and self.edges <= other.edges
        return smaller and (self.nodes, self.edges) != (other.nodes, other.edges)


def probability(larger: str, name: str, samples: list[list[Occurrence]]) -> float:
    """P(larger|name)."""
    pairs = [
        ([g for g in sample if g.name == name], [h for h in sample if h.name == larger])
        for sample in samples
    ]
    both = [any(g.within(h) for g in inner for h in outer) for inner, outer in pairs if inner]
    return sum(both) / len(both)


def weight(name: str, sample: list[Occurrence], samples: list[list[Occurrence]]) -> float:
    """W(G, R), straight from its formula; 0 where G does not occur."""
    around = [[h.name for h in sample if g.within(h)] for g in sample if g.name == name]
    return max(
        (1 - max((probability(h, name, samples) for h in larger), default=0) for larger in around),
        default=0,
    )


@st.composite
def graphs(draw: st.DrawFn) -> list[Occurrence]:
    """Connected subgraphs of a random graph of five nodes. A name says the size and one letter, no
    more: compounds with the same name lie in different places, and one sample can have several.
    """
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


def put(path: Path, lines: list[Any]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def bags(samples: Samples) -> list[tuple[dict[str, float], dict[str, float]]]:
    """The atoms and the compounds of each sample, by name."""
    kinds = (samples.atoms, samples.atom_names), (samples.compounds, samples.compound_names)
    return [
        tuple(
            {column[i]: value for i, value in enumerate(matrix.toarray()[row].tolist()) if value}
            for matrix, column in kinds
        )
        for row in range(len(samples))
    ]


def sample(compounds: list[Any], atoms: str = "abcde") -> dict[str, Any]:
    return {"atoms": list(atoms), "compounds": compounds}


def structure(name: str, *nodes: int) -> dict[str, Any]:
    return {
        "name": name,
        "atoms": list(nodes),
        "edges": [list(edge) for edge in zip(nodes, nodes[1:], strict=False)],
    }


@given(st.lists(st.tuples(st.lists(names), st.lists(names)), min_size=1), st.integers(0, 3))
def test_strings_against_counters(
    tmp_path_factory: pytest.TempPathFactory, texts: list[Any], cut: int
) -> None:
    folder = tmp_path_factory.mktemp("bags")
    lines = [{"atoms": atoms, "compounds": compounds} for atoms, compounds in texts]
    samples, rows = read_samples(
        put(folder / "a.jsonl", lines[:cut]), put(folder / "b.jsonl", lines[cut:])
    )
    assert [*rows[0], *rows[1]] == list(range(len(lines))) and len(rows[0]) == len(lines[:cut])
    assert bags(samples) == [tuple(map(Counter, pair)) for pair in texts]
    assert samples.atom_names == sorted({name for atoms, _ in texts for name in atoms})
    assert samples.compound_names == sorted({name for _, compounds in texts for name in compounds})


@given(st.lists(graphs(), min_size=1, max_size=4), st.lists(graphs(), min_size=1, max_size=4))
def test_structures_against_the_formula(
    tmp_path_factory: pytest.TempPathFactory,
    one: list[list[Occurrence]],
    two: list[list[Occurrence]],
) -> None:
    """Weighed over both files together."""
    folder, paths = tmp_path_factory.mktemp("graphs"), []
    for name, side in (("a", one), ("b", two)):
        of_side = [
            [{"name": g.name, "atoms": sorted(g.nodes), "edges": sorted(g.edges)} for g in part]
            for part in side
        ]
        paths.append(put(folder / name, [sample(compounds) for compounds in of_side]))
    samples, _ = read_samples(*paths)
    pool = [*one, *two]
    for (_, compounds), part in zip(bags(samples), pool, strict=True):
        expected = {g.name: weight(g.name, part, pool) for g in part}
        assert compounds == pytest.approx({name: w for name, w in expected.items() if w}, abs=1e-12)


def test_strings_labels_and_the_heaviest_structures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    labelled = structure("K", 0, 1, 2)
    labelled["edges"][0].append("subject")
    lines = [
        sample(["z", structure("G", 0, 1), "a", structure("H", 0, 1, 2), "z"]),
        {"id": 7, **sample([structure("G", 0, 1), labelled])},
    ]
    path = put(tmp_path / "s.jsonl", lines)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    samples, _ = read_samples(path)
    # In the first, G lies within H, but in the second, only an edge with a label is around it.
    assert [kinds[1] for kinds in bags(samples)] == [
        {"G": 0.5, "H": 1, "a": 1, "z": 2},
        {"G": 1, "K": 1},
    ]
    with pytest.raises(UserError, match="'S' is a string in one line and has structure in another"):
        read_samples(put(tmp_path / "s.jsonl", [sample(["S"]), sample([structure("S", 0, 1)])]))
    lines = [
        sample(["s1", "s2", structure("B", 0, 1), structure("A", 1, 2)]),
        sample([structure("C", 0, 1)]),
    ] * 2
    file = put(tmp_path / "s.jsonl", [*lines, sample([structure("C", 0, 1)])])
    # W: A 2, B 2, C 3.
    for kept, names in ((1, ["C", "s1", "s2"]), (2, ["A", "C", "s1", "s2"])):
        monkeypatch.setattr(step, "KEPT_STRUCTURES", kept)
        assert read_samples(file)[0].compound_names == names


G = {"name": "G", "atoms": [0, 1], "edges": [[0, 1]]}
FAULTS = {
    "{'atoms'": "Invalid JSON",
    "[" * 100_000: "Invalid JSON",
    '{"atoms": ["\\ud800"], "compounds": []}': "Invalid JSON",
    "[1]": "Input should be an object",
    '{"atoms": ["a"], "compounds": [], "atoms": ["b"]}': "duplicate key 'atoms'; remove one",
    '{"atoms": ["a"], "compounds": [{"name": "G", "atoms": [0], "name": "H", "edges": []}]}': "duplicate key 'name'",  # noqa: E501
    '{"compounds": []}': "atoms: Field required",
    '{"atoms": "abc", "compounds": []}': "atoms: Input should be a valid array",
    '{"atom": [], "atoms": [], "compounds": []}': "atom: Extra inputs are not permitted",
    '{"id": 1.5, "atoms": [], "compounds": []}': "id.int: Input should be a valid integer",
    json.dumps(sample([1])): "compounds.0.Compound: Input should be an object",
    json.dumps(sample([{"atoms": [0], "edges": []}])): "compounds.0.Compound.name: Field required",
    json.dumps(
        sample([{**G, "atoms": []}])
    ): "compounds.0.Compound.atoms: List should have at least 1 item",
    json.dumps(sample([{**G, "atoms": [0, 5]}])): "compound 'G': expected indices from 0 to 4",
    json.dumps(sample([{**G, "atoms": [0, True]}])): "atoms.1: Input should be a valid integer",
    json.dumps(
        sample([{**G, "edges": [[0, 2]]}])
    ): "compound 'G': an edge has an end outside the compound's atoms",
    json.dumps(sample([{**G, "edges": [[0]]}])): "compounds.0.Compound.edges.0",
}


@pytest.mark.parametrize("line", FAULTS, ids=range(len(FAULTS)))
def test_faults(line: str, tmp_path: Path) -> None:
    path = put(tmp_path / "s.jsonl", [{"id": "first", **sample(["x", structure("S", 0, 1, 2)])}])
    read_samples(path)
    with path.open("a") as file:
        file.write(line + "\n")
    message = refused(lambda: read_samples(path))
    assert message.startswith(f"{path}: line 2: ") and FAULTS[line] in message
