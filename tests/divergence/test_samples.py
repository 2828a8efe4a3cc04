"""Samples from bags and from JSON lines: what is counted, what is weighed, and every fault of a file in one line."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.divergence.graphs import NODES, Bag, as_json, bags, weight
from workflow_scripts.core.errors import UserError
from workflow_scripts.divergence.samples import Samples, read_samples, stack

names = st.text("abcé", min_size=1, max_size=2)


def put(path: Path, lines: list[Any]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def bag(samples: Samples, row: int) -> tuple[dict[str, float], dict[str, float]]:
    """One sample's atoms and compounds, by name."""
    parts = (samples.atoms, samples.atom_names), (samples.compounds, samples.compound_names)
    return tuple(
        {column[i]: value for i, value in enumerate(matrix.toarray()[row].tolist()) if value}
        for matrix, column in parts
    )


def sample(compounds: list[Any], atoms: str = "abc") -> dict[str, Any]:
    return {"atoms": list(atoms), "compounds": compounds}


def structure(name: str, *nodes: int) -> dict[str, Any]:
    return {"name": name, "atoms": list(nodes), "edges": [list(edge) for edge in zip(nodes, nodes[1:], strict=False)]}


@given(st.lists(st.tuples(st.lists(names), st.lists(names)), min_size=1), st.integers(0, 3))
def test_strings_against_counters(tmp_path_factory: pytest.TempPathFactory, bags: list[Any], cut: int) -> None:
    bags = [(["a"], ["a"]), *bags[:cut], (["b"], ["b"]), *bags[cut:]]
    cut = min(cut, len(bags) - 2) + 1
    folder = tmp_path_factory.mktemp("bags")
    lines = [{"atoms": atoms, "compounds": compounds} for atoms, compounds in bags]
    parts = read_samples(put(folder / "a.jsonl", lines[:cut]), put(folder / "b.jsonl", lines[cut:]))
    assert [len(part) for part in parts] == [cut, len(bags) - cut]
    expected = [tuple(map(Counter, pair)) for pair in bags]
    assert [bag(part, row) for part in parts for row in range(len(part))] == expected
    for part in parts:
        assert part.atom_names == sorted({name for atoms, _ in bags for name in atoms})
        assert part.compound_names == sorted({name for _, compounds in bags for name in compounds})


@given(st.lists(bags(), min_size=1, max_size=4), st.lists(bags(), min_size=1, max_size=4))
def test_structures_against_the_formula(
    tmp_path_factory: pytest.TempPathFactory, one: list[Bag], two: list[Bag]
) -> None:
    """Weighed over both files together."""
    folder = tmp_path_factory.mktemp("graphs")
    free = {"name": "free", "atoms": [0], "edges": []}
    lines = [[*as_json(side, NODES), sample([free])] for side in (one, two)]
    parts = read_samples(put(folder / "a.jsonl", lines[0]), put(folder / "b.jsonl", lines[1]))
    pool = [*one, *two]
    for side, part in zip((one, two), parts, strict=True):
        for row, occurring in enumerate(side):
            expected = {g.name: weight(g.name, occurring, pool) for g in occurring}
            assert bag(part, row)[1] == pytest.approx({name: w for name, w in expected.items() if w}, abs=1e-12)
        assert bag(part, len(side))[1] == {"free": 1}


def test_strings_and_structures_together(tmp_path: Path) -> None:
    (samples,) = read_samples(
        put(tmp_path / "s.jsonl", [sample(["z", structure("G", 0, 1), "a", structure("H", 0, 1, 2), "z"])])
    )
    # G lies within H alone, weighs nothing and is no column.
    assert samples.compound_names == ["H", "a", "z"]
    assert samples.compounds.toarray().tolist() == [[1, 1, 2]]


def test_labels_of_edges(tmp_path: Path) -> None:
    plain, labelled = {"name": "G", "atoms": [0, 1], "edges": [[0, 1]]}, structure("H", 0, 1, 2)
    labelled["edges"][0].append("subject")
    (samples,) = read_samples(put(tmp_path / "s.jsonl", [sample([plain, labelled])]))
    assert samples.compound_names == ["G", "H"]


def test_keep_counts_structures_alone(tmp_path: Path) -> None:
    lines = [sample(["s1", "s2", structure("B", 0, 1), structure("A", 1, 2)]), sample([structure("C", 0, 1)])] * 2
    lines.append(sample([structure("C", 0, 1)]))
    file = put(tmp_path / "s.jsonl", lines)
    # W: A 2, B 2, C 3.
    assert read_samples(file, keep=1)[0].compound_names == ["C", "s1", "s2"]
    assert read_samples(file, keep=2)[0].compound_names == ["A", "C", "s1", "s2"]
    other = put(tmp_path / "t.jsonl", [sample([structure("A", 0, 1)])])
    with pytest.raises(UserError, match=r"t\.jsonl: none of the 1 heaviest compounds occurs"):
        read_samples(put(tmp_path / "u.jsonl", lines * 2), other, keep=1)


def test_ids(tmp_path: Path) -> None:
    lines = [sample(["x"]), {"id": "one", **sample(["x"])}, {"id": 7, **sample(["y"])}, {"id": "7", **sample(["y"])}]
    (samples,) = read_samples(put(tmp_path / "s.jsonl", lines))
    assert samples.ids == [None, "one", 7, "7"]
    assert samples.take([2, 0]).ids == [7, None]
    (bare,) = read_samples(put(tmp_path / "t.jsonl", lines[:1]))
    assert stack([bare, bare]).ids is None
    first, second = read_samples(tmp_path / "t.jsonl", tmp_path / "s.jsonl")
    both = stack([first, second])
    assert both.ids == [None, *samples.ids]
    assert [bag(both, row) for row in range(5)] == [bag(first, 0), *(bag(second, row) for row in range(4))]


def test_a_byte_order_mark_is_no_fault(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(sample(["x"])).encode() + b"\r\n")
    assert len(read_samples(path)[0]) == 1


G = {"name": "G", "atoms": [0, 1], "edges": [[0, 1]]}
FAULTS = {
    "not json": ("{'atoms'", "not JSON"),
    "deep": ("[" * 100_000, "not JSON"),
    "empty line": ("  ", "empty line"),
    "no object": ("[1]", "expected an object"),
    "no atoms": ({"compounds": []}, "'atoms' is missing"),
    "no compounds": ({"atoms": ["a"]}, "'compounds' is missing"),
    "atoms no list": ({"atoms": "abc", "compounds": []}, "'atoms' is not a list"),
    "compounds no list": ({"atoms": [], "compounds": {}}, "'compounds' is not a list"),
    "unknown key": ({"atom": [], "atoms": [], "compounds": []}, "unknown key 'atom'; allowed: id, atoms, compounds"),
    "id": ({"id": 1.5, "atoms": [], "compounds": []}, "expected text or an integer, got '1.5'"),
    "id twice": ({"id": "first", "atoms": [], "compounds": []}, "duplicate id 'first', also in line 1"),
    "atom a number": ({"atoms": [1], "compounds": []}, "atom: expected a non-empty text, got 1"),
    "atom empty": ({"atoms": [""], "compounds": []}, 'atom: expected a non-empty text, got ""'),
    "half a character": ('{"atoms": ["\\ud800"], "compounds": []}', "half a surrogate pair"),
    "compound a number": (sample([1]), "compound: expected a non-empty text or an object .* got 1"),
    "compound without a name": (sample([{"atoms": [0], "edges": []}]), "name: expected a non-empty text, got null"),
    "compound's key": (sample([{**G, "nodes": []}]), "unknown key 'nodes'; allowed: name, atoms, edges"),
    "compound without atoms": (sample([{"name": "G", "edges": []}]), "compound 'G': no atoms"),
    "compound with one atom as number": (sample([{**G, "atoms": 0}]), "compound 'G': no atoms"),
    "index out of range": (sample([{**G, "atoms": [0, 3]}]), "compound 'G': expected an index from 0 to 2, got 3"),
    "index negative": (sample([{**G, "atoms": [0, -1]}]), "expected an index from 0 to 2, got -1"),
    "index true": (sample([{**G, "atoms": [0, True]}]), "from 0 to 2, got true"),
    "index twice": (sample([{**G, "atoms": [0, 1, 0]}]), "compound 'G': duplicate atom"),
    "no edges": (sample([{"name": "G", "atoms": [0]}]), "compound 'G': no list of edges"),
    "edge outside": (sample([{**G, "edges": [[0, 2]]}]), r"edge \[0, 2\] has an end outside the compound's atoms"),
    "edge of one": (sample([{**G, "edges": [[0]]}]), r"edge \[0\] is not a pair"),
    "label a number": (sample([{**G, "edges": [[0, 1, 2]]}]), "is not a pair"),
    "loop": (sample([{**G, "edges": [[0, 1], [1, 1]]}]), r"edge \[1, 1\] connects an atom to itself"),
    "edge twice": (sample([{**G, "edges": [[0, 1], [0, 1]]}]), "compound 'G': duplicate edge"),
    "unconnected": (
        {"atoms": list("abcd"), "compounds": [{"name": "K", "atoms": [0, 1, 2, 3], "edges": [[0, 1], [2, 3]]}]},
        "compound 'K': not connected",
    ),
    "another size": (sample([structure("S", 0, 1)]), r"compound 'S': 2 atoms and 1 edges, but 3 and 2 in .*line 1"),
    "a string before": (sample([{**G, "name": "x"}]), "compound 'x' has structure here, but is a string before"),
    "a structure before": (sample(["S"]), "compound 'S' is a string here, but has structure in .*: line 1"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_faults(fault: str, tmp_path: Path) -> None:
    line, message = FAULTS[fault]
    path = put(tmp_path / "s.jsonl", [{"id": "first", **sample(["x", structure("S", 0, 1, 2)])}])
    read_samples(path)
    with path.open("a") as file:
        file.write((line if isinstance(line, str) else json.dumps(line)) + "\n")
    with pytest.raises(UserError, match=message) as caught:
        read_samples(path)
    assert str(caught.value).startswith(f"{path}: line 2: ")
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 300


def test_not_utf_8(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(json.dumps(sample(["x"])).encode() + b'\n{"atoms": ["\xe9"]}\n')
    with pytest.raises(UserError, match="line 2: byte 0xe9 is not UTF-8"):
        read_samples(path)


@pytest.mark.parametrize(
    ("lines", "things"), [([], "samples"), ([sample(["x"], "")] * 2, "atoms"), ([sample([])] * 2, "compounds")]
)
def test_an_empty_side(lines: list[Any], things: str, tmp_path: Path) -> None:
    good = put(tmp_path / "good.jsonl", [sample(["x"])])
    with pytest.raises(UserError, match=rf"bad\.jsonl: no {things}"):
        read_samples(good, put(tmp_path / "bad.jsonl", lines))


def test_an_id_in_both_files_is_no_fault(tmp_path: Path) -> None:
    file = put(tmp_path / "s.jsonl", [{"id": "one", **sample(["x"])}])
    assert [part.ids for part in read_samples(file, file)] == [["one"], ["one"]]
