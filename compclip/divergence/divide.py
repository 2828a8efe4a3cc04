"""Divide samples into train and test with wanted divergences (DBCA: Keysers et al. 2020)."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from compclip.core.cli import Command
from compclip.core.errors import UserError, require
from compclip.core.inputs import Fraction, Positive, Whole, checked
from compclip.core.log import log
from compclip.core.progress import Progress
from compclip.core.rounding import DECIMALS
from compclip.core.section import Count, Seed
from compclip.core.seeds import rng
from compclip.divergence.exchange import REACHED, exchange, tried
from compclip.divergence.greedy import Division, greedy
from compclip.divergence.kernels import Goal, target_score
from compclip.divergence.measure import measure
from compclip.divergence.samples import Samples, make_samples, read_samples
from compclip.io import write_json

RESTARTS = 3
# Exchanges tried before the hops, per square root of the number of samples; more improve little.
MOVES = 40_000
# Tolerance for the rounding of a divergence.
ROUNDING = 1e-9

Target = Literal["max"] | Annotated[float, Field(ge=0, le=1)]


class Divide(Command):
    """Divide samples into train and test with wanted divergences (DBCA: Keysers et al. 2020).

    The samples have the format of compclip.divergence.measure. With --compound-divergence max, the
    compound divergence is the largest found while the atom divergence is at most the given one. The
    result lists the samples of each side by line number, from 0.
    """

    samples: Path = Field(description="samples, one JSON object per line")
    train: Count = Field(ge=1, description="number of train samples")
    test: Count = Field(ge=1, description="number of test samples")
    atom_divergence: float = Field(
        0.02, ge=0, le=1, description="wanted atom divergence; an upper bound with max"
    )
    compound_divergence: Annotated[Target, Field(union_mode="left_to_right")] = Field(
        "max", description="wanted compound divergence; max: the largest"
    )
    seed: Seed
    restarts: Count = Field(RESTARTS, ge=1, description="number of random first samples")
    out: Path = Field(description="the division (JSON)")


@dataclass(frozen=True)
class Start:
    """The division found from one random first sample."""

    greedy: Division
    train: np.ndarray  # rows after exchanges, ascending
    test: np.ndarray
    atom: float  # D_A of train and test
    compound: float  # D_C of train and test


@checked
def divide_samples(
    samples: Samples | list[Any],
    n_train: Positive,
    n_test: Positive,
    atom: Fraction = 0.02,
    compound: Literal["max"] | Fraction = "max",
    seed: Whole = 0,
    restarts: Positive = RESTARTS,
    moves: Whole | None = None,
) -> Start:
    """Divide samples into ``n_train``, ``n_test`` and unused ones, with the wanted divergences.

    From each of several random first samples, the greedy algorithm fills both sides and exchanges
    improve the result; the best division is returned.

    Source: Keysers et al., "Measuring Compositional Generalization" (ICLR 2020); the exchanges are
    ours.

    Args:
        samples: in the form that ``make_samples`` takes or returns.
        atom: wanted atom divergence, from 0 to 1.
        compound: wanted compound divergence, from 0 to 1; max: the largest for an atom divergence
            of at most ``atom``.
        restarts: first samples to try; fewer are tried if one meets both targets.
        moves: exchanges to try before the hops; by default, depends on the number of samples.

    Returns:
        The rows of train and of test, ascending, and both divergences.

    Raises:
        UserError: there are too few samples, or none has both atoms and compounds.
    """
    samples = samples if isinstance(samples, Samples) else make_samples(samples)
    wanted = f"{n_train} train and {n_test} test samples"
    require(
        n_train + n_test <= len(samples),
        wanted,
        f"more than the {len(samples)} samples",
        "lower them",
    )
    # A first sample without weight would leave train without a distribution.
    weighty = np.flatnonzero((samples.atoms.sum(axis=1) > 0) & (samples.compounds.sum(axis=1) > 0))
    if not len(weighty):
        raise UserError("no sample has both atoms and compounds; nothing can diverge")
    moves = round(MOVES * len(samples) ** 0.5) if moves is None else moves
    counts = restarts, n_train + n_test, len(samples), tried(moves)
    log.info("%d times: %d of %d samples placed, then %d exchanges", *counts)
    goal = Goal(atom, 1.0 if compound == "max" else compound, compound == "max")
    starts: list[Start] = []
    for start in range(restarts):
        generator = rng(seed, "split", start)
        first = int(weighty[generator.integers(len(weighty))])
        with Progress(n_train + n_test, f"samples of start {start + 1}") as progress:
            grown = greedy(samples, n_train, n_test, goal, first, progress.add)
        with Progress(tried(moves), f"exchanges of start {start + 1}") as progress:
            rows = exchange(samples, grown.train, grown.test, goal, moves, generator, progress.add)
        ends = [
            Start(grown, np.sort(train), np.sort(test), *measure(samples, train, test))
            for train, test in ((grown.train, grown.test), rows)
        ]
        log.info(
            "start %d of %d: atom divergence %.4f, compound divergence %.4f (greedy: %.4f, %.4f)",
            start + 1,
            restarts,
            ends[1].atom,
            ends[1].compound,
            ends[0].atom,
            ends[0].compound,
        )
        starts += ends
        if target_score(goal, ends[1].atom, ends[1].compound) < REACHED:
            break
    return min(starts, key=lambda one: target_score(goal, one.atom, one.compound))


def main(command: Divide) -> None:
    samples, _ = read_samples(command.samples)
    wanted = command.atom_divergence, command.compound_divergence
    try:
        best = divide_samples(
            samples, command.train, command.test, *wanted, command.seed, command.restarts
        )
    except UserError as error:
        raise UserError(f"{command.samples}: {error}") from error
    unused = np.setdiff1d(np.arange(len(samples)), np.concatenate([best.train, best.test]))
    sides: dict[str, Any] = {
        "train": best.train.tolist(),
        "test": best.test.tolist(),
        "unused": unused.tolist(),
    }
    reached = {
        "atom_divergence": round(best.atom, DECIMALS),
        "compound_divergence": round(best.compound, DECIMALS),
    }
    settings = command.model_dump(exclude={"samples", "out"})
    write_json({"settings": settings, **reached, **sides}, command.out)
    log.info(
        "%s: atom divergence %.4f, compound divergence %.4f", command.out, best.atom, best.compound
    )
    if command.compound_divergence == "max" and best.atom > command.atom_divergence + ROUNDING:
        log.warning(
            "no division within the atom divergence %s was found; reduce the samples",
            command.atom_divergence,
        )
