"""Divide samples into train and test with wanted divergences (DBCA: Keysers et al. 2020)."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from workflow_scripts.core import cli
from workflow_scripts.core.cli import log
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import write_json
from workflow_scripts.core.progress import Progress
from workflow_scripts.core.rounding import DECIMALS
from workflow_scripts.core.seeds import rng
from workflow_scripts.core.step import Input, Output, Seed, Step
from workflow_scripts.divergence.exchange import HARD, REACHED, exchange, tried
from workflow_scripts.divergence.greedy import Division, greedy
from workflow_scripts.divergence.kernels import Goal, score
from workflow_scripts.divergence.measure import KINDS, mean_and_deviation, measure, random_baseline
from workflow_scripts.divergence.samples import KEEP, Samples, read_samples

RESTARTS = 3
# Random divisions to compare with.
SHUFFLES = 10
# Points of the recorded path of a greedy division.
POINTS = 1000
# Exchanges tried in an annealing, for each square root of the number of samples; more improve little.
MOVES = 40_000
# Tolerance for the rounding of a divergence.
ROUNDING = 1e-9
# If the greedy D_A is below the wanted one by at most this, exchanges do not raise it.
NEAR = 0.01

Target = Literal["max"] | Annotated[float, Field(ge=0, le=1)]


class Split(Step):
    """Divide samples into train and test with wanted divergences (DBCA: Keysers et al. 2020).

    The samples have the format of workflow_scripts.divergence.measure. From each of several random first samples, the
    greedy algorithm fills both sides and exchanges of samples improve the result; the best division is kept. With
    --compound-divergence max, the compound divergence is the largest found while the atom divergence is at most the
    given one. The result lists line numbers from 0. The same seed gives the same file.
    """

    samples: Input = Field(description="samples, one JSON object per line")
    train: int = Field(ge=1, description="number of train samples")
    test: int = Field(ge=1, description="number of test samples")
    atom_divergence: float = Field(0.02, ge=0, le=1, description="wanted atom divergence; an upper bound with max")
    compound_divergence: Annotated[Target, Field(union_mode="left_to_right")] = Field(
        "max", description="wanted compound divergence; max: the largest"
    )
    seed: Seed
    restarts: int = Field(RESTARTS, ge=1, description="number of random first samples")
    keep: int = Field(KEEP, ge=1, description="number of heaviest compounds with structure to keep")
    out: Output = Field(description="the division (JSON)")


@dataclass(frozen=True)
class Start:
    """The division that grew from one random first sample."""

    greedy: Division
    train: np.ndarray  # rows after exchanges, ascending
    test: np.ndarray
    atom: float  # D_A of these
    compound: float  # D_C of these


@dataclass(frozen=True)
class Divisions:
    """The divisions of all starts; ``starts[best]`` is the result, and ``limit`` the upper bound of its D_A."""

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
    compound: Target,
    seed: int,
    restarts: int = RESTARTS,
    moves: int | None = None,
) -> Divisions:
    """Divide ``samples`` into ``n_train``, ``n_test`` and unused ones.

    The result scores no worse than the greedy division of the first start, and its D_A is no higher, unless that
    division is more than ``NEAR`` below ``atom``: then D_A may rise to ``atom``. With ``compound`` "max", D_C is
    maximized while D_A is at most ``atom``.

    Args:
        restarts: first samples to try; fewer are tried if one meets both targets.
        moves: exchanges to try in each annealing; by default as many as the number of samples warrants.
    """
    if n_train + n_test > len(samples):
        raise UserError(
            f"{n_train} train and {n_test} test samples are more than the {len(samples)} samples; lower them"
        )
    moves = round(MOVES * len(samples) ** 0.5) if moves is None else moves
    announce(samples, n_train + n_test, restarts, tried(moves))
    starts: list[Start] = []
    wanted = 1.0 if compound == "max" else compound
    goal = Goal(atom, wanted, atom, 0.0 if compound == "max" else 1.0)
    for start in range(restarts):
        generator = rng(seed, "split", start)
        # A first sample without weight would leave train without a distribution.
        weighty = np.flatnonzero((samples.atoms.sum(axis=1) > 0) & (samples.compounds.sum(axis=1) > 0))
        if not len(weighty):
            raise UserError("no sample has both atoms and compounds; nothing can diverge")
        first = int(weighty[generator.integers(len(weighty))])
        with Progress(n_train + n_test, f"samples of start {start + 1}") as progress:
            grown = greedy(samples, n_train, n_test, atom, wanted, first, progress.add)
        unchanged = measured(samples, grown, grown.train, grown.test)
        if start == 0 and compound != "max" and unchanged.atom >= atom - NEAR:
            goal = goal._replace(limit=unchanged.atom)
        with Progress(tried(moves), f"exchanges of start {start + 1}") as progress:
            rows = exchange(samples, grown.train, grown.test, goal, moves, generator, progress.add)
        exchanged = measured(samples, grown, *rows)
        starts.append(min(unchanged, exchanged, key=lambda one: rank(goal, one)))
        log.info(
            "start %d of %d: atom divergence %.4f, compound divergence %.4f (greedy: %.4f, %.4f)",
            start + 1, restarts, starts[-1].atom, starts[-1].compound, unchanged.atom, unchanged.compound,
        )  # fmt: skip
        if rank(goal, starts[-1]) < REACHED:
            break
    best = min(range(len(starts)), key=lambda start: rank(goal, starts[start]))
    return Divisions(starts, best, goal.limit)


def rank(goal: Goal, start: Start) -> float:
    return score(goal, start.atom, start.compound, HARD)


def measured(samples: Samples, grown: Division, train: np.ndarray, test: np.ndarray) -> Start:
    return Start(grown, np.sort(train), np.sort(test), *measure(samples, train, test))


def announce(samples: Samples, steps: int, restarts: int, moves: int) -> None:
    """Log the cost, of a usual core. The greedy algorithm's grows with the square of the number of samples."""
    kinds = samples.atoms, samples.compounds
    # Placing a sample renews the gains of all that share an item with it.
    holders = sum(float(np.square(np.bincount(kind.indices).astype(float)).sum()) for kind in kinds) / len(samples)
    items = sum(kind.nnz for kind in kinds) / len(samples)
    seconds = restarts * (steps * (3e-9 * holders + 1e-8 * len(samples)) + moves * (5e-8 + 1.6e-8 * items))
    log.info(
        "%d times: %d of %d samples placed, then %d exchanges tried; about %s in all",
        restarts, steps, len(samples), moves, f"{seconds:.0f} s" if seconds < 7200 else f"{seconds / 3600:.1f} h",
    )  # fmt: skip


def path(grown: Division, points: int = POINTS) -> dict[str, list[float]]:
    """Return D_A and D_C while the greedy division grew, at most ``points`` values, with the last one."""
    defined = np.flatnonzero(~np.isnan(grown.atom) & ~np.isnan(grown.compound))
    chosen = defined[np.unique(np.linspace(0, len(defined) - 1, min(points, len(defined))).astype(int))]
    return {
        "samples": (chosen + 1).tolist(),
        "atom": grown.atom[chosen].round(DECIMALS).tolist(),
        "compound": grown.compound[chosen].round(DECIMALS).tolist(),
    }


def record(samples: Samples, divisions: Divisions, settings: dict[str, Any]) -> dict[str, Any]:
    """Return the division that is kept, and how it came about, ready for JSON."""
    kept = divisions.kept
    placed = samples.take(np.concatenate([kept.train, kept.test]))
    generator = rng(settings["seed"], "split", "random")
    random = random_baseline(placed, len(kept.train), len(kept.test), SHUFFLES, generator)
    unused = np.setdiff1d(np.arange(len(samples)), np.concatenate([kept.train, kept.test]))
    rows = {"train": kept.train.tolist(), "test": kept.test.tolist(), "unused": unused.tolist()}
    names = samples.ids
    ids = {f"{side}_ids": [names[row] for row in lines] for side, lines in rows.items()} if names else {}
    numbers = {"atom_divergence": kept.atom, "compound_divergence": kept.compound, "atom_limit": divisions.limit}
    numbers |= mean_and_deviation(random)
    return {
        "settings": settings,
        **{name: round(float(value), DECIMALS) for name, value in numbers.items()},
        "within_limit": bool(kept.atom <= divisions.limit + ROUNDING),
        "starts": [
            {
                "greedy_atom": round(float(start.greedy.atom[-1]), DECIMALS),
                "greedy_compound": round(float(start.greedy.compound[-1]), DECIMALS),
                "atom": round(start.atom, DECIMALS),
                "compound": round(start.compound, DECIMALS),
            }
            for start in divisions.starts
        ],
        "best": divisions.best,
        "path": path(kept.greedy),
        **rows,
        **ids,
    }


def readable(values: dict[str, Any]) -> str:
    settings = values["settings"]
    lines = [f"{'samples':<19}  {settings['train']} train, {settings['test']} test, {len(values['unused'])} unused"]
    for kind in KINDS:
        reached, wanted = values[f"{kind}_divergence"], settings[f"{kind}_divergence"]
        random = f"{values[f'random_{kind}_mean']:.4f} ± {values[f'random_{kind}_std']:.4f}"
        name = f"{kind} divergence"
        lines.append(f"{name:<19}  {reached:.4f} (wanted: {wanted}; random division: {random}, {SHUFFLES} shuffles)")
    return "\n".join(lines)


def main(step: Split) -> None:
    if step.out.exists() and step.out.samefile(step.samples):
        raise UserError(f"{step.out}: same file as --samples; choose another path")
    (samples,) = read_samples(step.samples, keep=step.keep)
    settings = step.model_dump(exclude={"log", "samples", "out"})
    try:
        divisions = divide(
            samples, step.train, step.test, step.atom_divergence, step.compound_divergence, step.seed, step.restarts
        )
    except UserError as error:
        raise UserError(f"{step.samples}: {error}") from error
    write_json(values := record(samples, divisions, settings), step.out)
    print(readable(values))
    if step.compound_divergence == "max" and not values["within_limit"]:
        log.warning(
            "no division with an atom divergence of at most %s was found; this is the lowest. Reduce the samples",
            step.atom_divergence,
        )


if __name__ == "__main__":
    cli.run(main)
