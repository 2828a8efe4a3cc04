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
    shuffled = rng(seed, "describe_images").permutation(len(scenes))
    splits.loc[shuffled[:test], "split"] = "test_seen"
    attributes = scenes[list(ATTRIBUTES)].astype(object)
    # ``describe_scene`` expects None for an attribute that a bird does not have.
    values = attributes.where(attributes.notna(), None).to_dict("records")
    frequencies = count_values(values)  # how often a wrong value is drawn
    rows: dict[str, list[tuple]] = {"examples": [], "steps": [], "captions": []}
    images = zip(scenes["image_id"], scenes["file"], splits["split"], values, strict=True)
    for image_id, file, split, scene in images:
        # The words depend on the seed and the image's own scene.
        dice = Dice(rng(seed, "describe_images", image_id))
        growing = grow(describe_scene(scene, frequencies, dice))
        if split == "train":
            full_text, _ = growing[-1]
            rows["examples"].append((file, full_text))
        else:
            rows["steps"] += [(file, 0, step, *texts) for step, texts in enumerate(growing)]
        for number in range(SHORT_CAPTIONS):
            # each from its own description
            sentences = describe_scene(scene, frequencies, dice)
            rows["captions"].append((image_id, number, None, shorten(sentences, dice)))
    words = np.mean([len(text.split()) for _, text in rows["examples"]])
    message = "%d training descriptions with %.0f words on average, %d for tests"
    log.info(message, len(rows["examples"]), words, test)
    tables_by_name = {"splits": splits}
    for name, table_rows in rows.items():
        columns = list(DESCRIPTION_SCHEMAS[name].columns)
        tables_by_name[name] = pd.DataFrame(table_rows, columns=columns)
    # A column of only None has no type.
    tables_by_name["captions"] = tables_by_name["captions"].astype({"class_id": "str"})
    return tables_by_name
