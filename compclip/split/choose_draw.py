"""Choose how the held-out pairs are drawn, unless the config sets it, so that scores have narrow
intervals.

The paper's rule is tried first. For each draw, pairs are drawn, images divided, captions swapped,
prompts listed, and the widths of their intervals estimated. The first draw that reaches the wanted
width and leaves enough images to train is chosen, else the one that comes nearest to it.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import pandas as pd

from compclip.core.errors import UserError, require
from compclip.core.log import log
from compclip.core.progress import track
from compclip.core.tables import HELD_OUT_SPLITS
from compclip.split.composition import Lexicons, Seeding
from compclip.split.config import Draw, DrawConfig, SwapRule
from compclip.split.make_prompts import Prompting, PromptPairs, choose_prompts
from compclip.split.make_splits import LOW_TRAIN, SplitRule, split_images
from compclip.split.sample_heldout import draw_heldout
from compclip.split.swap_adjectives import swap_captions
from compclip.split.widths import estimate_split, half_width, more_captions, named_width

# In the order in which they are tried; the paper's come first.
DRAWS: dict[str, tuple[Any, ...]] = {
    "window": ((25, 75), (50, 100), (10, 75)),
    "fraction": (0.1, 0.15, 0.2, 0.3),
    "prefer_swappable": (False, True),
}
# Multiples of the number of captions to extrapolate to.
TIMES = [1.1**step for step in range(1, 73)]
# The ranked pairs grow at most with this power of the captions: on birds and flowers 0.2 to 0.8,
# the latter where few pairs are ranked.
MOST_GROWTH = 0.7


def draws_of(config: DrawConfig) -> list[Draw]:
    """Return the draws to try, in order; settings of the config are kept."""
    settings = config.model_dump(exclude_none=True)
    options = [[settings[name]] if name in settings else DRAWS[name] for name in DRAWS]
    draws = []
    for values in product(*options):
        tried = dict(zip(DRAWS, values, strict=True))
        draws.append(Draw(**settings | tried))
    return draws


def widest(halves: Iterable[float | None]) -> float:
    """Return the largest half width, infinite if one is None (no interval)."""
    # Without an interval, a draw is worse than all others.
    return max(half or math.inf for half in halves)


def captions_needed(
    splits: Mapping[str, Mapping[str, Any]], ranking: pd.DataFrame, captions: int, width: float
) -> int | None:
    """Return roughly how many captions reach the half width ``width``, to two digits; None if too
    many to estimate.

    With f times the captions, the prompts are f times as many. The ranked pairs, and so the
    held-out ones, grow by a power of f, estimated from their growth between half of the captions
    and all.
    """
    counts = ranking["count"]
    # With half of the captions, pairs of less than twice the least count would not be ranked.
    with_half = max(1, (counts >= 2 * counts.min()).sum())
    growth = min(MOST_GROWTH, math.log2(len(counts) / with_half))
    for times in TIMES:
        halves = []
        for row in splits.values():
            prompts = round(times * max(1, row["prompts"]))
            images = round(times * max(1, row["images"]))
            pairs = times**growth * row.get("effective_pairs", 1)
            halves.append(half_width(prompts, images, pairs))
        if widest(halves) <= width:
            return int(float(f"{times * captions:.2g}"))
    return None


class Trial(NamedTuple):
    """A draw, and what the splits, swaps and prompts would be with it."""

    is_low: bool  # whether few images are left to train
    half: float  # the half width of the wider split
    draw: Draw
    heldout: int  # number of pairs
    estimates: dict[str, dict[str, Any]]  # ``estimate_split`` of each of HELD_OUT_SPLITS

    def is_enough(self, width: float) -> bool:
        """Return whether the draw reaches half width ``width``, in points."""
        return not self.is_low and self.half <= width / 100


@dataclass(frozen=True)
class TrialData:
    """What draws are tried on: all captions and occurrences, and the pairs that count, as in
    ``tables``.
    """

    captions: pd.DataFrame
    pairs: pd.DataFrame
    ranking: pd.DataFrame
    lexicons: Lexicons
    seeding: Seeding
    test_seen: str | int = "auto"
    swaps: SwapRule = "distinct"

    def try_draw(self, draw: Draw) -> Trial:
        """Return a trial; raises UserError if the draw gives no splits. Logs nothing, because a
        warning of a draw that is not chosen would mislead.
        """
        captions = self.captions
        pairs = self.pairs
        rule = SplitRule(self.test_seen)
        heldout = draw_heldout(self.ranking, draw, self.seeding)
        splits, summary = split_images(
            captions, pairs, self.ranking, heldout, self.lexicons, rule, self.seeding
        )
        swapped, _ = swap_captions(
            captions, pairs, splits, heldout, self.lexicons, self.swaps, self.seeding
        )
        tested = splits[splits["split"] != "train"]
        wanted = PromptPairs.from_ranking(self.ranking, heldout)
        prompts = choose_prompts(
            captions, pairs, wanted, tested, swapped, Prompting(), self.seeding
        )
        estimates = {
            split: estimate_split(prompts[prompts["split"] == split]) for split in HELD_OUT_SPLITS
        }
        is_low = summary["sizes"]["train"] < LOW_TRAIN * summary["images"]
        half = widest(row["half_width"] for row in estimates.values())
        return Trial(is_low, half, draw, len(heldout), estimates)


def choose_draw(data: TrialData, config: DrawConfig, width: float) -> tuple[Draw, dict[str, Any]]:
    """Choose the settings of the draw that a config does not set, and log the choice, its reason
    and the widths.

    Args:
        config: its settings are kept.
        width: half the width of the 95 % interval, in points, that test_unseen and test_swapped
            should not exceed.

    Returns:
        The draw; and for heldout.json the wanted width, the draws tried, the estimates of both
        splits and, if they are wider, roughly how many captions are needed (null: unknown).

    Raises:
        UserError: no draw gives splits.
    """
    where = data.seeding.location
    draws = draws_of(config)
    faults: list[str] = []
    trials: list[Trial] = []
    for draw in track(draws, len(draws), "draws tried"):
        try:
            trial = data.try_draw(draw)
        except UserError as error:
            message = str(error).removeprefix(f"{where}: ")
            faults.append(message.split("; ")[0])  # without the remedy
            continue
        trials.append(trial)
        if trial.is_enough(width):
            break
    first_fault = faults[0] if faults else ""
    fault = f"none of {len(draws)} draws of held-out pairs gives splits (the first: {first_fault})"
    require(trials, where, fault, "add captions or list pairs in split.heldout.pairs")
    best = min(trials, key=lambda trial: (trial.is_low, trial.half))
    chosen = {"width": width, "tried": len(trials), **best.estimates}
    if best.half > width / 100:
        chosen["captions_needed"] = captions_needed(
            best.estimates, data.ranking, len(data.captions), width / 100
        )
    # A warning, because `make run` shows no lower level.
    log.warning("%s: %s", where, _describe(best, chosen, len(data.ranking)))
    return best.draw, {"chosen": chosen}


def _describe(trial: Trial, chosen: Mapping[str, Any], ranked: int) -> str:
    """Return the choice, its reason and the widths as text."""
    draw = trial.draw
    low, high = draw.window
    preference = str(draw.prefer_swappable).lower()  # as in the config
    settings = f"fraction {draw.fraction:g}, window {low:g} to {high:g}"
    settings += f", prefer_swappable {preference}"
    rank = "best"
    if trial.is_enough(chosen["width"]):
        rank = f"first within ± {chosen['width']:g} points"
    widths = ", ".join(named_width(split, row) for split, row in trial.estimates.items())
    description = (
        f"{trial.heldout} of {ranked} ranked pairs are held out ({settings}), the {rank} of "
        f"{chosen['tried']} draws tried: {widths}"
    )
    if "captions_needed" not in chosen:
        return description
    return f"{description}; {more_captions(chosen)}"
