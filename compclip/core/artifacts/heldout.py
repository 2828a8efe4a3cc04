"""The names of pairs, and the list of those held out."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compclip.core.artifacts.files import read_json
from compclip.core.errors import UserError, require

if TYPE_CHECKING:
    import pandas as pd

FEW_PAIRS = 10  # fewer give wide intervals
# Fraction, window and preference of the draw by the paper.
PAPER_RULE = (0.1, 25, 75, False)


def pair_names(table: pd.DataFrame) -> pd.Series:
    """``adjective_noun`` of each row, as in the published files."""
    # ``str.cat`` makes Python strings of all rows, a gigabyte for four million.
    return (table["adjective"] + "_" + table["noun"]).rename("adjective")


def split_pair(pair: str) -> tuple[str, str]:
    """``(adjective, noun)`` of ``adjective_noun``; ``sample_heldout`` refuses words with a
    ``_``.
    """
    adjective, _, noun = pair.partition("_")
    return adjective, noun


def matched_pairs(ranking: pd.DataFrame, heldout: Collection[str]) -> set[str]:
    """Return the seen pairs of a ``tables.RANKING`` with percentiles from the lowest to the highest
    of held-out pairs.

    A judge recognizes frequent pairs better, so seen pairs are compared with held-out ones of the
    same frequency. They match by frequency alone, not by adjective or noun.
    """
    names = pair_names(ranking)
    is_held_out = names.isin(list(heldout))
    percentiles = ranking["percentile"]
    lowest = percentiles[is_held_out].min()
    highest = percentiles[is_held_out].max()
    return {*names[~is_held_out & percentiles.between(lowest, highest)]}


def read_heldout(path: str | Path) -> list[str]:
    """Return the held-out pairs of a heldout.json, sorted; raises UserError if there are none."""
    content = read_json(path)
    pairs = content.get("pairs") if isinstance(content, dict) else None
    if not isinstance(pairs, list) or not pairs or not all(isinstance(pair, str) for pair in pairs):
        raise UserError(f"{path}: no list of pairs; make it again with sample_heldout")
    return sorted(pairs)


def heldout_note(heldout: Mapping[str, Any]) -> str:
    """Return a sentence on how the pairs in a heldout.json were chosen, for readers of scores."""
    pairs = f"The {len(heldout['pairs'])} held-out pairs"
    if heldout["source"] != "drawn":
        sources = {"published": "those of a published split", "config": "listed in the config"}
        by_division = "those that the division by divergence keeps from train"
        return f"{pairs} are {sources.get(heldout['source'], by_division)}."
    fault = "made by an earlier compclip, which named its keys otherwise"
    require("prefer_swappable" in heldout, "heldout.json", fault, "make the results again")
    low, high = heldout["window"]
    fraction = (
        f"{heldout['fraction']:.3g} of the ranked pairs, from percentiles {low:g} to {high:g}"
    )
    if (heldout["fraction"], low, high, heldout["prefer_swappable"]) != PAPER_RULE:
        reason = ", chosen by what the captions permit" if "chosen" in heldout else ""
        return f"{pairs} are drawn here with seed {heldout['seed']}: {fraction}{reason}."
    return (
        f"{pairs} follow the paper's rule ({fraction}) with our own draw (seed "
        f"{heldout['seed']}): scores cannot be"
        " compared with those on another draw, such as the published splits."
    )
