"""The splits in the published formats, and the train list for people who train generators.

split.pkl: ``{"train": [...], "test_seen": [...], "test_unseen": [...], "heldout_pairs": [...]}``.
data.pkl: ``{image_id: {caption_id: {"text", "swapped_text", "changes_made": {"noun", "original_adj", "new_adj"}}}}``,
The last two are only for a swapped caption; changes_made is the first change that makes its pair.
"""

import pickle
from typing import Any

import pandas as pd

from compclip.core.log import log
from compclip.core.published import CHANGE
from compclip.core.tables import SPLITS
from compclip.io import json_lines


def split_dict(splits: pd.DataFrame, heldout: list[str]) -> dict[str, list[str]]:
    """Return the content of split.pkl; lists are sorted."""
    content = {name: sorted(splits.loc[splits["split"] == name, "image_id"].tolist()) for name in SPLITS}
    return content | {"heldout_pairs": sorted(heldout)}


def _main_change(changes: list[dict[str, Any]], pair: str) -> dict[str, str]:
    """Return the first change that makes the entry's pair, as changes_made."""
    change = next((c for c in changes if f"{c['new_adj']}_{c['noun']}" == pair), None)
    if change is None:  # in a faulty published split: the change that its file states
        new, _, noun = pair.partition("_")
        change = {"noun": noun, "original_adj": changes[0]["original_adj"] if len(changes) else "", "new_adj": new}
    return {key: change[key] for key in CHANGE}


def data_dict(captions: pd.DataFrame, swapped: pd.DataFrame) -> dict[str, dict[int, dict[str, Any]]]:
    """Return the content of data.pkl: images sorted by id, captions by number."""
    ordered = captions.sort_values(["image_id", "caption_id"])
    content: dict[str, dict[int, dict[str, Any]]] = {}
    for image, number, text in ordered[["image_id", "caption_id", "text"]].itertuples(index=False):
        content.setdefault(image, {})[int(number)] = {"text": text}
    columns = ["image_id", "caption_id", "swapped_text", "changes", "pair"]
    for image, number, text, changes, pair in swapped[columns].itertuples(index=False):
        content[image][int(number)] |= {"swapped_text": text, "changes_made": _main_change(changes, pair)}
    return content


def export(
    captions: pd.DataFrame, images: pd.DataFrame, splits: pd.DataFrame, swapped: pd.DataFrame, heldout: list[str]
) -> dict[str, bytes]:
    """Return the contents of the exported files, by file name.

    Args:
        captions, images, splits, swapped: as in ``tables``; all captions.
        heldout: the held-out pairs.
    """
    pickles = {"split.pkl": split_dict(splits, heldout), "data.pkl": data_dict(captions, swapped)}
    train = captions[captions["image_id"].isin(splits.loc[splits["split"] == "train", "image_id"])]
    train = train.merge(images[["image_id", "path"]], on="image_id", how="left")
    train = train.sort_values(["image_id", "caption_id"], ignore_index=True)
    train = train.rename(columns={"path": "file_name"})[["image_id", "caption_id", "file_name", "text"]]
    log.info("%d captions of train", len(train))
    return {
        # Python 2 reads protocol 2.
        **{name: pickle.dumps(content, protocol=2) for name, content in pickles.items()},
        "train.csv": train.to_csv(index=False, lineterminator="\n").encode(),
        "train.jsonl": "".join(json_lines(train)).encode(),
    }
