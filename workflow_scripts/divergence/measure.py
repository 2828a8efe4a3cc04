"""How far test is from train: atom and compound divergence (DBCA: Keysers et al. 2020) of any samples.

    python -m workflow_scripts.divergence.measure --train A.jsonl --test B.jsonl [--json]

Each line is a sample:

    {"id": "s1", "atoms": ["jump", "twice"], "compounds": ["jump_twice"]}
    {"id": "s2", "atoms": ["a", "b", "c"], "compounds": [{"name": "G1", "atoms": [0, 2], "edges": [[0, 2]]}]}

id may be left out. A compound is a string, counted as atoms are, or has structure: indices of its atoms in the
sample's, and edges, pairs of those indices (a label as third item if wanted). Those with structure are weighed by
W(G, R) over train and test together, and the heaviest are kept. Printed are both divergences (0: the same
distribution, 1: nothing in common), the same for random divisions of all samples at the same sizes (mean and
population standard deviation), and how much of test's compounds is new: weighs nothing in train.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from workflow_scripts.core import cli
from workflow_scripts.core.seeds import rng
from workflow_scripts.divergence.chernoff import ATOMS_ALPHA, COMPOUNDS_ALPHA, divergence
from workflow_scripts.divergence.samples import KEEP, Samples, read_samples, stack

Rows = Sequence[int] | np.ndarray
DIGITS = 6
SHOWN = 5


def totals(weights: sparse.csr_array, rows: Rows) -> np.ndarray:
    """The sum of these rows of samples × items, by item."""
    return np.bincount(np.asarray(rows, dtype=np.int64), minlength=weights.shape[0]) @ weights


def measure(samples: Samples, train_rows: Rows, test_rows: Rows) -> tuple[float, float]:
    """Atom divergence D_A and compound divergence D_C of train's samples against test's, both in [0, 1].

    Source: Keysers et al. 2020, section 2.1. Raises UserError when a side has no atoms or no compounds.
    """
    return (
        divergence(totals(samples.atoms, train_rows), totals(samples.atoms, test_rows), ATOMS_ALPHA),
        divergence(totals(samples.compounds, train_rows), totals(samples.compounds, test_rows), COMPOUNDS_ALPHA),
    )


def random_baseline(
    samples: Samples, n_train: int, n_test: int, shuffles: int, generator: np.random.Generator
) -> np.ndarray:
    """(shuffles, 2): D_A and D_C of random divisions of ``samples``, ``n_train`` against ``n_test`` of them.

    Weights stay as they are. A division that leaves a side without atoms or compounds has the divergence 1: the
    sides share nothing. Raises ValueError when there are fewer samples than asked for.
    """
    n = len(samples)
    if n_train + n_test > n:
        raise ValueError(f"{n_train} and {n_test} samples of {n}: too few")
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


def new_items(weights: sparse.csr_array, train_rows: Rows, test_rows: Rows) -> tuple[float, np.ndarray]:
    """The share of test's weight that lies on items without weight in train, and those items, heaviest first."""
    train, test = totals(weights, train_rows), totals(weights, test_rows)
    new = np.flatnonzero((train == 0) & (test > 0))
    return float(test[new].sum() / test.sum()), new[np.argsort(-np.round(test[new], 9), kind="stable")]


def report(train: Samples, test: Samples, shuffles: int, seed: int) -> dict[str, Any]:
    """What is measured of two sides with the same columns, ready for JSON: six decimals."""
    samples = stack([train, test])
    train_rows, test_rows = np.arange(len(train)), np.arange(len(train), len(samples))
    atom, compound = measure(samples, train_rows, test_rows)
    random = random_baseline(samples, len(train), len(test), shuffles, rng(seed, "measure"))
    (atom_mean, compound_mean), (atom_std, compound_std) = random.mean(axis=0), random.std(axis=0)
    share, new = new_items(samples.compounds, train_rows, test_rows)
    values = {
        "train": len(train),
        "test": len(test),
        "atoms": len(samples.atom_names),
        "compounds": len(samples.compound_names),
        "atom_divergence": atom,
        "compound_divergence": compound,
        "random_atom_mean": atom_mean,
        "random_atom_std": atom_std,
        "random_compound_mean": compound_mean,
        "random_compound_std": compound_std,
        "shuffles": shuffles,
        "seed": seed,
        "new_compound_share": share,
        "new_compounds": len(new),
        "new_compound_examples": [samples.compound_names[column] for column in new[:SHOWN]],
    }
    return {key: round(float(value), DIGITS) if isinstance(value, float) else value for key, value in values.items()}


def readable(values: dict[str, Any]) -> str:
    """``report`` as a few lines."""
    examples = values["new_compound_examples"]
    more = ", …" if values["new_compounds"] > len(examples) else ""
    rows = {
        "samples": f"{values['train']} train, {values['test']} test",
        "distinct": f"{values['atoms']} atoms, {values['compounds']} compounds",
    }
    for kind in ("atom", "compound"):
        random = f"{values[f'random_{kind}_mean']:.4f} ± {values[f'random_{kind}_std']:.4f}"
        rows[f"{kind} divergence"] = (
            f"{values[f'{kind}_divergence']:.4f} (random division: {random}, {values['shuffles']} shuffles)"
        )
    rows["new in test"] = (
        f"{100 * values['new_compound_share']:.1f} % of the compounds' weight, {values['new_compounds']} compounds"
        + (f": {', '.join(examples)}{more}" if examples else "")
    )
    return "\n".join(f"{name:<19}  {text}" for name, text in rows.items())


def positive(text: str) -> int:
    """A whole number from 1, as an option's value."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1")
    return int(text)


def main(options: argparse.Namespace) -> None:
    train, test = read_samples(options.train, options.test, keep=options.keep)
    values = report(train, test, options.shuffles, options.seed)
    print(json.dumps(values, indent=2, ensure_ascii=False) if options.json else readable(values))


def arguments() -> argparse.ArgumentParser:
    result = cli.parser(__doc__)
    result.add_argument("--train", type=Path, required=True, metavar="FILE", help="samples, one JSON object a line")
    result.add_argument("--test", type=Path, required=True, metavar="FILE", help="the same for the other side")
    result.add_argument("--keep", type=positive, default=KEEP, help=f"heaviest compounds kept ({KEEP})")
    result.add_argument("--shuffles", type=positive, default=10, help="random divisions to compare with (10)")
    result.add_argument("--seed", type=int, default=0, help="of the random divisions (0)")
    result.add_argument("--json", action="store_true", help="print JSON")
    return result


if __name__ == "__main__":
    cli.run(main, arguments())
