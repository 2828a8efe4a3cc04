"""Samples made at random, as bags: adjectives and nouns are atoms, their pairs compounds."""

from collections import Counter
from collections.abc import Iterator
from itertools import combinations

import numpy as np


def all_divisions(n: int, n_train: int, n_test: int) -> Iterator[tuple[list[int], list[int]]]:
    for train in combinations(range(n), n_train):
        for test in combinations(sorted(set(range(n)) - set(train)), n_test):
            yield list(train), list(test)


def adjective_noun_bags(
    n: int, seed: int = 0, adjectives: int = 12, nouns: int = 12, pairs: int = 3
) -> tuple[list[Counter[str]], list[Counter[str]]]:
    """Atoms and compounds of ``n`` samples, each of ``pairs`` adjectives with nouns, all equally
    likely.
    """
    generator = np.random.default_rng(seed)
    one, other = (
        generator.integers(adjectives, size=(n, pairs)),
        generator.integers(nouns, size=(n, pairs)),
    )
    atoms, compounds = [], []
    for some, others in zip(one.tolist(), other.tolist(), strict=True):
        atoms.append(Counter([f"adjective:{a}" for a in some] + [f"noun:{b}" for b in others]))
        compounds.append(Counter(f"{a}_{b}" for a, b in zip(some, others, strict=True)))
    return atoms, compounds
