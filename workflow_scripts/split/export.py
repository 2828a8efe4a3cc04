"""Write the splits in the published formats, and the train list for people who train generators.

split.pkl: ``{"train": [...], "test_seen": [...], "test_unseen": [...], "heldout_pairs": [...]}``.
data.pkl: ``{image_id: {caption_id: {"text", "swapped_text", "changes_made": {"noun", "original_adj", "new_adj"}}}}``,
the last two only where a caption of test_seen was swapped. Of several changes, changes_made holds the first
one that makes the entry's pair; swapped_text has all of them.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pandas as pd

from workflow_scripts.core import cli
from workflow_scripts.core.cli import log
from workflow_scripts.core.heldout import read_heldout
from workflow_scripts.core.io import atomic_folder, json_lines, read_table
from workflow_scripts.core.pickles import plain_pickle
from workflow_scripts.core.tables import CAPTIONS, IMAGES, SPLIT, SPLITS, SWAPPED


def split_dict(splits: pd.DataFrame, heldout: list[str]) -> dict[str, list[str]]:
    """The content of split.pkl; lists sorted."""
    content = {name: sorted(splits.loc[splits["split"] == name, "image_id"].tolist()) for name in SPLITS}
    return content | {"heldout_pairs": sorted(heldout)}


def data_dict(captions: pd.DataFrame, swapped: pd.DataFrame) -> dict[str, dict[int, dict[str, Any]]]:
    """The content of data.pkl: images sorted, captions in the order of their numbers."""
    ordered = captions.sort_values(["image_id", "caption_id"])
    content: dict[str, dict[int, dict[str, Any]]] = {}
    for image, number, text in ordered[["image_id", "caption_id", "text"]].itertuples(index=False):
        content.setdefault(image, {})[int(number)] = {"text": text}
    columns = ["image_id", "caption_id", "swapped_text", "changes", "pair"]
    for image, number, text, changes, pair in swapped[columns].itertuples(index=False):
        made = next((c for c in changes if f"{c['new_adj']}_{c['noun']}" == pair), None)
        if made is None:  # of a published split that was taken with its faults: what it said
            new, _, noun = pair.partition("_")
            made = {"noun": noun, "original_adj": changes[0]["original_adj"] if len(changes) else "", "new_adj": new}
        made = {key: made[key] for key in ("noun", "original_adj", "new_adj")}
        content[image][int(number)] |= {"swapped_text": text, "changes_made": made}
    return content


def train_list(captions: pd.DataFrame, splits: pd.DataFrame, images: pd.DataFrame) -> pd.DataFrame:
    """A row a caption of train: image_id, caption_id, path (relative to the results folder, or null), text."""
    train = captions[captions["image_id"].isin(splits.loc[splits["split"] == "train", "image_id"])]
    train = train.merge(images[["image_id", "path"]], on="image_id", how="left")
    train = train.sort_values(["image_id", "caption_id"], ignore_index=True)
    return train[["image_id", "caption_id", "path", "text"]]


def main(options: argparse.Namespace) -> None:
    captions = read_table(options.captions, CAPTIONS)
    splits = read_table(options.splits, SPLIT)
    swapped = read_table(options.swapped, SWAPPED)
    train = train_list(captions, splits, read_table(options.images, IMAGES))
    with atomic_folder(options.output) as folder:
        for name, content in (
            ("split.pkl", split_dict(splits, read_heldout(options.heldout))),
            ("data.pkl", data_dict(captions, swapped)),
        ):
            (folder / name).write_bytes(plain_pickle(content))
        train.to_csv(folder / "train.csv", index=False, lineterminator="\n")
        (folder / "train.jsonl").write_text(json_lines(train), encoding="utf-8", newline="\n")
    log.info("%s: %d captions of train, %d swapped captions", options.output, len(train), len(swapped))


def arguments() -> argparse.ArgumentParser:
    result = cli.parser(__doc__)
    for name in ("captions", "images", "heldout", "splits", "swapped"):
        result.add_argument(f"--{name}", type=Path, required=True)
    result.add_argument("--output", type=Path, required=True, help="a folder; an existing one is replaced")
    return result


if __name__ == "__main__":
    cli.run(main, arguments())
