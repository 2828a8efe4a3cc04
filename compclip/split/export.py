"""The splits in the published formats, and the train list for people who train generators.

split.pkl: ``{"train": [...], "test_seen": [...], "test_unseen": [...], "heldout_pairs": [...]}``.
data.pkl: ``{image_id: {caption_id: {"text", "swapped_text", "changes_made": {"noun",
"original_adj", "new_adj"}}}}``, The last two are only for a swapped caption; changes_made is the
first change that makes its pair.
"""

import pickle
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from compclip.core.log import log
from compclip.core.published import CHANGE
from compclip.core.tables import SPLITS, Blocks, in_blocks
from compclip.io import json_lines

MOST_PICKLED = 1_000_000


def split_dict(splits: pd.DataFrame, heldout: list[str]) -> dict[str, list[str]]:
    """Return the content of split.pkl; lists are sorted."""
    content = {
        name: sorted(splits.loc[splits["split"] == name, "image_id"].tolist()) for name in SPLITS
    }
    return content | {"heldout_pairs": sorted(heldout)}


def _main_change(changes: list[dict[str, Any]], pair: str) -> dict[str, str]:
    """Return the first change that makes the entry's pair, as changes_made."""
    change = next((c for c in changes if f"{c['new_adj']}_{c['noun']}" == pair), None)
    if change is None:  # in a faulty published split: the change that its file states
        new, _, noun = pair.partition("_")
        change = {
            "noun": noun,
            "original_adj": changes[0]["original_adj"] if len(changes) else "",
            "new_adj": new,
        }
    return {key: _same(key, change[key]) for key in CHANGE}


@cache
def _same(key: str, word: str) -> str:
    """Return one object for equal words, so that pickles of equal content have equal bytes."""
    return word


def data_dict(
    captions: pd.DataFrame, swapped: pd.DataFrame
) -> dict[str, dict[int, dict[str, Any]]]:
    """Return the content of data.pkl: images sorted by id, captions by number."""
    ordered = captions.sort_values(["image_id", "caption_id"])
    content: dict[str, dict[int, dict[str, Any]]] = {}
    for image, number, text in ordered[["image_id", "caption_id", "text"]].itertuples(index=False):
        content.setdefault(image, {})[int(number)] = {"text": text}
    columns = ["image_id", "caption_id", "swapped_text", "changes", "pair"]
    for image, number, text, changes, pair in swapped[columns].itertuples(index=False):
        content[image][int(number)] |= {
            "swapped_text": text,
            "changes_made": _main_change(changes, pair),
        }
    return content


def train_list(captions: pd.DataFrame, images: pd.DataFrame, splits: pd.DataFrame) -> pd.DataFrame:
    """Return image_id, caption_id, file_name (null without a file) and text of the captions of
    train, sorted.
    """
    train = captions[captions["image_id"].isin(splits.loc[splits["split"] == "train", "image_id"])]
    train = train.merge(images[["image_id", "path"]], on="image_id", how="left")
    train = train.sort_values(["image_id", "caption_id"], ignore_index=True)
    return train.rename(columns={"path": "file_name"})[
        ["image_id", "caption_id", "file_name", "text"]
    ]


def export(
    folder: Path,
    captions: Blocks,
    images: Blocks,
    splits: Blocks,
    swapped: Blocks,
    heldout: list[str],
) -> None:
    """Write the files into ``folder``; data.pkl only of up to ``MOST_PICKLED`` captions, because
    readers load it whole.

    Args:
        captions, images, splits, swapped: as in ``tables``; all captions, or blocks of images
            (``tables.in_blocks``).
        heldout: the held-out pairs.
    """
    data: dict[str, dict[int, dict[str, Any]]] = {}
    of_splits, read, trained = list[pd.DataFrame](), 0, 0
    names = (folder / f"train.{ending}" for ending in ("csv", "jsonl"))
    table, lines = (name.open("w", encoding="utf-8", newline="") for name in names)
    with table, lines:
        for texts, files, of, swaps in in_blocks(captions, images, splits, swapped):
            train = train_list(texts, files, of)
            train.to_csv(table, index=False, header=not of_splits, lineterminator="\n")
            lines.writelines(json_lines(train))
            of_splits.append(of)
            read, trained = read + len(texts), trained + len(train)
            if read <= MOST_PICKLED:
                data |= data_dict(texts, swaps)
    # Python 2 reads protocol 2.
    content = split_dict(pd.concat(of_splits), heldout)
    (folder / "split.pkl").write_bytes(pickle.dumps(content, protocol=2))
    if read <= MOST_PICKLED:
        (folder / "data.pkl").write_bytes(pickle.dumps(data, protocol=2))
    else:
        fault = "no data.pkl, because %d captions are more than %d; swapped.parquet has the swaps"
        log.warning(fault, read, MOST_PICKLED)
    log.info("%d captions of train", trained)
