"""Choose how the held-out pairs are drawn, unless the config sets it, so that scores have narrow
intervals.

The paper's rule is tried first. For each draw, pairs are drawn, images divided, captions swapped,
prompts listed, and the widths of their intervals estimated. The first draw that reaches the wanted
width and leaves enough images to train is chosen, else the one that comes nearest to it.
"""

import math
from collections.abc import Iterable
from itertools import product
from typing import Any, Literal

import pandas as pd

from compclip.core.errors import UserError, require
from compclip.core.log import log
from compclip.core.progress import track
from compclip.split.config import Draw, DrawConfig
from compclip.split.make_prompts import choose_prompts
from compclip.split.make_splits import LOW_TRAIN, make_splits
from compclip.split.sample_heldout import draw_heldout
from compclip.split.swap_adjectives import swap_adjectives
from compclip.split.widths import estimate_split, half_width, more_captions, named_width
from compclip.text.lexicon import Lexicon

# In the order in which they are tried; the paper's come first.
DRAWS: dict[str, tuple[Any, ...]] = {
    "window": ((25, 75), (50, 100), (10, 75)),
    "fraction": (0.1, 0.15, 0.2, 0.3),
    "prefer": ("any", "swappable"),
}
# Multiples of the number of captions to extrapolate to.
TIMES = [1.1**step for step in range(1, 73)]
# The ranked pairs grow at most with this power of the captions: on birds and flowers 0.2 to 0.8,
# the latter where few pairs are ranked.
MOST_GROWTH = 0.7


def draws_of(config: DrawConfig) -> list[Draw]:
    """Return the draws to try, in order; settings of the config are kept."""
    given = config.model_dump(exclude_none=True)
    options = [(given[name],) if name in given else values for name, values in DRAWS.items()]
    return [Draw(**given | dict(zip(DRAWS, values, strict=True))) for values in product(*options)]


def widest(halves: Iterable[float | None]) -> float:
    """Return the largest half width, infinite if one is None (no interval)."""
    return max(half or math.inf for half in halves)


def captions_needed(
    splits: dict[str, dict[str, Any]], ranking: pd.DataFrame, captions: int, width: float
) -> int | None:
    """Return roughly how many captions reach the half width ``width``, to two digits; None if too
    many to estimate.

    With f times the captions, the prompts are f times as many. The ranked pairs, and so the
    held-out ones, grow by a power of f, estimated from their growth between half of the captions
    and all.
    """
    counts = ranking["count"]
    growth = min(MOST_GROWTH, math.log2(len(counts) / max(1, (counts >= 2 * counts.min()).sum())))
    for times in TIMES:
        halves = []
        for row in splits.values():
            prompts, images = (round(times * max(1, row[name])) for name in ("prompts", "images"))
            halves.append(
                half_width(prompts, images, times**growth * row.get("effective_pairs", 1))
            )
        if widest(halves) <= width:
            return int(float(f"{times * captions:.2g}"))
    return None


def choose_draw(
    captions: pd.DataFrame,
    pairs: pd.DataFrame,
    ranking: pd.DataFrame,
    config: DrawConfig,
    width: float,
    adjectives: Lexicon | str,
    nouns: Lexicon | str | None = None,
    compounds: Lexicon | None = None,
    *,
    test_seen: Literal["auto"] | int = "auto",
    seed: int = 0,
    dataset: str = "dataset",
    composition: str = "composition",
) -> tuple[Draw, dict[str, Any]]:
    """Choose the settings of the draw that a config does not set, and log the choice, its reason
    and the widths.

    Args:
        captions, pairs, ranking: as in ``tables``: all captions and occurrences, and the pairs that
            count.
        config: its settings are kept.
        width: half the width of the 95 % interval, in points, that test_unseen and test_swapped
            should not exceed.
        adjectives, nouns, compounds, test_seen, seed, dataset, composition: as in ``make_splits``.

    Returns:
        The draw; and for heldout.json the wanted width, the draws tried, the estimates of both
        splits and, if they are wider, roughly how many captions are needed (null: unknown).

    Raises:
        UserError: no draw gives splits.
    """
    where, lexicons = f"{dataset}/{composition}", (adjectives, nouns, compounds)
    names: dict[str, Any] = {"seed": seed, "dataset": dataset, "composition": composition}
    # What a draw that is not chosen warns of does not concern the user.
    trial = {**names, "quiet": True}
    draws, faults, trials = draws_of(config), list[str](), list[Any]()
    for draw in track(draws, len(draws), "draws tried"):
        try:
            heldout = draw_heldout(ranking, draw, seed, dataset, composition)
            splits, sizes = make_splits(
                captions, pairs, ranking, heldout, *lexicons, test_seen=test_seen, **trial
            )
            swapped, _ = swap_adjectives(captions, pairs, splits, heldout, *lexicons, **trial)
            tested = splits[splits["split"] != "train"]
            prompts = choose_prompts(captions, pairs, ranking, heldout, tested, swapped, **names)
        except UserError as error:
            faults.append(str(error).removeprefix(f"{where}: ").split("; ")[0])
            continue
        estimates = {
            split: estimate_split(prompts[prompts["split"] == split])
            for split in ("test_unseen", "test_swapped")
        }
        is_low = sizes["sizes"]["train"] < LOW_TRAIN * sizes["images"]
        half = widest(row["half_width"] for row in estimates.values())
        trials.append((is_low, half, draw, len(heldout), estimates))
        if not is_low and half <= width / 100:
            break
    fault = (
        f"none of {len(draws)} draws of held-out pairs gives splits (the first: {[*faults, ''][0]})"
    )
    require(trials, where, fault, "add captions or list pairs in split.heldout.pairs")
    is_low, half, draw, number, estimates = min(trials, key=lambda trial: trial[:2])
    chosen, remedy = {"width": width, "tried": len(trials), **estimates}, ""
    if half > width / 100:
        chosen["captions_needed"] = captions_needed(estimates, ranking, len(captions), width / 100)
        remedy = f"; {more_captions(chosen)}"
    is_best = is_low or half > width / 100
    reason = (
        f"the {'best' if is_best else f'first within ± {width:g} points'} of {len(trials)} "
        "draws tried"
    )
    values = (
        f"fraction {draw.fraction:g}, window {draw.window[0]:g} to {draw.window[1]:g}, "
        f"prefer {draw.prefer}"
    )
    widths = ", ".join(named_width(split, row) for split, row in estimates.items())
    about = (
        f"{number} of {len(ranking)} ranked pairs are held out ({values}), {reason}: "
        f"{widths}{remedy}"
    )
    # A warning, because `make run` shows no lower level.
    log.warning("%s: %s", where, about)
    return draw, {"chosen": chosen}
