"""Describe drawn birds at length: descriptions for training, and growing ones with wrong details
for testing.
"""

import numpy as np
import pandas as pd

from compclip.core import tables
from compclip.core.errors import require
from compclip.core.log import log
from compclip.core.seeds import rng
from compclip.dataset.sketch.description import count_values, describe_scene, grow, shorten
from compclip.dataset.sketch.world import ATTRIBUTES, Dice

SHORT_CAPTIONS = 4  # number per image
DESCRIPTION_SCHEMAS = {
    "examples": tables.EXAMPLES,
    "steps": tables.STEPS,
    "captions": tables.CAPTIONS,
    "splits": tables.SPLIT,
}


def describe_images(
    scenes: pd.DataFrame, *, test: int = 1000, seed: int = 0
) -> dict[str, pd.DataFrame]:
    """Describe drawn birds at length, and divide them into training and test images.

    Training images get one description each, test images growing ones with wrong details. All
    images also get short captions, on which a CLIP is trained before it is stretched.

    Args:
        scenes: table ``scenes`` of ``dataset.sources.sketch``, and the file name of each image
            (file).
        test: number of test images (test_seen); the others train.

    Returns:
        The tables examples (training descriptions), steps (growing ones), captions (short ones) and
        splits.
    """
    fault = f"{test} of {len(scenes)} images leave fewer than two to train on"
    require(len(scenes) >= test + 2, "specs.test", fault, "lower it")
    scenes = scenes.sort_values("image_id", ignore_index=True)
    splits = scenes[["image_id"]].assign(split="train")
    splits.loc[rng(seed, "describe_images").permutation(len(scenes))[:test], "split"] = "test_seen"
    values = (
        scenes[list(ATTRIBUTES)]
        .astype(object)
        .where(scenes[list(ATTRIBUTES)].notna(), None)
        .to_dict("records")
    )
    frequencies = count_values(values)  # how often a wrong value is drawn
    rows: dict[str, list[tuple]] = {"examples": [], "steps": [], "captions": []}
    for image, file, split, scene in zip(
        scenes["image_id"], scenes["file"], splits["split"], values, strict=True
    ):
        # The words depend on the seed and the image's own scene.
        dice = Dice(rng(seed, "describe_images", image))
        grown = grow(describe_scene(scene, frequencies, dice))
        # each from its own description
        short = [
            shorten(describe_scene(scene, frequencies, dice), dice) for _ in range(SHORT_CAPTIONS)
        ]
        rows["captions"] += [(image, number, None, text) for number, text in enumerate(short)]
        if split == "train":
            rows["examples"].append((file, grown[-1][0]))
        else:
            rows["steps"] += [(file, 0, number, *texts) for number, texts in enumerate(grown)]
    words, count = (
        np.mean([len(text.split()) for _, text in rows["examples"]]),
        len(rows["examples"]),
    )
    log.info(
        "%d training descriptions with %.0f words on average, %d for tests", count, words, test
    )
    result = {
        name: pd.DataFrame(rows[name], columns=list(DESCRIPTION_SCHEMAS[name].columns))
        for name in rows
    }
    return result | {"captions": result["captions"].astype({"class_id": "str"}), "splits": splits}
