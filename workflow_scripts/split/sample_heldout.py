"""Draw the pairs that are held out: from the middle of the ranking; or take those that are listed or published.

Paper, section "Compositional Split Generation": 10 % of the unique pairs, sampled between the 25th and the
75th percentile of the list sorted by frequency. Where the images are divided by divergence, the pairs that train
lacks are held out.
"""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
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
from workflow_scripts.split.published import take_pairs
from workflow_scripts.text.lexicon import load_lexicon


def wanted_pairs(ranked: int, fraction: float) -> int:
    """``fraction`` of ``ranked`` pairs; half rounds up, as written in decimals (0.29 of 50 is 14.5)."""
    return int((Decimal(str(fraction)) * ranked).to_integral_value(ROUND_HALF_UP))


def sample_heldout(
    ranking: pd.DataFrame, fraction: float, window: tuple[float, float], seed: int, dataset: str, composition: str
) -> list[str]:
    """Pairs drawn without replacement from those whose percentile lies in ``window`` (ends included), sorted.

    ranking: columns of ``tables.RANKING``. Raises UserError where there is too little to hold out.
    """
    wanted = wanted_pairs(len(ranking), fraction)
    if wanted == 0:
        raise UserError(
            f"{dataset}/{composition}: {len(ranking)} ranked pairs, and {fraction:.0%} of them is less than one: raise "
            "split.heldout.fraction, lower pairs.selection.min_count, or list pairs in split.heldout.pairs"
        )
    low, high = window
    ordered = ranking.sort_values("rank")
    eligible = pair_names(ordered[ordered["percentile"].between(low, high)]).to_numpy()
    if len(eligible) < wanted:
        raise UserError(
            f"{dataset}/{composition}: {wanted} pairs to hold out, but only {len(eligible)} of {len(ranking)} ranked "
            f"pairs lie between the percentiles {low:g} and {high:g}: widen split.heldout.window or lower "
            "split.heldout.fraction"
        )
    drawn = rng(seed, "sample_heldout", dataset, composition).choice(len(eligible), size=wanted, replace=False)
    return sorted(str(eligible[i]) for i in drawn)


def check_listed(ranking: pd.DataFrame, listed: Sequence[str], dataset: str, composition: str) -> list[str]:
    """The pairs that the config lists, sorted; UserError for one that is not ranked or stands twice."""
    ranked = pair_names(ranking).tolist()
    for pair in listed:
        if pair not in set(ranked):
            near = difflib.get_close_matches(pair, ranked, n=4, cutoff=0.5)
            hint = f"the nearest are {', '.join(near)}" if near else "write it adjective_noun"
            raise UserError(
                f"config: split.heldout.pairs: {pair!r} is not among the {len(ranked)} ranked pairs of "
                f"{dataset}/{composition}; {hint} (with several compositions, give each a list of its own)"
            )
        if listed.count(pair) > 1:
            raise UserError(f"config: split.heldout.pairs: {pair!r} stands twice: keep one")
    if len(listed) == len(ranked):
        raise UserError(
            f"config: split.heldout.pairs: all {len(ranked)} ranked pairs are listed: nothing is left to see"
        )
    return sorted(listed)


def lacked_pairs(
    occurrences: pd.DataFrame, ranking: pd.DataFrame, division: pd.DataFrame, dataset: str, composition: str
) -> list[str]:
    """The ranked pairs that an image of test holds and none of train, sorted.

    occurrences: image_id, adjective, noun of all that pairs finds, disputed ones too. ranking, division: columns of
    ``tables.RANKING`` and ``tables.DIVISION``. Raises UserError where there is none.
    """
    side = occurrences["image_id"].map(division.set_index("image_id")["side"])
    pairs = pair_names(occurrences)
    lacked = sorted(set(pairs[side == "test"]) & set(pair_names(ranking)) - set(pairs[side == "train"]))
    if not lacked:
        raise UserError(
            f"{dataset}/{composition}: train has every ranked pair of test, so that none is held out: set "
            "split.divergence.compound to max, lower split.divergence.train or test, or rank more pairs "
            f"(there are {len(ranking)})"
        )
    return lacked


def main(options: argparse.Namespace) -> None:
    ranking = read_table(options.ranking, RANKING)
    where = (options.dataset, options.composition)
    for word in [*ranking["adjective"].unique(), *ranking["noun"].unique()]:
        if "_" in word:
            raise UserError(
                f"{options.ranking}: {word!r} holds a _, which stands between adjective and noun: rename it"
            )
    window = tuple(options.window)
    taken: dict[str, Any] = {}
    if options.published:
        published = read_split(options.published).pairs
        nouns = load_lexicon(options.nouns).forms if options.nouns else None
        pairs, wrong = take_pairs(published, load_lexicon(options.adjectives).forms, nouns, options.published)
        unranked = sorted(set(pairs) - set(pair_names(ranking)))
        taken = {"published": len(set(published)), "not_ranked": unranked, "violations": wrong}
    elif options.division:
        if not options.occurrences:
            raise UserError("--division needs --occurrences, the pairs.parquet of the same captions")
        occurrences = read_table(options.occurrences, PAIRS, columns=["image_id", "adjective", "noun"])
        pairs = lacked_pairs(occurrences, ranking, read_table(options.division, DIVISION), *where)
    elif options.pairs:
        pairs = check_listed(ranking, options.pairs, *where)
    else:
        pairs = sample_heldout(ranking, options.fraction, window, options.seed, *where)
    sources = {"published": options.published, "divergence": options.division, "config": options.pairs}
    source = next((name for name, given in sources.items() if given), "drawn")
    # A published pair need not be among those that are ranked here.
    counts = ranking.set_index(pair_names(ranking))[["count", "images"]].reindex(pairs, fill_value=0)
    write_json(
        {
            "pairs": pairs,
            "source": source,
            "window": list(window),
            "fraction": options.fraction,
            "seed": options.seed,
            "ranked": len(ranking),
            "eligible": int(ranking["percentile"].between(*window).sum()),
            "occurrences": {pair: int(counts.at[pair, "count"]) for pair in pairs},
            "images": {pair: int(counts.at[pair, "images"]) for pair in pairs},
            **taken,
        },
        options.output,
    )
    if taken:
        log.info("%s/%s: %d published pairs are held out, %d not ranked", *where, len(pairs), len(taken["not_ranked"]))
    else:
        log.info("%s/%s: %d of %d ranked pairs are held out", *where, len(pairs), len(ranking))


def arguments() -> argparse.ArgumentParser:
    result = cli.parser(__doc__)
    result.add_argument("--ranking", type=Path, required=True)
    result.add_argument("--fraction", type=float, default=0.1, help="of the ranked pairs (default: %(default)s)")
    result.add_argument(
        "--window", type=float, nargs=2, default=(25, 75), metavar=("LOW", "HIGH"), help="percentiles to draw between"
    )
    result.add_argument("--pairs", nargs="*", metavar="PAIR", help="hold out just these (adjective_noun); no draw")
    result.add_argument("--published", type=Path, nargs="?", help="hold out the pairs of this split.pkl; no draw")
    result.add_argument("--division", type=Path, nargs="?", help="hold out what train lacks in this division.parquet")
    result.add_argument("--occurrences", type=Path, nargs="?", help="with --division, pairs.parquet")
    result.add_argument("--adjectives", type=Path, nargs="?", help="with --published, the composition's lexicon")
    result.add_argument("--nouns", type=Path, nargs="?", help="with --published, the noun lexicon, where there is one")
    result.add_argument("--seed", type=int, default=0)
    result.add_argument("--dataset", required=True)
    result.add_argument("--composition", required=True)
    result.add_argument("--output", type=Path, required=True, help="heldout.json")
    return result


if __name__ == "__main__":
    cli.run(main, arguments())
