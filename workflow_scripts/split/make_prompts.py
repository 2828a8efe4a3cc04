"""List the images that every generator is asked to make: a caption, and the file that its image goes to.

prompts.jsonl is for people who bring a model of their own: for each line, draw ``text`` and put the image at
``file_name`` below a folder, which the generator kind ``folder`` reads.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from workflow_scripts.core import cli
from workflow_scripts.core.cli import log
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.heldout import pair_names, read_heldout
from workflow_scripts.core.io import json_lines, read_table, safe_id, write_json, write_table, write_text
from workflow_scripts.core.seeds import rng
from workflow_scripts.core.tables import CAPTIONS, IMAGES, PAIRS, PROMPTS, RANKING, SPLIT, SWAPPED, TESTS
from workflow_scripts.split.judged import judged_images

KEY = ["image_id", "caption_id"]


def first_pairs(pairs: pd.DataFrame, wanted: Collection[str]) -> pd.DataFrame:
    """The first wanted pair of each caption that holds one: columns image_id, caption_id, pair.

    A disputed occurrence is likely no pair at all, so nobody is asked to draw it.
    """
    said = pairs[pairs["relation"] != "disputed"]
    said = said.assign(pair=pair_names(said))
    said = said[said["pair"].isin(list(wanted))]
    said = said.sort_values([*KEY, "adjective_start", "noun_start", "pair"])
    return said.drop_duplicates(KEY)[[*KEY, "pair"]]


def sample_per_image(
    prompts: pd.DataFrame, most: int | None, seed: int, dataset: str, composition: str
) -> pd.DataFrame:
    """At most ``most`` captions an image and split (None: all), drawn by seed.

    test_seen takes the captions that test_swapped took first, so that the two are paired caption by caption.
    """
    if most is None:
        return prompts
    parts = []
    taken = pd.MultiIndex.from_arrays([[], []], names=KEY)
    for split in ("test_swapped", "test_seen", "test_unseen"):
        part = prompts[prompts["split"] == split].sort_values(KEY)
        order = rng(seed, "make_prompts", dataset, composition, split).permutation(len(part))
        here = pd.MultiIndex.from_frame(part[KEY])
        part = part.assign(order=order, later=~here.isin(taken) if split == "test_seen" else False)
        part = part.sort_values(["image_id", "later", "order"]).groupby("image_id", sort=False).head(most)
        if split == "test_swapped":
            taken = pd.MultiIndex.from_frame(part[KEY])
        parts.append(part[prompts.columns])
    return pd.concat(parts)


def make_prompts(
    captions: pd.DataFrame,
    pairs: pd.DataFrame,
    ranking: pd.DataFrame,
    heldout: Collection[str],
    swapped: pd.DataFrame,
    judged: pd.DataFrame,
    *,
    every_caption: bool,
    draws: int,
    per_image: int | None,
    seed: int,
    dataset: str,
    composition: str,
) -> pd.DataFrame:
    """Columns of ``tables.PROMPTS``, sorted by split (seen, unseen, swapped), image, caption and draw.

    captions, pairs, ranking, swapped: columns of the tables of those names. judged: image_id, split of the images
    that may be prompted for. every_caption: the published choice, all captions of the test images instead
    of those with a pair (ranked in test_seen, held out in test_unseen).
    """
    split_of = judged.set_index("image_id")["split"]
    captions = captions[captions["image_id"].isin(split_of.index)]
    captions = captions.assign(split=captions["image_id"].map(split_of))[[*KEY, "split", "text"]]
    pairs = pairs[pairs["image_id"].isin(split_of.index)]

    unseen = captions[captions["split"] == "test_unseen"]
    unseen = unseen.merge(first_pairs(pairs, heldout), on=KEY, how="left" if every_caption else "inner")
    seen = captions[captions["split"] == "test_seen"]
    if not every_caption:
        seen = seen.merge(first_pairs(pairs, pair_names(ranking).tolist())[KEY], on=KEY)
    swaps = swapped[swapped["image_id"].isin(split_of.index)][[*KEY, "swapped_text", "pair"]]
    swaps = swaps.rename(columns={"swapped_text": "text"}).assign(split="test_swapped")
    prompts = pd.concat([seen.assign(pair=None), unseen, swaps], ignore_index=True)[[*KEY, "split", "text", "pair"]]
    prompts["pair"] = prompts["pair"].astype("str")

    prompts = sample_per_image(prompts, per_image, seed, dataset, composition)
    prompts = prompts.loc[prompts.index.repeat(draws)].assign(draw=np.tile(np.arange(draws), len(prompts)))
    numbers = prompts["caption_id"].astype("str")
    if draws > 1:
        numbers = numbers + "_" + prompts["draw"].astype("str")
    # One folder holds the images of all splits.
    prompts["file_name"] = prompts["split"] + "/" + prompts["image_id"] + "/" + numbers + ".png"
    place = prompts["split"].map({split: place for place, split in enumerate(TESTS)})
    prompts = prompts.assign(place=place).sort_values(["place", *KEY, "draw"], ignore_index=True)
    return prompts[list(PROMPTS.columns)]


def counts_of(prompts: pd.DataFrame, judged: pd.DataFrame, splits: pd.DataFrame) -> dict[str, Any]:
    """For each test split: prompts, captions, images, and the test images without a prompt and why."""
    tested = splits["split"].value_counts()
    may = judged["split"].value_counts()
    result = {}
    for split in TESTS:
        part = prompts[prompts["split"] == split]
        origin = "test_seen" if split == "test_swapped" else split
        images = part["image_id"].nunique()
        result[split] = {
            "prompts": len(part),
            "captions": len(part[KEY].drop_duplicates()),
            "images": images,
            "images_in_split": int(tested.get(origin, 0)),
            "images_not_judged": int(tested.get(origin, 0) - may.get(origin, 0)),
            "images_without_prompt": int(may.get(origin, 0) - images),
        }
    return result


def main(options: argparse.Namespace) -> None:
    splits = read_table(options.splits, SPLIT)
    images = read_table(options.images, IMAGES)
    judged = judged_images(splits, images, options.train_on, options.seed)
    for image in judged["image_id"]:
        safe_id(image)
    prompts = make_prompts(
        read_table(options.captions, CAPTIONS),
        read_table(options.pairs, PAIRS),
        read_table(options.ranking, RANKING),
        read_heldout(options.heldout),
        read_table(options.swapped, SWAPPED),
        judged,
        every_caption=options.prompts == "all",
        draws=options.draws,
        per_image=options.per_image or None,
        seed=options.seed,
        dataset=options.dataset,
        composition=options.composition,
    )
    where = f"{options.dataset}/{options.composition}"
    if prompts.empty:
        raise UserError(f"{where}: no caption of the test images is a prompt: hold out more pairs or add captions")
    counts = counts_of(prompts, judged, splits)
    write_table(prompts, options.output, PROMPTS)
    write_text(json_lines(prompts), options.jsonl)
    write_json(
        {"prompts": options.prompts, "draws": options.draws, "train_on": options.train_on, "splits": counts},
        options.summary,
    )
    for split, count in counts.items():
        log.info("%s: %s: %d prompts, %d images", where, split, count["prompts"], count["images"])
        if not count["prompts"]:
            log.warning("warning: %s: %s has no prompt", where, split)


def arguments() -> argparse.ArgumentParser:
    result = cli.parser(__doc__)
    for name in ("captions", "images", "pairs", "ranking", "heldout", "splits", "swapped"):
        result.add_argument(f"--{name}", type=Path, required=True)
    result.add_argument("--prompts", choices=("pairs", "all"), default="pairs", help="captions with a pair, or all")
    result.add_argument("--draws", type=int, default=1, help="images for each caption (default: %(default)s)")
    result.add_argument(
        "--per-image", type=int, default=0, help="at most this many captions an image and split; 0: all"
    )
    result.add_argument("--train-on", choices=("train", "half", "all"), default="train", help="as for the judge")
    result.add_argument("--seed", type=int, default=0)
    result.add_argument("--dataset", required=True)
    result.add_argument("--composition", required=True)
    result.add_argument("--output", type=Path, required=True, help="prompts.parquet")
    result.add_argument("--jsonl", type=Path, required=True, help="the same as JSON lines")
    result.add_argument("--summary", type=Path, required=True, help="counts as JSON")
    return result


if __name__ == "__main__":
    cli.run(main, arguments())
