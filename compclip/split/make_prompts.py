"""List the images that every generator is asked to make: a caption, and the file that its image goes to."""

from collections.abc import Collection
from typing import Any

import numpy as np
import pandas as pd

from compclip.core import cli
from compclip.core.errors import UserError
from compclip.core.heldout import pair_names
from compclip.core.log import log
from compclip.core.seeds import rng
from compclip.core.tables import CAPTIONS, IMAGES, PAIRS, PROMPTS, RANKING, SPLIT, SWAPPED, TESTS
from compclip.io import json_lines, read_json, read_table, safe_id, write_json, write_table, write_text
from compclip.split.judged import judged_images
from compclip.split.pools import bounded, least_distractors
from compclip.split.steps import MakePrompts
from compclip.split.widths import estimate_all, points

CAPTION_KEY = ["image_id", "caption_id"]


def plain_pairs(pairs: pd.DataFrame, wanted: Collection[str]) -> pd.DataFrame:
    """Return image_id, caption_id, pair and shared of the wanted occurrences, in the order of the texts.

    A disputed occurrence is likely no pair at all, so it is not prompted for.
    """
    rows = pairs.assign(pair=pair_names(pairs), shared=pairs["relation"] == "shared")
    rows = rows[(rows["relation"] != "disputed") & rows["pair"].isin(list(wanted))]
    rows = rows.sort_values([*CAPTION_KEY, "adjective_start", "noun_start", "pair"])
    return rows[[*CAPTION_KEY, "pair", "shared"]]


def is_changed(rows: pd.DataFrame, swapped: pd.DataFrame) -> np.ndarray:
    """Return which rows of ``plain_pairs`` have the pair that was changed into the entry's."""
    originals = [
        (row.image_id, int(row.caption_id), f"{change['original_adj']}_{change['noun']}")
        for row in swapped.itertuples(index=False)
        for change in row.changes
        if f"{change['new_adj']}_{change['noun']}" == row.pair
    ]
    return pd.MultiIndex.from_frame(rows[[*CAPTION_KEY, "pair"]]).isin(originals)


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
    swapped: pd.DataFrame,
    ranking: pd.DataFrame,
    heldout: Collection[str],
    judged: pd.DataFrame,
    *,
    every_caption: bool,
    draws: int,
    per_image: int | None,
    seed: int,
    dataset: str,
    composition: str,
) -> pd.DataFrame:
    """Return the prompts (``tables.PROMPTS``), sorted by split (seen, unseen, swapped), image, caption and draw.

    Of a caption that was swapped, test_seen prompts for the pair that was changed, so that both prompts test the same
    noun; else a ranked pair is drawn, from adjectives that several nouns share only if there is no other. test_unseen
    prompts for the first held-out pair.

    Args:
        judged: image_id and split of the images that may be prompted for.
        every_caption: the published choice: all captions of the test images instead of those with a pair (ranked in
            test_seen, held out in test_unseen).
        per_image: most captions per image and split; None for all.
    """
    captions = captions.merge(judged, on="image_id")
    pairs, swapped = pairs.merge(judged, on="image_id"), swapped[swapped["image_id"].isin(judged["image_id"])]
    in_seen = pairs["split"] == "test_seen"
    rows = plain_pairs(pairs[in_seen], pair_names(ranking))
    order = rng(seed, "make_prompts", dataset, composition, "pair").permutation(len(rows))
    rows = rows.assign(unchanged=~is_changed(rows, swapped), order=order)
    candidates = {
        "test_seen": rows.sort_values([*CAPTION_KEY, "unchanged", "shared", "order"]),
        "test_unseen": plain_pairs(pairs[~in_seen], heldout),
    }
    prompts = [swapped[[*CAPTION_KEY, "swapped_text", "pair"]].rename(columns={"swapped_text": "text"})]
    prompts[0]["split"] = "test_swapped"
    for split, of_split in candidates.items():
        asked = captions.loc[captions["split"] == split, [*CAPTION_KEY, "split", "text"]]
        first = of_split.drop_duplicates(CAPTION_KEY)[[*CAPTION_KEY, "pair"]]
        prompts.append(asked.merge(first, on=CAPTION_KEY, how="left" if every_caption else "inner"))
    table = sample_per_image(pd.concat(prompts, ignore_index=True), per_image, seed, dataset, composition)
    table = table.loc[table.index.repeat(draws)].assign(draw=np.tile(np.arange(draws), len(table)))
    names = table["caption_id"].astype("str")
    names = names + "_" + table["draw"].astype("str") if draws > 1 else names
    # One folder holds the images of all data sets, compositions and splits.
    table["file_name"] = f"{dataset}/{composition}/" + table["split"] + "/" + table["image_id"] + "/" + names + ".png"
    rank = table["split"].map({split: place for place, split in enumerate(TESTS)})
    table = table.assign(rank=rank).sort_values(["rank", *CAPTION_KEY, "draw"], ignore_index=True)
    return table[list(PROMPTS.columns)]


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
    splits, images = read_table(step.splits, SPLIT), read_table(step.images, IMAGES, ["image_id", "path"])
    judged = judged_images(splits, images, step.train_on, step.halves)
    for image in judged["image_id"]:
        safe_id(image)
    captions, swapped = read_table(step.captions, CAPTIONS), read_table(step.swapped, SWAPPED)
    heldout = read_json(step.heldout)
    prompts = make_prompts(
        captions,
        read_table(step.pairs, PAIRS),
        swapped,
        read_table(step.ranking, RANKING),
        heldout["pairs"],
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
    widths = estimate_all(prompts, heldout)
    write_json(widths, step.widths)
    for split, count in counts.items():
        expected = points(widths["splits"][split]["half_width"])
        numbers = count["prompts"], count["images"], expected
        log.info("%s: %s: %d prompts, %d images, expected 95 %% interval %s", step.where, split, *numbers)
        if not count["prompts"]:
            log.warning("warning: %s: no prompt in %s", step.where, split)
    for warning in widths["warnings"]:
        log.warning("warning: %s: %s", step.where, warning)


if __name__ == "__main__":
    cli.run(main)
