"""Measure the divergence of two sets of samples (DBCA: Keysers et al. 2020)."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from pydantic import Field
from scipy import sparse

from workflow_scripts.core import cli
from workflow_scripts.core.seeds import rng
from workflow_scripts.core.step import Input, Seed, Step
from workflow_scripts.divergence.chernoff import ATOMS_ALPHA, COMPOUNDS_ALPHA, Totals, divergence, divergences
from workflow_scripts.divergence.samples import KEEP, Samples, read_samples, stack

Rows = Sequence[int] | np.ndarray
KINDS = ("atom", "compound")
# New compounds that a report lists.
EXAMPLES = 5


class Measure(Step):
    """Measure how far test is from train: atom and compound divergence (DBCA: Keysers et al. 2020) of any samples.

    Each line of a file is a sample:

        {"id": "s1", "atoms": ["jump", "twice"], "compounds": ["jump_twice"]}
        {"id": "s2", "atoms": ["a", "b", "c"], "compounds": [{"name": "G1", "atoms": [0, 2], "edges": [[0, 2]]}]}

    id is optional. A compound is a string, counted like an atom, or has structure: indices into the sample's atoms, and
    edges, ordered pairs of those indices with an optional label as third item, which connect them. Compounds with
    structure are weighed by W(G, R) over train and test together, and the heaviest are kept. Prints both divergences
    (0: equal distributions, 1: nothing in common), their mean and population standard deviation over random divisions
    at the same sizes, and the fraction of test's compound weight that is new, i.e. has no weight in train.
    """

    train: Input = Field(description="samples of train, one JSON object per line")
    test: Input = Field(description="samples of test, likewise")
    keep: int = Field(KEEP, ge=1, description="number of heaviest compounds with structure to keep")
    shuffles: int = Field(10, ge=1, description="random divisions to compare with")
    seed: Seed
    as_json: bool = Field(False, alias="json", description="print JSON")


def totals(weights: sparse.csr_array, rows: Rows) -> np.ndarray:
    return np.bincount(np.asarray(rows, dtype=np.int64), minlength=weights.shape[0]) @ weights


def measure(samples: Samples, train_rows: Rows, test_rows: Rows) -> tuple[float, float]:
    """Return D_A and D_C, as ``divergences``."""
    train, test = (Totals(totals(samples.atoms, r), totals(samples.compounds, r)) for r in (train_rows, test_rows))
    return divergences(train, test)


def random_baseline(
    samples: Samples, n_train: int, n_test: int, shuffles: int, generator: np.random.Generator
) -> np.ndarray:
    """Return (shuffles, 2): D_A and D_C of random divisions with the same weights; 1 if a side has no such part."""
    n = len(samples)
    sides = np.zeros((2 * shuffles, n))
    for shuffle in range(shuffles):
        order = generator.permutation(n)
        sides[2 * shuffle, order[:n_train]] = 1
        sides[2 * shuffle + 1, order[n_train : n_train + n_test]] = 1
    result = np.ones((shuffles, 2))
    for kind, (weights, alpha) in enumerate(((samples.atoms, ATOMS_ALPHA), (samples.compounds, COMPOUNDS_ALPHA))):
        sums = sides @ weights
        for shuffle, (train, test) in enumerate(zip(sums[::2], sums[1::2], strict=True)):
            if train.any() and test.any():
                result[shuffle, kind] = divergence(train, test, alpha)
    return result


def mean_and_deviation(random: np.ndarray) -> dict[str, float]:
    """Return what reports say of ``random_baseline``."""
    values = {"mean": random.mean(axis=0), "std": random.std(axis=0)}
    return {f"random_{kind}_{name}": float(values[name][i]) for i, kind in enumerate(KINDS) for name in values}


def new_items(weights: sparse.csr_array, train_rows: Rows, test_rows: Rows) -> tuple[float, np.ndarray]:
    """Return the fraction of test's weight on items without weight in train, and those items, heaviest first."""
    train, test = totals(weights, train_rows), totals(weights, test_rows)
    new = np.flatnonzero((train == 0) & (test > 0))
    return float(test[new].sum() / test.sum()), new[np.argsort(-np.round(test[new], 9), kind="stable")]


def report(train: Samples, test: Samples, shuffles: int, seed: int) -> dict[str, Any]:
    samples = stack([train, test])
    train_rows, test_rows = np.arange(len(train)), np.arange(len(train), len(samples))
    atom, compound = measure(samples, train_rows, test_rows)
    random = random_baseline(samples, len(train), len(test), shuffles, rng(seed, "measure"))
    share, new = new_items(samples.compounds, train_rows, test_rows)
    return {
        "train": len(train),
        "test": len(test),
        "atoms": len(samples.atom_names),
        "compounds": len(samples.compound_names),
        "atom_divergence": atom,
        "compound_divergence": compound,
        **mean_and_deviation(random),
        "shuffles": shuffles,
        "seed": seed,
        "new_compound_share": share,
        "new_compounds": len(new),
        "new_compound_examples": [samples.compound_names[column] for column in new[:EXAMPLES]],
    }


def readable(values: dict[str, Any]) -> str:
    examples = values["new_compound_examples"]
    more = ", …" if values["new_compounds"] > len(examples) else ""
    rows = {
        "samples": f"{values['train']} train, {values['test']} test",
        "distinct": f"{values['atoms']} atoms, {values['compounds']} compounds",
    }
    for kind in KINDS:
        random = f"{values[f'random_{kind}_mean']:.4f} ± {values[f'random_{kind}_std']:.4f}"
        rows[f"{kind} divergence"] = (
            f"{values[f'{kind}_divergence']:.4f} (random division: {random}, {values['shuffles']} shuffles)"
        )
    rows["new in test"] = (
        f"{100 * values['new_compound_share']:.1f} % of the compounds' weight, {values['new_compounds']} compounds"
        + (f": {', '.join(examples)}{more}" if examples else "")
    )
    return "\n".join(f"{name:<19}  {text}" for name, text in rows.items())


def main(step: Measure) -> None:
    train, test = read_samples(step.train, step.test, keep=step.keep)
    values = report(train, test, step.shuffles, step.seed)
    print(json.dumps(values, indent=2, ensure_ascii=False) if step.as_json else readable(values))


if __name__ == "__main__":
    cli.run(main)
