"""List the prompts for all generators: a caption, and the file name of the image to be made.

For a model outside the workflow, read prompts.jsonl: for each line, draw ``text`` and save the
image as ``file_name`` in a folder, which the generator kind ``folder`` reads.
"""

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from compclip.core.artifacts.files import safe_id
from compclip.core.artifacts.heldout import matched_pairs, pair_names
from compclip.core.artifacts.parquet import empty_table
from compclip.core.errors import require
from compclip.core.settings.arguments import (
    Captions,
    PairNames,
    Pairs,
    Positive,
    Ranking,
    Splits,
    Swapped,
    Whole,
    require_joined,
)
from compclip.core.settings.calls import checked
from compclip.core.tables import CAPTION_KEY, PROMPTS, SWAPPED, TESTS, Blocks, in_blocks
from compclip.split.composition import Seeding

# Most draws of a matched seen prompt. Fewer suffice if they are then as many as the held-out
# prompts.
MATCHED_DRAWS = 3


@dataclass(frozen=True)
class Prompting:
    """Which captions are prompts, and how often each is drawn, as in ``make_prompts``."""

    every_caption: bool = False
    draws: int = 1
    per_image: int | None = None


@dataclass(frozen=True)
class PromptPairs:
    """The pairs that prompts ask for."""

    ranked: Collection[str]
    matched: Collection[str]  # seen pairs as frequent as the held-out ones
    heldout: Collection[str]

    @classmethod
    def from_ranking(cls, ranking: pd.DataFrame, heldout: Collection[str]) -> "PromptPairs":
        return cls(pair_names(ranking), matched_pairs(ranking, heldout), heldout)


def plain_pairs(pairs: pd.DataFrame, wanted: Collection[str]) -> pd.DataFrame:
    """Return image_id, caption_id, pair and shared of the wanted occurrences, in text order.

    Disputed occurrences are excluded, because they are probably not pairs.
    """
    rows = pairs.assign(pair=pair_names(pairs), shared=pairs["relation"] == "shared")
    is_disputed = rows["relation"] == "disputed"
    is_wanted = rows["pair"].isin(list(wanted))
    rows = rows[is_wanted & ~is_disputed]
    rows = rows.sort_values([*CAPTION_KEY, "adjective_start", "noun_start", "pair"])
    return rows[[*CAPTION_KEY, "pair", "shared"]]


def is_changed(rows: pd.DataFrame, swapped: pd.DataFrame) -> np.ndarray:
    """Return which rows of ``plain_pairs`` have the pair that a swap changed into the entry's
    pair.
    """
    originals = []
    for row in swapped.itertuples(index=False):
        for change in row.changes:
            noun = change["noun"]
            if f"{change['new_adj']}_{noun}" == row.pair:
                original = f"{change['original_adj']}_{noun}"
                # The caption had this pair before the swap.
                originals.append((row.image_id, int(row.caption_id), original))
    keys = pd.MultiIndex.from_frame(rows[[*CAPTION_KEY, "pair"]])
    return keys.isin(originals)


def sample_per_image(
    prompts: pd.DataFrame, matched: Collection[str], most: int | None, seeding: Seeding
) -> pd.DataFrame:
    """Return at most ``most`` captions per image and split (None: all), drawn with the seed.

    test_seen prefers the captions that test_swapped swaps, so that the two splits are paired by
    caption. Most of these have frequent pairs, so test_seen also has at most ``most`` captions per
    image whose pair is ``matched``.
    """
    if most is None:
        return prompts
    samples: dict[str, pd.DataFrame] = {}
    # Swapped captions first, because the sample of test_seen depends on them.
    for split in ("test_swapped", "test_seen", "test_unseen"):
        rows = prompts[prompts["split"] == split].sort_values(CAPTION_KEY)
        rows["order"] = seeding.rng("make_prompts", split).permutation(len(rows))
        rows["unpaired"] = False
        if split == "test_seen":
            swapped = pd.MultiIndex.from_frame(samples["test_swapped"][CAPTION_KEY])
            rows["unpaired"] = ~pd.MultiIndex.from_frame(rows[CAPTION_KEY]).isin(swapped)
        # Matched captions that are not paired have a quota of their own.
        rows["is_extra"] = rows["pair"].isin(list(matched)) & rows["unpaired"]
        rows = rows.sort_values(["image_id", "unpaired", "order"])
        sample = rows.groupby(["image_id", "is_extra"], sort=False).head(most)
        samples[split] = sample[prompts.columns]
    return pd.concat(samples.values())


def choose_pairs(
    captions: Blocks,
    pairs: Blocks,
    wanted: PromptPairs,
    judged: pd.DataFrame,
    swapped: Blocks,
    every_caption: bool,
    generator: np.random.Generator,
) -> pd.DataFrame:
    """Return split, image_id, caption_id and pair of each caption that can be prompted, as
    ``make_prompts`` says.
    """
    blocks = []
    for tables_of_block in in_blocks(captions, pairs, swapped):
        # An inner join: images that are not judged have no prompt.
        of_judged = [table.merge(judged, on="image_id") for table in tables_of_block]
        texts, occurrences, swaps = of_judged
        is_seen = occurrences["split"] == "test_seen"
        seen = plain_pairs(occurrences[is_seen], wanted.ranked)
        seen["unchanged"] = ~is_changed(seen, swaps)
        unseen = plain_pairs(occurrences[~is_seen], wanted.heldout)
        key = [*CAPTION_KEY, "split"]
        blocks.append((texts[key], seen, unseen, swaps[[*CAPTION_KEY, "pair"]]))
    tables = [pd.concat(column, ignore_index=True) for column in zip(*blocks, strict=True)]
    texts, seen, unseen, swaps = tables
    if every_caption:
        seen["unmatched"] = False  # as published: any ranked pair
    else:
        seen["unmatched"] = ~seen["pair"].isin(wanted.matched)
    # Pairs that are equally good are drawn at random.
    seen["order"] = generator.permutation(len(seen))
    seen = seen.sort_values([*CAPTION_KEY, "unchanged", "shared", "unmatched", "order"])
    chosen = [swaps.assign(split="test_swapped")]
    for split, rows in {"test_seen": seen, "test_unseen": unseen}.items():
        # The best pair of each caption comes first.
        first = rows.drop_duplicates(CAPTION_KEY)[[*CAPTION_KEY, "pair"]]
        if every_caption:
            # Captions without a pair are prompts, too; their pair is null.
            keys = texts.loc[texts["split"] == split, CAPTION_KEY]
            first = keys.merge(first, on=CAPTION_KEY, how="left")
        chosen.append(first.assign(split=split))
    return pd.concat(chosen, ignore_index=True)


def choose_prompts(
    captions: Blocks,
    pairs: Blocks,
    wanted: PromptPairs,
    judged: pd.DataFrame,
    swapped: Blocks,
    prompting: Prompting,
    seeding: Seeding,
) -> pd.DataFrame:
    """Return split, image_id, caption_id, draw and pair of the prompts of ``make_prompts``, in its
    order.

    Captions need no text; captions, pairs and swapped may be blocks (``tables.in_blocks``).
    """
    for image in judged["image_id"]:
        safe_id(image)  # it becomes part of a file's name
    every_caption = prompting.every_caption
    generator = seeding.rng("make_prompts", "pair")
    table = choose_pairs(captions, pairs, wanted, judged, swapped, every_caption, generator)
    table = sample_per_image(table, wanted.matched, prompting.per_image, seeding)
    fault = "no caption of the test images can be prompted"
    require(len(table), seeding.location, fault, "hold out more pairs or add captions")
    # In the order of TESTS, which is not alphabetical.
    rank_of = {split: rank for rank, split in enumerate(TESTS)}
    table = table.assign(rank=table["split"].map(rank_of))
    table = table.sort_values(["rank", *CAPTION_KEY], ignore_index=True).drop(columns="rank")
    draws = np.full(len(table), prompting.draws)
    if not every_caption:
        draws *= matched_draws(table, wanted.matched)
    table = table.loc[table.index.repeat(draws)].reset_index(drop=True)
    return table.assign(draw=table.groupby(["split", *CAPTION_KEY]).cumcount())


def matched_draws(prompts: pd.DataFrame, matched: Collection[str]) -> np.ndarray:
    """Return how often to draw each prompt, (n,): once, but matched seen ones until they are as
    many as held-out ones.

    What is composed is relative to how well matched seen pairs are drawn, and a data set has few of
    them.
    """
    is_seen = prompts["split"] == TESTS[0]
    is_matched = (is_seen & prompts["pair"].isin(list(matched))).to_numpy()
    # Draws that make the matched prompts as many as the held-out ones.
    heldout = (~is_seen).sum()
    wanted = math.ceil(heldout / max(1, is_matched.sum()))
    draws = np.clip(wanted, 1, MATCHED_DRAWS)
    return np.where(is_matched, draws, 1)


def prompt_table(chosen: pd.DataFrame, texts: pd.DataFrame, seeding: Seeding) -> pd.DataFrame:
    """Return prompts of a split (``tables.PROMPTS``), in their order.

    Args:
        chosen: rows of ``choose_prompts``, all draws of a prompt.
        texts: image_id, caption_id and text of their captions.
    """
    table = chosen.merge(texts, on=CAPTION_KEY)
    numbers = table["caption_id"].astype("str")
    is_first = table["draw"] == 0
    names = numbers.where(is_first, numbers + "_" + table["draw"].astype("str"))
    # One folder contains the images of all data sets, compositions and splits.
    folders = f"{seeding.location}/" + table["split"] + "/" + table["image_id"]
    table["file_name"] = folders + "/" + names + ".png"
    return table[list(PROMPTS.columns)]


def texts_of(split: str, captions: pd.DataFrame, swapped: pd.DataFrame) -> pd.DataFrame:
    """Return image_id, caption_id and text of the captions that a split prompts for."""
    if split != "test_swapped":
        return captions[[*CAPTION_KEY, "text"]]
    # Under the name that the column has in captions.
    return swapped[[*CAPTION_KEY, "swapped_text"]].rename(columns={"swapped_text": "text"})


@checked
def make_prompts(  # noqa: PLR0913
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
        dataset, composition: names for the random seeding and for the file names.

    Raises:
        UserError: a row of another table is not among captions, or an argument is refused
            (docs/library.md).
    """
    require_joined(captions, "captions", pairs=pairs, judged=judged, swapped=swapped)
    if judged is None:
        judged = captions[["image_id"]].drop_duplicates().assign(split="test_seen")
    swapped = empty_table(SWAPPED) if swapped is None else swapped
    seeding = Seeding(seed, dataset, composition)
    chosen = choose_prompts(
        captions,
        pairs,
        PromptPairs.from_ranking(ranking, heldout),
        judged,
        swapped,
        Prompting(every_caption, draws, per_image),
        seeding,
    )
    tables = []
    for split, rows in chosen.groupby("split", sort=False):
        texts = texts_of(str(split), captions, swapped)
        tables.append(prompt_table(rows, texts, seeding))
    return pd.concat(tables, ignore_index=True)


def count_prompts(
    prompts: pd.DataFrame, judged: pd.DataFrame, splits: pd.DataFrame
) -> dict[str, Any]:
    """Return the number of prompts, captions and images of each test split, and its images without
    a prompt.
    """
    result = {}
    for split in TESTS:
        rows = prompts[prompts["split"] == split]
        # The swapped captions are of images of test_seen.
        origin = "test_seen" if split == "test_swapped" else split
        in_split = int((splits["split"] == origin).sum())
        allowed = int((judged["split"] == origin).sum())
        prompted = rows["image_id"].nunique()
        result[split] = {
            "prompts": len(rows),
            "images": prompted,
            "images_in_split": in_split,
            "images_not_judged": in_split - allowed,
            "images_without_prompt": allowed - prompted,
        }
    return result
