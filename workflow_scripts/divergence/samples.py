"""Samples as bags of atoms and compounds, and the JSON lines that they are read from (``measure.Measure``)."""

import json
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeGuard

import numpy as np
from scipy import sparse
from scipy.cluster.hierarchy import DisjointSet

from workflow_scripts.core.documents import parse_json
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.progress import track
from workflow_scripts.divergence.weights import heaviest, occurrence_weights

# Compounds with structure to keep.
KEEP = 100_000
SAMPLE_KEYS = ("id", "atoms", "compounds")
COMPOUND_KEYS = ("name", "atoms", "edges")


@dataclass(frozen=True)
class Samples:
    """Samples and their parts."""

    atoms: sparse.csr_array  # samples × atoms, float64, counts
    compounds: sparse.csr_array  # samples × compounds, float64, weights
    atom_names: list[str]  # of the columns
    compound_names: list[str]
    ids: list[str | int | None] | None = None  # the user's; None if no sample has one

    def __len__(self) -> int:
        return self.atoms.shape[0]

    def take(self, rows: Sequence[int] | np.ndarray) -> "Samples":
        rows = np.asarray(rows, dtype=np.int64)
        ids = None if self.ids is None else [self.ids[row] for row in rows]
        return Samples(self.atoms[rows], self.compounds[rows], self.atom_names, self.compound_names, ids)


class Bags(NamedTuple):
    """Samples of texts, by the numbers of these: those of sample i are ``items[begins[i] : begins[i + 1]]``."""

    begins: np.ndarray  # int64, and the end
    items: np.ndarray  # int64

    def __len__(self) -> int:
        return len(self.begins) - 1

    def take(self, rows: np.ndarray) -> "Bags":
        sizes = np.diff(self.begins)[rows]
        begins = np.concatenate(([0], np.cumsum(sizes)))
        return Bags(begins, self.items[np.repeat(self.begins[rows] - begins[:-1], sizes) + np.arange(begins[-1])])


def collect(samples: Sequence[Sequence[int] | np.ndarray]) -> Bags:
    begins = np.concatenate(([0], np.cumsum([len(sample) for sample in samples]))).astype(np.int64)
    return Bags(begins, np.concatenate([np.empty(0, np.int64), *samples]).astype(np.int64))


def join(one: Bags, other: Bags) -> Bags:
    begins = np.concatenate((one.begins, one.begins[-1] + other.begins[1:]))
    return Bags(begins, np.concatenate((one.items, other.items)))


def count_matrix(
    rows: Sequence[int] | np.ndarray, columns: Sequence[int] | np.ndarray, shape: tuple[int, int]
) -> sparse.csr_array:
    """Return a sparse matrix of how often each (row, column) is given, columns sorted."""
    places = np.asarray(rows, np.int64), np.asarray(columns, np.int64)
    matrix = sparse.coo_array((np.ones(len(rows)), places), shape=shape).tocsr()
    matrix.sum_duplicates()
    return matrix


def read_samples(*paths: str | Path, keep: int = KEEP) -> list[Samples]:
    """Read the samples of each file, a row per line; all files get the same columns, sorted by name.

    Compounds with structure are weighed over all files together; those without weight are dropped, and the ``keep``
    heaviest are kept, ties by name. A name stands for one compound: it has one size, and it has structure everywhere or
    nowhere.
    """
    reader, ends = _Reader(), [0]
    for path in paths:
        reader.read(path)
        ends.append(len(reader.ids))
    whole = reader.samples(keep)
    result = [whole.take(np.arange(start, end)) for start, end in pairwise(ends)]
    for path, samples in zip(paths, result, strict=True):
        if not samples.compounds.nnz:
            raise UserError(f"{path}: none of the {keep} heaviest compounds occurs; increase --keep")
    return result


def stack(parts: Sequence[Samples]) -> Samples:
    """Concatenate samples that have the same columns."""
    ids = [identity for part in parts for identity in (part.ids or [None] * len(part))]
    return Samples(
        sparse.vstack([part.atoms for part in parts], format="csr"),
        sparse.vstack([part.compounds for part in parts], format="csr"),
        parts[0].atom_names,
        parts[0].compound_names,
        ids if any(identity is not None for identity in ids) else None,
    )


class _Reader:
    """Collects lines as flat arrays; the code of a name is its position among the names read so far."""

    def __init__(self) -> None:
        self.where = ""
        self.ids: list[str | int | None] = []
        self.atoms: dict[str, int] = {}
        self.strings: dict[str, int] = {}
        self.structures: dict[str, int] = {}
        # For each name with structure: its numbers of atoms and edges, and its first place.
        self.sizes: list[tuple[int, int, str]] = []
        self.atom_rows, self.atom_codes = array("q"), array("q")
        self.string_rows, self.string_codes = array("q"), array("q")
        self.occurrence_rows, self.occurrence_codes = array("q"), array("q")
        self.starts, self.elements = array("q", [0]), array("q")

    def fail(self, fault: str) -> NoReturn:
        raise UserError(f"{self.where}: {fault}")

    def read(self, path: str | Path) -> None:
        before = self._counts()
        lines: dict[str | int, int] = {}
        with Path(path).open("rb") as file:
            for number, line in enumerate(track(file, None, "samples"), 1):
                self.where = f"{path}: line {number}"
                identity = self._sample(self._record(line))
                if identity is not None and lines.setdefault(identity, number) != number:
                    self.fail(f"duplicate id {identity!r}, also in line {lines[identity]}; ids must be unique")
        for things, old, new in zip(("samples", "atoms", "compounds"), before, self._counts(), strict=True):
            if old == new:
                raise UserError(f"{path}: no {things}; nothing to measure")

    def _counts(self) -> tuple[int, int, int]:
        return len(self.ids), len(self.atom_codes), len(self.string_codes) + len(self.occurrence_codes)

    def _record(self, line: bytes) -> dict[str, Any]:
        try:
            record = parse_json(line.decode("utf-8-sig"))
        except UnicodeDecodeError as error:
            self.fail(f"byte 0x{error.object[error.start]:02x} is not UTF-8; save the file as UTF-8")
        except ValueError as error:
            self.fail(f"not JSON ({error}); each line must be one object" if line.strip() else "empty line; remove it")
        if not isinstance(record, dict):
            self.fail("expected an object with 'atoms' and 'compounds'")
        self._check_keys("sample", record, SAMPLE_KEYS)
        for key in ("atoms", "compounds"):
            if not isinstance(record.get(key), list):
                self.fail(f"{key!r} is {'not a list' if key in record else 'missing'}; list the sample's {key}")
        return record

    def _sample(self, record: dict[str, Any]) -> str | int | None:
        identity = record.get("id")
        if not (identity is None or type(identity) is int or self._is_name(identity)):
            self.fail(f"id: expected text or an integer, got {str(identity)[:40]!r}")
        row = len(self.ids)
        self.ids.append(identity)
        codes = self._codes(record["atoms"], self.atoms, "atom")
        self.atom_codes.extend(codes)
        self.atom_rows.extend([row] * len(codes))
        structured = [compound for compound in record["compounds"] if isinstance(compound, dict)]
        strings = [compound for compound in record["compounds"] if not isinstance(compound, dict)]
        codes = self._codes(strings, self.strings, "compound")
        self.string_codes.extend(codes)
        self.string_rows.extend([row] * len(codes))
        # Two occurrences share an edge if its ends, their order and its label are equal.
        edges: dict[tuple[Any, ...], int] = {}
        for compound in structured:
            self._occurrence(compound, row, len(record["atoms"]), edges)
        return identity

    def _is_name(self, name: Any) -> TypeGuard[str]:
        if not isinstance(name, str) or not name:
            return False
        try:
            name.encode()
        except UnicodeEncodeError:
            self.fail(f"{ascii(name)[:60]} has half a surrogate pair; write the whole character")
        return True

    def _codes(self, names: list[Any], known: dict[str, int], what: str) -> list[int]:
        try:
            return [known[name] for name in names]
        except (KeyError, TypeError):
            pass
        for name in names:
            if not self._is_name(name):
                also = " or an object with name, atoms and edges" if what == "compound" else ""
                self.fail(f"{what}: expected a non-empty text{also}, got {json.dumps(name)[:40]}")
            if known is self.strings and name in self.structures:
                self.fail(
                    f"compound {name!r} is a string here, but has structure in {self.sizes[self.structures[name]][2]};"
                    " write it one way"
                )
            known.setdefault(name, len(known))
        return [known[name] for name in names]

    def _check_keys(self, what: str, record: dict[str, Any], allowed: Sequence[str]) -> None:
        for key in record:
            if key not in allowed:
                self.fail(f"{what}: unknown key {key!r}; allowed: {', '.join(allowed)}")

    def _occurrence(self, compound: dict[str, Any], row: int, n_atoms: int, seen: dict[tuple[Any, ...], int]) -> None:
        self._check_keys("compound", compound, COMPOUND_KEYS)
        name, nodes, edges = compound.get("name"), compound.get("atoms"), compound.get("edges")
        if not self._is_name(name):
            self.fail(f"compound: name: expected a non-empty text, got {json.dumps(name)[:40]}")
        if not isinstance(nodes, list) or not nodes:
            self.fail(f"compound {name!r}: no atoms; list their indices in the sample's atoms")
        for node in nodes:
            if type(node) is not int or not 0 <= node < n_atoms:
                self.fail(f"compound {name!r}: expected an index from 0 to {n_atoms - 1}, got {json.dumps(node)[:40]}")
        members = set(nodes)
        if len(members) < len(nodes):
            self.fail(f"compound {name!r}: duplicate atom; remove one")
        if not isinstance(edges, list):
            self.fail(f"compound {name!r}: no list of edges; list pairs of its atoms ([] for a single atom)")
        for edge in edges:
            self._check_edge(name, edge, members)
        parts = DisjointSet(nodes)
        for edge in edges:
            parts.merge(edge[0], edge[1])
        if parts.n_subsets > 1:
            self.fail(f"compound {name!r}: not connected; split it or add edges")
        known = [seen.setdefault(tuple(edge), n_atoms + len(seen)) for edge in edges]
        if len(set(known)) < len(known):
            self.fail(f"compound {name!r}: duplicate edge; remove one")
        self._check_size(name, len(nodes), len(edges))
        self.occurrence_rows.append(row)
        self.occurrence_codes.append(self.structures[name])
        self.elements.extend([*nodes, *known])
        self.starts.append(len(self.elements))

    def _check_edge(self, name: str, edge: Any, members: set[int]) -> None:
        if not isinstance(edge, list) or not 2 <= len(edge) <= 3 or (len(edge) == 3 and not isinstance(edge[2], str)):
            fault = "is not a pair of indices with an optional text label"
        elif type(edge[0]) is not int or type(edge[1]) is not int or not members.issuperset(edge[:2]):
            fault = "has an end outside the compound's atoms"
        elif edge[0] == edge[1]:
            fault = "connects an atom to itself"
        else:
            return
        self.fail(f"compound {name!r}: edge {json.dumps(edge)[:40]} {fault}")

    def _check_size(self, name: str, nodes: int, edges: int) -> None:
        if name in self.strings:
            self.fail(f"compound {name!r} has structure here, but is a string before; write it one way")
        code = self.structures.setdefault(name, len(self.structures))
        if code == len(self.sizes):
            self.sizes.append((nodes, edges, self.where))
        elif self.sizes[code][:2] != (nodes, edges):
            old_nodes, old_edges, where = self.sizes[code]
            self.fail(
                f"compound {name!r}: {nodes} atoms and {edges} edges, but {old_nodes} and {old_edges} in {where};"
                " rename one of them"
            )

    def samples(self, keep: int) -> Samples:
        n = len(self.ids)
        atom_names, rank = _sorted_names(self.atoms)
        atoms = count_matrix(self.atom_rows, rank[np.asarray(self.atom_codes)], (n, len(atom_names)))
        string_names, rank = _sorted_names(self.strings)
        strings = count_matrix(self.string_rows, rank[np.asarray(self.string_codes)], (n, len(string_names)))
        structure_names, rank = _sorted_names(self.structures)
        rows, codes = np.asarray(self.occurrence_rows), rank[np.asarray(self.occurrence_codes)]
        shape = (n, len(structure_names))
        structures = occurrence_weights(rows, codes, np.asarray(self.starts), np.asarray(self.elements), shape)
        kept = heaviest(structures.sum(axis=0), keep)
        names = string_names + [structure_names[column] for column in kept]
        order = sorted(range(len(names)), key=names.__getitem__)
        compounds = sparse.hstack([strings, structures[:, kept]], format="csr")[:, order]
        compounds.sort_indices()
        ids = None if all(identity is None for identity in self.ids) else self.ids
        return Samples(atoms, compounds, atom_names, [names[column] for column in order], ids)


def _sorted_names(codes: Mapping[str, int]) -> tuple[list[str], np.ndarray]:
    """Return the names, sorted, and for each code the position of its name."""
    names = sorted(codes)
    rank = np.empty(len(names), dtype=np.int64)
    rank[[codes[name] for name in names]] = np.arange(len(names))
    return names, rank
