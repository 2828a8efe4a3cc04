"""Draw the held-out pairs, or take those listed, published, or missing from train.

Paper, section "Compositional Split Generation": 10 % of the unique pairs, sampled between the 25th
and the 75th percentile of the list sorted by frequency. With a division by divergence: the pairs
missing from train.
"""

import difflib
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from compclip.core.errors import require
from compclip.core.heldout import pair_names, split_pair
from compclip.core.inputs import (
    Division,
    OccurrenceBlocks,
    PairNames,
    Ranking,
    Whole,
    checked,
    require_joined,
)
from compclip.core.log import log
from compclip.core.published import read_split
from compclip.core.seeds import rng
from compclip.core.tables import in_blocks
from compclip.pairs.rank_pairs import count_pairs
from compclip.split.config import Draw
from compclip.split.published import take_pairs
from compclip.text.lexicon import Lexicon, find_lexicon

# A noun this many times as frequent as the median attracts most swaps: bill, for shapes of birds.
DOMINATES = 10


def n_heldout(ranked: int, fraction: float) -> int:
    """Return ``fraction`` of ``ranked``; half rounds up, in decimal arithmetic (0.29 of 50 is
    14.5).
    """
    return int((Decimal(str(fraction)) * ranked).to_integral_value(ROUND_HALF_UP))


def draw_heldout(
    ranking: pd.DataFrame, draw: Draw, seed: int, dataset: str, composition: str
) -> list[str]:
    """Return pairs drawn without replacement from the window (ends included), sorted."""
    where, (low, high) = f"{dataset}/{composition}", draw.window
    n = max(n_heldout(len(ranking), draw.fraction), draw.least)
    fault = f"{draw.fraction:.0%} of {len(ranking)} ranked pairs is less than one pair"
    remedy = (
        "raise split.heldout.fraction, lower pairs.selection.min_count or list pairs in "
        "split.heldout.pairs"
    )
    require(n, where, fault, remedy)
    ordered = ranking.sort_values("rank")
    window = ordered[ordered["percentile"].between(low, high)]
    fault = (
        f"{n} pairs must be held out, but only {len(window)} of {len(ranking)} ranked pairs "
        "are between the"
    )
    remedy = "widen split.heldout.window, or lower split.heldout.fraction and least"
    require(len(window) >= n, where, f"{fault} percentiles {low:g} and {high:g}", remedy)
    names = pair_names(window).to_numpy()
    preferred = (
        swappable(window, ranking).to_numpy()
        if draw.prefer == "swappable"
        else np.ones(len(names), bool)
    )
    generator = rng(seed, "sample_heldout", dataset, composition)
    drawn: list[str] = []
    for pairs in (names[preferred], names[~preferred]):
        drawn += map(
            str,
            pairs[
                generator.choice(len(pairs), size=min(n - len(drawn), len(pairs)), replace=False)
            ],
        )
    return sorted(drawn)


def swappable(window: pd.DataFrame, ranking: pd.DataFrame) -> pd.Series:
    """Return whether swaps can make each pair of the window often enough, but not so often that it
    would dominate.

    Pairs are compared by how often the noun occurs with other ranked adjectives, which on real
    birds ranks them as the number of possible swaps does (Spearman 0.88 for color, 0.94 for shape).
    """
    others = window["noun"].map(ranking.groupby("noun")["count"].sum()) - window["count"]
    return others.between(others.median(), DOMINATES * others.median())


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
    key, ranked = f"config: split.heldout.pairs: {where}", set(pair_names(ranking))
    for pair in sorted({*listed} - ranked):
        for word, lexicon in zip(split_pair(pair), (adjectives, nouns), strict=True):
            near = ", ".join(difflib.get_close_matches(pair, ranked, n=4, cutoff=0.5))
            hint = (
                f"did you mean {near}?"
                if near
                else "write pairs as adjective_noun, a list a composition"
            )
            is_known = lexicon is None or word in lexicon.words
            require(
                is_known, key, f"{pair!r}: lexicon {lexicon and lexicon.name} has no {word!r}", hint
            )
        require(pair in counts.index, key, f"{pair!r} occurs in no caption", "remove it")
    require(len({*listed}) == len(listed), key, "a pair is listed twice", "remove one")
    all_ranked = f"all {len(ranked)} ranked pairs are held out, so none is seen"
    require(not ranked <= {*listed}, key, all_ranked, "remove some")
    return sorted(listed)


def missing_pairs(
    occurrences: pd.DataFrame,
    ranking: pd.DataFrame,
    division: pd.DataFrame,
    dataset: str,
    composition: str,
) -> list[str]:
    """Return the ranked pairs that occur (disputed or not) in test but not in train, sorted."""
    side = occurrences["image_id"].map(division.set_index("image_id")["side"])
    pairs = pair_names(occurrences)
    missing = sorted(
        set(pairs[side == "test"]) & set(pair_names(ranking)) - set(pairs[side == "train"])
    )
    fault = "train has every ranked pair of test, so none is held out"
    remedy = "set split.divergence.compound to max, or lower split.divergence.train or test"
    require(missing, f"{dataset}/{composition}", fault, remedy)
    return missing


@checked
def sample_heldout(
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
        dataset, composition: names for the random stream and for messages.

    Returns:
        The content of heldout.json: the ``pairs``, sorted, their source, settings of the draw, and
        their counts.

    Raises:
        UserError: too few pairs are ranked, one that is listed cannot be held out, or an argument
            is refused (docs/library.md).
    """
    require_joined(division, "division", pairs=pairs)
    draw, where = draw or Draw(), f"{dataset}/{composition}"
    adjectives = find_lexicon(adjectives or Lexicon("none", {}), "adjectives")
    nouns = find_lexicon(nouns, "nouns") if nouns else None
    for word in [*ranking["adjective"].unique(), *ranking["noun"].unique()]:
        require(
            "_" not in word,
            where,
            f"{word!r} contains _, which separates adjective and noun",
            "rename it",
        )
    ranked = set(pair_names(ranking))
    counts = ranking["count"].set_axis(pair_names(ranking))
    if pairs is not None:  # a listed or published pair may be unranked
        found = pd.concat(count_pairs(block) for (block,) in in_blocks(pairs))
        counts = found["count"].groupby(pair_names(found)).sum()
    chosen: dict[str, Any]
    if published:
        names = read_split(published).pairs
        heldout, faults = take_pairs(
            names, adjectives.forms, nouns.forms if nouns else None, published
        )
        chosen = {"not_ranked": sorted(set(heldout) - ranked), "violations": faults}
        source = "published"
    elif division is not None:
        require(isinstance(pairs, pd.DataFrame), "pairs", "a division needs all pairs")
        source, heldout, chosen = (
            "divergence",
            missing_pairs(pairs, ranking, division, dataset, composition),
            {},
        )
    elif listed:
        heldout = check_listed(ranking, counts, listed, adjectives, nouns, where)
        source, chosen = "config", {"not_ranked": sorted(set(heldout) - ranked)}
    else:
        source, heldout, chosen = (
            "drawn",
            draw_heldout(ranking, draw, seed, dataset, composition),
            {},
        )
    counts = counts.reindex(heldout, fill_value=0)
    log.info("%s: held-out pairs: %d (%s); ranked: %d", where, len(heldout), source, len(ranking))
    if unranked := chosen.get("not_ranked"):
        shown = ", ".join(f"{pair} ({counts[pair]} occurrences)" for pair in unranked)
        log.info("%s: notice: %d held-out pairs are not ranked: %s", where, len(unranked), shown)
    return {
        "pairs": heldout,
        "source": source,
        "window": list(draw.window),
        "fraction": draw.fraction,
        "least": draw.least,
        "prefer": draw.prefer,
        "seed": seed,
        "occurrences": {pair: int(counts[pair]) for pair in heldout},
        **chosen,
    }
