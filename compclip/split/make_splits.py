"""Divide the images, each with all its captions, into train, test_seen and test_unseen.

There are three ways. By default, test_unseen has the images with a held-out pair, also shared and
disputed ones, test_seen is drawn from the rest, and train is the remainder. A published division is
used unchanged, and the audit reports its faults. For a division by divergence, the test images with
a held-out pair are test_unseen, the others test_seen.

Images in which word order states a held-out pair that was not extracted are in no split, unless the
split is published.
"""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from pandas.api.types import union_categoricals

from compclip.core.errors import require
from compclip.core.heldout import pair_names, split_pair
from compclip.core.inputs import (
    CaptionBlocks,
    Division,
    OccurrenceBlocks,
    PairNames,
    Positive,
    RankedPairs,
    Whole,
    checked,
    require_joined,
)
from compclip.core.log import log
from compclip.core.published import read_split
from compclip.core.seeds import rng
from compclip.core.tables import SPLITS, in_blocks
from compclip.split.published import take_splits
from compclip.split.reading import Reader, reader_of, word_pairs
from compclip.text.lexicon import Lexicon, forms_of, require_occurring

# test_seen has at most this percentage of the images (as published); train should keep two fifths
# and must keep one.
MAX_SEEN_PERCENT = 12
LOW_TRAIN, MIN_TRAIN = 0.40, 0.20

NAMES = [
    "image_id",
    "pair",
]  # columns that are categorical, because strings would take ten times the memory

Result = tuple[pd.DataFrame, dict[str, Any]]


def seen_target(unseen: int, images: int, setting: str | int) -> int:
    """Return the target size of test_seen; ``setting`` is ``auto`` or a number."""
    return min(unseen, images * MAX_SEEN_PERCENT // 100) if setting == "auto" else int(setting)


def shuffled(images: Sequence[str], seed: int, dataset: str, composition: str) -> list[str]:
    """Return the images in a seeded order."""
    return [
        images[i] for i in rng(seed, "make_splits", dataset, composition).permutation(len(images))
    ]


def draw_seen(order: list[str], occurrences: pd.DataFrame, target: int) -> list[str]:
    """Return the first ``target`` images of ``order`` whose pairs all also occur in an image that
    is not drawn.

    ``occurrences`` has each pair of an image once. A disputed one, which may not be a pair, must be
    covered but does not cover others.
    """
    place = (
        pd.Index(order, dtype="str").get_indexer(pd.Index(occurrences["image_id"])).astype(np.int32)
    )
    rows = np.argsort(place, kind="stable")
    place, sure = place[rows], ~occurrences["disputed"].to_numpy(bool)[rows]
    pairs, names = pd.factorize(occurrences["pair"])
    pairs = pairs[rows].astype(np.int32)
    begins = np.searchsorted(place, np.arange(len(order) + 1))
    # The number of images not drawn so far in which each pair occurs.
    remaining = np.bincount(pairs[sure & (place >= 0)], minlength=len(names))
    drawn: list[str] = []
    for image, begin, end in zip(order, begins, begins[1:], strict=False):
        if len(drawn) == target:
            break
        own, counts = pairs[begin:end], sure[begin:end]
        if (remaining[own] > counts).all():
            drawn.append(image)
            remaining[own] -= counts
    return drawn


def pairs_of_images(
    pairs: pd.DataFrame, ranking: pd.DataFrame, heldout: Collection[str]
) -> pd.DataFrame:
    """Return image_id, pair, ranked and disputed of held-out pairs and of pairs of ranked words,
    once for each image.

    ``ranked``: both words are; ``disputed``: in all occurrences in the image.
    """
    ranked = pairs["adjective"].isin(ranking["adjective"]) & pairs["noun"].isin(ranking["noun"])
    table = pairs[["image_id"]].assign(
        pair=pair_names(pairs), ranked=ranked, disputed=pairs["relation"] == "disputed"
    )
    table = table[ranked | table["pair"].isin(list(heldout))]
    return table.groupby(["image_id", "pair", "ranked"], as_index=False)["disputed"].all()


def holders(pairs: pd.DataFrame, heldout: Collection[str]) -> pd.DataFrame:
    """Return image_id and pair of the images with a held-out pair in any caption."""
    return pairs.loc[pairs["pair"].isin(list(heldout)), ["image_id", "pair"]].astype("str")


def contested_captions(
    captions: pd.DataFrame, pairs: pd.DataFrame, heldout: Collection[str], reader: Reader
) -> list[dict[str, Any]]:
    """Return the captions in which word order states a held-out pair, of images in which none was
    extracted.

    Whichever reading is right, these images must not train and need not be tested. Each image is
    listed at most once.
    """
    with_pair, held = (
        pairs.loc[pair_names(pairs).isin(list(heldout)), "image_id"],
        set(map(split_pair, heldout)),
    )
    rest = captions[~captions["image_id"].isin(with_pair)].sort_values(["image_id", "caption_id"])
    stating = {
        text: sorted(word_pairs(reader.pairs(text)[1]) & held) for text in rest["text"].unique()
    }
    rest = rest[rest["text"].map(stating).astype(bool)].drop_duplicates("image_id")
    return [
        {
            "image_id": image,
            "caption_id": int(number),
            "pair": "_".join(stating[text][0]),
            "text": text,
        }
        for image, number, text in rest[["image_id", "caption_id", "text"]].itertuples(index=False)
    ]


def drawn_splits(
    image_ids: Collection[str],
    pairs: pd.DataFrame,
    heldout: Collection[str],
    test_seen: str | int,
    seed: int,
    dataset: str,
    composition: str,
) -> Result:
    """Return the splits, sorted by image_id, and a summary.

    Every pair of ranked words in test_seen is also in train: an image that is the only one with a
    pair stays in train, and the next image of the seeded order replaces it. ``pairs``: as
    ``pairs_of_images`` returns them.
    """
    where = f"{dataset}/{composition}"
    images = sorted(set(image_ids))
    occurrences = pairs[pairs["ranked"]]
    held = holders(pairs, heldout)
    unseen = set(held["image_id"]) & set(images)
    require(
        unseen, where, "no image has a held-out pair", "rerun sample_heldout with these captions"
    )
    order = shuffled([image for image in images if image not in unseen], seed, dataset, composition)
    target = seen_target(len(unseen), len(images), test_seen)
    seen = set(draw_seen(order, occurrences[~occurrences["image_id"].isin(unseen)], target))
    split = [
        "test_unseen" if i in unseen else "test_seen" if i in seen else "train" for i in images
    ]
    fraction = split.count("train") / len(images)
    costly = ", ".join(
        f"{pair} ({count})" for pair, count in held["pair"].value_counts().head(5).items()
    )
    kept = f"train keeps {fraction:.1%} of the images"
    fault = (
        f"{kept}, less than {MIN_TRAIN:.0%} (the most costly held-out pairs, by images: {costly})"
    )
    remedy = (
        "lower split.heldout.fraction, pairs.selection.min_count or split.test_seen, move "
        "split.heldout.window up"
    )
    require(fraction >= MIN_TRAIN, where, fault, remedy)
    require(
        seen,
        where,
        f"{len(images)} images are too few for test_seen",
        "add captions or set split.test_seen",
    )
    low = f"{kept}, under {LOW_TRAIN:.0%}; the most costly held-out pairs, by images: {costly}"
    summary = {
        "seed": seed,
        "test_seen_wanted": target,
        "warnings": [low] if fraction < LOW_TRAIN else [],
    }
    return pd.DataFrame({"image_id": images, "split": split}), summary


def divided_splits(
    division: pd.DataFrame,
    pairs: pd.DataFrame,
    heldout: Collection[str],
    test_seen: str | int,
    seed: int,
    dataset: str,
    composition: str,
) -> Result:
    """Return the splits of a division by divergence, sorted by image_id, and a summary.

    At a high divergence almost every test image has a held-out pair: if test_seen is too small,
    more images are drawn from train by ``draw_seen``, which keeps every pair in train. Every pair
    of ranked words in test_seen is undisputed in train: a test image without a held-out pair, but
    with a pair that train has only disputed or not at all (it is disputed here, or too rare to be
    ranked), is in no split (``left_out``), like the images in ``unused``.
    """
    where = f"{dataset}/{composition}"
    side = division.set_index("image_id")["side"].sort_index()
    train, test = side.index[side == "train"], side.index[side == "test"]
    held = holders(pairs, heldout)
    unseen = test[test.isin(held["image_id"])]
    occurrences = pairs[pairs["ranked"]]
    known = occurrences.loc[
        occurrences["image_id"].isin(train) & ~occurrences["disputed"], "pair"
    ].unique()
    unknown = occurrences.loc[~occurrences["pair"].isin(known), "image_id"]
    seen = test[~test.isin(held["image_id"]) & ~test.isin(unknown)]
    skipped = test.difference(unseen).difference(seen)
    target = seen_target(len(unseen), len(train) + len(test), test_seen)
    in_train = occurrences[occurrences["image_id"].isin(train)]
    drawn = draw_seen(
        shuffled(train, seed, dataset, composition), in_train, max(0, target - len(seen))
    )
    train, seen = train.difference(drawn), seen.union(drawn)
    fault = (
        f"test_seen would be empty, since train lacks a pair of each of the {len(test)} "
        "images of test"
    )
    require(len(seen), where, fault, "lower split.divergence.compound or set split.test_seen")
    images_of = {"train": train, "test_seen": seen, "test_unseen": unseen}
    splits = pd.concat(
        [pd.DataFrame({"image_id": images, "split": name}) for name, images in images_of.items()]
    )
    splits = splits.astype("str").sort_values("image_id", ignore_index=True)
    unused = (
        f"{len(skipped)} images of test are not used: without a held-out pair, but with one that "
        "train has only "
        "disputed, or not at all"
    )
    return splits, {
        "source": "divergence",
        "seed": seed,
        "test_seen_wanted": target,
        "unused": sorted(side.index[side == "unused"]),
        "left_out": sorted(skipped),
        "warnings": [unused] if len(skipped) else [],
    }


@checked
def make_splits(
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
    quiet: bool = False,
) -> Result:
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
        contested: what ``contested_captions`` returns, if it is known.
        dataset, composition: names for the random stream and for messages.
        quiet: log nothing; warnings are in the content of splits.json.

    Returns:
        image_id and split, sorted, and the content of splits.json.

    Raises:
        UserError: train would keep less than 20 % of the images, or a test split would be empty; an
            image of pairs or division is not among captions, or an argument is refused
            (docs/library.md).
    """
    require_joined(captions, "captions", pairs=pairs, division=division)
    where, images, of_images = f"{dataset}/{composition}", list[str](), list[pd.DataFrame]()
    reader = reader_of(heldout, *forms_of(adjectives, nouns), compounds)
    found = list(contested or ())
    for texts, occurrences in in_blocks(captions, pairs):
        images += texts["image_id"].unique().tolist()
        of_images.append(
            pairs_of_images(occurrences, ranking, heldout).astype(dict.fromkeys(NAMES, "category"))
        )
        if not published and contested is None:
            found += contested_captions(texts, occurrences, heldout, reader)
    # concat would make objects of different categories
    joined = {name: union_categoricals([of[name] for of in of_images]) for name in NAMES}
    known = pd.concat([of.drop(columns=NAMES) for of in of_images], ignore_index=True).assign(
        **joined
    )
    if not published:
        require_occurring(heldout, [*joined["pair"].categories], adjectives, nouns)
    common = known, heldout, test_seen, seed, dataset, composition
    in_no_split = [record["image_id"] for record in found]
    if published:
        file = read_split(published)
        splits, faults = take_splits(file, images, str(published))
        summary: dict[str, Any] = {
            "source": "published",
            "keys_not_read": file.unread,
            "warnings": [],
            "violations": faults,
        }
    elif division is not None:
        splits, summary = divided_splits(division[~division["image_id"].isin(in_no_split)], *common)
    else:
        splits, summary = drawn_splits(set(images).difference(in_no_split), *common)
    sizes = {name: int((splits["split"] == name).sum()) for name in SPLITS}
    seen, target = sizes["test_seen"], summary.get("test_seen_wanted", 0)
    if seen < target:
        summary["warnings"].append(
            f"test_seen has {seen} images, not {target}: the rest hold pairs that train needs"
        )
    if found:
        first = found[0]
        summary["warnings"].append(
            f"{len(found)} images are in no split: their word order states a held-out pair and "
            "the parse does not"
            f" (first: {first['image_id']}, {first['pair']} in {first['text']!r}); if they are "
            "many, use a noun lexicon"
        )
    if not quiet:
        for warning in summary["warnings"]:
            log.warning("warning: %s: %s", where, warning)
        log.info(
            "%s: images: %s", where, ", ".join(f"{name} {size}" for name, size in sizes.items())
        )
    return splits, {"images": len(splits), "sizes": sizes, **summary, "contested": found}
