"""Make hard negatives: copies of the judge's training captions with one adjective replaced.

Trained on captions alone, CLIP reads them as bags of words; hard negatives make it read which adjective belongs to
which noun (NegCLIP: Yuksekgonul et al. 2023, "When and why vision-language models behave like bags-of-words").
"""

from collections import Counter
from collections.abc import Collection

import pandas as pd

from compclip.core.heldout import pair_names, split_pair
from compclip.core.seeds import rng
from compclip.core.tables import NEGATIVES
from compclip.io import empty_table
from compclip.split.make_variants import variants_of
from compclip.split.swap_adjectives import mentions_by_caption
from compclip.text.lexicon import Lexicon


def make_negatives(
    captions: pd.DataFrame, pairs: pd.DataFrame, ranked: Collection[str], adjectives: Lexicon,
    nouns: Collection[str], count: int = 1, seed: int = 0,
) -> pd.DataFrame:  # fmt: skip
    """Return up to ``count`` negatives of each caption (``tables.NEGATIVES``).

    A ranked pair of the caption is drawn, then an adjective, as often as the noun has it in all captions. If it is the
    noun's own, there is no negative: so a caption with ``a`` has the negative ``b`` just as often as one with ``b`` has
    the negative ``a``, and no adjective is wrong more often than right. There is also none if both adjectives may be
    true of the noun, if a caption of the image uses the drawn one for it, or if that does not fit the wording.

    Args:
        captions: all captions of the images that the judge learns from (``tables.CAPTIONS``).
        pairs: of the same captions (``tables.PAIRS``).
        ranked: names of the pairs that count, ``adjective_noun``; disputed occurrences do not.
        adjectives: the composition's lexicon.
        nouns: forms of nouns, as in ``split.make_variants``.
    """
    plain = pairs[pairs["relation"] != "disputed"].assign(pair=pair_names)
    plain = plain[plain["pair"].isin(list(ranked))]
    counts = plain.groupby(["noun", "adjective"]).size().groupby(level="noun")
    of_noun = {noun: of.droplevel("noun") / of.sum() for noun, of in counts}
    targets = plain.groupby(["image_id", "caption_id"])[["pair", "noun"]].agg(list)
    stated = pairs.groupby(["image_id", "noun"])["adjective"].agg(set).to_dict()
    texts, mentions = captions.set_index(["image_id", "caption_id"])["text"], mentions_by_caption(pairs)
    rows = []
    for key, of_caption, of_nouns in targets.sort_index().itertuples():
        draw = rng(seed, "make_negatives", key[0], int(key[1]))
        for _ in range(count):
            target = int(draw.integers(len(of_caption)))
            noun = of_nouns[target]
            other = str(draw.choice(of_noun[noun].index, p=of_noun[noun]))
            pair = of_caption[target]
            if other in stated[key[0], noun] or other not in adjectives.excluded_by(split_pair(pair)[0]):
                continue
            made = variants_of(texts[key], pair, mentions[key], [], [other], adjectives.forms, nouns, Counter())
            rows += [(*key, text) for _, text, _ in made]
    return pd.DataFrame(rows, columns=list(NEGATIVES.columns)) if rows else empty_table(NEGATIVES)
