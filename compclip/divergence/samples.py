"""Samples as bags of atoms and compounds, and their JSON lines (``measure.MeasureSamples``)."""

import codecs
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator
from scipy import sparse

from compclip.core.errors import UserError, require
from compclip.core.progress import track
from compclip.core.reading.documents import parse_json, require_regular
from compclip.divergence.chernoff import Totals

KEPT_STRUCTURES = 100_000  # number of compounds with structure, the heaviest ones

Rows = Sequence[int] | np.ndarray


@dataclass(frozen=True)
class Samples:
    """Samples and their parts."""

    atoms: sparse.csr_array  # samples × atoms, float64, counts
    compounds: sparse.csr_array  # samples × compounds, float64, weights
    atom_names: list[str]  # of the columns
    compound_names: list[str]

    def __len__(self) -> int:
        return self.atoms.shape[0]

    def totals(self, rows: Rows) -> Totals:
        """Return the sums of the weights of these samples; a repeated row counts repeatedly."""
        times = np.bincount(np.asarray(rows, dtype=np.int64), minlength=len(self))
        return Totals(times @ self.atoms, times @ self.compounds)


class Bags(NamedTuple):
    """Samples as numbers of texts: sample i has ``items[begins[i] : begins[i + 1]]``."""

    begins: np.ndarray  # int64, and the end
    items: np.ndarray  # int64

    def __len__(self) -> int:
        return len(self.begins) - 1


@dataclass(frozen=True)
class Weighing:
    """Functions that name an atom or a compound by its number, and sum the weights of all over
    samples.
    """

    atom_name: Callable[[int], str]
    compound_name: Callable[[int], str]
    totals: Callable[[Bags], Totals]


def collect_bags(samples: Sequence[Rows]) -> Bags:
    sizes = [len(sample) for sample in samples]
    begins = np.cumsum([0, *sizes])
    # The empty array makes the concatenation of no samples valid.
    items = np.concatenate([np.empty(0, np.int64), *samples])
    return Bags(begins, items.astype(np.int64))


def join(first: Bags, second: Bags) -> Bags:
    moved = first.begins[-1] + second.begins[1:]
    begins = np.concatenate((first.begins, moved))
    items = np.concatenate((first.items, second.items))
    return Bags(begins, items)


def from_bags(
    atoms: Sequence[Mapping[str, float]], compounds: Sequence[Mapping[str, float]]
) -> Samples:
    """Return samples of a bag of atoms and a bag of compounds each (weights by name); columns are
    sorted by name.
    """
    atom_weights, atom_names = _matrix(atoms)
    compound_weights, compound_names = _matrix(compounds)
    return Samples(atom_weights, compound_weights, atom_names, compound_names)


def _matrix(bags: Sequence[Mapping[str, float]]) -> tuple[sparse.csr_array, list[str]]:
    """Return the weights (bags, names), and the names, sorted."""
    occurrences: list[str] = []
    weights: list[float] = []
    sizes = []
    for bag in bags:
        occurrences.extend(bag)
        weights.extend(bag.values())
        sizes.append(len(bag))
    columns, names = pd.factorize(np.array(occurrences, object), sort=True)
    n = len(bags)
    rows = np.repeat(np.arange(n), sizes)
    entries = (rows, columns)
    matrix = sparse.csr_array((np.array(weights, float), entries), (n, len(names)))
    return matrix, names.tolist()


class Compound(BaseModel):
    """A compound with structure: some of the sample's atoms, and edges that connect them."""

    model_config = ConfigDict(extra="forbid", strict=True)

    name: str
    atoms: list[int] = Field(min_length=1)
    edges: list[tuple[int, int] | tuple[int, int, str]]


class SampleLine(BaseModel):
    """A line of a file."""

    model_config = ConfigDict(extra="forbid", strict=True)

    id: str | int | None = None  # the user's; not used
    atoms: list[str]
    compounds: list[str | Compound]

    @model_validator(mode="after")
    def _check_indices(self) -> Self:
        for compound in self.compounds:
            if isinstance(compound, str):
                continue
            subject = f"compound {compound.name!r}"
            nodes = set(compound.atoms)
            atoms = range(len(self.atoms))
            fault = f"expected indices from 0 to {len(atoms) - 1}"
            require(nodes <= set(atoms), subject, fault)
            is_closed = all(nodes.issuperset(edge[:2]) for edge in compound.edges)
            require(is_closed, subject, "an edge has an end outside the compound's atoms")
        return self


class Occurrence(NamedTuple):
    """An occurrence of a compound with structure in a sample."""

    name: str
    elements: frozenset[object]  # atoms (int) and edges (tuples)


def structure_weights(samples: Sequence[Sequence[Occurrence]]) -> list[dict[str, float]]:
    """Return the weights W(G,R) above 0 of each sample (Keysers et al. 2020, section 2.1).

    W(G,R) is the maximum, over the occurrences g of G in R, of one minus the maximum of P(G'|G)
    over the compounds G' with an occurrence in R that strictly contains g. P(G'|G) is the fraction
    of the samples with G in which an occurrence of G' contains one of G. An occurrence that no
    other contains weighs 1.
    """
    samples_with = Counter[str]()  # G
    samples_within = Counter[tuple[str, str]]()  # G in G'
    containers_by_sample = []
    for sample in track(samples, len(samples), "samples weighed"):
        containers = [(g.name, _containers(g, sample)) for g in sample]
        containers_by_sample.append(containers)
        # Sets, because a sample counts once, however many occurrences it has.
        samples_with.update({name for name, _ in containers})
        samples_within.update({(name, larger) for name, names in containers for larger in names})
    weights = []
    for containers in containers_by_sample:
        largest: dict[str, float] = defaultdict(float)
        for name, names in containers:
            p_given = [samples_within[name, larger] / samples_with[name] for larger in names]
            largest[name] = max(largest[name], 1 - max(p_given, default=0.0))
        weights.append({name: weight for name, weight in largest.items() if weight > 0})
    return weights


def _containers(occurrence: Occurrence, sample: Sequence[Occurrence]) -> set[str]:
    """Return the compounds with an occurrence in the sample that strictly contains this one."""
    return {larger.name for larger in sample if occurrence.elements < larger.elements}


def read_samples(*paths: Path) -> tuple[Samples, list[np.ndarray]]:
    """Return the samples of all files (one per line), weighed together, and the rows of each
    file.
    """
    lines_by_file = [read_lines(path) for path in paths]
    samples = make_samples(list(chain.from_iterable(lines_by_file)))
    sizes = [len(lines) for lines in lines_by_file]
    ends = np.cumsum(sizes)
    rows = np.arange(len(samples))
    return samples, np.split(rows, ends[:-1])


def make_samples(lines: Sequence[SampleLine | Mapping[str, Any]]) -> Samples:
    """Return samples of atoms and compounds; only the heaviest compounds with structure are kept,
    ties by name.

    Args:
        lines: a mapping for each sample, with ``atoms`` (names, repeated as they occur) and
            ``compounds`` (names, or mappings with name, atoms and edges).

    Raises:
        UserError: a sample has another form, or a compound is a name in one sample and has
            structure in another.
    """
    try:
        checked = TypeAdapter(list[SampleLine]).validate_python(lines, strict=False)
    except ValidationError as error:
        raise UserError(f"samples: {_last_fault(error)}") from None
    strings = [Counter(_strings(line)) for line in checked]
    structures = [_occurrences(line) for line in checked]
    _require_one_form(strings, structures)
    weights = _keep_heaviest(structure_weights(structures))
    compounds = [{**counts, **heavy} for counts, heavy in zip(strings, weights, strict=True)]
    return from_bags([Counter(line.atoms) for line in checked], compounds)


def _strings(line: SampleLine) -> list[str]:
    return [compound for compound in line.compounds if isinstance(compound, str)]


def _occurrences(line: SampleLine) -> list[Occurrence]:
    """Return the compounds of a line that have structure."""
    return [
        Occurrence(compound.name, frozenset([*compound.atoms, *compound.edges]))
        for compound in line.compounds
        if isinstance(compound, Compound)
    ]


def _require_one_form(
    strings: Sequence[Mapping[str, int]], structures: Sequence[Sequence[Occurrence]]
) -> None:
    """Refuse a name that is a string in one line and has structure in another."""
    structure_names = {occurrence.name for sample in structures for occurrence in sample}
    ambiguous = structure_names.intersection(chain.from_iterable(strings))
    if ambiguous:
        fault = f"compound {min(ambiguous)!r} is a string in one line and has structure in another"
        raise UserError(f"samples: {fault}")


def _keep_heaviest(weights: Sequence[Mapping[str, float]]) -> list[dict[str, float]]:
    """Return the weights of the ``KEPT_STRUCTURES`` compounds of largest sum, ties by name."""
    total = Counter[str]()
    for sample in weights:
        total.update(sample)
    # Rounded, because sums of equal weights can differ in the last digits.
    by_weight = sorted(total, key=lambda name: (-round(total[name], 9), name))
    heaviest = set(by_weight[:KEPT_STRUCTURES])
    return [
        {name: weight for name, weight in sample.items() if name in heaviest} for sample in weights
    ]


def _last_fault(error: ValidationError) -> str:
    """Return the last fault: where a text or an object is expected, it is that of the object."""
    fault = error.errors()[-1]
    location = ".".join(map(str, fault["loc"]))
    return f"{location}: {fault['msg']}"


def read_lines(path: Path) -> list[SampleLine]:
    lines = []
    require_regular(path)
    with path.open("rb") as file:
        for number, line in enumerate(track(file, None, "samples"), 1):
            text = line.removeprefix(codecs.BOM_UTF8)
            try:
                lines.append(SampleLine.model_validate_json(text))
                parse_json(text)  # refuses duplicate keys; pydantic keeps the last
            except ValidationError as error:
                raise UserError(f"{path}: line {number}: {_last_fault(error)}") from None
            except (UserError, ValueError) as error:
                raise UserError(f"{path}: line {number}: {error}") from None
    return lines
