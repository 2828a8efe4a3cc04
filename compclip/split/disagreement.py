"""Compare the held-out pairs that parse and word order read from all captions, before any image is
moved.

``make_splits`` and ``swap_adjectives`` remove images and swaps that contradict word order, so the
absence of violations does not show that the parse is right. If the parse misses a pair, test_unseen
has fewer images, and only word order reads it. What the parse alone reads is used like all else, so
most disagreements cost nothing, and the warning is about what is lost.

The two readers share the lexicons and the word lists of ``lexicons/grammar.yaml``, so both miss
forms that are not in a lexicon. They share no rules: the parse uses spaCy's tokens, tags and trees
and the rules of ``pairs``; word order uses the regular expression and the rules of ``reading``.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pandas as pd

from compclip.core.artifacts.heldout import pair_names
from compclip.core.tables import CAPTION_KEY

# The largest fraction of the images, or of the captions with a held-out pair, that may be lost
# without a warning. Intervals grow with 1 / sqrt(1 - fraction): at a tenth by 5 %, which is less
# than a point at the half width of 15 points that ``choose_draw`` aims at.
MAX_LOST = 0.1
# Why images and captions are lost, and what to do about it.
CAUSES = {
    "missed": "word order states a pair that the parse does not find",
    "disputed": "the extraction contradicts itself about a pair",
}
DRAFT_NOUNS = "set pairs.nouns to a lexicon of your nouns, which `compclip nouns` drafts"
REMEDIES = {
    "missed": "add forms of the noun to the lexicon of pairs.nouns, or its compound to "
    "lexicons/compounds/common.yaml",
    "disputed": "separate what captions list by commas, or list other pairs in split.heldout.pairs",
}
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


def _states(stated: Mapping[str, pd.DataFrame], key: Sequence[str]) -> pd.DataFrame:
    """Return, by ``key``, which of the tables ``stated`` have a row."""
    tables = [table[[*key]].assign(reader=name) for name, table in stated.items()]
    counts = pd.concat(tables).value_counts().unstack("reader")
    # A reader that states no pair at all has no column.
    return counts.reindex(columns=list(stated)).notna()


def _differences(stated: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return, by pair and image, how the readers differ and, if the truth is known (``drawn``),
    each reader's errors.

    ``stated``: image_id and pair that are drawn, disputed, or stated by each reader.
    """
    states = _states(stated, ["pair", "image_id"])
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


def _lost(stated: Mapping[str, pd.DataFrame], captions: pd.DataFrame) -> dict[str, int]:
    """Return how many images and captions test no held-out pair because of a disagreement, by
    cause.

    An image in which word order alone states a pair is in no split; one with a pair that is only
    disputed is in test_unseen, where no caption of it is a prompt.
    """
    # Images of train and test_seen are used.
    may_be_lost = captions["split"].isna() | (captions["split"] == "test_unseen")
    images = captions.loc[may_be_lost, "image_id"]
    readings = (*READERS, "disputed")
    tables = {name: stated[name][stated[name]["image_id"].isin(images)] for name in readings}
    by_image = _states(tables, ["image_id"])
    by_caption = _states(tables, CAPTION_KEY)
    # Two of three readings say that a caption with a pair that is only disputed states none.
    by_caption = by_caption[by_caption["parse"] | by_caption["word_order"]]
    counts = {"images": captions["image_id"].nunique(), "captions": len(by_caption)}
    for unit, states in {"images": by_image, "captions": by_caption}.items():
        is_lost = ~states["parse"]
        counts[f"{unit}_missed"] = int((is_lost & ~states["disputed"]).sum())
        counts[f"{unit}_disputed"] = int((is_lost & states["disputed"]).sum())
    return counts


def _warnings(
    lost: Mapping[str, int], by_pair: Mapping[str, Mapping[str, Any]], has_nouns: bool
) -> list[str]:
    """Return a warning with cause and remedy if much is lost."""
    sizes = {}
    for unit in ("images", "captions"):
        total = lost[unit]
        number = sum(lost[f"{unit}_{cause}"] for cause in CAUSES)
        sizes[unit] = (number, total, number / max(total, 1))
    if all(fraction <= MAX_LOST for _, _, fraction in sizes.values()):
        return []
    unit = max(sizes, key=lambda unit: sizes[unit][2])
    cause = max(CAUSES, key=lambda cause: lost[f"{unit}_{cause}"])
    # A lexicon of nouns finds missed pairs, but hardly settles a dispute.
    remedy = DRAFT_NOUNS if cause == "missed" and not has_nouns else REMEDIES[cause]
    flag = {"missed": "only_word_order", "disputed": "only_disputed"}[cause]
    worst = max(by_pair, key=lambda pair: by_pair[pair][flag])
    number, total, fraction = sizes["images"]
    images = f"{number} of {total} images ({fraction:.1%})"
    number, total, fraction = sizes["captions"]
    captions = f"{number} of {total} captions with a held-out pair ({fraction:.1%})"
    return [
        f"{images} and {captions} test no pair, because readings of captions disagree, mostly "
        f"because {CAUSES[cause]} (most often {worst}); {remedy}"
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
        captions: image_id, caption_id, text and split (null: none) of some images.
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
    return {
        "total": total.to_dict(),
        "pairs": by_pair.to_dict("index"),
        "captions": listed,
        "lost": _lost(stated, captions),
    }


def join_readings(blocks: Sequence[Mapping[str, Any]], has_nouns: bool) -> dict[str, Any]:
    """Return the disagreement of the readers in all images, and a warning if much is lost by it.

    Args:
        blocks: ``compare_readings`` of blocks of images, in order.
        has_nouns: whether there is a lexicon of nouns.

    Returns:
        ``total`` (images on which the readers differ on any pair) and, by pair, ``pairs``: counts
        of images, the fraction on which the readers disagree, and a few captions; ``lost``: images
        and captions that test no pair, by cause, with the numbers of all; and ``warnings``.
    """
    total = _with_fraction([block["total"] for block in blocks])
    by_pair = {}
    for pair in blocks[0]["pairs"]:
        row = _with_fraction([block["pairs"][pair] for block in blocks])
        # Some captions of each reader, for people to judge who is right.
        row["captions"] = {reader: _first_captions(blocks, reader, pair) for reader in READERS}
        by_pair[pair] = row
    lost = {name: sum(block["lost"][name] for block in blocks) for name in blocks[0]["lost"]}
    warnings = _warnings(lost, by_pair, has_nouns)
    return {"total": total, "pairs": by_pair, "lost": lost, "warnings": warnings}


def _first_captions(
    blocks: Sequence[Mapping[str, Any]], reader: str, pair: str
) -> list[dict[str, Any]]:
    """Return a few captions of all blocks in which only this reader reads the pair."""
    captions: list[dict[str, Any]] = []
    for block in blocks:
        by_pair = block["captions"][reader]
        captions += by_pair.get(pair, [])
    return captions[:MAX_CONTRADICTED]
