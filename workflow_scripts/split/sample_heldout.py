"""Draw the pairs that are held out, or take those that are listed, published, or missing from train."""

import difflib
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import numpy as np
import pandas as pd

from workflow_scripts.core import cli
from workflow_scripts.core.cli import log
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.heldout import pair_names, split_pair
from workflow_scripts.core.io import read_table, write_json
from workflow_scripts.core.published import read_split
from workflow_scripts.core.seeds import rng
from workflow_scripts.core.tables import DIVISION, PAIRS, RANKING
from workflow_scripts.split.config import Draw
from workflow_scripts.split.published import take_pairs
from workflow_scripts.split.steps import SampleHeldout
from workflow_scripts.text.lexicon import Lexicon, load_lexicon

MAX_NAMED = 10  # unranked pairs named in the log
# A noun that occurs so many times as often as the median one attracts most swaps: bill, for shapes of birds.
DOMINATES = 10


def n_heldout(ranked: int, fraction: float) -> int:
    """Return ``fraction`` of ``ranked`` pairs; half rounds up, as written in decimals (0.29 of 50 is 14.5)."""
    return int((Decimal(str(fraction)) * ranked).to_integral_value(ROUND_HALF_UP))


def sample_heldout(ranking: pd.DataFrame, draw: Draw, seed: int, dataset: str, composition: str) -> list[str]:
    """Return pairs drawn without replacement from those inside the window (ends included), sorted."""
    where = f"{dataset}/{composition}"
    n = n_heldout(len(ranking), draw.fraction)
    if n == 0:
        raise UserError(
            f"{where}: {draw.fraction:.0%} of {len(ranking)} ranked pairs is less than one pair; raise"
            " split.heldout.fraction, lower pairs.selection.min_count or list pairs in split.heldout.pairs"
        )
    low, high = draw.window
    ordered = ranking.sort_values("rank")
    window = ordered[ordered["percentile"].between(low, high)]
    if len(window) < n:
        raise UserError(
            f"{where}: {n} pairs must be held out, but only {len(window)} of {len(ranking)} ranked pairs are between"
            f" the percentiles {low:g} and {high:g}; widen split.heldout.window or lower split.heldout.fraction"
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
    key = "config: split.heldout.pairs"
    ranked = set(pair_names(ranking))
    for pair in listed:
        if listed.count(pair) > 1:
            raise UserError(f"{key}: duplicate entry {pair!r}; remove one")
        if pair in ranked:
            continue
        adjective, noun = split_pair(pair)
        for word, lexicon in ((adjective, adjectives), (noun, nouns)):
            if lexicon and word not in lexicon.words:
                near = difflib.get_close_matches(pair, ranked, n=4, cutoff=0.5)
                hint = f"did you mean {', '.join(near)}?" if near else "write pairs as adjective_noun"
                raise UserError(
                    f"{key}: {where}: {pair!r}: lexicon {lexicon.name} has no {word!r}; {hint}"
                    " (with several compositions, give each its own list)"
                )
        if pair not in counts.index:
            raise UserError(f"{key}: {pair!r} occurs in no caption of {where}; remove it")
    if ranked <= set(listed):
        raise UserError(f"{key}: all {len(ranked)} ranked pairs are held out, so none is seen; remove some")
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
    if not missing:
        raise UserError(
            f"{dataset}/{composition}: train has every ranked pair of test, so none is held out; set"
            " split.divergence.compound to max, lower split.divergence.train or test, or rank more than"
            f" {len(ranking)} pairs"
        )
    return missing


def choose_pairs(step: SampleHeldout, ranking: pd.DataFrame, occurrences: pd.DataFrame | None) -> dict[str, Any]:
    """Return the pairs and their source, for the summary; only listed pairs and a division need ``occurrences``."""
    ranked = set(pair_names(ranking))
    if step.published:
        published = read_split(step.published).pairs
        if not step.adjectives:
            raise UserError("--published: needs --adjectives, the composition's lexicon")
        nouns = load_lexicon(step.nouns).forms if step.nouns else None
        pairs, faults = take_pairs(published, load_lexicon(step.adjectives).forms, nouns, step.published)
        counts = {"published": len(set(published)), "not_ranked": sorted(set(pairs) - ranked)}
        return {"source": "published", "pairs": pairs, **counts, "violations": faults}
    if step.division:
        if occurrences is None:
            raise UserError("--division: needs --pairs, the pairs.parquet of the same captions")
        pairs = missing_pairs(occurrences, ranking, read_table(step.division, DIVISION), step.dataset, step.composition)
        return {"source": "divergence", "pairs": pairs}
    if step.listed:
        if occurrences is None or not step.adjectives:
            raise UserError("--listed: needs --pairs, and --adjectives, the composition's lexicon")
        lexicons = load_lexicon(step.adjectives), load_lexicon(step.nouns) if step.nouns else None
        pairs = check_listed(ranking, counts_of(occurrences), step.listed, *lexicons, step.where)
        return {"source": "config", "pairs": pairs, "not_ranked": sorted(set(pairs) - ranked)}
    return {"source": "drawn", "pairs": sample_heldout(ranking, step.draw, step.seed, step.dataset, step.composition)}


def main(step: SampleHeldout) -> None:
    ranking = read_table(step.ranking, RANKING)
    for word in [*ranking["adjective"].unique(), *ranking["noun"].unique()]:
        if "_" in word:
            raise UserError(f"{step.ranking}: {word!r} contains _, which separates adjective and noun; rename it")
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
    text = "%s: held-out pairs: %d (%s); ranked pairs: %d"
    log.info(text, step.where, len(pairs), chosen["source"], len(ranking))
    if unranked := chosen.get("not_ranked"):
        text = "%s: notice: %d held-out pairs are not ranked: %s"
        shown = ", ".join(f"{pair} ({counts.at[pair, 'count']} occurrences)" for pair in unranked[:MAX_NAMED])
        log.info(text, step.where, len(unranked), shown + (", …" if len(unranked) > MAX_NAMED else ""))


if __name__ == "__main__":
    cli.run(main)
