"""Measure the divergence of two sets of samples (DBCA: Keysers et al. 2020)."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field

from compclip.core.errors import UserError
from compclip.core.seeds import rng
from compclip.core.settings.arguments import Positive, Whole
from compclip.core.settings.calls import checked
from compclip.core.settings.cli import Command
from compclip.core.settings.section import Count, Seed
from compclip.divergence.chernoff import ATOMS_ALPHA, COMPOUNDS_ALPHA, divergence, divergences
from compclip.divergence.samples import Rows, Samples, make_samples, read_samples


class MeasureSamples(Command):
    """Measure the atom and compound divergence of test from train (DBCA: Keysers et al. 2020), for
    any samples.

    Each line of a file is a sample:

        {"atoms": ["jump", "twice"], "compounds": ["jump_twice"]}
        {"atoms": ["a", "b", "c"], "compounds": [{"name": "G1", "atoms": [0, 2], "edges": [[0,
        2]]}]}

    A compound is a string, counted like an atom, or has structure: indices into the sample's atoms,
    and edges, ordered pairs of those indices with an optional label as third item. Compounds with
    structure are weighed by W(G, R) over train and test together, and the 100,000 heaviest are
    kept. Prints JSON: both divergences (0: equal distributions, 1: nothing in common), and their
    mean and population standard deviation over random divisions at the same sizes.
    """

    train: Path = Field(description="samples of train, one JSON object per line")
    test: Path = Field(description="samples of test, likewise")
    shuffles: Count = Field(10, ge=1, description="random divisions to compare with")
    seed: Seed


def measure(samples: Samples, train: Rows, test: Rows) -> tuple[float, float]:
    """Return D_A and D_C, as ``divergences``."""
    return divergences(samples.totals(train), samples.totals(test))


def random_baseline(
    samples: Samples, n_train: int, n_test: int, shuffles: int, generator: np.random.Generator
) -> np.ndarray:
    """Return (shuffles, 2): D_A and D_C of random divisions with the same weights; 1 if a side is
    empty.
    """
    result = np.ones((shuffles, 2))
    for shuffle in range(shuffles):
        order = generator.permutation(len(samples))
        train = samples.totals(order[:n_train])
        test = samples.totals(order[n_train : n_train + n_test])
        # Each by itself: a side may have atoms without having compounds.
        for kind, alpha in enumerate((ATOMS_ALPHA, COMPOUNDS_ALPHA)):
            with suppress(UserError):
                result[shuffle, kind] = divergence(train[kind], test[kind], alpha)
    return result


@checked
def measure_divergence(
    train: list[Any], test: list[Any], *, shuffles: Positive = 10, seed: Whole = 0
) -> dict[str, Any]:
    """Measure the divergence of test from train in atoms and compounds.

    Source: Keysers et al., "Measuring Compositional Generalization" (ICLR 2020), section 2.1.

    Args:
        train, test: samples in the form that ``make_samples`` takes, lists or generators.
        shuffles: random divisions of the same samples at the same sizes to compare with.
        seed: of the random divisions.

    Returns:
        atom_divergence and compound_divergence, from 0 (equal distributions) to 1 (nothing in
        common), the mean and the standard deviation of both over random divisions (random_atom_mean
        and so on), and counts.

    Raises:
        UserError: a sample has another form (train and test are numbered together), or a side
            weighs nothing.
    """
    # Together, because compounds with structure are weighed over both sides.
    samples = make_samples([*train, *test])
    rows = np.arange(len(samples))
    n_train = len(train)
    return divergence_report(samples, rows[:n_train], rows[n_train:], shuffles, seed)


def divergence_report(
    samples: Samples, train: np.ndarray, test: np.ndarray, shuffles: int, seed: int
) -> dict[str, Any]:
    atom, compound = measure(samples, train, test)
    generator = rng(seed, "measure")
    random = random_baseline(samples, len(train), len(test), shuffles, generator)
    atom_mean, compound_mean = random.mean(axis=0).tolist()
    atom_std, compound_std = random.std(axis=0).tolist()
    return {
        "train": len(train),
        "test": len(test),
        "atoms": len(samples.atom_names),
        "compounds": len(samples.compound_names),
        "atom_divergence": atom,
        "compound_divergence": compound,
        "random_atom_mean": atom_mean,
        "random_compound_mean": compound_mean,
        "random_atom_std": atom_std,
        "random_compound_std": compound_std,
        "shuffles": shuffles,
        "seed": seed,
    }


def main(command: MeasureSamples) -> None:
    samples, (train, test) = read_samples(command.train, command.test)
    report = divergence_report(samples, train, test, command.shuffles, command.seed)
    print(json.dumps(report, indent=2))
