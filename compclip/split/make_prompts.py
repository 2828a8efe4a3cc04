"""List the prompts for all generators: a caption, and the file name of the image to be made.

For a model outside the workflow, read prompts.jsonl: for each line, draw ``text`` and save the image as ``file_name``
in a folder, which the generator kind ``folder`` reads.
"""

from collections.abc import Collection
from typing import Any

import numpy as np
import pandas as pd

from compclip.core.errors import require
from compclip.core.heldout import matched_pairs, pair_names
from compclip.core.seeds import rng
from compclip.core.tables import CAPTION_KEY, PROMPTS, SWAPPED, TESTS, Blocks, Captions, as_captions, in_blocks
from compclip.io import empty_table, safe_id


def plain_pairs(pairs: pd.DataFrame, wanted: Collection[str]) -> pd.DataFrame:
    """Return image_id, caption_id, pair and shared of the wanted occurrences, in text order.

    Disputed occurrences are excluded, because they are probably not pairs.
    """
    rows = pairs.assign(pair=pair_names(pairs), shared=pairs["relation"] == "shared")
    rows = rows[(rows["relation"] != "disputed") & rows["pair"].isin(list(wanted))]
    rows = rows.sort_values([*CAPTION_KEY, "adjective_start", "noun_start", "pair"])
    return rows[[*CAPTION_KEY, "pair", "shared"]]


def is_changed(rows: pd.DataFrame, swapped: pd.DataFrame) -> np.ndarray:
    """Return which rows of ``plain_pairs`` have the pair that a swap changed into the entry's pair."""
    originals = [
        (row.image_id, int(row.caption_id), f"{change['original_adj']}_{change['noun']}")
        for row in swapped.itertuples(index=False)
        for change in row.changes
        if f"{change['new_adj']}_{change['noun']}" == row.pair
    ]
    return pd.MultiIndex.from_frame(rows[[*CAPTION_KEY, "pair"]]).isin(originals)


def sample_per_image(
    prompts: pd.DataFrame, matched: Collection[str], most: int | None, seed: int, dataset: str, composition: str
) -> pd.DataFrame:
    """Return at most ``most`` captions per image and split (None: all), drawn with the seed.

    test_seen prefers the captions that test_swapped swaps, so that the two splits are paired by caption. Most of these
    have frequent pairs, so test_seen also has at most ``most`` captions per image whose pair is ``matched``.
    """
    if most is None:
        return prompts
    samples = []
    swapped = pd.MultiIndex.from_arrays([[], []], names=CAPTION_KEY)
    for split in ("test_swapped", "test_seen", "test_unseen"):
        rows = prompts[prompts["split"] == split].sort_values(CAPTION_KEY)
        order = rng(seed, "make_prompts", dataset, composition, split).permutation(len(rows))
        unpaired = ~pd.MultiIndex.from_frame(rows[CAPTION_KEY]).isin(swapped) if split == "test_seen" else False
        beside = rows["pair"].isin(list(matched)) & unpaired
        rows = rows.assign(order=order, unpaired=unpaired, beside=beside)
        rows = (
            rows.sort_values(["image_id", "unpaired", "order"]).groupby(["image_id", "beside"], sort=False).head(most)
        )
        if split == "test_swapped":
            swapped = pd.MultiIndex.from_frame(rows[CAPTION_KEY])
        samples.append(rows[prompts.columns])
    return pd.concat(samples)


def make_prompts(
    captions: Captions, pairs: Blocks, ranking: pd.DataFrame, heldout: Collection[str] = (),
    judged: pd.DataFrame | None = None, swapped: Blocks | None = None, *, every_caption: bool = False,
    draws: int = 1, per_image: int | None = None, seed: int = 0, dataset: str = "dataset",
    composition: str = "composition",
) -> pd.DataFrame:  # fmt: skip
    """Return the prompts (``tables.PROMPTS``), sorted by split (seen, unseen, swapped), image, caption and draw.

    For a swapped caption, test_seen prompts for the pair that was changed, so that both prompts test the same noun;
    otherwise a ranked pair is drawn. Adjectives that several nouns share are used only if there is no other pair;
    unless every caption is a prompt, pairs as frequent as the held-out ones (``matched_pairs``) are preferred.
    test_unseen prompts for the first held-out pair.

    Args:
        captions: all, as ``extract_pairs`` takes them, or in blocks (``tables.in_blocks``).
        pairs, ranking: as in ``tables``: all occurrences, likewise, and the pairs that count.
        heldout: the held-out pairs.
        judged: image_id and split of the images that may be prompted for; None, unless in blocks: all, in test_seen.
        swapped: as ``swap_adjectives`` returns them, likewise.
        every_caption: the published choice: all captions of the test images instead of those with a pair (ranked in
            test_seen, held out in test_unseen).
        draws: images to be made for each prompt.
        per_image: most captions per image and split, in test_seen also of those with a matched pair; None for all.
        dataset, composition: names for the random stream and for the file names.
    """
    if judged is None:
        captions = as_captions(captions)
        judged = captions[["image_id"]].drop_duplicates().assign(split="test_seen")
    for image in judged["image_id"]:
        safe_id(image)
    of_blocks = []
    for block in in_blocks(captions, pairs, empty_table(SWAPPED) if swapped is None else swapped):
        texts, occurrences, swaps = (as_captions(table).merge(judged, on="image_id") for table in block)
        in_seen = occurrences["split"] == "test_seen"
        rows = plain_pairs(occurrences[in_seen], pair_names(ranking))
        rows = rows.assign(unchanged=~is_changed(rows, swaps))
        swaps = swaps[[*CAPTION_KEY, "swapped_text", "pair"]].rename(columns={"swapped_text": "text"})
        unseen, texts = plain_pairs(occurrences[~in_seen], heldout), texts[[*CAPTION_KEY, "split", "text"]]
        if not every_caption:
            texts = texts.merge(pd.concat([rows, unseen])[CAPTION_KEY].drop_duplicates(), on=CAPTION_KEY)
        of_blocks.append((texts, rows, unseen, swaps.assign(split="test_swapped")))
    texts, rows, unseen, swaps = (pd.concat(of, ignore_index=True) for of in zip(*of_blocks, strict=True))
    del of_blocks, block, occurrences  # no table is held twice
    order = rng(seed, "make_prompts", dataset, composition, "pair").permutation(len(rows))
    matched = matched_pairs(ranking, heldout)
    rows = rows.assign(unmatched=~rows["pair"].isin(matched) & (not every_caption), order=order)
    rows = rows.sort_values([*CAPTION_KEY, "unchanged", "shared", "unmatched", "order"])
    prompts = [swaps]
    for split, of_split in {"test_seen": rows, "test_unseen": unseen}.items():
        asked = texts[texts["split"] == split]
        first = of_split.drop_duplicates(CAPTION_KEY)[[*CAPTION_KEY, "pair"]]
        prompts.append(asked.merge(first, on=CAPTION_KEY, how="left" if every_caption else "inner"))
    del texts, rows, unseen, swaps, of_split, asked, first
    table = pd.concat(prompts, ignore_index=True)
    prompts.clear()
    table = sample_per_image(table, matched, per_image, seed, dataset, composition)
    fault = "no caption of the test images can be prompted"
    require(len(table), f"{dataset}/{composition}", fault, "hold out more pairs or add captions")
    repeated = table.loc[table.index.repeat(draws)] if draws > 1 else table
    table = repeated.assign(draw=np.tile(np.arange(draws), len(table)))
    names = table["caption_id"].astype("str")
    names = names + "_" + table["draw"].astype("str") if draws > 1 else names
    # One folder contains the images of all data sets, compositions and splits.
    table["file_name"] = f"{dataset}/{composition}/" + table["split"] + "/" + table["image_id"] + "/" + names + ".png"
    rank = table["split"].map({split: place for place, split in enumerate(TESTS)})
    table = table.assign(rank=rank).sort_values(["rank", *CAPTION_KEY, "draw"], ignore_index=True)
    return table[list(PROMPTS.columns)]


def count_prompts(prompts: pd.DataFrame, judged: pd.DataFrame, splits: pd.DataFrame) -> dict[str, Any]:
    """Return the number of prompts, captions and images of each test split, and its images without a prompt."""
    result = {}
    for split in TESTS:
        rows = prompts[prompts["split"] == split]
        origin = "test_seen" if split == "test_swapped" else split
        in_split, allowed = (int((table["split"] == origin).sum()) for table in (splits, judged))
        images = rows["image_id"].nunique()
        result[split] = {
            "prompts": len(rows),
            "images": images,
            "images_in_split": in_split,
            "images_not_judged": in_split - allowed,
            "images_without_prompt": allowed - images,
        }
    return result
