"""List the prompts for all generators: a caption, and the file name of the image to be made.

For a model outside the workflow, read prompts.jsonl: for each line, draw ``text`` and save the
image as ``file_name`` in a folder, which the generator kind ``folder`` reads.
"""

import math
from collections.abc import Collection
from typing import Any

import numpy as np
import pandas as pd

from compclip.core.errors import require
from compclip.core.heldout import matched_pairs, pair_names
from compclip.core.inputs import (
    Captions,
    PairNames,
    Pairs,
    Positive,
    Ranking,
    Splits,
    Swapped,
    Whole,
    checked,
    require_joined,
)
from compclip.core.seeds import rng
from compclip.core.tables import CAPTION_KEY, PROMPTS, SWAPPED, TESTS, Blocks, in_blocks
from compclip.io import empty_table, safe_id

# Most draws of a matched seen prompt. Fewer suffice if they are then as many as the held-out
# prompts.
MATCHED_DRAWS = 3


def plain_pairs(pairs: pd.DataFrame, wanted: Collection[str]) -> pd.DataFrame:
    """Return image_id, caption_id, pair and shared of the wanted occurrences, in text order.

    Disputed occurrences are excluded, because they are probably not pairs.
    """
    rows = pairs.assign(pair=pair_names(pairs), shared=pairs["relation"] == "shared")
    rows = rows[(rows["relation"] != "disputed") & rows["pair"].isin(list(wanted))]
    rows = rows.sort_values([*CAPTION_KEY, "adjective_start", "noun_start", "pair"])
    return rows[[*CAPTION_KEY, "pair", "shared"]]


def is_changed(rows: pd.DataFrame, swapped: pd.DataFrame) -> np.ndarray:
    """Return which rows of ``plain_pairs`` have the pair that a swap changed into the entry's
    pair.
    """
    originals = [
        (row.image_id, int(row.caption_id), f"{change['original_adj']}_{change['noun']}")
        for row in swapped.itertuples(index=False)
        for change in row.changes
        if f"{change['new_adj']}_{change['noun']}" == row.pair
    ]
    return pd.MultiIndex.from_frame(rows[[*CAPTION_KEY, "pair"]]).isin(originals)


def sample_per_image(
    prompts: pd.DataFrame,
    matched: Collection[str],
    most: int | None,
    seed: int,
    dataset: str,
    composition: str,
) -> pd.DataFrame:
    """Return at most ``most`` captions per image and split (None: all), drawn with the seed.

    test_seen prefers the captions that test_swapped swaps, so that the two splits are paired by
    caption. Most of these have frequent pairs, so test_seen also has at most ``most`` captions per
    image whose pair is ``matched``.
    """
    if most is None:
        return prompts
    samples: dict[str, pd.DataFrame] = {}
    for split in ("test_swapped", "test_seen", "test_unseen"):
        rows = prompts[prompts["split"] == split].sort_values(CAPTION_KEY)
        order = rng(seed, "make_prompts", dataset, composition, split).permutation(len(rows))
        unpaired = np.zeros(len(rows), bool)
        if split == "test_seen":
            captions, swapped = (
                pd.MultiIndex.from_frame(of[CAPTION_KEY]) for of in (rows, samples["test_swapped"])
            )
            unpaired = ~captions.isin(swapped)
        rows = rows.assign(
            order=order, unpaired=unpaired, beside=rows["pair"].isin(list(matched)) & unpaired
        )
        rows = rows.sort_values(["image_id", "unpaired", "order"])
        samples[split] = rows.groupby(["image_id", "beside"], sort=False).head(most)[
            prompts.columns
        ]
    return pd.concat(samples.values())


def choose_pairs(
    captions: Blocks,
    pairs: Blocks,
    ranked: Collection[str],
    matched: Collection[str],
    heldout: Collection[str],
    judged: pd.DataFrame,
    swapped: Blocks,
    every_caption: bool,
    generator: np.random.Generator,
) -> pd.DataFrame:
    """Return split, image_id, caption_id and pair of each caption that can be prompted, as
    ``make_prompts`` says.
    """
    of_blocks = []
    for block in in_blocks(captions, pairs, swapped):
        texts, occurrences, swaps = (table.merge(judged, on="image_id") for table in block)
        texts = texts.loc[texts["split"].isin(TESTS) & every_caption, [*CAPTION_KEY, "split"]]
        in_seen = occurrences["split"] == "test_seen"
        seen, unseen = (
            plain_pairs(occurrences[in_seen], ranked),
            plain_pairs(occurrences[~in_seen], heldout),
        )
        seen = seen.assign(unchanged=~is_changed(seen, swaps))
        of_blocks.append((texts, seen, unseen, swaps[[*CAPTION_KEY, "pair"]]))
    texts, seen, unseen, swaps = (
        pd.concat(of, ignore_index=True) for of in zip(*of_blocks, strict=True)
    )
    seen["unmatched"] = ~seen["pair"].isin(matched) & (not every_caption)
    seen["order"] = generator.permutation(len(seen))
    seen = seen.sort_values([*CAPTION_KEY, "unchanged", "shared", "unmatched", "order"])
    chosen = [swaps.assign(split="test_swapped")]
    for split, rows in {"test_seen": seen, "test_unseen": unseen}.items():
        first = rows.drop_duplicates(CAPTION_KEY)[[*CAPTION_KEY, "pair"]]
        if every_caption:
            first = texts.loc[texts["split"] == split, CAPTION_KEY].merge(
                first, on=CAPTION_KEY, how="left"
            )
        chosen.append(first.assign(split=split))
    return pd.concat(chosen, ignore_index=True)


def choose_prompts(
    captions: Blocks,
    pairs: Blocks,
    ranking: pd.DataFrame,
    heldout: Collection[str],
    judged: pd.DataFrame,
    swapped: Blocks,
    *,
    every_caption: bool = False,
    draws: int = 1,
    per_image: int | None = None,
    seed: int = 0,
    dataset: str = "dataset",
    composition: str = "composition",
) -> pd.DataFrame:
    """Return split, image_id, caption_id, draw and pair of the prompts of ``make_prompts``, in its
    order.

    The arguments are its, but captions need no text; captions, pairs and swapped may be blocks
    (``tables.in_blocks``).
    """
    for image in judged["image_id"]:
        safe_id(image)
    ranked, matched = pair_names(ranking), matched_pairs(ranking, heldout)
    generator = rng(seed, "make_prompts", dataset, composition, "pair")
    table = choose_pairs(
        captions, pairs, ranked, matched, heldout, judged, swapped, every_caption, generator
    )
    table = sample_per_image(table, matched, per_image, seed, dataset, composition)
    fault = "no caption of the test images can be prompted"
    require(len(table), f"{dataset}/{composition}", fault, "hold out more pairs or add captions")
    table = table.assign(
        rank=table["split"].map({split: place for place, split in enumerate(TESTS)})
    )
    table = table.sort_values(["rank", *CAPTION_KEY], ignore_index=True).drop(columns="rank")
    numbers = np.full(len(table), draws)
    if not every_caption:
        numbers *= matched_draws(table, matched)
    table = table.loc[table.index.repeat(numbers)].reset_index(drop=True)
    return table.assign(draw=table.groupby(["split", *CAPTION_KEY]).cumcount())


def matched_draws(prompts: pd.DataFrame, matched: Collection[str]) -> np.ndarray:
    """Return how often to draw each prompt, (n,): once, but matched seen ones until they are as
    many as held-out ones.

    What is composed is relative to how well matched seen pairs are drawn, and a data set has few of
    them.
    """
    is_seen = prompts["split"] == TESTS[0]
    is_matched = (is_seen & prompts["pair"].isin(list(matched))).to_numpy()
    wanted = math.ceil((~is_seen).sum() / max(1, is_matched.sum()))
    return np.where(is_matched, np.clip(wanted, 1, MATCHED_DRAWS), 1)


def prompt_table(
    chosen: pd.DataFrame, texts: pd.DataFrame, dataset: str, composition: str
) -> pd.DataFrame:
    """Return prompts of a split (``tables.PROMPTS``), in their order.

    Args:
        chosen: rows of ``choose_prompts``, all draws of a prompt.
        texts: image_id, caption_id and text of their captions.
    """
    table = chosen.merge(texts, on=CAPTION_KEY)
    names = table["caption_id"].astype("str")
    names = names.where(table["draw"] == 0, names + "_" + table["draw"].astype("str"))
    # One folder contains the images of all data sets, compositions and splits.
    table["file_name"] = (
        f"{dataset}/{composition}/"
        + table["split"]
        + "/"
        + table["image_id"]
        + "/"
        + names
        + ".png"
    )
    return table[list(PROMPTS.columns)]


def texts_of(split: str, captions: pd.DataFrame, swapped: pd.DataFrame) -> pd.DataFrame:
    """Return image_id, caption_id and text of the captions that a split prompts for."""
    table, text = (swapped, "swapped_text") if split == "test_swapped" else (captions, "text")
    return table[[*CAPTION_KEY, text]].rename(columns={text: "text"})


@checked
def make_prompts(
    captions: Captions,
    pairs: Pairs,
    ranking: Ranking,
    heldout: PairNames = (),
    judged: Splits | None = None,
    swapped: Swapped | None = None,
    *,
    every_caption: bool = False,
    draws: Positive = 1,
    per_image: Positive | None = None,
    seed: Whole = 0,
    dataset: str = "dataset",
    composition: str = "composition",
) -> pd.DataFrame:
    """Return the prompts (``tables.PROMPTS``), sorted by split (seen, unseen, swapped), image,
    caption and draw.

    For a swapped caption, test_seen prompts for the pair that was changed, so that both prompts
    test the same noun; otherwise a ranked pair is drawn. Adjectives that several nouns share are
    used only if there is no other pair; unless every caption is a prompt, pairs as frequent as the
    held-out ones (``matched_pairs``) are preferred. test_unseen prompts for the first held-out
    pair.

    Args:
        captions: all, as ``extract_pairs`` takes them.
        pairs, ranking: as in ``tables``: all occurrences, and the pairs that count.
        heldout: the held-out pairs.
        judged: image_id and split of the images that may be prompted for; None: all, in test_seen.
        swapped: as ``swap_adjectives`` returns them.
        every_caption: the published choice: all captions of the test images instead of those with a
            pair (ranked in test_seen, held out in test_unseen).
        draws: images to be made for each prompt; unless every caption is a prompt, up to
            ``MATCHED_DRAWS`` times as many for matched seen ones.
        per_image: most captions per image and split, in test_seen also of those with a matched
            pair; None for all.
        dataset, composition: names for the random stream and for the file names.

    Raises:
        UserError: a row of another table is not among captions, or an argument is refused
            (docs/library.md).
    """
    require_joined(captions, "captions", pairs=pairs, judged=judged, swapped=swapped)
    if judged is None:
        judged = captions[["image_id"]].drop_duplicates().assign(split="test_seen")
    swapped = empty_table(SWAPPED) if swapped is None else swapped
    chosen = choose_prompts(
        captions,
        pairs,
        ranking,
        heldout,
        judged,
        swapped,
        every_caption=every_caption,
        draws=draws,
        per_image=per_image,
        seed=seed,
        dataset=dataset,
        composition=composition,
    )
    texts = {split: texts_of(split, captions, swapped) for split in TESTS}
    of_splits = chosen.groupby("split", sort=False)
    parts = [
        prompt_table(rows, texts[str(split)], dataset, composition) for split, rows in of_splits
    ]
    return pd.concat(parts, ignore_index=True)


def count_prompts(
    prompts: pd.DataFrame, judged: pd.DataFrame, splits: pd.DataFrame
) -> dict[str, Any]:
    """Return the number of prompts, captions and images of each test split, and its images without
    a prompt.
    """
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
