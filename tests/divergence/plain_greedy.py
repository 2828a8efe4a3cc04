"""The greedy division straight from the pseudocode: for every candidate of every step both sides are counted anew."""

from collections import Counter
from collections.abc import Mapping, Sequence
from math import isnan, nan

Bag = Mapping[str, float]


def distribution(counter: Counter[str]) -> dict[str, float]:
    total = sum(counter.values())
    return {name: count / total for name, count in counter.items()}


def divergence(train: Counter[str], test: Counter[str], alpha: float) -> float:
    if not train or not test:
        return nan
    p, q = distribution(train), distribution(test)
    return 1.0 - sum(p[name] ** alpha * q[name] ** (1 - alpha) for name in p if name in q)


def deviation(reached: float, wanted: float) -> float:
    return 1.0 if isnan(reached) else abs(reached - wanted)


def plain_greedy(
    atoms: Sequence[Bag], compounds: Sequence[Bag], n_train: int, n_test: int, atom: float, compound: float, first: int
) -> tuple[list[int], list[int], list[tuple[float, float]]]:
    """Train, test, and (D_A, D_C) after each step; the arguments are those of ``greedy``, samples as bags."""
    atoms, compounds = [Counter(bag) for bag in atoms], [Counter(bag) for bag in compounds]
    train, test = [first], []
    train_atoms, train_compounds = Counter(atoms[first]), Counter(compounds[first])
    test_atoms, test_compounds = Counter(), Counter()
    pool = [row for row in range(len(atoms)) if row != first]
    path = [(nan, nan)]
    while len(train) + len(test) < n_train + n_test:
        is_train_step = len(train) * n_test <= len(test) * n_train
        scores = []
        for candidate in pool:
            if is_train_step:
                reached_atom = divergence(train_atoms + atoms[candidate], test_atoms, 0.5)
                reached_compound = divergence(train_compounds + compounds[candidate], test_compounds, 0.1)
            else:
                reached_atom = divergence(train_atoms, test_atoms + atoms[candidate], 0.5)
                reached_compound = divergence(train_compounds, test_compounds + compounds[candidate], 0.1)
            score = round(deviation(reached_compound, compound) + deviation(reached_atom, atom), 10)
            scores.append((score, candidate, reached_atom, reached_compound))
        _, chosen, *reached = min(scores)
        if is_train_step:
            train.append(chosen)
            train_atoms, train_compounds = train_atoms + atoms[chosen], train_compounds + compounds[chosen]
        else:
            test.append(chosen)
            test_atoms, test_compounds = test_atoms + atoms[chosen], test_compounds + compounds[chosen]
        pool.remove(chosen)
        path.append(tuple(reached))
    return train, test, path
