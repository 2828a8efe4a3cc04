"""Write the splits in the data layout of AttnGAN, to train its successors on train and to draw the
prompts.

``layouts/attngan.yaml`` names the files. One data folder is for training: ``train``, whose ``test``
is test_seen. Each test split has a further folder, whose names are prompts,
``<image_id>_<caption_id>``. The samplers draw a random caption of each name, so all lines of a
prompt's file are the prompt. All folders use the same word numbers, because a text encoder reads
only the numbering of its training. Images are links.
"""

import math
import os
import pickle
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain, cycle, islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from compclip.core.artifacts.files import atomic_folder, write_json
from compclip.core.errors import require
from compclip.core.log import log
from compclip.core.tables import TESTS

ATTNGAN_LAYOUT = Path(__file__).parent / "layouts" / "attngan.yaml"
PROTOCOL = 2  # some of the models run on Python 2
# Names are repeated up to a multiple, because the samplers drop an incomplete last batch.
SAMPLER_BATCH = 100


def model_words(caption: str) -> list[str]:
    """Split a caption as the models' ``load_captions`` does: lower-case ASCII letters and
    digits.
    """
    words = re.findall(r"\w+", caption.replace("\ufffd\ufffd", " ").lower())
    ascii_words = [word.encode("ascii", "ignore").decode() for word in words]
    return [word for word in ascii_words if word]


def list_names(texts: pd.DataFrame, images: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each ``name`` in ``texts`` with an image in ``images`` and a caption that is
    not empty.
    """
    # The models drop captions without words.
    has_words = texts["text"].map(model_words).astype(bool)
    texts = texts[has_words].sort_values(["image_id", "caption_id"])
    # A line break would split the caption in two.
    texts = texts.assign(captions=texts["text"].str.split().str.join(" "))
    columns = {"image_id": "first", "file_name": "first", "captions": list}
    return texts.groupby("name").agg(columns).reset_index().merge(images, on="image_id")


def all_captions(names: pd.DataFrame) -> list[str]:
    """Return the captions of all names, in order."""
    return list(chain.from_iterable(names["captions"]))


def as_numbers(captions: Iterable[str], numbers: Mapping[str, int]) -> list[list[int]]:
    def encoded(caption: str) -> list[int]:
        return [numbers[word] for word in model_words(caption)]

    return [encoded(caption) for caption in captions]


def number_words(captions: Iterable[str]) -> dict[str, int]:
    """Number the words of captions in the order of their first use; 0 is the end of a caption."""
    words = dict.fromkeys(chain.from_iterable(map(model_words, captions)))
    return {word: number for number, word in enumerate(["<end>", *words])}


def number_classes(captions: pd.DataFrame, image_ids: pd.Series) -> np.ndarray:
    """Number the classes of images from 1; an image without a class is its own class."""
    by_image = captions.drop_duplicates("image_id").set_index("image_id")["class_id"]
    classes = by_image.reindex(image_ids)
    numbers, _ = pd.factorize(classes.fillna(classes.index.to_series()))
    return numbers + 1


def repeat_captions(lists: Mapping[str, pd.DataFrame]) -> int:
    """Repeat the captions of each name until all have the same number, and return it.

    The models find a name's captions by its position times this number.
    """
    count = max(len(captions) for names in lists.values() for captions in names["captions"])
    for names in lists.values():
        names["captions"] = [list(islice(cycle(captions), count)) for captions in names["captions"]]
    return count


def fill_batches(names: pd.DataFrame) -> pd.DataFrame:
    """Repeat names up to a multiple of ``SAMPLER_BATCH``."""
    batches = math.ceil(len(names) / SAMPLER_BATCH)
    rows = np.arange(batches * SAMPLER_BATCH) % len(names)
    return names.iloc[rows]


@dataclass(frozen=True)
class Layout:
    """The names of a data folder's files, from ``layouts/attngan.yaml``.

    Attributes:
        pickles: the list and the column that each file contains.
        words: the pickle of the captions as numbers.
        captions: the text file of a name's captions.
        image: the file of a name's image.
        lines: the line of each name in each file.
        links: the targets of further links.
    """

    pickles: dict[str, tuple[str, str]]
    words: str
    captions: str
    image: str
    lines: dict[str, str]
    links: dict[str, str]


def write_data_folder(
    folder: Path, final: Path, lists: Mapping[str, pd.DataFrame], numbers: dict[str, int]
) -> None:
    """Fill ``folder``, which is moved to ``final`` (absolute) later: links are relative to
    ``final``.

    ``lists`` are ``train`` and ``test``, with the same number of captions for each name;
    ``numbers`` maps words.
    """
    layout = Layout(**yaml.safe_load(ATTNGAN_LAYOUT.read_text()))
    pickles: dict[str, Any] = {}
    for file, (list_name, column) in layout.pickles.items():
        pickles[file] = lists[list_name][column].tolist()
    in_numbers = [as_numbers(all_captions(names), numbers) for names in lists.values()]
    # As the models' ``load_text_data`` reads it: both lists, then both dictionaries.
    words = {number: word for word, number in numbers.items()}
    pickles[layout.words] = [*in_numbers, words, numbers]
    # A name may be in both lists, and several times in one of prompts.
    rows = pd.concat(lists.values()).drop_duplicates("name").to_dict("records")
    texts = {}
    for row in rows:
        texts[layout.captions.format_map(row)] = "\n".join(row["captions"]) + "\n"
    for file, line in layout.lines.items():
        lines = [line.format(number=number, **row) + "\n" for number, row in enumerate(rows, 1)]
        texts[file] = "".join(lines)
    links = {}
    for row in rows:
        link = layout.image.format_map(row)
        # Relative, so that the results folder can be moved.
        links[link] = os.path.relpath(row["path"], (final / link).parent)
    links |= layout.links
    for name in [*pickles, *texts, *links]:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
    for name, content in pickles.items():
        (folder / name).write_bytes(pickle.dumps(content, PROTOCOL))
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    for name, target in links.items():
        (folder / name).symlink_to(target)


def layout_images(
    captions: pd.DataFrame, images: pd.DataFrame, results: str | Path
) -> pd.DataFrame:
    """Return the images that have a file, with absolute paths, numbers of classes and boxes; an
    image without a box gets a box around all of it.
    """
    images = images.dropna(subset="path")
    has_blank = images["image_id"].str.contains(r"\s")
    blank = images.loc[has_blank, "image_id"].tolist()
    fault = f"{blank[:1]} has a blank, at which the models split names"
    require(not blank, "images", fault, "rename it")
    # The models crop around the box.
    whole = {"bbox_x": 0.0, "bbox_y": 0.0, "bbox_w": images["width"], "bbox_h": images["height"]}
    images = images.fillna(pd.DataFrame(whole))
    images["class"] = number_classes(captions, images["image_id"])
    images["path"] = os.path.abspath(results) + "/" + images["path"]
    return images


def make_lists(
    captions: pd.DataFrame, images: pd.DataFrame, prompts: pd.DataFrame
) -> dict[str, pd.DataFrame]:
    """Return the names of the lists ``train`` and ``test`` for training, and those of each test
    split, which are its prompts.
    """
    # ``prompts.tsv`` has the column file_name, which only prompts have.
    captions = captions.assign(name=captions["image_id"], file_name="")
    # A name is a caption, whatever the number of its draws.
    prompts = prompts.drop_duplicates(["split", "image_id", "caption_id"])
    prompts = prompts.assign(name=prompts["image_id"] + "_" + prompts["caption_id"].astype(str))
    texts = {
        "train": captions[captions["split"] == "train"],
        "test": captions[captions["split"] == "test_seen"],
    }
    for split in TESTS:
        texts[split] = prompts[prompts["split"] == split]
    return {name: list_names(rows, images) for name, rows in texts.items()}


def export_layout(
    folder: Path,
    captions: pd.DataFrame,
    images: pd.DataFrame,
    splits: pd.DataFrame,
    prompts: pd.DataFrame,
    *,
    dataset: str,
    results: str | Path = "results",
) -> None:
    """Write ``folder``, whose ``layout.json`` names its data folders.

    Args:
        captions, images, splits, prompts: columns of ``CAPTIONS``, ``IMAGES``, ``SPLIT`` and
            ``PROMPTS`` in ``tables``.
        dataset: name of the exported folder if no image has a bounding box.
        results: folder that the paths in ``images`` are relative to.
    """
    captions = captions.merge(splits, on="image_id")
    # The models crop to the box if the folder's path contains "birds".
    has_boxes = images["bbox_x"][images["path"].notna()].notna().any()
    name = "birds" if has_boxes else dataset
    lists = make_lists(captions, layout_images(captions, images, results), prompts)
    fault = "no image of train has a file and a caption"
    require(len(lists["train"]), "images", fault, "add its photographs")

    exported = list(chain.from_iterable(map(all_captions, lists.values())))
    # Also all captions of test_unseen, so that the numbers do not depend on the choice of prompts.
    unseen = captions.loc[captions["split"] == "test_unseen", "text"]
    numbers = number_words([*exported, *unseen])
    longest = max(len(model_words(caption)) for caption in exported)
    summary = {"captions_per_image": repeat_captions(lists), "longest_caption": longest}

    folders = {"train": {"train": lists["train"], "test": lists["test"]}}
    for split in TESTS:
        # Some models fail for an empty list.
        if len(lists[split]):
            folders[split] = dict.fromkeys(("train", "test"), fill_batches(lists[split]))
    final = Path(os.path.abspath(folder)) / name
    with atomic_folder(folder) as unfinished:
        # All with the same numbers, because the text encoder of the training reads only these.
        for split, split_lists in folders.items():
            write_data_folder(unfinished / name / split, final / split, split_lists, numbers)
        data_folders = [f"{name}/{split}" for split in folders]
        write_json({"data_folders": data_folders, **summary}, unfinished / "layout.json")
    log.info("%s: %d data folders, %s", folder, len(folders), summary)
