"""Compare the held-out pairs that parse and word order read from all captions, before any image is
moved.

``make_splits`` and ``swap_adjectives`` remove images and swaps that contradict word order, so the
absence of violations does not show that the parse is right. If the parse misses a pair, test_unseen
has fewer images, and only word order reads it.

The two readers share the lexicons and the word lists of ``lexicons/grammar.yaml``, so both miss
forms that are not in a lexicon. They share no rules: the parse uses spaCy's tokens, tags and trees
and the rules of ``pairs``; word order uses the regular expression and the rules of ``reading``.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pandas as pd

from compclip.core.artifacts.heldout import pair_names
from compclip.core.tables import CAPTION_KEY

# The largest fraction of the images with a held-out pair (by either reader) that may disagree
# without a warning.
MOST_DISAGREED = 0.02
MAX_CONTRADICTED = 3  # captions listed for each pair and reader
READERS = ("parse", "word_order")


def drawn_pairs(
    facts: pd.DataFrame, adjectives: Mapping[str, str], nouns: Mapping[str, str]
) -> pd.DataFrame:
    """Return image_id and pair of each fact. ``facts``: image_id, part and value that drawn
    captions state.
    """
    adjective = facts["value"].map(adjectives)
    noun = facts["part"].map(nouns)
    words = pd.DataFrame({"adjective": adjective, "noun": noun})
    pairs = facts[["image_id"]].assign(pair=pair_names(words))
    return pairs.dropna()  # facts of words that no lexicon has


def _differences(stated: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return, by pair and image, how the readers differ and, if the truth is known (``drawn``),
    each reader's errors.

    ``stated``: image_id and pair that are drawn, disputed, or stated by each reader.
    """
    tables = [table[["pair", "image_id"]].assign(reader=name) for name, table in stated.items()]
    counts = pd.concat(tables).value_counts().unstack("reader")
    # A reader that states no pair at all has no column.
    states = counts.reindex(columns=list(stated)).notna()
    parse = states["parse"]
    word_order = states["word_order"]
    flags = {
        "images": parse | word_order,
        "only_parse": parse & ~word_order,
        "only_word_order": word_order & ~parse,
        "only_disputed": states["disputed"] & ~parse & ~word_order,
    }
    if "drawn" in states:
        drawn = states["drawn"]
        flags["drawn"] = drawn
        for reader in READERS:
            flags[f"{reader}_misses"] = drawn & ~states[reader]
            flags[f"{reader}_invents"] = states[reader] & ~drawn
    return pd.DataFrame({**flags, "disagreed": parse ^ word_order})


def _with_fraction(sizes: Sequence[Mapping[str, int]]) -> dict[str, Any]:
    """Return the sums of sizes, with the fraction of the images on which the readers disagree."""
    total: dict[str, Any] = {}
    for name in sizes[0]:
        total[name] = sum(size[name] for size in sizes)
    disagreed = total.pop("disagreed")
    total["fraction"] = round(disagreed / max(total["images"], 1), 6)
    return total


def _warnings(total: Mapping[str, Any], by_pair: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return a warning if the readers disagree on many images, in total or of a pair."""
    if not by_pair:
        return []
    # One pair that is misread may be lost in the total.
    worst = max(by_pair, key=lambda pair: by_pair[pair]["fraction"])
    row = by_pair[worst]
    if max(total["fraction"], row["fraction"]) <= MOST_DISAGREED:
        return []
    alone = (
        f"by the parse alone: {total['only_parse']}, by word order alone: "
        f"{total['only_word_order']}"
    )
    return [
        f"parse and word order disagree on {total['fraction']:.1%} of the {total['images']} "
        f"images with a held-out pair by either reading ({alone}), most on {worst} "
        f"({row['fraction']:.1%} of {row['images']}); above {MOST_DISAGREED:.0%}, read their "
        "captions in audit.json"
    ]


def _listed(
    stated: pd.DataFrame, is_alone: pd.Series, captions: pd.DataFrame
) -> dict[str, list[dict[str, Any]]]:
    """Return the first captions that state each pair, of the pairs and images that only this reader
    states.
    """
    key = ["pair", *CAPTION_KEY]
    alone = is_alone[is_alone].index.to_frame(index=False)
    rows = stated[key].drop_duplicates().merge(alone, on=["pair", "image_id"])
    first = rows.sort_values(key).groupby("pair").head(MAX_CONTRADICTED)
    texts = first.merge(captions, on=CAPTION_KEY)
    listed = {}
    for pair, group in texts.groupby("pair"):
        listed[str(pair)] = group[[*CAPTION_KEY, "text"]].to_dict("records")
    return listed


def compare_readings(
    captions: pd.DataFrame,
    pairs: pd.DataFrame,
    by_words: pd.DataFrame,
    heldout: Collection[str],
    drawn: pd.DataFrame | None = None,
) -> dict[str, Any]:
    """Return on which images the readers disagree, by held-out pair and in total, for
    ``join_readings``.

    For a disputed occurrence, parse and surface of the extraction disagree. Its image is held out,
    too, but the parse states the pair only if another occurrence is not disputed.

    Args:
        captions: image_id, caption_id and text of some images.
        pairs: image_id, caption_id, adjective, noun and relation of their occurrences, as
            ``extract_pairs`` returns them.
        by_words: image_id, caption_id and pair, as word order reads them.
        drawn: image_id and pair that the captions state, if known.
    """
    pairs = pairs.assign(pair=pair_names(pairs))
    # Only held-out pairs decide where an image goes.
    pairs = pairs[pairs["pair"].isin(list(heldout))]
    is_disputed = pairs["relation"] == "disputed"
    stated = {"parse": pairs[~is_disputed], "word_order": by_words, "disputed": pairs[is_disputed]}
    if drawn is not None:
        stated["drawn"] = drawn[drawn["pair"].isin(list(heldout))]
    differences = _differences(stated)
    # An image counts once in total, however many pairs the readers disagree on.
    total = differences.groupby("image_id").any().sum()
    by_pair = differences.groupby("pair").sum().reindex(sorted({*heldout}), fill_value=0)
    listed = {
        reader: _listed(stated[reader], differences[f"only_{reader}"], captions)
        for reader in READERS
    }
    return {"total": total.to_dict(), "pairs": by_pair.to_dict("index"), "captions": listed}


def join_readings(blocks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the disagreement of the readers in all images, and a warning if it is large.

    Args:
        blocks: ``compare_readings`` of blocks of images, in order.

    Returns:
        ``total`` (images on which the readers differ on any pair) and, by pair, ``pairs``: counts
        of images, the fraction on which the readers disagree, and a few captions; and ``warnings``.
    """
    total = _with_fraction([block["total"] for block in blocks])
    by_pair = {}
    for pair in blocks[0]["pairs"]:
        row = _with_fraction([block["pairs"][pair] for block in blocks])
        # Some captions of each reader, for people to judge who is right.
        row["captions"] = {reader: _first_captions(blocks, reader, pair) for reader in READERS}
        by_pair[pair] = row
    return {"total": total, "pairs": by_pair, "warnings": _warnings(total, by_pair)}


def _first_captions(
    blocks: Sequence[Mapping[str, Any]], reader: str, pair: str
) -> list[dict[str, Any]]:
    """Return a few captions of all blocks in which only this reader reads the pair."""
    captions: list[dict[str, Any]] = []
    for block in blocks:
        by_pair = block["captions"][reader]
        captions += by_pair.get(pair, [])
    return captions[:MAX_CONTRADICTED]
