"""Select adjectives and nouns, and rank their pairs by frequency."""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd

from workflow_scripts.core import cli
from workflow_scripts.core.cli import log
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import read_table, write_table
from workflow_scripts.core.tables import PAIRS, RANKING
from workflow_scripts.text.lexicon import Lexicon, load_lexicon


def _counts(pairs: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Occurrences of each value of ``by``, the most frequent first, ties by name."""
    counts = pairs.groupby(by, observed=True).size().rename("count").reset_index()
    return counts.sort_values(["count", *by], ascending=[False, *(True for _ in by)], ignore_index=True)


def rank(
    pairs: pd.DataFrame, adjectives: Lexicon, nouns: Lexicon | None, n_adjectives: int, n_pairs: int, min_count: int
) -> pd.DataFrame:
    """The ranking, most frequent first.

    Args:
        pairs: image_id, adjective, noun, relation of all occurrences; the disputed are left out
        adjectives: the composition's lexicon
        nouns: the nouns that may be ranked; None for any
        n_adjectives: of all adjectives so many most frequent are looked at
        n_pairs: the nouns of so many most frequent pairs are selected
        min_count: occurrences that a ranked pair has at least

    Raises UserError where no pair is left.
    """
    pairs = pairs[pairs["relation"] != "disputed"]
    frequent = _counts(pairs, ["adjective"])["adjective"].head(n_adjectives)
    chosen = sorted(set(frequent) & set(adjectives.words))
    if not chosen:
        raise UserError(
            f"pairs: none of the {len(frequent)} most frequent adjectives is in lexicon {adjectives.name}:"
            " raise pairs.selection.adjectives, or choose another composition"
        )
    pairs = pairs[pairs["adjective"].isin(chosen)]
    if nouns is not None:
        pairs = pairs[pairs["noun"].isin(nouns.words)]
    selected = set(_counts(pairs, ["adjective", "noun"])["noun"].head(n_pairs))
    pairs = pairs[pairs["noun"].isin(selected)]
    ranking = _counts(pairs, ["adjective", "noun"])
    ranking = ranking[ranking["count"] >= min_count].reset_index(drop=True)
    if ranking.empty:
        where = f" with a noun of lexicon {nouns.name}" if nouns else ""
        raise UserError(
            f"pairs: no pair of an adjective of lexicon {adjectives.name}{where} occurs {min_count} times:"
            " lower pairs.selection.min_count, or choose other lexicons"
        )
    images = pairs.groupby(["adjective", "noun"], observed=True)["image_id"].nunique().rename("images").reset_index()
    ranking = ranking.merge(images, on=["adjective", "noun"], how="left", validate="one_to_one")
    ranking["rank"] = range(1, len(ranking) + 1)
    ranking["percentile"] = (100 * (ranking["rank"] - 0.5) / len(ranking)).round(6)
    return ranking


def main(options: argparse.Namespace) -> None:
    pairs = read_table(options.pairs, PAIRS, ["image_id", "adjective", "noun", "relation"])
    nouns = load_lexicon(options.nouns) if options.nouns else None
    ranking = rank(
        pairs,
        load_lexicon(options.adjectives),
        nouns,
        options.selection_adjectives,
        options.selection_pairs,
        options.min_count,
    )
    log.info(
        "%d pairs of %d adjectives and %d nouns are ranked",
        len(ranking), ranking["adjective"].nunique(), ranking["noun"].nunique(),
    )  # fmt: skip
    write_table(ranking, options.output, RANKING)


if __name__ == "__main__":
    parser = cli.parser(__doc__)
    parser.add_argument("--pairs", type=Path, required=True, help="pairs.parquet")
    parser.add_argument("--adjectives", type=Path, required=True, help="the composition's lexicon (YAML)")
    parser.add_argument("--nouns", type=Path, nargs="?", help="noun lexicon (YAML): only its nouns are ranked")
    parser.add_argument("--selection-adjectives", type=int, default=60, help="most frequent adjectives to look at")
    parser.add_argument("--selection-pairs", type=int, default=100, help="most frequent pairs whose nouns are selected")
    parser.add_argument("--min-count", type=int, default=1, help="occurrences of a ranked pair, at least")
    parser.add_argument("--output", type=Path, required=True, help="ranking.parquet")
    cli.run(main, parser)
