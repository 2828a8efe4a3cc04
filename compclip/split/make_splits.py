"""Divide the images, each with all its captions, into train, test_seen and test_unseen.

There are three ways. By default, test_unseen has the images with a held-out pair, also one that
nouns share (relation ``shared``) or whose readings differ (``disputed``), test_seen is drawn from
the rest, and train is the remainder. A published division is used unchanged, and the audit reports
its faults. For a division by divergence, the test images with a held-out pair are test_unseen, the
others test_seen, unless train lacks one of their pairs.

Images in which word order states a held-out pair that was not extracted are in no split, unless the
split is published.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from pandas.api.types import union_categoricals

from compclip.core.artifacts.heldout import pair_names, split_pair
from compclip.core.errors import require
from compclip.core.log import log
from compclip.core.reading.published_files import read_split
from compclip.core.settings.arguments import (
    CaptionBlocks,
    Division,
    OccurrenceBlocks,
    PairNames,
    Positive,
    RankedPairs,
    Whole,
    require_joined,
)
from compclip.core.settings.calls import checked
from compclip.core.tables import SPLITS, in_blocks
from compclip.split.composition import Lexicons, Seeding
from compclip.split.published_split import take_splits
from compclip.split.reading import (
    Reader,
    group_by_adjective,
    has_both_words,
    reader_of,
    stated_pairs,
    word_pairs,
)
from compclip.text.lexicon import Lexicon, require_occurring

# By default, test_seen has at most this percentage of the images, about as in the published split
# of C-CUB by color.
MAX_SEEN_PERCENT = 12
# Fractions of the images that train should keep and must keep; both are choices without a source.
# The paper's rule leaves 34 to 39 % of the images of birds to train (color, docs/widths.md), so
# less than the first is only a warning, and ``choose_draw`` prefers another draw.
LOW_TRAIN = 0.40
MIN_TRAIN = 0.20

# Reasons why images are in no split.
UNDIVIDED = "not used by the division"
PAIR_NOT_IN_TRAIN = "a pair that train has only disputed, or not at all"
CONTESTED = "word order states a held-out pair, and the parse does not"

# Columns that are categorical, because strings would take ten times the memory.
CATEGORICAL = ["image_id", "pair"]

# image_id and split, and what splits.json states
SplitsAndSummary = tuple[pd.DataFrame, dict[str, Any]]


@dataclass(frozen=True)
class SplitRule:
    """How images are divided: drawn, unless a split is published or a division is given; a
    published one goes first.
    """

    test_seen: str | int = "auto"
    published: str | Path | None = None
    division: pd.DataFrame | None = None
    contested: list[dict[str, Any]] | None = None  # None: not searched so far


class ReadImages(NamedTuple):
    """What is read of all images: their ids, ``pairs_of_images`` and ``find_contested``."""

    image_ids: list[str]
    image_pairs: pd.DataFrame
    contested: list[dict[str, Any]]


def seen_target(unseen: int, images: int, test_seen: str | int) -> int:
    """Return the target size of test_seen; ``test_seen`` is ``auto`` or a number."""
    # A user's number is a decision, so only the automatic size is limited.
    if test_seen == "auto":
        return min(unseen, images * MAX_SEEN_PERCENT // 100)
    return int(test_seen)


def shuffled(images: Sequence[str], seeding: Seeding) -> list[str]:
    """Return the images in a seeded order."""
    order = seeding.rng("make_splits").permutation(len(images))
    return [images[i] for i in order]


def draw_seen(order: list[str], occurrences: pd.DataFrame, target: int) -> list[str]:
    """Return the first ``target`` images of ``order`` whose pairs all also occur in an image that
    is not drawn.

    ``occurrences`` has each pair of an image once. A disputed one, which may not be a pair, must be
    covered but does not cover others.
    """
    image_ids = pd.Index(occurrences["image_id"])
    positions = pd.Index(order, dtype="str").get_indexer(image_ids).astype(np.int32)
    # All rows of an image together, in the order in which images are tried.
    rows = np.argsort(positions, kind="stable")
    positions = positions[rows]
    is_sure = ~occurrences["disputed"].to_numpy(bool)[rows]
    # Pairs as numbers, so that counting them is indexing.
    codes, names = pd.factorize(occurrences["pair"])
    pair_numbers = codes[rows].astype(np.int32)
    # The rows of the i-th image are those from begins[i] to begins[i + 1].
    begins = np.searchsorted(positions, np.arange(len(order) + 1))
    # The number of images not drawn so far in which each pair occurs. Position -1: not in order,
    # such as contested images.
    covers = is_sure & (positions >= 0)
    remaining = np.bincount(pair_numbers[covers], minlength=len(names))
    drawn: list[str] = []
    for image, (begin, end) in zip(order, pairwise(begins), strict=True):
        if len(drawn) == target:
            break
        numbers = pair_numbers[begin:end]
        covering = is_sure[begin:end]
        # Of each pair, another image must stay; this image is one of those counted, unless it has
        # the pair only disputed.
        if (remaining[numbers] > covering).all():
            drawn.append(image)
            remaining[numbers] -= covering
    return drawn


def pairs_of_images(
    pairs: pd.DataFrame, ranking: pd.DataFrame, heldout: Collection[str]
) -> pd.DataFrame:
    """Return image_id, pair, of_ranked_words and disputed of held-out pairs and of pairs of ranked
    words, once for each image.

    ``of_ranked_words``: each of its words is in a ranked pair; ``disputed``: in all occurrences in
    the image.
    """
    has_ranked_adjective = pairs["adjective"].isin(ranking["adjective"])
    # Not whether the pair is ranked: a rare pair of ranked words must not be new in test_seen.
    of_ranked_words = has_ranked_adjective & pairs["noun"].isin(ranking["noun"])
    table = pairs[["image_id"]].assign(pair=pair_names(pairs), of_ranked_words=of_ranked_words)
    table["disputed"] = pairs["relation"] == "disputed"
    # A held-out pair that is listed or published need not be of ranked words.
    is_heldout = table["pair"].isin(list(heldout))
    rows = table[of_ranked_words | is_heldout]
    columns = ["image_id", "pair", "of_ranked_words"]
    return rows.groupby(columns, as_index=False)["disputed"].all()


def heldout_of_images(image_pairs: pd.DataFrame, heldout: Collection[str]) -> pd.DataFrame:
    """Return image_id and pair, once for each held-out pair in any caption of an image."""
    is_heldout = image_pairs["pair"].isin(list(heldout))
    return image_pairs.loc[is_heldout, ["image_id", "pair"]].astype("str")


def find_contested(
    captions: pd.DataFrame, pairs: pd.DataFrame, heldout: Collection[str], reader: Reader
) -> list[dict[str, Any]]:
    """Return the captions in which word order states a held-out pair, of images in which none was
    extracted.

    Whichever reading is right, these images must not train and need not be tested. Each image is
    listed at most once.
    """
    has_pair = pair_names(pairs).isin(list(heldout))
    is_extracted = captions["image_id"].isin(pairs.loc[has_pair, "image_id"])
    unextracted = captions[~is_extracted].sort_values(["image_id", "caption_id"])
    heldout_words = set(map(split_pair, heldout))
    nouns_by_adjective = group_by_adjective(heldout_words)
    # A text may belong to many captions, so each is read once.
    stated_heldout: dict[str, list[tuple[str, str]]] = {}
    for text in unextracted["text"].unique():
        items = reader.read(text)
        pairs_in_text = set[tuple[str, str]]()
        # Fast, and most texts lack such words.
        if has_both_words(items, nouns_by_adjective):
            pairs_in_text = word_pairs(stated_pairs(text, items))
        stated_heldout[text] = sorted(pairs_in_text & heldout_words)
    is_stating = unextracted["text"].map(stated_heldout).astype(bool)
    # One caption suffices to exclude an image.
    stating = unextracted[is_stating].drop_duplicates("image_id")
    records = []
    for row in stating.itertuples():
        # The report names one pair of a text, the first by name.
        pair = "_".join(stated_heldout[row.text][0])
        record = {"image_id": row.image_id, "caption_id": int(row.caption_id), "pair": pair}
        records.append({**record, "text": row.text})
    return records


def read_images(
    captions: CaptionBlocks,
    pairs: OccurrenceBlocks,
    ranking: pd.DataFrame,
    heldout: Collection[str],
    reader: Reader | None,
) -> ReadImages:
    """Read all images, block by block; ``reader`` finds contested captions, None: none are."""
    image_ids: list[str] = []
    contested: list[dict[str, Any]] = []
    tables: list[pd.DataFrame] = []
    for texts, occurrences in in_blocks(captions, pairs):
        image_ids += texts["image_id"].unique().tolist()
        table = pairs_of_images(occurrences, ranking, heldout)
        tables.append(table.astype(dict.fromkeys(CATEGORICAL, "category")))
        if reader is not None:
            contested += find_contested(texts, occurrences, heldout, reader)
    joined = pd.concat([table.drop(columns=CATEGORICAL) for table in tables], ignore_index=True)
    for name in CATEGORICAL:
        # pd.concat would make objects of columns that have different categories.
        joined[name] = union_categoricals([table[name] for table in tables])
    return ReadImages(image_ids, joined, contested)


def drawn_splits(
    image_ids: Collection[str],
    image_pairs: pd.DataFrame,
    heldout: Collection[str],
    test_seen: str | int,
    seeding: Seeding,
) -> SplitsAndSummary:
    """Return the splits, sorted by image_id, and a summary.

    Every pair of ranked words in test_seen is also in train: an image that is the only one with a
    pair stays in train, and the next image of the seeded order replaces it. ``image_pairs``: as
    ``pairs_of_images`` returns them.
    """
    where = seeding.location
    # Sorted, so that the order of rows decides nothing.
    images = sorted(set(image_ids))
    pairs_of_ranked_words = image_pairs[image_pairs["of_ranked_words"]]
    with_heldout = heldout_of_images(image_pairs, heldout)
    # Contested images, which are not among ``images``, may have one if a caller named them.
    unseen = set(with_heldout["image_id"]) & set(images)
    remedy = "rerun sample_heldout with these captions"
    require(unseen, where, "no image has a held-out pair", remedy)
    order = shuffled([image for image in images if image not in unseen], seeding)
    target = seen_target(len(unseen), len(images), test_seen)
    # Images of test_unseen do not train, so they cover no pair of test_seen.
    is_unseen = pairs_of_ranked_words["image_id"].isin(unseen)
    candidates = pairs_of_ranked_words[~is_unseen]
    seen = set(draw_seen(order, candidates, target))
    split_of = dict.fromkeys(images, "train")
    split_of |= dict.fromkeys(seen, "test_seen")
    split_of |= dict.fromkeys(unseen, "test_unseen")
    splits = pd.DataFrame({"image_id": images, "split": list(split_of.values())})
    warnings = _check_train(splits, with_heldout, where)
    fault = f"{len(images)} images are too few for test_seen"
    require(seen, where, fault, "add captions or set split.test_seen")
    summary = {"seed": seeding.seed, "test_seen_wanted": target, "warnings": warnings}
    return splits, summary


def _check_train(splits: pd.DataFrame, with_heldout: pd.DataFrame, where: str) -> list[str]:
    """Return a warning if train is small; raises UserError if it is too small to learn from."""
    fraction = float((splits["split"] == "train").mean())
    images_by_pair = with_heldout["pair"].value_counts().head(5)
    costly = ", ".join(f"{pair} ({count})" for pair, count in images_by_pair.items())
    size = f"train keeps {fraction:.1%} of the images"
    fault = (
        f"{size}, less than {MIN_TRAIN:.0%} (the most costly held-out pairs, by images: {costly})"
    )
    remedy = (
        "lower split.heldout.fraction, pairs.selection.min_count or split.test_seen, move "
        "split.heldout.window up"
    )
    require(fraction >= MIN_TRAIN, where, fault, remedy)
    if fraction >= LOW_TRAIN:
        return []
    return [f"{size}, under {LOW_TRAIN:.0%}; the most costly held-out pairs, by images: {costly}"]


def divided_splits(
    division: pd.DataFrame,
    image_pairs: pd.DataFrame,
    heldout: Collection[str],
    test_seen: str | int,
    seeding: Seeding,
) -> SplitsAndSummary:
    """Return the splits of a division by divergence, sorted by image_id, and a summary.

    ``split.divergence.train`` has set the size of train, which is not checked again. At a high
    divergence almost every test image has a held-out pair: if test_seen is too small, more images
    are drawn from train by ``draw_seen``, which keeps every pair in train. Every pair of ranked
    words in test_seen is undisputed in train: a test image without a held-out pair, but with a pair
    that train has only disputed or not at all (it is disputed here, or too rare to be ranked), is
    excluded, like the images that the division does not use.
    """
    side_of = division.set_index("image_id")["side"].sort_index()
    train = side_of.index[side_of == "train"]
    test = side_of.index[side_of == "test"]
    has_heldout = test.isin(heldout_of_images(image_pairs, heldout)["image_id"])
    unseen = test[has_heldout]
    fault = "no test image of the division has a held-out pair"
    require(len(unseen), seeding.location, fault, "rerun sample_heldout with this division")
    pairs_of_ranked_words = image_pairs[image_pairs["of_ranked_words"]]
    is_in_train = pairs_of_ranked_words["image_id"].isin(train)
    is_sure = ~pairs_of_ranked_words["disputed"]
    learned = pairs_of_ranked_words.loc[is_in_train & is_sure, "pair"].unique()
    # In test_seen, such a pair would be new, although it is not held out.
    is_learned = pairs_of_ranked_words["pair"].isin(learned)
    with_unlearned = pairs_of_ranked_words.loc[~is_learned, "image_id"]
    seen = test[~has_heldout & ~test.isin(with_unlearned)]
    skipped = test.difference(unseen).difference(seen)
    target = seen_target(len(unseen), len(train) + len(test), test_seen)
    # Images that test_seen lacks; they are drawn from train.
    missing = max(0, target - len(seen))
    drawn = draw_seen(shuffled(train, seeding), pairs_of_ranked_words[is_in_train], missing)
    train = train.difference(drawn)
    seen = seen.union(drawn)
    fault = (
        f"test_seen would be empty, since train lacks a pair of each of the {len(test)} "
        "images of test"
    )
    remedy = "lower split.divergence.compound or set split.test_seen"
    require(len(seen), seeding.location, fault, remedy)
    images_of = {"train": train, "test_seen": seen, "test_unseen": unseen}
    tables = [pd.DataFrame({"image_id": ids, "split": split}) for split, ids in images_of.items()]
    splits = pd.concat(tables).astype("str").sort_values("image_id", ignore_index=True)
    warnings = []
    if len(skipped):
        warnings.append(
            f"{len(skipped)} images of test are not used: without a held-out pair, but with one "
            "that train has only disputed, or not at all"
        )
    return splits, {
        "source": "divergence",
        "seed": seeding.seed,
        "test_seen_wanted": target,
        "excluded_images": {
            UNDIVIDED: sorted(side_of.index[side_of == "unused"]),
            PAIR_NOT_IN_TRAIN: sorted(skipped),
        },
        "warnings": warnings,
    }


def published_splits(path: str | Path, image_ids: Collection[str]) -> SplitsAndSummary:
    """Return the splits of a split.pkl, unchanged, and a summary with its faults."""
    content = read_split(path)
    splits, faults = take_splits(content, image_ids, str(path))
    return splits, {
        "source": "published",
        "keys_not_read": content.unread,
        "warnings": [],
        "violations": faults,
    }


def split_images(
    captions: CaptionBlocks,
    pairs: OccurrenceBlocks,
    ranking: pd.DataFrame,
    heldout: Collection[str],
    lexicons: Lexicons,
    rule: SplitRule,
    seeding: Seeding,
) -> SplitsAndSummary:
    """Return what ``make_splits`` returns, without logging it, since ``choose_draw`` tries many
    draws, whose warnings would mislead.
    """
    # The images of a published split are not moved, so nothing is searched.
    reader = None
    if not rule.published and rule.contested is None:
        adjectives, nouns = lexicons.forms()
        reader = reader_of(heldout, adjectives, nouns, lexicons.compounds)
    images = read_images(captions, pairs, ranking, heldout, reader)
    # Never with a published split, for which the rule has no such files.
    if rule.contested is not None:
        images = images._replace(contested=list(rule.contested))
    if rule.published:
        splits, summary = published_splits(rule.published, images.image_ids)
    else:
        occurring = images.image_pairs["pair"].cat.categories.tolist()
        # A name that occurs nowhere is probably misspelt; a published one is not the user's.
        require_occurring(heldout, occurring, lexicons.adjectives, lexicons.nouns)
        splits, summary = _uncontested_splits(images, heldout, rule, seeding)
    sizes = {name: int((splits["split"] == name).sum()) for name in SPLITS}
    summary["warnings"] += _shortages(sizes["test_seen"], summary)
    # Only a division excludes images itself.
    by_reason = summary.pop("excluded_images", {})
    by_reason[CONTESTED] = [record["image_id"] for record in images.contested]
    by_reason = {reason: image_ids for reason, image_ids in by_reason.items() if image_ids}
    result = {"images": len(splits), "sizes": sizes, **summary}
    result["excluded"] = {reason: len(image_ids) for reason, image_ids in by_reason.items()}
    result["excluded_images"] = by_reason
    result["contested_captions"] = images.contested
    return splits, result


def _uncontested_splits(
    images: ReadImages, heldout: Collection[str], rule: SplitRule, seeding: Seeding
) -> SplitsAndSummary:
    """Return the drawn or divided splits, without contested images."""
    contested_ids = [record["image_id"] for record in images.contested]
    if rule.division is None:
        image_ids = set(images.image_ids).difference(contested_ids)
        return drawn_splits(image_ids, images.image_pairs, heldout, rule.test_seen, seeding)
    # Contested images are in no split, whatever their side.
    division = rule.division[~rule.division["image_id"].isin(contested_ids)]
    return divided_splits(division, images.image_pairs, heldout, rule.test_seen, seeding)


def _shortages(seen: int, summary: dict[str, Any]) -> list[str]:
    """Return a warning if test_seen has fewer images than wanted."""
    target = summary.get("test_seen_wanted", 0)
    if seen >= target:
        return []
    return [f"test_seen has {seen} images, not {target}: the rest hold pairs that train needs"]


@checked
def make_splits(  # noqa: PLR0913
    captions: CaptionBlocks,
    pairs: OccurrenceBlocks,
    ranking: RankedPairs,
    heldout: PairNames,
    adjectives: Lexicon | str,
    nouns: Lexicon | str | None = None,
    compounds: Lexicon | None = None,
    *,
    test_seen: Literal["auto"] | Positive = "auto",
    published: str | Path | None = None,
    division: Division | None = None,
    contested: list[dict[str, Any]] | None = None,
    seed: Whole = 0,
    dataset: str = "dataset",
    composition: str = "composition",
) -> SplitsAndSummary:
    """Divide images into train, test_seen and test_unseen.

    Args:
        captions: all, as ``extract_pairs`` takes them, or in blocks (``tables.in_blocks``).
        pairs, ranking: as in ``tables``: all occurrences, likewise, and the pairs that count.
        heldout: the held-out pairs.
        adjectives, nouns: lexicons or their names in ``lexicons``; nouns None: only the held-out
            ones are known.
        compounds: None: ``lexicons/compounds/common.yaml``.
        test_seen: number of images; auto: as many as test_unseen, at most 12 % of the images used.
        published: use the images of this split.pkl.
        division: use the sides that ``divide_images`` returns.
        contested: what ``find_contested`` returns, if it is known.
        dataset, composition: names from which random numbers derive, and for messages.

    Returns:
        image_id and split, sorted, and the content of splits.json.

    Raises:
        UserError: a drawn train would keep less than 20 % of the images, or a test split would be
            empty; an image of pairs or division is not among captions, or an argument is refused
            (docs/library.md).
    """
    require_joined(captions, "captions", pairs=pairs, division=division)
    lexicons = Lexicons(adjectives, nouns, compounds)
    rule = SplitRule(test_seen, published, division, contested)
    seeding = Seeding(seed, dataset, composition)
    splits, summary = split_images(captions, pairs, ranking, heldout, lexicons, rule, seeding)
    for warning in summary["warnings"]:
        log.warning("warning: %s: %s", seeding.location, warning)
    sizes = ", ".join(f"{name} {size}" for name, size in summary["sizes"].items())
    log.info("%s: images: %s", seeding.location, sizes)
    # The audit warns if they are many.
    for reason, count in summary["excluded"].items():
        log.info("%s: %d images are in no split: %s", seeding.location, count, reason)
    return splits, summary
