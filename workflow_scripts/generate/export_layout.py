"""Write the splits in the layout that AttnGAN's kin read, so that they train on train and draw the prompts.

DM-GAN, ControlGAN and DF-GAN take over AttnGAN's ``datasets.py``. A data folder of theirs holds ``text/<name>.txt`` (a
caption a line), ``train/`` and ``test/`` with ``filenames.pickle`` (a list of names) and ``class_info.pickle`` (their
classes), ``captions.pickle`` (captions as numbers, and the words; newer DF-GAN: ``captions_DAMSM.pickle``), and the
images: ``CUB_200_2011/images/<name>.jpg`` with ``images.txt`` and ``bounding_boxes.txt`` where the folder's path has
``birds`` in it, else ``images/<name>.jpg`` (newer DF-GAN, flowers: ``oxford-102-flowers/images``). All are written.

There is a data folder to train from, ``train``, whose ``test`` is test_seen, and one for each test split, whose names
are prompts, ``<image_id>_<caption_id>``. Their samplers draw one caption of a name by chance: all lines of a prompt's
file are the prompt. What they then write, the generator kind ``folder`` reads. All folders share one numbering of the
words, without which a text encoder trained in one would read nonsense in another. Images are links.
"""

from __future__ import annotations

import argparse
import os
import pickle
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from workflow_scripts.core import cli
from workflow_scripts.core.cli import log
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import atomic_folder, read_table, safe_id, write_json, write_text
from workflow_scripts.core.progress import track
from workflow_scripts.core.tables import CAPTIONS, IMAGES, PROMPTS, SPLIT, TESTS
from workflow_scripts.dataset.source import named

# Of Python 2 too, which some of them run on.
PROTOCOL = 2
# Their code takes the crop around the bounding box where the folder's path says so.
BIRDS = "birds"
# Longer captions lose words by chance there: TEXT.WORDS_NUM of their configs, by default and for birds.
WORDS_READ = (18, 25)


@dataclass(frozen=True)
class Entry:
    """A name of their lists: the image that it shows, and its captions, all with words, all of one number a folder."""

    name: str
    image_id: str
    captions: list[str]


def words_of(caption: str) -> list[str]:
    """The words that their ``load_captions`` makes of a caption: lower case, letters and digits, ASCII alone."""
    found = re.findall(r"\w+", caption.replace("\ufffd\ufffd", " ").lower())
    return [word for raw in found if (word := raw.encode("ascii", "ignore").decode())]


def cycled(captions: Sequence[str], number: int) -> list[str]:
    """``number`` captions: the first ones again where there are fewer. Theirs must be as many for each image."""
    return [captions[i % len(captions)] for i in range(number)]


def image_entries(captions: pd.DataFrame, image_ids: Iterable[str]) -> tuple[list[Entry], list[str]]:
    """An entry an image, in the order of the ids, and the captions without a word, ``image_id caption_id``.

    captions: image_id, caption_id, text. An image without any other caption has no entry.
    """
    wanted = sorted(image_ids)
    rows = captions[captions["image_id"].isin(wanted)].sort_values(["image_id", "caption_id"])
    texts: dict[str, list[str]] = {}
    wordless = []
    for image_id, caption_id, text in rows[["image_id", "caption_id", "text"]].itertuples(index=False):
        if words_of(text):
            # A line break would make two captions of one.
            texts.setdefault(image_id, []).append(" ".join(text.split()))
        else:
            wordless.append(f"{image_id} {caption_id}")
    return [Entry(i, i, texts[i]) for i in wanted if i in texts], wordless


def prompt_entries(prompts: pd.DataFrame) -> tuple[list[Entry], list[str]]:
    """An entry a prompt, whatever its draws, and the prompts without a word.

    prompts: image_id, caption_id, text of one split.
    """
    rows = prompts.drop_duplicates(["image_id", "caption_id"]).sort_values(["image_id", "caption_id"])
    entries, wordless = [], []
    for image_id, caption_id, text in rows[["image_id", "caption_id", "text"]].itertuples(index=False):
        if words_of(text):
            entries.append(Entry(f"{image_id}_{caption_id}", image_id, [" ".join(text.split())]))
        else:
            wordless.append(f"{image_id} {caption_id}")
    return entries, wordless


def number_words(entries: Iterable[Entry]) -> dict[str, int]:
    """Their ``wordtoix``: 0 is the end, the words are numbered from 1 as they occur first."""
    numbers = {"<end>": 0}
    for entry in entries:
        for caption in entry.captions:
            for word in words_of(caption):
                numbers.setdefault(word, len(numbers))
    return numbers


def number_classes(captions: pd.DataFrame) -> dict[str, int]:
    """A number for the class of each image: its own where all are numbers; an image without a class has one alone."""
    classes = captions.drop_duplicates("image_id").sort_values("image_id").set_index("image_id")["class_id"]
    known = classes.dropna()
    if all(re.fullmatch(r"\d{1,9}", name) for name in known):
        numbers = {name: int(name) for name in known.unique()}
    else:
        numbers = {name: number for number, name in enumerate(sorted(known.unique()), 1)}
    result = {image_id: numbers[name] for image_id, name in known.items()}
    alone = classes.index[classes.isna()]
    return result | {image_id: number for number, image_id in enumerate(alone, max(result.values(), default=0) + 1)}


def padded(entries: list[Entry], batch: int) -> list[Entry]:
    """``entries`` and the first ones again, a multiple of ``batch``: their samplers drop what fills no batch."""
    more = -len(entries) % batch
    return entries + [entries[i % len(entries)] for i in range(more)] if entries else []


def boxes_of(images: pd.DataFrame) -> dict[str, tuple[float, float, float, float]]:
    """x, y, width, height in pixels by image; the whole image where it has no box, around which nothing is cut off."""
    columns = ["image_id", "bbox_x", "bbox_y", "bbox_w", "bbox_h", "width", "height"]
    return {
        image_id: (0.0, 0.0, float(width), float(height)) if pd.isna(x) else (float(x), float(y), float(w), float(h))
        for image_id, x, y, w, h, width, height in images[columns].itertuples(index=False)
    }


@dataclass(frozen=True)
class Layout:
    """What all data folders share.

    numbers: of the words. classes, boxes (pixels), files (absolute): of the images. captions: how many a name has.
    """

    numbers: dict[str, int]
    classes: dict[str, int]
    boxes: dict[str, tuple[float, float, float, float]]
    files: dict[str, Path]
    captions: int


def write_data_folder(folder: Path, final: Path, train: list[Entry], test: list[Entry], layout: Layout) -> None:
    """Fill ``folder``, which will lie at ``final`` (absolute): the links are relative to where they will be."""
    for split, entries in (("train", train), ("test", test)):
        write_pickle([entry.name for entry in entries], folder / split / "filenames.pickle")
        write_pickle([layout.classes[entry.image_id] for entry in entries], folder / split / "class_info.pickle")
    numbered = [
        [[layout.numbers[w] for w in words_of(c)] for entry in part for c in cycled(entry.captions, layout.captions)]
        for part in (train, test)
    ]
    words = {number: word for word, number in layout.numbers.items()}
    write_pickle([*numbered, words, layout.numbers], folder / "captions.pickle")
    os.symlink("captions.pickle", folder / "captions_DAMSM.pickle")
    images = folder / "CUB_200_2011" / "images"
    listed = list({entry.name: entry for entry in [*train, *test]}.values())
    for entry in track(listed, len(listed), f"names of {folder.name}"):
        text = folder / "text" / f"{entry.name}.txt"
        text.parent.mkdir(parents=True, exist_ok=True)
        text.write_text("\n".join(cycled(entry.captions, layout.captions)) + "\n", encoding="utf-8", newline="\n")
        link = images / f"{entry.name}.jpg"
        link.parent.mkdir(parents=True, exist_ok=True)
        os.symlink(os.path.relpath(layout.files[entry.image_id], final / link.parent.relative_to(folder)), link)
    os.symlink("CUB_200_2011/images", folder / "images")
    (folder / "oxford-102-flowers").mkdir()
    os.symlink("../CUB_200_2011/images", folder / "oxford-102-flowers" / "images")
    boxes = [layout.boxes[entry.image_id] for entry in listed]
    write_text(
        "".join(f"{number} {entry.name}.jpg\n" for number, entry in enumerate(listed, 1)),
        images.parent / "images.txt",
    )
    write_text(
        "".join(f"{number} {x} {y} {w} {h}\n" for number, (x, y, w, h) in enumerate(boxes, 1)),
        images.parent / "bounding_boxes.txt",
    )


def write_pickle(value: Any, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(pickle.dumps(value, protocol=PROTOCOL))


def main(options: argparse.Namespace) -> None:
    captions = read_table(options.captions, CAPTIONS)
    images = read_table(options.images, IMAGES)
    splits = read_table(options.splits, SPLIT)
    prompts = read_table(options.prompts, PROMPTS)
    where = f"{options.dataset}/{options.composition}"
    there = images[images["path"].notna()]
    with_file = set(there["image_id"])
    if not with_file:
        raise UserError(f"{options.images}: no image has a file, and the models train on images: give the photographs")
    for image_id in with_file:
        if safe_id(image_id).split() != [image_id]:
            raise UserError(
                f"{options.images}: image {image_id!r} has a blank, at which their readers split: rename it"
            )
    split_of = splits.set_index("image_id")["split"]
    train, wordless = image_entries(captions, with_file & set(split_of.index[split_of == "train"]))
    seen, more = image_entries(captions, with_file & set(split_of.index[split_of == "test_seen"]))
    wordless += more
    asked = {split: prompts[prompts["split"] == split] for split in TESTS}
    drawn: dict[str, list[Entry]] = {}
    for split, part in asked.items():
        drawn[split], more = prompt_entries(part[part["image_id"].isin(with_file)])
        wordless += [f"{split} {name}" for name in more]
    if not train:
        raise UserError(f"{where}: no image of train has both a file and a caption with words")
    prompted = [entry for part in drawn.values() for entry in part]
    every = [*train, *seen, *prompted]
    # With the captions that are no prompts: other prompts of the same splits then number the words alike.
    unseen, _ = image_entries(captions, split_of.index[split_of == "test_unseen"])
    layout = Layout(
        numbers=number_words([*train, *seen, *unseen, *prompted]),
        classes=number_classes(captions),
        boxes=boxes_of(there),
        files={
            i: Path(os.path.abspath(options.results / path))
            for i, path in zip(there["image_id"], there["path"], strict=True)
        },
        captions=max(len(entry.captions) for entry in every),
    )
    name = BIRDS if there["bbox_x"].notna().any() else options.dataset
    folders = {"train": (train, seen)}
    # Some of their code makes a loader of both lists, and an empty one is an error.
    folders |= {split: (padded(part, options.batch),) * 2 for split, part in drawn.items() if part}
    files = sum(len({entry.name for entry in [*first, *second]}) for first, second in folders.values())
    log.info("%s: %d links to images, and as many text files", where, files)
    with atomic_folder(options.output) as folder:
        for split, (first, second) in folders.items():
            final = Path(os.path.abspath(options.output)) / name / split
            write_data_folder(folder / name / split, final, first, second, layout)
            if split in drawn:
                write_text(prompt_list(drawn[split]), folder / name / split / "prompts.csv")
        lengths = [len(words_of(caption)) for entry in every for caption in entry.captions]
        summary = {
            "data_folders": [f"{name}/{split}" for split in folders],
            "captions_per_image": layout.captions,
            "batch": options.batch,
            "words": len(layout.numbers) - 1,
            "longest_caption": max(lengths),
            "captions_longer_than": {str(most): sum(n > most for n in lengths) for most in WORDS_READ},
            "train": {"images": len(train), "test": len(seen)},
            "prompts": {split: len(part) for split, part in drawn.items()},
            "images_repeating_captions": sum(len(entry.captions) < layout.captions for entry in [*train, *seen]),
            "images_without_file": named(sorted(set(split_of.index) - with_file)),
            "prompts_without_file": named(names_without(prompts, with_file)),
            "captions_without_word": named(wordless),
        }
        write_json(summary, folder / "layout.json")
    for key in ("images_without_file", "prompts_without_file", "captions_without_word"):
        if summary[key]["count"]:
            log.warning("%s: %s: %d left out (layout.json)", where, key.replace("_", " "), summary[key]["count"])
    log.info(
        "%s: for these folders TEXT.CAPTIONS_PER_IMAGE is %d, TEXT.WORDS_NUM %d loses no word, and to sample "
        "TRAIN.BATCH_SIZE must divide %d",
        where,
        layout.captions,
        max(lengths),
        options.batch,
    )


def names_without(prompts: pd.DataFrame, with_file: set[str]) -> list[str]:
    """The prompts of images without a file, ``split image_id caption_id``."""
    rows = prompts[~prompts["image_id"].isin(with_file)].drop_duplicates(["split", "image_id", "caption_id"])
    return [f"{r.split} {r.image_id} {r.caption_id}" for r in rows.itertuples()]


def prompt_list(entries: list[Entry]) -> str:
    """CSV: which name is which prompt."""
    rows = [(e.name, e.image_id, e.name.rpartition("_")[2], e.captions[0]) for e in entries]
    return pd.DataFrame(rows, columns=["name", "image_id", "caption_id", "text"]).to_csv(
        index=False, lineterminator="\n"
    )


def arguments() -> argparse.ArgumentParser:
    result = cli.parser(__doc__)
    for name in ("captions", "images", "splits", "prompts"):
        result.add_argument(f"--{name}", type=Path, required=True, metavar="FILE")
    result.add_argument("--batch", type=int, default=100, help="what the sampler's batch size divides (%(default)s)")
    result.add_argument("--results", type=Path, default=Path("results"), metavar="FOLDER")
    result.add_argument("--dataset", required=True, metavar="NAME")
    result.add_argument("--composition", required=True, metavar="NAME")
    result.add_argument("--output", type=Path, required=True, metavar="FOLDER")
    return result


if __name__ == "__main__":
    cli.run(main, arguments())
