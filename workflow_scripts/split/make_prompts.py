"""List the images that every generator is asked to make: a caption, and the file that its image goes to."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from workflow_scripts.core import cli
from workflow_scripts.core.cli import log
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.heldout import pair_names, read_heldout
from workflow_scripts.core.io import (
    json_lines,
    read_blocks,
    read_table,
    safe_id,
    table_writer,
    write_json,
    write_text,
)
from workflow_scripts.core.seeds import rng
from workflow_scripts.core.tables import CAPTIONS, IMAGES, PAIRS, PROMPTS, RANKING, SPLIT, SWAPPED, TESTS
from workflow_scripts.split.judged import judged_images
from workflow_scripts.split.pools import bounded, least_distractors
from workflow_scripts.split.steps import MakePrompts

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
    blocks: Iterable[Sequence[pd.DataFrame]],
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
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the prompts without texts, sorted by split (seen, unseen, swapped), image, caption and draw.

    Of a caption that was swapped, test_seen prompts for the pair that was changed, so that both prompts test the same
    noun; else a ranked pair is drawn, from adjectives that several nouns share only if there is no other. test_unseen
    prompts for the first held-out pair.

    Args:
        blocks: captions, pairs and swapped captions of the judged images, in the order of these.
        judged: image_id and split of the images that may be prompted for.
        every_caption: the published choice: all captions of the test images instead of those with a pair (ranked in
            test_seen, held out in test_unseen).
        per_image: most captions per image and split; None for all.

    Returns:
        The prompts, and image_id, caption_id, class_id and split of all captions.
    """
    split_of = judged.set_index("image_id")["split"]
    ranked = pair_names(ranking)
    # Numbers instead of texts, of which there are many for each image.
    kinds = {"image_id": pd.CategoricalDtype(sorted(split_of.index)), "split": pd.CategoricalDtype(TESTS)}
    parts = defaultdict[str, list[pd.DataFrame]](list)
    for captions, pairs, swapped in blocks:
        captions = captions.assign(split=captions["image_id"].map(split_of))[[*CAPTION_KEY, "class_id", "split"]]
        in_seen = pairs["image_id"].map(split_of) == "test_seen"
        rows = plain_pairs(pairs[in_seen], ranked)
        of_block = {
            "captions": captions,
            "test_seen": rows.assign(unchanged=~is_changed(rows, swapped)),
            "test_unseen": plain_pairs(pairs[~in_seen], heldout).drop_duplicates(CAPTION_KEY)[[*CAPTION_KEY, "pair"]],
            "test_swapped": swapped[[*CAPTION_KEY, "pair"]].assign(split="test_swapped"),
        }
        for name, table in of_block.items():
            parts[name].append(table.astype({column: kinds[column] for column in kinds if column in table}))
    tables = {name: pd.concat(parts.pop(name), ignore_index=True) for name in list(parts)}
    captions, rows = tables["captions"], tables["test_seen"]
    rows["order"] = rng(seed, "make_prompts", dataset, composition, "pair").permutation(len(rows))
    rows = rows.sort_values([*CAPTION_KEY, "unchanged", "shared", "order"])
    tables["test_seen"] = rows.drop_duplicates(CAPTION_KEY)[[*CAPTION_KEY, "pair"]]
    for split in ("test_seen", "test_unseen"):
        keys = captions.loc[captions["split"] == split, [*CAPTION_KEY, "split"]]
        tables[split] = keys.merge(tables[split], on=CAPTION_KEY, how="left" if every_caption else "inner")
    prompts = pd.concat([tables[split] for split in TESTS], ignore_index=True)
    prompts = sample_per_image(prompts, per_image, seed, dataset, composition)
    prompts = prompts.loc[prompts.index.repeat(draws)].assign(draw=np.tile(np.arange(draws), len(prompts)))
    return prompts.sort_values(["split", *CAPTION_KEY, "draw"], ignore_index=True), captions


def with_texts(prompts: pd.DataFrame, captions: Path, swapped: Path, place: str, draws: int) -> Iterator[pd.DataFrame]:
    """Yield the rows of ``tables.PROMPTS``, a block of images at a time."""
    sources = dict.fromkeys(TESTS, (captions, CAPTIONS, "text")) | {"test_swapped": (swapped, SWAPPED, "swapped_text")}
    for split, (path, schema, text) in sources.items():
        rows = prompts[prompts["split"] == split]
        images = rows["image_id"].drop_duplicates().astype("str")
        for (texts,) in read_blocks(images, {path: schema.select([*CAPTION_KEY, text])}):
            block = rows[rows["image_id"].isin(texts["image_id"])].astype({"image_id": "str", "split": "str"})
            block = block.merge(texts.rename(columns={text: "text"}), on=CAPTION_KEY)
            names = block["caption_id"].astype("str")
            names = names + "_" + block["draw"].astype("str") if draws > 1 else names
            # One folder holds the images of all data sets, compositions and splits.
            block["file_name"] = f"{place}/{split}/" + block["image_id"] + "/" + names + ".png"
            yield block[list(PROMPTS.columns)]


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
    tables = {step.captions: CAPTIONS, step.pairs: PAIRS, step.swapped: SWAPPED}
    prompts, captions = make_prompts(
        read_blocks(judged["image_id"].sort_values(), tables),
        read_table(step.ranking, RANKING),
        read_heldout(step.heldout),
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
    distractors = least_distractors(captions, judged, read_table(step.swapped, SWAPPED, ["image_id"]), prompts)
    if images["path"].notna().any():  # otherwise nothing is scored
        bounded(step.candidates, distractors, step.where)

    def lines() -> Iterator[str]:
        with table_writer(step.prompts, PROMPTS) as write:
            for table in with_texts(prompts, step.captions, step.swapped, step.where, step.draws):
                write(table)
                yield from json_lines(table)

    write_text(lines(), step.jsonl)
    settings = {"prompts": step.prompt_rule, "draws": step.draws, "train_on": step.train_on}
    write_json({**settings, "distractors_at_least": distractors, "splits": counts}, step.summary)
    for split, count in counts.items():
        log.info("%s: %s: %d prompts, %d images", step.where, split, count["prompts"], count["images"])
        if not count["prompts"]:
            log.warning("warning: %s: no prompt in %s", step.where, split)


if __name__ == "__main__":
    cli.run(main)
