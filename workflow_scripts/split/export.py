"""Write the splits in the published formats, and the train list for people who train generators."""

from typing import Any

import pandas as pd

from workflow_scripts.core import cli
from workflow_scripts.core.cli import log
from workflow_scripts.core.heldout import read_heldout
from workflow_scripts.core.io import atomic_folder, json_lines, read_blocks, read_images, read_table, spreadsheet_safe
from workflow_scripts.core.pickles import DictPickler, plain_pickle
from workflow_scripts.core.published import CHANGE
from workflow_scripts.core.tables import CAPTIONS, IMAGES, SPLIT, SPLITS, SWAPPED
from workflow_scripts.split.steps import Export


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
    splits, paths = read_table(step.splits, SPLIT), read_table(step.images, IMAGES, ["image_id", "path"])
    images = read_images(step.captions).sort_values()
    of_train = splits.loc[splits["split"] == "train", "image_id"].sort_values()
    both = read_blocks(images, {step.captions: CAPTIONS, step.swapped: SWAPPED})
    items = (item for block in both for item in data_dict(*block).items())
    n = 0
    with atomic_folder(step.folder) as folder:
        (folder / "split.pkl").write_bytes(plain_pickle(split_dict(splits, read_heldout(step.heldout))))
        with (folder / "data.pkl").open("wb") as file:
            file.writelines(DictPickler(CHANGE).dump(items, len(images)))
        with (
            (folder / "train.csv").open("w", encoding="utf-8", newline="") as csv,
            (folder / "train.jsonl").open("w", encoding="utf-8", newline="\n") as jsonl,
        ):
            for (captions,) in read_blocks(of_train, {step.captions: CAPTIONS}):
                train = train_list(captions, paths)
                spreadsheet_safe(train).to_csv(csv, index=False, header=not csv.tell(), lineterminator="\n")
                jsonl.writelines(json_lines(train))
                n += len(train)
    log.info("%s: %d captions of train", step.folder, n)


if __name__ == "__main__":
    cli.run(main)
