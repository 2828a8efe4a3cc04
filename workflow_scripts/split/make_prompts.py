"""List the images that every generator is asked to make: a caption, and the file that its image goes to."""

from collections.abc import Collection
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
from workflow_scripts.split.pools import bounded, least_distractors
from workflow_scripts.split.steps import MakePrompts

CAPTION_KEY = ["image_id", "caption_id"]


def first_pairs(pairs: pd.DataFrame, wanted: Collection[str]) -> pd.DataFrame:
    """Return image_id, caption_id and pair: the first wanted pair of each caption that has one.

    A disputed occurrence is likely no pair at all, so it is not prompted for.
    """
    rows = pairs[(pairs["relation"] != "disputed") & pair_names(pairs).isin(list(wanted))]
    rows = rows.assign(pair=pair_names(rows))
    rows = rows.sort_values([*CAPTION_KEY, "adjective_start", "noun_start", "pair"])
    return rows.drop_duplicates(CAPTION_KEY)[[*CAPTION_KEY, "pair"]]


def seen_pairs(
    pairs: pd.DataFrame, ranked: Collection[str], swapped: pd.DataFrame, generator: np.random.Generator
) -> pd.DataFrame:
    """Return image_id, caption_id and pair: a ranked pair of each caption that has one.

    Of a caption that was swapped it is the pair that was changed, so that both prompts test the same noun; else it is
    drawn, from adjectives that several nouns share only if there is no other.
    """
    rows = pairs[pairs["relation"] != "disputed"]
    rows = rows.assign(pair=pair_names(rows), shared=rows["relation"] == "shared")
    rows = rows[rows["pair"].isin(list(ranked))].sort_values([*CAPTION_KEY, "adjective_start", "noun_start", "pair"])
    originals = {
        (row.image_id, int(row.caption_id), f"{change['original_adj']}_{change['noun']}")
        for row in swapped.itertuples(index=False)
        for change in row.changes
        if f"{change['new_adj']}_{change['noun']}" == row.pair
    }
    was_changed = pd.MultiIndex.from_frame(rows[[*CAPTION_KEY, "pair"]]).isin(list(originals))
    rows = rows.assign(unchanged=~was_changed, order=generator.permutation(len(rows)))
    rows = rows.sort_values([*CAPTION_KEY, "unchanged", "shared", "order"])
    return rows.drop_duplicates(CAPTION_KEY)[[*CAPTION_KEY, "pair"]]


def sample_per_image(
    prompts: pd.DataFrame, most: int | None, seed: int, dataset: str, composition: str
) -> pd.DataFrame:
    """Return at most ``most`` captions per image and split (None: all), drawn by seed.

    test_seen prefers the captions that test_swapped took, so that the two are paired caption by caption.
    """
    if most is None:
        return prompts
    samples = []
    swapped = pd.MultiIndex.from_arrays([[], []], names=CAPTION_KEY)
    for split in ("test_swapped", "test_seen", "test_unseen"):
        rows = prompts[prompts["split"] == split].sort_values(CAPTION_KEY)
        order = rng(seed, "make_prompts", dataset, composition, split).permutation(len(rows))
        unpaired = ~pd.MultiIndex.from_frame(rows[CAPTION_KEY]).isin(swapped) if split == "test_seen" else False
        rows = rows.assign(order=order, unpaired=unpaired).sort_values(["image_id", "unpaired", "order"])
        rows = rows.groupby("image_id", sort=False).head(most)
        if split == "test_swapped":
            swapped = pd.MultiIndex.from_frame(rows[CAPTION_KEY])
        samples.append(rows[prompts.columns])
    return pd.concat(samples)


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
    """Return the prompts, sorted by split (seen, unseen, swapped), image, caption and draw.

    Args:
        judged: image_id and split of the images that may be prompted for.
        every_caption: the published choice: all captions of the test images instead of those with a pair (ranked in
            test_seen, held out in test_unseen).
        per_image: most captions per image and split; None for all.
    """
    split_of = judged.set_index("image_id")["split"]
    captions = captions[captions["image_id"].isin(split_of.index)]
    captions = captions.assign(split=captions["image_id"].map(split_of))[[*CAPTION_KEY, "split", "text"]]
    pairs = pairs[pairs["image_id"].isin(split_of.index)]

    unseen = captions[captions["split"] == "test_unseen"]
    unseen = unseen.merge(first_pairs(pairs, heldout), on=CAPTION_KEY, how="left" if every_caption else "inner")
    seen = captions[captions["split"] == "test_seen"]
    stream = rng(seed, "make_prompts", dataset, composition, "pair")
    targets = seen_pairs(pairs[pairs["image_id"].isin(seen["image_id"])], pair_names(ranking), swapped, stream)
    seen = seen.merge(targets, on=CAPTION_KEY, how="left" if every_caption else "inner")
    swaps = swapped[swapped["image_id"].isin(split_of.index)][[*CAPTION_KEY, "swapped_text", "pair"]]
    swaps = swaps.rename(columns={"swapped_text": "text"}).assign(split="test_swapped")
    prompts = pd.concat([seen, unseen, swaps], ignore_index=True)
    prompts = prompts[[*CAPTION_KEY, "split", "text", "pair"]]
    prompts["pair"] = prompts["pair"].astype("str")

    prompts = sample_per_image(prompts, per_image, seed, dataset, composition)
    prompts = prompts.loc[prompts.index.repeat(draws)].assign(draw=np.tile(np.arange(draws), len(prompts)))
    numbers = prompts["caption_id"].astype("str")
    numbers = numbers + "_" + prompts["draw"].astype("str") if draws > 1 else numbers
    # One folder holds the images of all data sets, compositions and splits.
    place = f"{dataset}/{composition}/" + prompts["split"]
    prompts["file_name"] = place + "/" + prompts["image_id"] + "/" + numbers + ".png"
    place = prompts["split"].map({split: place for place, split in enumerate(TESTS)})
    prompts = prompts.assign(place=place).sort_values(["place", *CAPTION_KEY, "draw"], ignore_index=True)
    return prompts[list(PROMPTS.columns)]


def counts_of(prompts: pd.DataFrame, judged: pd.DataFrame, splits: pd.DataFrame) -> dict[str, Any]:
    """Return, for each test split, the prompts, captions and images, and the test images without a prompt and why."""
    in_split = splits["split"].value_counts()
    allowed = judged["split"].value_counts()
    result = {}
    for split in TESTS:
        rows = prompts[prompts["split"] == split]
        origin = "test_seen" if split == "test_swapped" else split
        images = rows["image_id"].nunique()
        result[split] = {
            "prompts": len(rows),
            "captions": len(rows[CAPTION_KEY].drop_duplicates()),
            "images": images,
            "images_in_split": int(in_split.get(origin, 0)),
            "images_not_judged": int(in_split.get(origin, 0) - allowed.get(origin, 0)),
            "images_without_prompt": int(allowed.get(origin, 0) - images),
        }
    return result


def main(step: MakePrompts) -> None:
    splits, images = read_table(step.splits, SPLIT), read_table(step.images, IMAGES)
    judged = judged_images(splits, images, step.train_on, step.halves)
    captions = read_table(step.captions, CAPTIONS, images=judged["image_id"])
    swapped = read_table(step.swapped, SWAPPED)
    for image in judged["image_id"]:
        safe_id(image)
    prompts = make_prompts(
        captions,
        read_table(step.pairs, PAIRS, images=judged["image_id"]),
        read_table(step.ranking, RANKING),
        read_heldout(step.heldout),
        swapped,
        judged,
        every_caption=step.prompt_rule == "all",
        draws=step.draws,
        per_image=step.per_image,
        seed=step.seed,
        dataset=step.dataset,
        composition=step.composition,
    )
    if prompts.empty:
        raise UserError(
            f"{step.where}: no caption of the test images can be prompted; hold out more pairs or add captions"
        )
    counts = counts_of(prompts, judged, splits)
    distractors = least_distractors(captions, judged, swapped, prompts)
    if images["path"].notna().any():  # otherwise nothing is scored
        bounded(step.candidates, distractors, step.where)
    write_table(prompts, step.prompts, PROMPTS)
    write_text(json_lines(prompts), step.jsonl)
    settings = {"prompts": step.prompt_rule, "draws": step.draws, "train_on": step.train_on}
    write_json({**settings, "distractors_at_least": distractors, "splits": counts}, step.summary)
    for split, count in counts.items():
        log.info("%s: %s: %d prompts, %d images", step.where, split, count["prompts"], count["images"])
        if not count["prompts"]:
            log.warning("warning: %s: no prompt in %s", step.where, split)


if __name__ == "__main__":
    cli.run(main)
