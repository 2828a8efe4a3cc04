"""Choose how the held-out pairs are drawn, where the config leaves it open, so that scores have narrow intervals.

The paper's rule is tried first, then other preferences, fractions and windows. Each is tried completely: pairs are
drawn, images divided, captions swapped and prompts listed, and the widths of their intervals estimated. The first draw
that reaches the wanted width and leaves enough images to train is chosen, or the one that comes nearest to it.
"""

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from compclip.core.errors import UserError, require
from compclip.core.log import log, quiet
from compclip.core.progress import track
from compclip.split.config import Draw, DrawConfig
from compclip.split.make_prompts import make_prompts
from compclip.split.make_splits import LOW_TRAIN, make_splits
from compclip.split.sample_heldout import draw_heldout
from compclip.split.swap_adjectives import swap_adjectives
from compclip.split.widths import estimate_split, half_width, more_captions, points
from compclip.text.lexicon import Lexicon

# In the order in which they are tried, the paper's first.
PREFERENCES = ("any", "swappable")
FRACTIONS = (0.1, 0.15, 0.2, 0.3)
WINDOWS = ((25.0, 75.0), (50.0, 100.0), (10.0, 75.0))
# The splits that test held-out pairs.
DECISIVE = ("test_unseen", "test_swapped")
# Times the captions that are extrapolated to at most; power with which the ranked pairs grow at most: on birds and
# flowers it is 0.2 to 0.8, and rough where few are ranked.
MOST_TIMES, MOST_GROWTH = 1000, 0.7


def draws_of(config: DrawConfig) -> list[Draw]:
    """Return the draws that a config leaves open, in the order in which they are tried; what it sets is kept."""
    return [
        Draw(fraction=fraction, least=config.least, window=window, prefer=prefer)
        for window in ([config.window] if config.window else WINDOWS)
        for fraction in ([config.fraction] if config.fraction else FRACTIONS)
        for prefer in ([config.prefer] if config.prefer else PREFERENCES)
    ]


def widest(splits: Mapping[str, Mapping[str, Any]]) -> float:
    """Return the largest half width of the decisive splits, infinite where one allows no interval."""
    halves = [splits[split]["half_width"] for split in DECISIVE]
    return math.inf if None in halves else max(halves)


def captions_needed(
    splits: Mapping[str, Mapping[str, Any]], ranking: pd.DataFrame, captions: int, width: float
) -> int | None:
    """Return roughly how many captions reach the half width ``width``, to two digits; None if too many to tell.

    With f times the captions, the prompts are f times as many. The ranked pairs, and with them the held-out ones, grow
    by the power of f by which they have grown since half of the captions.
    """
    counts = ranking["count"]
    of_half = max(1, int((counts >= 2 * counts.min()).sum()))
    growth = min(MOST_GROWTH, math.log2(len(counts) / of_half))
    times = 1.0
    while times < MOST_TIMES:
        times *= 1.1
        larger = {
            split: {
                "half_width": half_width(
                    round(times * max(1, row["prompts"])),
                    round(times * max(1, row["images"])),
                    times**growth * row.get("effective_pairs", 1),
                )
            }
            for split, row in splits.items()
        }
        if widest(larger) <= width:
            needed = captions * times
            return int(round(needed, 1 - math.floor(math.log10(needed))))
    return None


def in_words(draw: Draw, heldout: int, ranked: int, reason: str, splits: Mapping[str, Mapping[str, Any]]) -> str:
    """Return in one line how pairs are drawn, why so, and what the test splits have."""
    low, high = draw.window
    sizes = [
        f"{split} {points(row['half_width'])} (pairs: {row.get('pairs', 0)}, prompts:"
        f" {row['prompts']:,}, images: {row['images']:,})"
        for split, row in splits.items()
    ]
    return (
        f"{heldout} of {ranked} ranked pairs are held out (fraction {draw.fraction:g}, percentiles {low:g} to {high:g},"
        f" prefer {draw.prefer}), {reason}: {', '.join(sizes)}"
    )


def choose_draw(
    captions: pd.DataFrame, pairs: pd.DataFrame, ranking: pd.DataFrame, config: DrawConfig, width: float,
    adjectives: Lexicon | str, nouns: Lexicon | str | None = None, compounds: Lexicon | None = None, *,
    test_seen: str | int = "auto", seed: int = 0, dataset: str = "dataset", composition: str = "composition",
) -> tuple[Draw, dict[str, Any]]:  # fmt: skip
    """Choose what a config leaves open of the draw, and log in one line the choice, its reason and what it gives.

    Args:
        captions, pairs, ranking: as in ``tables``: all captions and occurrences, and the pairs that count.
        config: what is set is kept.
        width: half the width of the 95 % interval, in points, that test_unseen and test_swapped should not exceed.
        adjectives, nouns, compounds, test_seen, seed, dataset, composition: as of ``make_splits``.

    Returns:
        The draw; and for heldout.json the wanted width, the draws tried, the estimates of both splits and, if they are
        wider, roughly how many captions are needed (null: unknown).

    Raises:
        UserError: no draw gives splits.
    """
    where, lexicons = f"{dataset}/{composition}", (adjectives, nouns, compounds)
    names: dict[str, Any] = {"seed": seed, "dataset": dataset, "composition": composition}
    draws, faults = draws_of(config), list[str]()
    trials = list[tuple[bool, float, Draw, int, dict[str, dict[str, Any]]]]()
    for draw in track(draws, len(draws), "draws tried"):
        try:
            with quiet():
                heldout = draw_heldout(ranking, draw, seed, dataset, composition)
                splits, sizes = make_splits(captions, pairs, ranking, heldout, *lexicons, test_seen=test_seen, **names)
                swapped, _ = swap_adjectives(captions, pairs, splits, heldout, *lexicons, **names)
                tested = splits[splits["split"] != "train"]
                prompts = make_prompts(captions, pairs, ranking, heldout, tested, swapped, **names)
        except UserError as error:
            faults.append(str(error).removeprefix(f"{where}: ").split("; ")[0])
            continue
        estimates = {split: estimate_split(prompts[prompts["split"] == split]) for split in DECISIVE}
        is_low = sizes["shares"]["train"] < LOW_TRAIN
        trials.append((is_low, widest(estimates), draw, len(heldout), estimates))
        if not is_low and widest(estimates) <= width / 100:
            break
    fault = f"none of {len(draws)} draws of held-out pairs gives splits (the first: {[*faults, ''][0]})"
    require(trials, where, fault, "add captions or list pairs in split.heldout.pairs")
    _, half, draw, number, estimates = min(trials, key=lambda trial: trial[:2])
    chosen: dict[str, Any] = {"width": width, "tried": len(trials), **estimates}
    reason, remedy = f"the first of {len(trials)} draws tried within ± {width:g} points", ""
    if half > width / 100:
        chosen["captions_needed"] = captions_needed(estimates, ranking, len(captions), width / 100)
        reason, remedy = f"the best of {len(trials)} draws tried", f"; {more_captions(chosen)}"
    # Not a warning, but the first that a run shows of its splits.
    log.warning("%s: %s%s", where, in_words(draw, number, len(ranking), reason, estimates), remedy)
    return draw, {"chosen": chosen}
