"""Select adjectives and nouns, and rank their pairs by frequency."""

import pandas as pd

from compclip.core.errors import require
from compclip.core.log import log
from compclip.core.settings.arguments import OccurrenceBlocks
from compclip.core.settings.calls import checked
from compclip.core.tables import in_blocks
from compclip.pairs.config import Selection
from compclip.text.lexicon import Lexicon, find_lexicon

NAMED = ["adjective", "noun"]


def _ranked(counts: pd.DataFrame, key: list[str]) -> pd.DataFrame:
    """Return the summed counts of each value of ``key``: most frequent first, ties by name."""
    added = counts.groupby(key)[["count", "images"]].sum().reset_index()
    is_ascending = [False] + [True] * len(key)
    return added.sort_values(["count", *key], ascending=is_ascending, ignore_index=True)


def count_pairs(pairs: pd.DataFrame) -> pd.DataFrame:
    """Return adjective, noun, count and images of each pair, undisputed occurrences; those of whole
    images add up.
    """
    # A disputed pair may not be in the caption.
    undisputed = pairs[pairs["relation"] != "disputed"]
    images = undisputed.groupby(NAMED)["image_id"]
    return images.agg(count="size", images="nunique").reset_index()


@checked
def rank_pairs(
    pairs: OccurrenceBlocks,
    adjectives: Lexicon | str,
    nouns: Lexicon | str | None = None,
    selection: Selection | None = None,
) -> pd.DataFrame:
    """Rank the pairs of a composition by frequency.

    Args:
        pairs: image_id, adjective, noun and relation of all occurrences, as in ``extract_pairs``,
            or an iterator of blocks (``tables.in_blocks``); disputed ones do not count.
        adjectives: the composition's lexicon, or its name in ``lexicons/adjectives``.
        nouns: lexicon of the nouns that may be ranked, or its name in ``lexicons/nouns``; None: any
            noun.
        selection: limits of the ranking; None: defaults.

    Returns:
        ``tables.RANKING``: a row for each pair, most frequent first.

    Raises:
        UserError: no pairs are left, or an argument is refused (docs/library.md).
    """
    adjectives = find_lexicon(adjectives, "adjectives")
    nouns = find_lexicon(nouns, "nouns") if nouns else None
    selection = selection or Selection()
    blocks = in_blocks(pairs)
    counts = pd.concat(count_pairs(block) for (block,) in blocks)
    ranking = _ranked(counts, NAMED)
    # All adjectives compete for the first places, those of other compositions, too.
    frequent = _ranked(counts, ["adjective"])["adjective"].head(selection.adjectives)
    chosen = sorted(set(frequent) & set(adjectives.words))
    fault = f"none of the {len(frequent)} most frequent adjectives is in lexicon {adjectives.name}"
    remedy = "raise pairs.selection.adjectives or choose another composition"
    require(chosen, "pairs", fault, remedy)
    ranking = ranking[ranking["adjective"].isin(chosen)]
    noun_condition = ""
    if nouns is not None:
        ranking = ranking[ranking["noun"].isin(nouns.words)]
        noun_condition = f" with a noun of lexicon {nouns.name}"
    # Of the most frequent pairs; all pairs of these nouns are ranked.
    frequent_nouns = ranking["noun"].head(selection.pairs)
    ranking = ranking[ranking["noun"].isin(frequent_nouns)]
    is_frequent = ranking["count"] >= selection.min_count
    ranking = ranking[is_frequent].reset_index(drop=True)
    fault = (
        f"no pair of an adjective of lexicon {adjectives.name}{noun_condition} occurs "
        f"{selection.min_count} times"
    )
    remedy = "lower pairs.selection.min_count or choose other lexicons"
    require(len(ranking), "pairs", fault, remedy)
    ranking["rank"] = range(1, len(ranking) + 1)
    # The middle of the pair's place in the ranking, in percent.
    middle = ranking["rank"] - 0.5
    ranking["percentile"] = (100 * middle / len(ranking)).round(6)
    numbers = (len(ranking), ranking["adjective"].nunique(), ranking["noun"].nunique())
    log.info("%d pairs of %d adjectives and %d nouns are ranked", *numbers)
    return ranking
