"""Draw the pairs that are held out, or take those that are listed, published, or missing from train."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import pandas as pd

from workflow_scripts.core import cli
from workflow_scripts.core.cli import log
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.heldout import pair_names
from workflow_scripts.core.io import read_table, write_json
from workflow_scripts.core.published import read_split
from workflow_scripts.core.seeds import rng
from workflow_scripts.core.tables import DIVISION, PAIRS, RANKING
from workflow_scripts.split.config import Draw
from workflow_scripts.split.published import take_pairs
from workflow_scripts.split.steps import SampleHeldout
from workflow_scripts.text.lexicon import load_lexicon


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
    eligible = pair_names(ordered[ordered["percentile"].between(low, high)]).to_numpy()
    if len(eligible) < n:
        raise UserError(
            f"{where}: {n} pairs must be held out, but only {len(eligible)} of {len(ranking)} ranked pairs are between"
            f" the percentiles {low:g} and {high:g}; widen split.heldout.window or lower split.heldout.fraction"
        )
    drawn = rng(seed, "sample_heldout", dataset, composition).choice(len(eligible), size=n, replace=False)
    return sorted(str(eligible[i]) for i in drawn)


def check_listed(ranking: pd.DataFrame, listed: Sequence[str], dataset: str, composition: str) -> list[str]:
    """Return the pairs that the config lists, sorted; raises UserError if one cannot be held out."""
    ranked = pair_names(ranking).tolist()
    for pair in listed:
        if pair not in set(ranked):
            near = difflib.get_close_matches(pair, ranked, n=4, cutoff=0.5)
            hint = f"did you mean {', '.join(near)}?" if near else "write it as adjective_noun"
            raise UserError(
                f"config: split.heldout.pairs: {pair!r} is not among the {len(ranked)} ranked pairs of"
                f" {dataset}/{composition}; {hint} (with several compositions, give each its own list)"
            )
        if listed.count(pair) > 1:
            raise UserError(f"config: split.heldout.pairs: duplicate entry {pair!r}; remove one")
    if len(listed) == len(ranked):
        raise UserError(
            f"config: split.heldout.pairs: all {len(ranked)} ranked pairs are held out, so none is seen; remove some"
        )
    return sorted(listed)


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


def choose_pairs(step: SampleHeldout, ranking: pd.DataFrame) -> tuple[str, list[str], dict[str, Any]]:
    """Return the source of the held-out pairs, the pairs, and what the summary adds for published ones."""
    if step.published:
        published = read_split(step.published).pairs
        if not step.adjectives:
            raise UserError("--published: needs --adjectives, the composition's lexicon")
        nouns = load_lexicon(step.nouns).forms if step.nouns else None
        pairs, faults = take_pairs(published, load_lexicon(step.adjectives).forms, nouns, step.published)
        unranked = sorted(set(pairs) - set(pair_names(ranking)))
        return "published", pairs, {"published": len(set(published)), "not_ranked": unranked, "violations": faults}
    if step.division:
        if not step.pairs:
            raise UserError("--division: needs --pairs, the pairs.parquet of the same captions")
        occurrences = read_table(step.pairs, PAIRS, columns=["image_id", "adjective", "noun"])
        division = read_table(step.division, DIVISION)
        return "divergence", missing_pairs(occurrences, ranking, division, step.dataset, step.composition), {}
    if step.listed:
        return "config", check_listed(ranking, step.listed, step.dataset, step.composition), {}
    return "drawn", sample_heldout(ranking, step.draw, step.seed, step.dataset, step.composition), {}


def main(step: SampleHeldout) -> None:
    ranking = read_table(step.ranking, RANKING)
    for word in [*ranking["adjective"].unique(), *ranking["noun"].unique()]:
        if "_" in word:
            raise UserError(f"{step.ranking}: {word!r} contains _, which separates adjective and noun; rename it")
    source, pairs, of_published = choose_pairs(step, ranking)
    # A published pair may be unranked here.
    counts = ranking.set_index(pair_names(ranking))[["count", "images"]].reindex(pairs, fill_value=0)
    write_json(
        {
            "pairs": pairs,
            "source": source,
            "window": list(step.draw.window),
            "fraction": step.draw.fraction,
            "seed": step.seed,
            "ranked": len(ranking),
            "eligible": int(ranking["percentile"].between(*step.draw.window).sum()),
            "occurrences": {pair: int(counts.at[pair, "count"]) for pair in pairs},
            "images": {pair: int(counts.at[pair, "images"]) for pair in pairs},
            **of_published,
        },
        step.heldout,
    )
    unranked = f", {len(of_published['not_ranked'])} of them unranked" if of_published else ""
    text = "%s: %d pairs are held out (%s)%s; %d are ranked"
    log.info(text, step.where, len(pairs), source, unranked, len(ranking))


if __name__ == "__main__":
    cli.run(main)
