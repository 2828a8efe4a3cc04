"""Divide samples into train and test with wanted divergences (DBCA: Keysers et al. 2020)."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from compclip.core.artifacts.files import write_json
from compclip.core.artifacts.rounding import DECIMALS
from compclip.core.errors import UserError, require
from compclip.core.log import log
from compclip.core.progress import Progress
from compclip.core.seeds import rng
from compclip.core.settings.arguments import Fraction, Positive, Whole
from compclip.core.settings.calls import checked
from compclip.core.settings.cli import Command
from compclip.core.settings.section import Count, Seed
from compclip.divergence.exchange import REACHED, exchange, tried
from compclip.divergence.greedy import Division, greedy
from compclip.divergence.kernels import Goal, target_score
from compclip.divergence.measure import measure
from compclip.divergence.samples import Samples, make_samples, read_samples

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

    Returns:
        The rows of train and of test, ascending, and both divergences.

    Raises:
        UserError: there are too few samples, or none has both atoms and compounds.
    """
    samples = samples if isinstance(samples, Samples) else make_samples(samples)
    n_placed = n_train + n_test
    sizes = f"{n_train} train and {n_test} test samples"
    fault = f"more than the {len(samples)} samples"
    require(n_placed <= len(samples), sizes, fault, "lower them")
    # A first sample without weight would leave train without a distribution.
    weighty = np.flatnonzero((samples.atoms.sum(axis=1) > 0) & (samples.compounds.sum(axis=1) > 0))
    if not len(weighty):
        raise UserError("no sample has both atoms and compounds; nothing can diverge")
    moves = round(MOVES * len(samples) ** 0.5)
    log.info(
        "%d times: %d of %d samples placed, then %d exchanges",
        restarts,
        n_placed,
        len(samples),
        tried(moves),
    )
    goal = Goal(atom, 1.0 if compound == "max" else compound, bound=compound == "max")
    starts: list[Start] = []
    for number in range(1, restarts + 1):
        generator = rng(seed, "split", number - 1)
        first = int(weighty[generator.integers(len(weighty))])
        with Progress(n_placed, f"samples of start {number}") as progress:
            grown = greedy(samples, n_train, n_test, goal, first, progress.add)
        with Progress(tried(moves), f"exchanges of start {number}") as progress:
            train, test = exchange(
                samples, grown.train, grown.test, goal, moves, generator, progress.add
            )
        greedy_start = _start(samples, grown, grown.train, grown.test)
        exchanged = _start(samples, grown, train, test)
        log.info(
            "start %d of %d: atom divergence %.4f, compound divergence %.4f (greedy: %.4f, %.4f)",
            number,
            restarts,
            exchanged.atom,
            exchanged.compound,
            greedy_start.atom,
            greedy_start.compound,
        )
        # Both, because exchanges work on rounded weights, so that they may lose a little.
        starts += [greedy_start, exchanged]
        if target_score(goal, exchanged.atom, exchanged.compound) < REACHED:
            break
    return min(starts, key=lambda start: target_score(goal, start.atom, start.compound))


def _start(samples: Samples, grown: Division, train: np.ndarray, test: np.ndarray) -> Start:
    atom, compound = measure(samples, train, test)
    return Start(grown, np.sort(train), np.sort(test), atom, compound)


def main(command: Divide) -> None:
    samples, _ = read_samples(command.samples)
    try:
        best = divide_samples(
            samples,
            command.train,
            command.test,
            command.atom_divergence,
            command.compound_divergence,
            command.seed,
            command.restarts,
        )
    except UserError as error:
        raise UserError(f"{command.samples}: {error}") from error
    placed = np.concatenate([best.train, best.test])
    unused = np.setdiff1d(np.arange(len(samples)), placed)
    result = {
        "settings": command.model_dump(exclude={"samples", "out"}),
        "atom_divergence": round(best.atom, DECIMALS),
        "compound_divergence": round(best.compound, DECIMALS),
        "train": best.train.tolist(),
        "test": best.test.tolist(),
        "unused": unused.tolist(),
    }
    write_json(result, command.out)
    log.info(
        "%s: atom divergence %.4f, compound divergence %.4f", command.out, best.atom, best.compound
    )
    # With a wanted compound divergence, both divergences are only approached.
    is_max = command.compound_divergence == "max"
    if is_max and best.atom > command.atom_divergence + ROUNDING:
        log.warning(
            "no division within the atom divergence %s was found; reduce the samples",
            command.atom_divergence,
        )
