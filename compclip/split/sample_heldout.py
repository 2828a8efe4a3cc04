"""Draw the pairs that are held out, or take those that are listed, published, or missing from train."""

import difflib
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import numpy as np
import pandas as pd

from compclip.core import cli
from compclip.core.errors import require
from compclip.core.heldout import pair_names, split_pair
from compclip.core.log import log
from compclip.core.published import read_split
from compclip.core.seeds import rng
from compclip.core.tables import DIVISION, PAIRS, RANKING
from compclip.io import read_table, write_json
from compclip.split.config import Draw
from compclip.split.published import take_pairs
from compclip.split.steps import SampleHeldout
from compclip.text.lexicon import Lexicon, load_lexicon

# A noun that occurs so many times as often as the median one attracts most swaps: bill, for shapes of birds.
DOMINATES = 10


def n_heldout(ranked: int, fraction: float) -> int:
    """Return ``fraction`` of ``ranked`` pairs; half rounds up, as written in decimals (0.29 of 50 is 14.5)."""
    return int((Decimal(str(fraction)) * ranked).to_integral_value(ROUND_HALF_UP))


def sample_heldout(ranking: pd.DataFrame, draw: Draw, seed: int, dataset: str, composition: str) -> list[str]:
    """Return pairs drawn without replacement from those inside the window (ends included), sorted."""
    where, (low, high) = f"{dataset}/{composition}", draw.window
    n = n_heldout(len(ranking), draw.fraction)
    require(
        n,
        where,
        f"{draw.fraction:.0%} of {len(ranking)} ranked pairs is less than one pair",
        "raise split.heldout.fraction, lower pairs.selection.min_count or list pairs in split.heldout.pairs",
    )
    ordered = ranking.sort_values("rank")
    window = ordered[ordered["percentile"].between(low, high)]
    require(
        len(window) >= n,
        where,
        f"{n} pairs must be held out, but only {len(window)} of {len(ranking)} ranked pairs are between the percentiles"
        f" {low:g} and {high:g}",
        "widen split.heldout.window or lower split.heldout.fraction",
    )
    names = pair_names(window).to_numpy()
    preferred = swappable(window, ranking).to_numpy() if draw.prefer == "swappable" else np.ones(len(names), bool)
    generator = rng(seed, "sample_heldout", dataset, composition)
    drawn: list[str] = []
    for pairs in (names[preferred], names[~preferred]):
        drawn += map(str, pairs[generator.choice(len(pairs), size=min(n - len(drawn), len(pairs)), replace=False)])
    return sorted(drawn)


def swappable(window: pd.DataFrame, ranking: pd.DataFrame) -> pd.Series:
    """Return whether enough captions can be swapped to each pair of the window, and not so many that it would dominate.

    On real birds the occurrences of its noun with other ranked adjectives rank pairs as the swaps that are possible do
    (Spearman 0.88 for color, 0.94 for shape).
    """
    others = window["noun"].map(ranking.groupby("noun")["count"].sum()) - window["count"]
    return others.between(others.median(), DOMINATES * others.median())


def check_listed(
    ranking: pd.DataFrame,
    counts: pd.DataFrame,
    listed: Sequence[str],
    adjectives: Lexicon,
    nouns: Lexicon | None,
    where: str,
) -> list[str]:
    """Return the pairs that the config lists, sorted; raises UserError if one cannot be held out.

    A pair need not be ranked, but it must occur, and the lexicons must list its words: otherwise no swap could make it
    and the audit could not find it. ``counts`` are of ``counts_of``; ``nouns`` is None if any noun may be ranked.
    """
    key, ranked = f"config: split.heldout.pairs: {where}", set(pair_names(ranking))
    for pair in sorted({*listed} - ranked):
        for word, lexicon in zip(split_pair(pair), (adjectives, nouns), strict=True):
            near = ", ".join(difflib.get_close_matches(pair, ranked, n=4, cutoff=0.5))
            hint = f"did you mean {near}?" if near else "write pairs as adjective_noun, a list a composition"
            is_known = lexicon is None or word in lexicon.words
            require(is_known, key, f"{pair!r}: lexicon {lexicon and lexicon.name} has no {word!r}", hint)
        require(pair in counts.index, key, f"{pair!r} occurs in no caption", "remove it")
    require(len({*listed}) == len(listed), key, "a pair is listed twice", "remove one")
    all_ranked = f"all {len(ranked)} ranked pairs are held out, so none is seen"
    require(not ranked <= {*listed}, key, all_ranked, "remove some")
    return sorted(listed)


def counts_of(occurrences: pd.DataFrame) -> pd.DataFrame:
    """Return count and images of each pair, disputed occurrences apart. occurrences: columns of ``tables.PAIRS``."""
    sure = occurrences[occurrences["relation"] != "disputed"]
    return sure.groupby(pair_names(sure))["image_id"].agg(count="size", images="nunique")


def missing_pairs(
    occurrences: pd.DataFrame, ranking: pd.DataFrame, division: pd.DataFrame, dataset: str, composition: str
) -> list[str]:
    """Return the ranked pairs that occur, disputed or not, in test and not in train, sorted."""
    side = occurrences["image_id"].map(division.set_index("image_id")["side"])
    pairs = pair_names(occurrences)
    missing = sorted(set(pairs[side == "test"]) & set(pair_names(ranking)) - set(pairs[side == "train"]))
    fault = "train has every ranked pair of test, so none is held out"
    remedy = "set split.divergence.compound to max, or lower split.divergence.train or test"
    require(missing, f"{dataset}/{composition}", fault, remedy)
    return missing


def choose_pairs(step: SampleHeldout, ranking: pd.DataFrame, occurrences: pd.DataFrame | None) -> dict[str, Any]:
    """Return the pairs and their source, for the summary; only listed pairs and a division need ``occurrences``."""
    ranked = set(pair_names(ranking))
    adjectives = load_lexicon(step.adjectives) if step.adjectives else Lexicon("none", {})
    nouns = load_lexicon(step.nouns) if step.nouns else None
    if step.published:
        published = read_split(step.published).pairs
        pairs, faults = take_pairs(published, adjectives.forms, nouns.forms if nouns else None, step.published)
        counts = {"published": len(set(published)), "not_ranked": sorted(set(pairs) - ranked)}
        return {"source": "published", "pairs": pairs, **counts, "violations": faults}
    if step.division and occurrences is not None:
        pairs = missing_pairs(occurrences, ranking, read_table(step.division, DIVISION), step.dataset, step.composition)
        return {"source": "divergence", "pairs": pairs}
    if step.listed and occurrences is not None:
        pairs = check_listed(ranking, counts_of(occurrences), step.listed, adjectives, nouns, step.where)
        return {"source": "config", "pairs": pairs, "not_ranked": sorted(set(pairs) - ranked)}
    return {"source": "drawn", "pairs": sample_heldout(ranking, step.draw, step.seed, step.dataset, step.composition)}


def main(step: SampleHeldout) -> None:
    ranking = read_table(step.ranking, RANKING)
    for word in [*ranking["adjective"].unique(), *ranking["noun"].unique()]:
        require("_" not in word, step.ranking, f"{word!r} contains _, which separates adjective and noun", "rename it")
    columns = ["image_id", "adjective", "noun", "relation"]
    occurrences = read_table(step.pairs, PAIRS, columns=columns) if step.pairs else None
    chosen = choose_pairs(step, ranking, occurrences)
    pairs = chosen["pairs"]
    # The ranking has the same counts, but a listed or published pair may be unranked.
    counts = ranking.set_index(pair_names(ranking)) if occurrences is None else counts_of(occurrences)
    counts = counts[["count", "images"]].reindex(pairs, fill_value=0)
    write_json(
        {
            "pairs": pairs,
            "source": chosen["source"],
            "window": list(step.draw.window),
            "fraction": step.draw.fraction,
            "prefer": step.draw.prefer,
            "seed": step.seed,
            "ranked": len(ranking),
            "eligible": int(ranking["percentile"].between(*step.draw.window).sum()),
            "occurrences": {pair: int(counts.at[pair, "count"]) for pair in pairs},
            "images": {pair: int(counts.at[pair, "images"]) for pair in pairs},
            **chosen,
        },
        step.heldout,
    )
    log.info("%s: held-out pairs: %d (%s); ranked: %d", step.where, len(pairs), chosen["source"], len(ranking))
    if unranked := chosen.get("not_ranked"):
        shown = ", ".join(f"{pair} ({counts.at[pair, 'count']} occurrences)" for pair in unranked)
        log.info("%s: notice: %d held-out pairs are not ranked: %s", step.where, len(unranked), shown)


if __name__ == "__main__":
    cli.run(main)
