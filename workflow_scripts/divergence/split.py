"""Divide samples into train and test of wanted divergences (DBCA: Keysers et al. 2020).

    python -m workflow_scripts.divergence.split --samples S.jsonl --train 480 --test 160 \\
        --atom-divergence 0.02 --compound-divergence 1.0 --seed 0 --out split.json

The samples are written as workflow_scripts.divergence.measure has them. From each of some random samples the greedy
algorithm fills both sides; then exchanges of samples improve on it; the best division is kept. With
--compound-divergence max the compound divergence is as large as can be found while the atom divergence stays at most
that given. split.json holds line numbers from 0. The same seed gives the same file.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from workflow_scripts.core import cli
from workflow_scripts.core.cli import log
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import write_json
from workflow_scripts.core.progress import Progress
from workflow_scripts.core.seeds import rng
from workflow_scripts.divergence.exchange import HARD, REACHED, exchange, tried
from workflow_scripts.divergence.greedy import Division, greedy
from workflow_scripts.divergence.kernels import Goal, score
from workflow_scripts.divergence.measure import DIGITS, measure, positive, random_baseline
from workflow_scripts.divergence.samples import KEEP, Samples, read_samples

RESTARTS = 3
SHUFFLES = 10
POINTS = 1000
# Exchanges tried in each annealing, times the root of the number of samples: more gains little.
MOVES = 40_000
# Sums of shares are 1 but for so much.
ROUNDING = 1e-9
# Where the greedy algorithm comes so near to the wanted D_A, exchanges do not raise D_A.
NEAR = 0.01


@dataclass(frozen=True)
class Start:
    """What one random first sample led to: rows of ``train`` and ``test`` in ascending order, their D_A and D_C."""

    greedy: Division
    train: np.ndarray
    test: np.ndarray
    atom: float
    compound: float


@dataclass(frozen=True)
class Split:
    """``starts[best]`` is the division found. ``limit``: what its D_A was to keep to."""

    starts: list[Start]
    best: int
    limit: float

    @property
    def kept(self) -> Start:
        return self.starts[self.best]


def divide(
    samples: Samples,
    n_train: int,
    n_test: int,
    atom: float,
    compound: float | Literal["max"],
    seed: int,
    restarts: int = RESTARTS,
    moves: int | None = None,
) -> Split:
    """Divide ``samples``: ``n_train`` and ``n_test`` of them, the others in neither.

    ``atom`` and ``compound``: the wanted D_A and D_C; with "max" D_C is as large as can be while D_A is at most
    ``atom``. ``restarts``: first samples tried, fewer if one meets both targets. ``moves``: exchanges tried in each
    annealing, by default as many as the samples warrant. What is kept scores no worse than the greedy division of the
    first start, nor has it a higher D_A; only where that is more than 0.01 below ``atom``, D_A may rise to ``atom``.

    Raises UserError: sizes, targets, and a side that weighs nothing.
    """
    check(len(samples), n_train, n_test, atom, compound, restarts)
    moves = round(MOVES * len(samples) ** 0.5) if moves is None else moves
    announce(samples, n_train + n_test, restarts, tried(moves))
    starts: list[Start] = []
    wanted = 1.0 if compound == "max" else compound
    goal = Goal(atom, wanted, atom, 0.0 if compound == "max" else 1.0)
    for start in range(restarts):
        generator = rng(seed, "split", start)
        # One that weighs nothing would leave train without a distribution.
        weighty = np.flatnonzero((samples.atoms.sum(axis=1) > 0) & (samples.compounds.sum(axis=1) > 0))
        if not len(weighty):
            raise UserError("no sample has both atoms and compounds: nothing can diverge")
        first = int(weighty[generator.integers(len(weighty))])
        with Progress(n_train + n_test, f"samples of start {start + 1}") as progress:
            grown = greedy(samples, n_train, n_test, atom, wanted, first, progress)
        found = measured(samples, grown, grown.train, grown.test)
        if start == 0 and compound != "max" and found.atom >= atom - NEAR:
            goal = goal._replace(limit=found.atom)
        with Progress(tried(moves), f"exchanges of start {start + 1}") as progress:
            rows = exchange(samples, grown.train, grown.test, goal, moves, generator, progress)
        starts.append(min(found, measured(samples, grown, *rows), key=lambda one: rank(goal, one)))
        log.info(
            "start %d of %d: atom divergence %.4f, compound divergence %.4f (greedy: %.4f, %.4f)",
            start + 1, restarts, starts[-1].atom, starts[-1].compound, found.atom, found.compound,
        )  # fmt: skip
        if rank(goal, starts[-1]) < REACHED:
            break
    best = min(range(len(starts)), key=lambda start: rank(goal, starts[start]))
    return Split(starts, best, goal.limit)


def rank(goal: Goal, start: Start) -> float:
    return score(goal, start.atom, start.compound, HARD)


def measured(samples: Samples, grown: Division, train: np.ndarray, test: np.ndarray) -> Start:
    return Start(grown, np.sort(train), np.sort(test), *measure(samples, train, test))


def check(n: int, n_train: int, n_test: int, atom: float, compound: float | Literal["max"], restarts: int) -> None:
    """Raise UserError for what cannot be divided."""
    for side, size in (("train", n_train), ("test", n_test)):
        if size < 1:
            raise UserError(f"{size} samples to {side}: at least 1 is needed")
    if n_train + n_test > n:
        raise UserError(f"{n_train} samples to train and {n_test} to test: there are {n}; ask for fewer")
    for kind, target in (("atom", atom), ("compound", compound)):
        if target != "max" and not 0 <= target <= 1:
            raise UserError(f"{kind} divergence {target}: must lie in [0, 1]")
    if restarts < 1:
        raise UserError(f"{restarts} restarts: at least 1 is needed")


def announce(samples: Samples, steps: int, restarts: int, moves: int) -> None:
    """Say what the division will cost: seconds of a usual core."""
    kinds = samples.atoms, samples.compounds
    holders = sum(float(np.square(np.bincount(kind.indices).astype(float)).sum()) for kind in kinds)
    items = sum(kind.nnz for kind in kinds) / len(samples)
    seconds = restarts * (3e-9 * holders + 1e-8 * steps * len(samples) + moves * (5e-8 + 1.6e-8 * items))
    log.info(
        "%d times: %d of %d samples placed, then %d exchanges tried; about %.0f s in all",
        restarts, steps, len(samples), moves, seconds,
    )  # fmt: skip


def path(grown: Division, points: int = POINTS) -> dict[str, list[float]]:
    """D_A and D_C while the greedy division grew: at most ``points`` of them, the last one included."""
    defined = np.flatnonzero(~np.isnan(grown.atom) & ~np.isnan(grown.compound))
    chosen = defined[np.unique(np.linspace(0, len(defined) - 1, min(points, len(defined))).astype(int))]
    return {
        "samples": (chosen + 1).tolist(),
        "atom": grown.atom[chosen].round(DIGITS).tolist(),
        "compound": grown.compound[chosen].round(DIGITS).tolist(),
    }


def record(samples: Samples, split: Split, settings: dict[str, Any]) -> dict[str, Any]:
    """A division for JSON: six decimals."""
    kept = split.kept
    placed = samples.take(np.concatenate([kept.train, kept.test]))
    generator = rng(settings["seed"], "split", "random")
    random = random_baseline(placed, len(kept.train), len(kept.test), SHUFFLES, generator)
    (atom_mean, compound_mean), (atom_std, compound_std) = random.mean(axis=0), random.std(axis=0)
    unused = np.setdiff1d(np.arange(len(samples)), np.concatenate([kept.train, kept.test]))
    rows = {"train": kept.train.tolist(), "test": kept.test.tolist(), "unused": unused.tolist()}
    ids = {f"{side}_ids": [samples.ids[row] for row in some] for side, some in rows.items()} if samples.ids else {}
    numbers = {
        "atom_divergence": kept.atom, "compound_divergence": kept.compound, "atom_limit": split.limit,
        "random_atom_mean": atom_mean, "random_atom_std": atom_std,
        "random_compound_mean": compound_mean, "random_compound_std": compound_std,
    }  # fmt: skip
    return {
        "settings": settings,
        **{name: round(float(value), DIGITS) for name, value in numbers.items()},
        "within_limit": bool(kept.atom <= split.limit + ROUNDING),
        "starts": [
            {
                "greedy_atom": round(float(start.greedy.atom[-1]), DIGITS),
                "greedy_compound": round(float(start.greedy.compound[-1]), DIGITS),
                "atom": round(start.atom, DIGITS),
                "compound": round(start.compound, DIGITS),
            }
            for start in split.starts
        ],
        "best": split.best,
        "path": path(kept.greedy),
        **rows,
        **ids,
    }


def readable(values: dict[str, Any]) -> str:
    """``record`` as a few lines."""
    settings = values["settings"]
    lines = [f"{'samples':<19}  {settings['train']} train, {settings['test']} test, {len(values['unused'])} unused"]
    for kind in ("atom", "compound"):
        reached, wanted = values[f"{kind}_divergence"], settings[f"{kind}_divergence"]
        random = f"{values[f'random_{kind}_mean']:.4f} ± {values[f'random_{kind}_std']:.4f}"
        name = f"{kind} divergence"
        lines.append(f"{name:<19}  {reached:.4f} (wanted: {wanted}; random division: {random}, {SHUFFLES} shuffles)")
    return "\n".join(lines)


def target(text: str) -> float | Literal["max"]:
    try:
        return "max" if text == "max" else float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number nor max") from None


def main(options: argparse.Namespace) -> None:
    if options.out.exists() and options.out.samefile(options.samples):
        raise UserError(f"{options.out}: is what --samples names: write the division elsewhere")
    (samples,) = read_samples(options.samples, keep=options.keep)
    settings = {
        "train": options.train,
        "test": options.test,
        "atom_divergence": options.atom_divergence,
        "compound_divergence": options.compound_divergence,
        "seed": options.seed,
        "restarts": options.restarts,
        "keep": options.keep,
    }
    try:
        split = divide(
            samples, options.train, options.test, options.atom_divergence, options.compound_divergence, options.seed,
            options.restarts,
        )  # fmt: skip
    except UserError as error:
        raise UserError(f"{options.samples}: {error}") from error
    values = record(samples, split, settings)
    write_json(values, options.out)
    print(readable(values))
    if options.compound_divergence == "max" and not values["within_limit"]:
        log.warning(
            "no division with an atom divergence of at most %s was found: this is the lowest; ask for fewer samples",
            options.atom_divergence,
        )


def arguments() -> argparse.ArgumentParser:
    result = cli.parser(__doc__)
    result.add_argument("--samples", type=Path, required=True, metavar="FILE", help="one JSON object a line")
    result.add_argument("--train", type=int, required=True, help="samples to train")
    result.add_argument("--test", type=int, required=True, help="samples to test")
    result.add_argument("--atom-divergence", type=float, default=0.02, help="wanted, or with max allowed (0.02)")
    result.add_argument("--compound-divergence", type=target, default="max", help="wanted, or max (max)")
    result.add_argument("--seed", type=int, default=0, help="of the first samples and the exchanges (0)")
    result.add_argument("--restarts", type=int, default=RESTARTS, help=f"first samples tried ({RESTARTS})")
    result.add_argument("--keep", type=positive, default=KEEP, help=f"heaviest compounds kept ({KEEP})")
    result.add_argument("--out", type=Path, required=True, metavar="FILE", help="the division, JSON")
    return result


if __name__ == "__main__":
    cli.run(main, arguments())
