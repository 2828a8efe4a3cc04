"""Write the splits in the published formats, and the train list for people who train generators."""

import pickle
from typing import Any

import pandas as pd

from compclip.core import cli
from compclip.core.heldout import read_heldout
from compclip.core.log import log
from compclip.core.published import CHANGE
from compclip.core.tables import CAPTIONS, IMAGES, SPLIT, SPLITS, SWAPPED
from compclip.io import atomic_folder, json_lines, read_table, spreadsheet_safe, write_text
from compclip.split.steps import Export


def split_dict(splits: pd.DataFrame, heldout: list[str]) -> dict[str, list[str]]:
    """Return the content of split.pkl; lists are sorted."""
    content = {name: sorted(splits.loc[splits["split"] == name, "image_id"].tolist()) for name in SPLITS}
    return content | {"heldout_pairs": sorted(heldout)}


def _main_change(changes: list[dict[str, Any]], pair: str) -> dict[str, str]:
    """Return the first change that makes the entry's pair, as changes_made."""
    change = next((c for c in changes if f"{c['new_adj']}_{c['noun']}" == pair), None)
    if change is None:  # a published split with this fault: what its file stated
        new, _, noun = pair.partition("_")
        change = {"noun": noun, "original_adj": changes[0]["original_adj"] if len(changes) else "", "new_adj": new}
    return {key: change[key] for key in CHANGE}


def data_dict(captions: pd.DataFrame, swapped: pd.DataFrame) -> dict[str, dict[int, dict[str, Any]]]:
    """Return the content of data.pkl: images sorted, captions in the order of their numbers."""
    ordered = captions.sort_values(["image_id", "caption_id"])
    content: dict[str, dict[int, dict[str, Any]]] = {}
    for image, number, text in ordered[["image_id", "caption_id", "text"]].itertuples(index=False):
        content.setdefault(image, {})[int(number)] = {"text": text}
    columns = ["image_id", "caption_id", "swapped_text", "changes", "pair"]
    for image, number, text, changes, pair in swapped[columns].itertuples(index=False):
        content[image][int(number)] |= {"swapped_text": text, "changes_made": _main_change(changes, pair)}
    return content


def train_list(captions: pd.DataFrame, images: pd.DataFrame) -> pd.DataFrame:
    """Return image_id, caption_id, path (relative to the results folder, or null) and text of captions of train."""
    train = captions.merge(images[["image_id", "path"]], on="image_id", how="left")
    train = train.sort_values(["image_id", "caption_id"], ignore_index=True)
    return train[["image_id", "caption_id", "path", "text"]]


def main(step: Export) -> None:
    splits, captions = read_table(step.splits, SPLIT), read_table(step.captions, CAPTIONS)
    content = {
        "split.pkl": split_dict(splits, read_heldout(step.heldout)),
        "data.pkl": data_dict(captions, read_table(step.swapped, SWAPPED)),
    }
    of_train = captions[captions["image_id"].isin(splits.loc[splits["split"] == "train", "image_id"])]
    train = train_list(of_train, read_table(step.images, IMAGES, ["image_id", "path"]))
    with atomic_folder(step.folder) as folder:
        for name, value in content.items():
            # Protocol 2, which Python 2 reads, too.
            (folder / name).write_bytes(pickle.dumps(value, protocol=2))
        spreadsheet_safe(train).to_csv(folder / "train.csv", index=False, lineterminator="\n")
        write_text(json_lines(train), folder / "train.jsonl")
    log.info("%s: %d captions of train", step.folder, len(train))


if __name__ == "__main__":
    cli.run(main)
