"""Make hard negatives: copies of the judge's training captions with one adjective replaced.

Trained on captions alone, CLIP reads them as bags of words; hard negatives make it read which adjective belongs to
which noun (NegCLIP: Yuksekgonul et al. 2023, "When and why vision-language models behave like bags-of-words").
"""

from collections import Counter
from collections.abc import Collection, Mapping

import pandas as pd

from compclip.core import cli
from compclip.core.heldout import pair_names
from compclip.core.log import log
from compclip.core.seeds import rng
from compclip.core.tables import CAPTIONS, IMAGES, NEGATIVES, PAIRS, RANKING, SPLIT
from compclip.io import empty_table, read_table, write_table
from compclip.judge.steps import MakeNegatives
from compclip.split.judged import judge_images
from compclip.split.make_variants import variants_of
from compclip.split.swap_adjectives import mentions_by_caption, nouns_of
from compclip.text.lexicon import load_lexicon


def ranked_pairs(pairs: pd.DataFrame, ranked: Collection[str]) -> pd.DataFrame:
    """Return the occurrences of ranked pairs, with the column ``pair``; disputed ones do not count."""
    plain = pairs[pairs["relation"] != "disputed"].assign(pair=pair_names)
    return plain[plain["pair"].isin(list(ranked))]


def adjectives_by_noun(pairs: pd.DataFrame, ranked: Collection[str]) -> dict[str, pd.Series]:
    """Return for each noun the fraction of its occurrences in ``pairs`` that each adjective has."""
    counts = ranked_pairs(pairs, ranked).groupby(["noun", "adjective"]).size()
    return {str(noun): of.droplevel("noun") / of.sum() for noun, of in counts.groupby(level="noun")}


def make_negatives(
    captions: pd.DataFrame,
    pairs: pd.DataFrame,
    ranked: Collection[str],
    of_noun: Mapping[str, pd.Series],
    adjectives: Mapping[str, str],
    nouns: Collection[str],
    count: int,
    seed: int,
) -> pd.DataFrame:
    """Return up to ``count`` negatives of each caption (``tables.NEGATIVES``).

    A ranked pair of the caption is drawn, then an adjective, as often as the noun has it in all of the judge's captions
    (``of_noun``). If it is the noun's own, there is no negative: so a caption with ``a`` has the negative ``b`` just as
    often as one with ``b`` has the negative ``a``, and no adjective is wrong more often than right. Nor is there one if
    a caption of the image says it of the noun, or if it does not fit the wording.

    ``captions`` and ``pairs`` are of whole images that the judge learns from; words are as in ``split.make_variants``.
    """
    said = pairs.groupby(["image_id", "noun"])["adjective"].agg(set).to_dict()
    targets = ranked_pairs(pairs, ranked).groupby(["image_id", "caption_id"])[["pair", "noun"]].agg(list)
    texts, mentions = captions.set_index(["image_id", "caption_id"])["text"], mentions_by_caption(pairs)
    rows = []
    for key, of_caption, of_nouns in targets.sort_index().itertuples():
        draw = rng(seed, "make_negatives", key[0], int(key[1]))
        for _ in range(count):
            target = int(draw.integers(len(of_caption)))
            noun = of_nouns[target]
            other = str(draw.choice(of_noun[noun].index, p=of_noun[noun]))
            if other in said[key[0], noun]:
                continue
            pair = of_caption[target]
            made = variants_of(texts[key], pair, mentions[key], [], [other], adjectives, nouns, Counter())
            rows += [(*key, text) for _, text, _ in made]
    return pd.DataFrame(rows, columns=list(NEGATIVES.columns)) if rows else empty_table(NEGATIVES)


def main(step: MakeNegatives) -> None:
    captions, pairs = read_table(step.captions, CAPTIONS), read_table(step.pairs, PAIRS)
    images, splits = read_table(step.images, IMAGES), read_table(step.splits, SPLIT)
    forms = load_lexicon(step.nouns).forms if step.nouns else ()
    nouns = nouns_of(captions, pairs).union(forms)
    learned = judge_images(splits, images, step.train_on, step.halves)
    ranked = pair_names(read_table(step.ranking, RANKING)).tolist()
    adjectives = load_lexicon(step.adjectives).forms
    captions, pairs = (table[table["image_id"].isin(learned)] for table in (captions, pairs))
    of_noun = adjectives_by_noun(pairs, ranked)
    negatives = make_negatives(captions, pairs, ranked, of_noun, adjectives, nouns, step.count, step.seed)
    write_table(negatives, step.negatives, NEGATIVES)
    log.info("%s: %d hard negatives of %d captions", step.where, len(negatives), len(captions))
    if negatives.empty:
        log.warning(
            "warning: %s: judge.hard_negatives has no effect: no noun has two ranked adjectives in captions that the"
            " judge learns from; lower pairs.selection.min_count", step.where,
        )  # fmt: skip


if __name__ == "__main__":
    cli.run(main)
