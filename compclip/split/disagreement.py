"""Compare the held-out pairs that parse and word order read from all captions, before any image is moved.

``make_splits`` and ``swap_adjectives`` remove images and swaps that contradict word order, so the absence of violations
does not show that the parse is right. If the parse misses a pair, test_unseen has fewer images, and only word order
reads it.

The two readers share the lexicons and the word lists of ``lexicons/grammar.yaml``, so both miss forms that are not in a
lexicon. They share no rules: the parse uses spaCy's tokens, tags and trees and the rules of ``pairs``; word order uses
the regular expression and the rules of ``reading``.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from compclip.core.heldout import pair_names

# The largest fraction of the images with a held-out pair (by either reader) that may disagree without a warning.
MOST_DISAGREED = 0.02
MAX_CONTRADICTED = 3  # captions listed for each pair and reader

ImagesOfPair = Mapping[str, set[str]]


def _images(stated: pd.DataFrame, heldout: Collection[str]) -> ImagesOfPair:
    """Return the images of each held-out pair. ``stated``: image_id and pair."""
    images = stated.groupby("pair")["image_id"].agg(set)
    return {pair: images.get(pair, set()) for pair in heldout}


def drawn_pairs(facts: pd.DataFrame, adjectives: Mapping[str, str], nouns: Mapping[str, str]) -> pd.DataFrame:
    """Return image_id and pair of each fact. ``facts``: image_id, part and value that drawn captions state."""
    words = pd.DataFrame({"adjective": facts["value"].map(adjectives), "noun": facts["part"].map(nouns)})
    return facts[["image_id"]].assign(pair=pair_names(words)).dropna()


def _differences(
    parse: set[str], word_order: set[str], disputed: set[str], drawn: set[str] | None = None
) -> dict[str, set[str]]:
    """Return the images with a pair by each reader and, if the truth is known (``drawn``), each reader's errors."""
    sets = {
        "images": parse | word_order,
        "only_parse": parse - word_order,
        "only_word_order": word_order - parse,
        "only_disputed": disputed - parse - word_order,
    }
    if drawn is None:
        return sets
    sets["drawn"] = drawn
    for reader, images in (("parse", parse), ("word_order", word_order)):
        sets |= {f"{reader}_misses": drawn - images, f"{reader}_invents": images - drawn}
    return sets


def _sizes(sets: Mapping[str, set[str]]) -> dict[str, int]:
    """Return the size of each set, and the number of images on which the readers disagree."""
    disagreed = sets["only_parse"] | sets["only_word_order"]
    return {name: len(images) for name, images in sets.items()} | {"disagreed": len(disagreed)}


def _with_fraction(sizes: Sequence[Mapping[str, int]]) -> dict[str, Any]:
    """Return the sums of sizes, with the fraction of the images on which the readers disagree."""
    total = {name: sum(of[name] for of in sizes) for name in sizes[0]}
    fraction = round(total.pop("disagreed") / max(total["images"], 1), 6)
    return {**total, "fraction": fraction}


def _warnings(total: Mapping[str, Any], by_pair: Mapping[str, Mapping[str, Any]]) -> list[str]:
    worst, row = max(by_pair.items(), key=lambda item: item[1]["fraction"])
    if max(total["fraction"], row["fraction"]) <= MOST_DISAGREED:
        return []
    return [
        f"parse and word order disagree on {total['fraction']:.1%} of the {total['images']} images with a held-out"
        f" pair by either reading (by the parse alone: {total['only_parse']}, by word order alone:"
        f" {total['only_word_order']}), most on {worst} ({row['fraction']:.1%} of {row['images']}); above"
        f" {MOST_DISAGREED:.0%}, read their captions in audit.json"
    ]


def _listed(stated: pd.DataFrame, others: ImagesOfPair, captions: pd.DataFrame) -> dict[str, list[dict[str, Any]]]:
    """Return the first captions that state each pair, of images that are not in ``others``."""
    is_other = [image in others[pair] for image, pair in zip(stated["image_id"], stated["pair"], strict=True)]
    rows = stated.loc[~np.array(is_other, bool), ["image_id", "caption_id", "pair"]].drop_duplicates()
    rows = rows.sort_values(["pair", "image_id", "caption_id"]).groupby("pair").head(MAX_CONTRADICTED)
    rows = rows.merge(captions, on=["image_id", "caption_id"])
    return {str(pair): of[["image_id", "caption_id", "text"]].to_dict("records") for pair, of in rows.groupby("pair")}


def compare_readings(
    captions: pd.DataFrame, pairs: pd.DataFrame, by_words: pd.DataFrame, heldout: Collection[str],
    drawn: pd.DataFrame | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Return on which images the readers disagree, by held-out pair and in total, for ``join_readings``.

    For a disputed occurrence, parse and surface of the extraction disagree. Its image is held out, too, but the parse
    states the pair only if another occurrence is not disputed.

    Args:
        captions: image_id, caption_id and text of some images.
        pairs: image_id, caption_id, adjective, noun and relation of their occurrences, as ``extract_pairs`` returns
            them.
        by_words: image_id, caption_id and pair, as word order reads them.
        drawn: image_id and pair that the captions state, if known.
    """
    pairs = pairs.assign(pair=pair_names(pairs))
    pairs = pairs[pairs["pair"].isin(list(heldout))]
    is_disputed = pairs["relation"] == "disputed"
    by_parse = pairs[~is_disputed]
    tables = [by_parse, by_words, pairs[is_disputed], *([] if drawn is None else [drawn])]
    images = [_images(table, heldout) for table in tables]
    sets = {pair: _differences(*(of[pair] for of in images)) for pair in sorted(heldout)}
    total = {name: set[str]().union(*(of[name] for of in sets.values())) for name in next(iter(sets.values()))}
    listed = {"parse": _listed(by_parse, images[1], captions), "word_order": _listed(by_words, images[0], captions)}
    return {"total": _sizes(total), "pairs": {pair: _sizes(of) for pair, of in sets.items()}, "captions": listed}


def join_readings(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the disagreement of the readers in all images, and a warning if it is large.

    Args:
        parts: ``compare_readings`` of blocks of images, in order.

    Returns:
        ``total`` (images on which the readers differ on any pair) and, by pair, ``pairs``: counts of images, the
        fraction on which the readers disagree, and a few captions; and ``warnings``.
    """
    total = _with_fraction([of["total"] for of in parts])
    by_pair = {pair: _with_fraction([of["pairs"][pair] for of in parts]) for pair in parts[0]["pairs"]}
    listed = {
        pair: row | {"captions": {
            reader: [caption for of in parts for caption in of["captions"][reader].get(pair, [])][:MAX_CONTRADICTED]
            for reader in ("parse", "word_order")
        }}
        for pair, row in by_pair.items()
    }  # fmt: skip
    return {"total": total, "pairs": listed, "warnings": _warnings(total, by_pair)}
