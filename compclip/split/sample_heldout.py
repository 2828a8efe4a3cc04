"""Draw the held-out pairs, or take those listed, published, or missing from train.

Paper, section "Compositional Split Generation": 10 % of the unique pairs, sampled between the 25th
and the 75th percentile of the list sorted by frequency. With a division by divergence: the pairs
missing from train.
"""

import difflib
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from compclip.core.artifacts.heldout import pair_names, split_pair
from compclip.core.errors import UserError, require
from compclip.core.log import log
from compclip.core.reading.published_files import read_split
from compclip.core.settings.arguments import (
    Division,
    OccurrenceBlocks,
    PairNames,
    Ranking,
    Whole,
    require_joined,
)
from compclip.core.settings.calls import checked
from compclip.core.tables import in_blocks
from compclip.pairs.rank_pairs import count_pairs
from compclip.split.composition import Seeding
from compclip.split.config import Draw
from compclip.split.published_split import take_pairs
from compclip.text.lexicon import Lexicon, find_lexicon

# A noun this many times as frequent as the median attracts most swaps: bill, for shapes of birds.
DOMINATES = 10


def n_heldout(ranked: int, fraction: float) -> int:
    """Return ``fraction`` of ``ranked``; half rounds up, in decimal arithmetic (0.29 of 50 is
    14.5).
    """
    # str gives the decimal as the config has it.
    exact = Decimal(str(fraction)) * ranked
    return int(exact.to_integral_value(ROUND_HALF_UP))


def draw_heldout(ranking: pd.DataFrame, draw: Draw, seeding: Seeding) -> list[str]:
    """Return pairs drawn without replacement from the window (ends included), sorted."""
    number = max(n_heldout(len(ranking), draw.fraction), draw.min_pairs)
    fault = f"{draw.fraction:.0%} of {len(ranking)} ranked pairs is less than one pair"
    remedy = (
        "raise split.heldout.fraction, lower pairs.selection.min_count or list pairs in "
        "split.heldout.pairs"
    )
    require(number, seeding.location, fault, remedy)
    low, high = draw.window
    # By rank, so that the order of rows decides nothing.
    ordered = ranking.sort_values("rank")
    is_in_window = ordered["percentile"].between(low, high)
    window = ordered[is_in_window]
    fault = (
        f"{number} pairs must be held out, but only {len(window)} of {len(ranking)} ranked pairs "
        f"are between the percentiles {low:g} and {high:g}"
    )
    remedy = "widen split.heldout.window, or lower split.heldout.fraction and min_pairs"
    require(len(window) >= number, seeding.location, fault, remedy)
    names = pair_names(window).to_numpy()
    # As published: any pair of the window.
    is_preferred = np.ones(len(names), bool)
    if draw.prefer_swappable:
        is_preferred = swappable(window, ranking).to_numpy()
    generator = seeding.rng("sample_heldout")
    drawn: list[str] = []
    # The others only complete the number, if too few are preferred.
    for pairs in (names[is_preferred], names[~is_preferred]):
        size = min(number - len(drawn), len(pairs))
        positions = generator.choice(len(pairs), size=size, replace=False)
        drawn += map(str, pairs[positions])
    return sorted(drawn)


def swappable(window: pd.DataFrame, ranking: pd.DataFrame) -> pd.Series:
    """Return whether swaps can make each pair of the window often enough, but not so often that it
    would dominate.

    Pairs are compared by how often the noun occurs with other ranked adjectives, which on real
    birds ranks them as the number of possible swaps does (Spearman 0.88 for color, 0.94 for shape).
    """
    noun_counts = ranking.groupby("noun")["count"].sum()
    with_others = window["noun"].map(noun_counts) - window["count"]
    median = with_others.median()
    return with_others.between(median, DOMINATES * median)


def check_listed(
    ranking: pd.DataFrame,
    counts: pd.Series,
    listed: Sequence[str],
    adjectives: Lexicon,
    nouns: Lexicon | None,
    where: str,
) -> list[str]:
    """Return the pairs that the config lists, sorted; raises UserError if one cannot be held out.

    A pair need not be ranked, but it must occur, and the lexicons must list its words: otherwise
    swaps could not make it and the audit could not find it. ``counts``: how often each pair occurs;
    ``nouns``: None if any noun may be ranked.
    """
    key = f"config: split.heldout.pairs: {where}"
    ranked = set(pair_names(ranking))
    for pair in sorted({*listed} - ranked):
        # The ranked pairs are of listed words.
        for word, lexicon in zip(split_pair(pair), (adjectives, nouns), strict=True):
            if lexicon is not None and word not in lexicon.words:
                fault = f"{pair!r}: lexicon {lexicon.name} has no {word!r}"
                raise UserError(f"{key}: {fault}; {_hint(pair, ranked)}")
        require(pair in counts.index, key, f"{pair!r} occurs in no caption", "remove it")
    require(len({*listed}) == len(listed), key, "a pair is listed twice", "remove one")
    # test_seen needs ranked pairs that are not held out.
    fault = f"all {len(ranked)} ranked pairs are held out, so none is seen"
    require(not ranked <= {*listed}, key, fault, "remove some")
    return sorted(listed)


def _hint(pair: str, ranked: set[str]) -> str:
    similar = difflib.get_close_matches(pair, ranked, n=4, cutoff=0.5)
    if not similar:
        return "write pairs as adjective_noun, a list a composition"
    return f"did you mean {', '.join(similar)}?"


def missing_pairs(
    occurrences: pd.DataFrame, ranking: pd.DataFrame, division: pd.DataFrame, where: str
) -> list[str]:
    """Return the ranked pairs that occur (disputed or not) in test but not in train, sorted."""
    side_of_image = division.set_index("image_id")["side"]
    sides_of_rows = occurrences["image_id"].map(side_of_image)
    pairs = pair_names(occurrences)
    in_test = set(pairs[sides_of_rows == "test"])
    in_train = set(pairs[sides_of_rows == "train"])
    # A pair that is not ranked is too rare to test.
    missing = sorted(in_test & set(pair_names(ranking)) - in_train)
    fault = "train has every ranked pair of test, so none is held out"
    remedy = "set split.divergence.compound to max, or lower split.divergence.train or test"
    require(missing, where, fault, remedy)
    return missing


class _Choice(NamedTuple):
    """Held-out pairs, where they come from, and further entries of heldout.json."""

    pairs: list[str]
    source: str
    entries: dict[str, Any]


def _published(
    path: str | Path, ranked: set[str], adjectives: Lexicon, nouns: Lexicon | None
) -> _Choice:
    noun_forms = nouns.forms if nouns else None
    published = read_split(path).pairs
    pairs, faults = take_pairs(published, adjectives.forms, noun_forms, path)
    unranked = sorted(set(pairs) - ranked)
    entries = {"not_ranked": unranked, "violations": faults}
    return _Choice(pairs, "published", entries)


def _count_occurrences(pairs: OccurrenceBlocks) -> pd.Series:
    """Return how often each pair occurs, by its name, ranked or not."""
    counts = pd.concat(count_pairs(block) for (block,) in in_blocks(pairs))
    return counts["count"].groupby(pair_names(counts)).sum()


@checked
def sample_heldout(  # noqa: PLR0913
    ranking: Ranking,
    draw: Draw | None = None,
    *,
    pairs: OccurrenceBlocks | None = None,
    listed: PairNames = (),
    published: str | Path | None = None,
    division: Division | None = None,
    adjectives: Lexicon | str | None = None,
    nouns: Lexicon | str | None = None,
    seed: Whole = 0,
    dataset: str = "dataset",
    composition: str = "composition",
) -> dict[str, Any]:
    """Return the held-out pairs: drawn, listed, published, or missing from train.

    Args:
        ranking: as in ``tables``.
        draw: how pairs are drawn; None: as in the paper.
        pairs: all occurrences, as in ``tables``; needed for ``division`` and, maybe in blocks
            (``tables.in_blocks``), for listed pairs that are not ranked.
        listed: hold out these pairs (``adjective_noun``).
        published: hold out the pairs of this split.pkl.
        division: hold out the ranked pairs that its test has and its train lacks.
        adjectives, nouns: lexicons or their names, needed for ``listed`` and ``published``; nouns
            None: any noun.
        dataset, composition: names for the random seeding and for messages.

    Returns:
        The content of heldout.json: the ``pairs``, sorted, their source, settings of the draw, and
        their counts.

    Raises:
        UserError: too few pairs are ranked, one that is listed cannot be held out, or an argument
            is refused (docs/library.md).
    """
    require_joined(division, "division", pairs=pairs)
    draw = draw or Draw()
    seeding = Seeding(seed, dataset, composition)
    where = seeding.location
    adjectives = find_lexicon(adjectives or Lexicon("none", {}), "adjectives")
    nouns = find_lexicon(nouns, "nouns") if nouns else None
    for word in [*ranking["adjective"].unique(), *ranking["noun"].unique()]:
        fault = f"{word!r} contains _, which separates adjective and noun"
        require("_" not in word, where, fault, "rename it")
    names = pair_names(ranking)
    ranked = set(names)
    counts = ranking["count"].set_axis(names)
    if pairs is not None:  # a listed or published pair may be unranked
        counts = _count_occurrences(pairs)
    if published:
        choice = _published(published, ranked, adjectives, nouns)
    elif division is not None:
        require(isinstance(pairs, pd.DataFrame), "pairs", "a division needs all pairs")
        choice = _Choice(missing_pairs(pairs, ranking, division, where), "divergence", {})
    elif listed:
        heldout = check_listed(ranking, counts, listed, adjectives, nouns, where)
        choice = _Choice(heldout, "config", {"not_ranked": sorted(set(heldout) - ranked)})
    else:
        choice = _Choice(draw_heldout(ranking, draw, seeding), "drawn", {})
    # A published pair may occur in no caption.
    counts = counts.reindex(choice.pairs, fill_value=0)
    _log_heldout(choice, counts, len(ranking), where)
    return {
        "pairs": choice.pairs,
        "source": choice.source,
        "window": list(draw.window),
        "fraction": draw.fraction,
        "min_pairs": draw.min_pairs,
        "prefer_swappable": draw.prefer_swappable,
        "seed": seed,
        "occurrences": {pair: int(counts[pair]) for pair in choice.pairs},
        **choice.entries,
    }


def _log_heldout(choice: _Choice, counts: pd.Series, ranked: int, where: str) -> None:
    number = len(choice.pairs)
    log.info("%s: held-out pairs: %d (%s); ranked: %d", where, number, choice.source, ranked)
    unranked = choice.entries.get("not_ranked")
    if unranked:
        named = [f"{pair} ({counts[pair]} occurrences)" for pair in unranked]
        pairs = ", ".join(named)
        log.info("%s: notice: %d held-out pairs are not ranked: %s", where, len(unranked), pairs)
