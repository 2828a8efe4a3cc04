"""Divide the images: test_unseen holds a held-out pair, test_seen is drawn from the rest, train is what is left.

Or take the division that was published, whatever it holds; the audit says what is wrong with it. Or the division by
divergence: of its test, test_unseen holds a held-out pair; test_seen is the rest, and as much of train as it needs.

An image goes with all its captions. Every occurrence counts, shared and disputed ones too: the union of what
surface and parse find is what holds out.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pandas as pd

from workflow_scripts.core import cli
from workflow_scripts.core.cli import log
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.heldout import pair_names, read_heldout
from workflow_scripts.core.io import atomic, read_table, write_json, write_table
from workflow_scripts.core.published import PublishedSplit, read_split
from workflow_scripts.core.seeds import rng
from workflow_scripts.core.tables import CAPTIONS, DIVISION, PAIRS, RANKING, SPLIT, SPLITS
from workflow_scripts.split.published import take_splits

# Of 100 images, test_seen has at most these (as published); train should keep two fifths and must keep one.
MOST_SEEN_PERCENT = 12
LITTLE_TRAIN, LEAST_TRAIN = 0.40, 0.20


def seen_target(unseen: int, images: int, wanted: str | int) -> int:
    """How many images test_seen should have; ``wanted`` is ``auto`` or a number."""
    if wanted != "auto":
        return int(wanted)
    return min(unseen, images * MOST_SEEN_PERCENT // 100)


def draw_seen(order: list[str], occurrences: pd.DataFrame, target: int) -> tuple[list[str], list[str]]:
    """The first ``target`` images of ``order`` whose every pair also occurs in another image that stays.

    occurrences: columns image_id, pair, disputed (bool). A disputed occurrence must be covered but covers nothing,
    since it may be no pair at all. Returns ``(drawn, passed over)``; the latter stay in train.
    """
    needs = occurrences.groupby("image_id")["pair"].agg(set).to_dict()
    certain = occurrences[~occurrences["disputed"]].groupby("image_id")["pair"].agg(set).to_dict()
    # In how many images that are not drawn (so far) each pair occurs.
    left: dict[str, int] = {}
    for image in order:
        for pair in certain.get(image, ()):
            left[pair] = left.get(pair, 0) + 1
    drawn: list[str] = []
    passed: list[str] = []
    for image in order:
        if len(drawn) == target:
            break
        own = certain.get(image, set())
        if all(left.get(pair, 0) > (pair in own) for pair in needs.get(image, ())):
            drawn.append(image)
            for pair in own:
                left[pair] -= 1
        else:
            passed.append(image)
    return drawn, passed


def make_splits(
    image_ids: Collection[str],
    pairs: pd.DataFrame,
    ranking: pd.DataFrame,
    heldout: Collection[str],
    wanted: str | int,
    seed: int,
    dataset: str,
    composition: str,
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """``(splits, summary)``: columns of ``tables.SPLIT``, sorted by image_id, and counts for people.

    pairs, ranking: columns of ``tables.PAIRS`` and ``tables.RANKING``. ``wanted``: images of test_seen, or
    ``auto``. Every pair of ranked words in test_seen is also in train: an image of the draw that alone holds
    a pair goes to train (``moved_to_train``) and the next one of the seeded order takes its place.
    Raises UserError where train keeps under a fifth of the images or a test split would be empty.
    """
    where = f"{dataset}/{composition}"
    images = sorted(set(image_ids))
    occurrences = of_ranked_words(pairs, ranking)
    held = holders(pairs, heldout)
    unseen = set(held["image_id"]) & set(images)
    if not unseen:
        raise UserError(f"{where}: no image holds a held-out pair: make heldout.json again from these captions")

    rest = [image for image in images if image not in unseen]
    order = [rest[i] for i in rng(seed, "make_splits", dataset, composition).permutation(len(rest))]
    target = seen_target(len(unseen), len(images), wanted)
    drawn, passed = draw_seen(order, occurrences[~occurrences["image_id"].isin(unseen)], target)
    seen = set(drawn)

    split = ["test_unseen" if i in unseen else "test_seen" if i in seen else "train" for i in images]
    splits = pd.DataFrame({"image_id": images, "split": split})
    summary = sizes_of(splits) | {
        "seed": seed,
        "test_seen_wanted": target,
        "moved_to_train": sorted(passed),
        "heldout": costs(held),
        "warnings": [],
    }
    share = summary["sizes"]["train"] / len(images)
    dearest = ", ".join(f"{row['pair']} ({row['images']})" for row in summary["heldout"][:5])
    if share < LEAST_TRAIN:
        raise UserError(
            f"{where}: train keeps {share:.1%} of the images, under {LEAST_TRAIN:.0%}; the dearest held-out pairs, by "
            f"images: {dearest}: lower split.heldout.fraction or split.test_seen, or move split.heldout.window up"
        )
    if not seen:
        raise UserError(
            f"{where}: {len(images)} images are too few for a test_seen: add captions, or set split.test_seen"
        )
    if share < LITTLE_TRAIN:
        summary["warnings"].append(
            f"train keeps {share:.1%} of the images, under {LITTLE_TRAIN:.0%}; the dearest held-out pairs, by images: "
            f"{dearest}"
        )
    if len(seen) < target:
        summary["warnings"].append(
            f"test_seen has {len(seen)} images, not {target}: the rest hold pairs that train needs"
        )
    return splits, summary


def of_ranked_words(pairs: pd.DataFrame, ranking: pd.DataFrame) -> pd.DataFrame:
    """image_id, pair, disputed (bool): the occurrences of ranked adjectives with ranked nouns."""
    ranked = pairs[pairs["adjective"].isin(ranking["adjective"]) & pairs["noun"].isin(ranking["noun"])]
    return pd.DataFrame(
        {"image_id": ranked["image_id"], "pair": pair_names(ranked), "disputed": ranked["relation"] == "disputed"}
    )


def holders(pairs: pd.DataFrame, heldout: Collection[str]) -> pd.DataFrame:
    """image_id, pair: the images that hold a held-out pair in some caption, as far as pairs are found."""
    held = pd.DataFrame({"image_id": pairs["image_id"], "pair": pair_names(pairs)})
    return held[held["pair"].isin(list(heldout))].drop_duplicates()


def sizes_of(splits: pd.DataFrame) -> dict[str, Any]:
    sizes = {name: int((splits["split"] == name).sum()) for name in SPLITS}
    shares = {name: round(size / len(splits), 6) for name, size in sizes.items()}
    return {"images": len(splits), "sizes": sizes, "shares": shares}


def costs(held: pd.DataFrame) -> list[dict[str, Any]]:
    """What a pair costs: the images that it alone sends to test_unseen come back if it is not held out."""
    alone = held[~held["image_id"].duplicated(keep=False)]
    cost = pd.DataFrame({"images": held["pair"].value_counts(), "alone": alone["pair"].value_counts()})
    cost = cost.fillna(0).astype(int).rename_axis("pair").reset_index()
    return cost.sort_values(["images", "pair"], ascending=[False, True], ignore_index=True).to_dict("records")


def published_splits(
    published: PublishedSplit, image_ids: Collection[str], pairs: pd.DataFrame, heldout: Collection[str], where: str
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """As ``make_splits``, of a published split; where images hold a held-out pair is said, and not mended."""
    splits, wrong = take_splits(published, image_ids, where)
    held = holders(pairs, heldout)
    holding = splits.loc[splits["image_id"].isin(held["image_id"]), "split"].value_counts()
    return splits, sizes_of(splits) | {
        "source": "published",
        "keys_not_read": published.unread,
        "moved_to_train": [],
        "heldout": costs(held),
        "images_with_heldout_pair": {name: int(holding.get(name, 0)) for name in SPLITS},
        "warnings": [],
        "violations": wrong,
    }


def divided_splits(
    division: pd.DataFrame,
    pairs: pd.DataFrame,
    ranking: pd.DataFrame,
    heldout: Collection[str],
    wanted: str | int,
    seed: int,
    dataset: str,
    composition: str,
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """As ``make_splits``, of a division by divergence (columns of ``tables.DIVISION``).

    At a high divergence hardly an image of test is without a held-out pair: as far as test_seen has fewer images than
    wanted, it is drawn from train, as ``draw_seen`` does (``drawn_from_train``), which still has every pair then. Every
    pair of ranked words in test_seen is also in train, surely: an image of test that holds no held-out pair but one
    that train has only disputed, or not at all (it is disputed here, or too rare to be ranked), is in no split
    (``left_out``), as are the ``unused``. Raises UserError where a test split would be empty.
    """
    where = f"{dataset}/{composition}"
    side = division.set_index("image_id")["side"].sort_index()
    train, test = side.index[side == "train"], side.index[side == "test"]
    held = holders(pairs, heldout)
    unseen = test[test.isin(held["image_id"])]
    if train.isin(held["image_id"]).any() or unseen.empty:
        raise UserError(f"{where}: the held-out pairs are not those of the division: make heldout.json again")
    occurrences = of_ranked_words(pairs, ranking)
    known = occurrences.loc[occurrences["image_id"].isin(train) & ~occurrences["disputed"], "pair"]
    unknown = occurrences.loc[~occurrences["pair"].isin(known), "image_id"]
    seen = test[~test.isin(held["image_id"]) & ~test.isin(unknown)]
    left_out = test.difference(unseen).difference(seen)
    target = seen_target(len(unseen), len(train) + len(test), wanted)
    order = [train[i] for i in rng(seed, "make_splits", dataset, composition).permutation(len(train))]
    in_train = occurrences[occurrences["image_id"].isin(train)]
    drawn, _ = draw_seen(order, in_train, max(0, target - len(seen)))
    train, seen = train.difference(drawn), seen.union(drawn)
    if seen.empty:
        raise UserError(
            f"{where}: every one of the {len(test)} images of test holds a pair that train lacks, and train can spare "
            "none, so that test_seen is empty: lower split.divergence.compound, or set split.test_seen"
        )
    parts = {"train": train, "test_seen": seen, "test_unseen": unseen}
    splits = pd.concat([pd.DataFrame({"image_id": part, "split": name}) for name, part in parts.items()])
    splits = splits.astype("str").sort_values("image_id", ignore_index=True)
    warnings = []
    if len(left_out):
        warnings.append(
            f"{len(left_out)} images of test are not used: without a held-out pair, but with one that train has only "
            "disputed, or not at all"
        )
    if len(seen) < target:
        warnings.append(f"test_seen has {len(seen)} images, not {target}: the rest hold pairs that train needs")
    return splits, sizes_of(splits) | {
        "source": "divergence",
        "seed": seed,
        "test_seen_wanted": target,
        "drawn_from_train": sorted(drawn),
        "unused": sorted(side.index[side == "unused"]),
        "left_out": sorted(left_out),
        "moved_to_train": [],
        "heldout": costs(held[held["image_id"].isin(unseen)]),
        "warnings": warnings,
    }


def main(options: argparse.Namespace) -> None:
    captions = read_table(options.captions, CAPTIONS, columns=["image_id", "caption_id"])
    images, heldout = captions["image_id"].unique(), read_heldout(options.heldout)
    pairs = read_table(options.pairs, PAIRS, columns=["image_id", "adjective", "noun", "relation"])
    ranking = read_table(options.ranking, RANKING)
    given = pairs, ranking, heldout, options.test_seen, options.seed, options.dataset, options.composition
    if options.published:
        splits, summary = published_splits(
            read_split(options.published), images, pairs, heldout, str(options.published)
        )
    elif options.division:
        division = read_table(options.division, DIVISION)
        if set(division["image_id"]) != set(images):
            raise UserError(f"{options.division}: not of the images of {options.captions}: make it again")
        splits, summary = divided_splits(division, *given)
    else:
        splits, summary = make_splits(images, *given)
    sizes = captions["image_id"].map(splits.set_index("image_id")["split"]).value_counts()
    summary["captions"] = {name: int(sizes.get(name, 0)) for name in SPLITS}
    write_table(splits, options.output, SPLIT)
    with atomic(options.csv) as temporary:
        splits.to_csv(temporary, index=False, lineterminator="\n")
    write_json(summary, options.summary)
    for warning in summary["warnings"]:
        log.warning("warning: %s/%s: %s", options.dataset, options.composition, warning)
    told = f"{len(summary['moved_to_train'])} moved from test_seen to train, which needs their pairs"
    if options.division:
        told = f"{len(summary['unused']) + len(summary['left_out'])} not used"
    sizes = ", ".join(f"{name} {size}" for name, size in summary["sizes"].items())
    log.info("%s/%s: %s images; %s", options.dataset, options.composition, sizes, told)


def images_or_auto(text: str) -> str | int:
    return text if text == "auto" else int(text)


def arguments() -> argparse.ArgumentParser:
    result = cli.parser(__doc__)
    result.add_argument("--captions", type=Path, required=True)
    result.add_argument("--pairs", type=Path, required=True)
    result.add_argument("--ranking", type=Path, required=True)
    result.add_argument("--heldout", type=Path, required=True)
    result.add_argument("--published", type=Path, nargs="?", help="take the images of this split.pkl; no draw")
    result.add_argument("--division", type=Path, nargs="?", help="take the sides of this division.parquet; no draw")
    result.add_argument("--test-seen", type=images_or_auto, default="auto", help="images, or auto (the default)")
    result.add_argument("--seed", type=int, default=0)
    result.add_argument("--dataset", required=True)
    result.add_argument("--composition", required=True)
    result.add_argument("--output", type=Path, required=True, help="splits.parquet")
    result.add_argument("--csv", type=Path, required=True, help="the same as CSV")
    result.add_argument("--summary", type=Path, required=True, help="counts as JSON")
    return result


if __name__ == "__main__":
    cli.run(main, arguments())
