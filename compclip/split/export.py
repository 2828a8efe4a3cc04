"""The splits in the published formats, and the train list for people who train generators.

split.pkl: ``{"train": [...], "test_seen": [...], "test_unseen": [...], "heldout_pairs": [...]}``.
data.pkl: ``{image_id: {caption_id: {"text", "swapped_text", "changes_made": {"noun",
"original_adj", "new_adj"}}}}``. The last two are only for a swapped caption; changes_made is the
first change that makes its pair.
"""

import pickle
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from compclip.core.artifacts.files import json_lines
from compclip.core.log import log
from compclip.core.reading.published_files import CHANGE
from compclip.core.tables import CAPTION_KEY, SPLITS, Blocks, in_blocks

MOST_PICKLED = 1_000_000  # captions


def split_dict(splits: pd.DataFrame, heldout: list[str]) -> dict[str, list[str]]:
    """Return the content of split.pkl; lists are sorted."""
    content = {}
    for name in SPLITS:
        images = splits.loc[splits["split"] == name, "image_id"]
        content[name] = sorted(images.tolist())
    content["heldout_pairs"] = sorted(heldout)
    return content


def _main_change(changes: list[dict[str, Any]], pair: str) -> dict[str, str]:
    """Return the first change that makes the entry's pair, as changes_made."""
    for change in changes:
        if f"{change['new_adj']}_{change['noun']}" == pair:
            return {key: _same(key, change[key]) for key in CHANGE}
    # In a faulty published split: the change that its file states.
    new, _, noun = pair.partition("_")
    original = changes[0]["original_adj"] if len(changes) else ""
    published = {"noun": noun, "original_adj": original, "new_adj": new}
    return {key: _same(key, published[key]) for key in CHANGE}


@cache
def _same(key: str, word: str) -> str:
    """Return one object for equal words, so that pickles of equal content have equal bytes."""
    return word


def data_dict(
    captions: pd.DataFrame, swapped: pd.DataFrame
) -> dict[str, dict[int, dict[str, Any]]]:
    """Return the content of data.pkl: images sorted by id, captions by number."""
    content: dict[str, dict[int, dict[str, Any]]] = {}
    ordered = captions.sort_values(CAPTION_KEY)
    for image, number, text in ordered[[*CAPTION_KEY, "text"]].itertuples(index=False):
        # Numbers of Python, because pickles of numpy's need numpy.
        content.setdefault(image, {})[int(number)] = {"text": text}
    columns = [*CAPTION_KEY, "swapped_text", "changes", "pair"]
    for image, number, text, changes, pair in swapped[columns].itertuples(index=False):
        entry = content[image][int(number)]
        entry["swapped_text"] = text
        entry["changes_made"] = _main_change(changes, pair)
    return content


def train_list(captions: pd.DataFrame, images: pd.DataFrame, splits: pd.DataFrame) -> pd.DataFrame:
    """Return image_id, caption_id, file_name (null without a file) and text of the captions of
    train, sorted.
    """
    train_ids = splits.loc[splits["split"] == "train", "image_id"]
    train = captions[captions["image_id"].isin(train_ids)]
    # An image without a file stays, with a null file_name.
    train = train.merge(images[["image_id", "path"]], on="image_id", how="left")
    train = train.sort_values(CAPTION_KEY, ignore_index=True)
    named = train.rename(columns={"path": "file_name"})
    return named[[*CAPTION_KEY, "file_name", "text"]]


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
    split_tables: list[pd.DataFrame] = []
    read = 0  # captions
    trained = 0
    with (
        (folder / "train.csv").open("w", encoding="utf-8", newline="") as table,
        (folder / "train.jsonl").open("w", encoding="utf-8", newline="") as lines,
    ):
        for texts, files, split_table, swaps in in_blocks(captions, images, splits, swapped):
            train = train_list(texts, files, split_table)
            is_first = not split_tables
            train.to_csv(table, index=False, header=is_first, lineterminator="\n")
            lines.writelines(json_lines(train))
            split_tables.append(split_table)
            read += len(texts)
            trained += len(train)
            if read <= MOST_PICKLED:
                data |= data_dict(texts, swaps)
    content = split_dict(pd.concat(split_tables), heldout)
    _pickle(content, folder / "split.pkl")
    if read <= MOST_PICKLED:
        _pickle(data, folder / "data.pkl")
    else:
        fault = "no data.pkl, because %d captions are more than %d; swapped.parquet has the swaps"
        log.warning(fault, read, MOST_PICKLED)
    log.info("%d captions of train", trained)


def _pickle(content: object, path: Path) -> None:
    # Python 2 reads protocol 2.
    path.write_bytes(pickle.dumps(content, protocol=2))
