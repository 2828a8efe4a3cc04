"""Samples as bags of atoms and compounds, and their JSON lines (``measure.MeasureSamples``)."""

import codecs
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator
from scipy import sparse

from compclip.core.documents import parse_json, require_regular
from compclip.core.errors import UserError, require
from compclip.core.progress import track
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
        """Return the sums of the weights of these samples."""
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
    begins = np.concatenate(([0], np.cumsum([len(sample) for sample in samples]))).astype(np.int64)
    return Bags(begins, np.concatenate([np.empty(0, np.int64), *samples]).astype(np.int64))


def join(one: Bags, other: Bags) -> Bags:
    begins = np.concatenate((one.begins, one.begins[-1] + other.begins[1:]))
    return Bags(begins, np.concatenate((one.items, other.items)))


def from_bags(
    atoms: Sequence[Mapping[str, float]], compounds: Sequence[Mapping[str, float]]
) -> Samples:
    """Return samples of a bag of atoms and a bag of compounds each (weights by name); columns are
    sorted by name.
    """
    matrices, names = [], []
    for bags in (atoms, compounds):
        columns, distinct = pd.factorize(
            np.array([name for bag in bags for name in bag], object), sort=True
        )
        rows = np.repeat(np.arange(len(bags)), [len(bag) for bag in bags])
        weights = np.array([weight for bag in bags for weight in bag.values()], float)
        matrices.append(sparse.csr_array((weights, (rows, columns)), (len(bags), len(distinct))))
        names.append(distinct.tolist())
    return Samples(*matrices, *names)


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
    def _check_places(self) -> Self:
        for compound in self.compounds:
            if isinstance(compound, Compound):
                where, nodes, last = (
                    f"compound {compound.name!r}",
                    set(compound.atoms),
                    len(self.atoms) - 1,
                )
                require(nodes <= set(range(last + 1)), where, f"expected indices from 0 to {last}")
                inside = all(nodes.issuperset(edge[:2]) for edge in compound.edges)
                require(inside, where, "an edge has an end outside the compound's atoms")
        return self


# An occurrence of a compound: its name, and its atoms and edges.
CompoundPlace = tuple[str, frozenset[object]]


def structure_weights(samples: Sequence[Sequence[CompoundPlace]]) -> list[dict[str, float]]:
    """Return the weights W(G,R) above 0 of each sample (Keysers et al. 2020, section 2.1).

    W(G,R) is the maximum, over the occurrences g of G in R, of one minus the maximum of P(G'|G)
    over the compounds G' with an occurrence in R that strictly contains g. P(G'|G) is the fraction
    of the samples with G in which an occurrence of G' contains one of G. An occurrence that no
    other contains weighs 1.
    """
    having, both = Counter[str](), Counter[tuple[str, str]]()
    around = []
    for sample in track(samples, len(samples), "samples weighed"):
        around.append(
            [
                (name, {other for other, larger in sample if inside < larger})
                for name, inside in sample
            ]
        )
        having.update({name for name, _ in sample})
        both.update({(name, other) for name, others in around[-1] for other in others})
    weights = []
    for occurrences in around:
        best: dict[str, float] = defaultdict(float)
        for name, others in occurrences:
            explained = max((both[name, other] / having[name] for other in others), default=0.0)
            best[name] = max(best[name], 1 - explained)
        weights.append({name: weight for name, weight in best.items() if weight > 0})
    return weights


def read_samples(*paths: Path) -> tuple[Samples, list[np.ndarray]]:
    """Return the samples of all files (one per line), weighed together, and the rows of each
    file.
    """
    of_files = [read_lines(path) for path in paths]
    samples = make_samples([line for lines in of_files for line in lines])
    return samples, np.split(
        np.arange(len(samples)), np.cumsum([len(lines) for lines in of_files[:-1]])
    )


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
    strings = [
        Counter(compound for compound in line.compounds if isinstance(compound, str))
        for line in checked
    ]
    structured = [[c for c in line.compounds if isinstance(c, Compound)] for line in checked]
    structures = [
        [(c.name, frozenset([*c.atoms, *c.edges])) for c in compounds] for compounds in structured
    ]
    both = {name for bag in strings for name in bag} & {
        name for sample in structures for name, _ in sample
    }
    fault = (
        f"compound {min(both, default='')!r} is a string in one line and has structure in another"
    )
    require(not both, "samples", fault)
    weights, total = structure_weights(structures), Counter[str]()
    for of_sample in weights:
        total.update(of_sample)
    # sums of equal weights can differ in the last digits
    heaviest = set(sorted(total, key=lambda name: (-round(total[name], 9), name))[:KEPT_STRUCTURES])
    kept = [
        {name: weight for name, weight in of_sample.items() if name in heaviest}
        for of_sample in weights
    ]
    bags = [{**bag, **heavy} for bag, heavy in zip(strings, kept, strict=True)]
    return from_bags([Counter(line.atoms) for line in checked], bags)


def _last_fault(error: ValidationError) -> str:
    """Return the last fault: where a text or an object is expected, it is that of the object."""
    fault = error.errors()[-1]
    return f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}"


def read_lines(path: Path) -> list[SampleLine]:
    lines = []
    require_regular(path)
    with path.open("rb") as file:
        for number, line in enumerate(track(file, None, "samples"), 1):
            where = f"{path}: line {number}"
            try:
                text = line.removeprefix(codecs.BOM_UTF8)
                lines.append(SampleLine.model_validate_json(text))
                parse_json(text)  # refuses duplicate keys; pydantic keeps the last
            except ValidationError as error:
                raise UserError(f"{where}: {_last_fault(error)}") from None
            except (UserError, ValueError) as error:
                raise UserError(f"{where}: {error}") from None
    return lines
