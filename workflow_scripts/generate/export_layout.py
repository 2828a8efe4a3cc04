"""Write the splits in the data layout of AttnGAN, to train its successors on train and to draw the prompts.

DM-GAN, ControlGAN and DF-GAN use AttnGAN's ``datasets.py``. Its data folder contains ``text/<name>.txt`` (a caption a
line), ``train/`` and ``test/`` with ``filenames.pickle`` (a list of names) and ``class_info.pickle`` (their classes),
``captions.pickle`` (captions as numbers, and the words; newer DF-GAN: ``captions_DAMSM.pickle``), and the images:
``CUB_200_2011/images/<name>.jpg`` with ``images.txt`` and ``bounding_boxes.txt`` if the folder's path contains
``birds``, else ``images/<name>.jpg`` (newer DF-GAN, flowers: ``oxford-102-flowers/images``). All of these are written.

One data folder is for training: ``train``, whose ``test`` is test_seen. Each test split has one more, whose names are
prompts, ``<image_id>_<caption_id>``. The samplers draw a random caption of each name, so all lines of a prompt's file
are the prompt. Generator kind ``folder`` reads the images that they write. All folders number the words alike, because
a text encoder trained with one numbering cannot read another. Images are links.
"""

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
from workflow_scripts.core.io import atomic_folder, read_table, safe_id, spreadsheet_safe, write_json, write_text
from workflow_scripts.core.progress import track
from workflow_scripts.core.tables import CAPTIONS, IMAGES, PROMPTS, SPLIT, TESTS
from workflow_scripts.dataset.source import named
from workflow_scripts.generate.steps import ExportLayout

PROTOCOL = 2  # some of the models run on Python 2
BIRDS = "birds"  # in a folder's path, it makes the models crop images around the bounding box
WORDS_READ = (18, 25)  # TEXT.WORDS_NUM of the models' configs, default and birds; longer captions lose random words

Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class Entry:
    """A name in the models' lists: the image that it shows, and its captions, each with at least one word."""

    name: str
    image_id: str
    captions: list[str]


@dataclass(frozen=True)
class Shared:
    """What all data folders share."""

    numbers: dict[str, int]  # by word
    classes: dict[str, int]  # by image
    boxes: dict[str, Box]  # x, y, width and height in pixels, by image
    files: dict[str, Path]  # absolute, by image
    captions: int  # per name; the models need the same number for all


@dataclass(frozen=True)
class Content:
    """The entries of the data folders, and the captions without a word, by name."""

    train: list[Entry]
    seen: list[Entry]
    unseen: list[Entry]
    prompts: dict[str, list[Entry]]
    wordless: list[str]

    @property
    def exported(self) -> list[Entry]:
        """All entries that are written; ``unseen`` only takes part in the numbering of the words."""
        return [*self.train, *self.seen, *(entry for entries in self.prompts.values() for entry in entries)]


def words_of(caption: str) -> list[str]:
    """Split a caption as the models' ``load_captions`` does: lower case, letters and digits, only ASCII."""
    words = re.findall(r"\w+", caption.replace("\ufffd\ufffd", " ").lower())
    return [ascii_word for word in words if (ascii_word := word.encode("ascii", "ignore").decode())]


def cycled(captions: Sequence[str], number: int) -> list[str]:
    return [captions[i % len(captions)] for i in range(number)]


def entries_of(captions: pd.DataFrame, *, prompts: bool = False) -> tuple[list[Entry], list[str]]:
    """Return an entry for each image, or for each prompt, that has a caption with words, sorted by name.

    Also returns ``image_id caption_id`` of each caption without a word.
    """
    rows = captions.drop_duplicates(["image_id", "caption_id"]).sort_values(["image_id", "caption_id"])
    entries: dict[str, Entry] = {}
    wordless = []
    for image_id, caption_id, text in rows[["image_id", "caption_id", "text"]].itertuples(index=False):
        if words_of(text):
            name = f"{image_id}_{caption_id}" if prompts else image_id
            # A line break would split the caption in two.
            entries.setdefault(name, Entry(name, image_id, [])).captions.append(" ".join(text.split()))
        else:
            wordless.append(f"{image_id} {caption_id}")
    return list(entries.values()), wordless


def number_words(entries: Iterable[Entry]) -> dict[str, int]:
    """Return the models' ``wordtoix``: 0 for the end, then words numbered from 1 in order of first occurrence."""
    numbers = {"<end>": 0}
    for entry in entries:
        for caption in entry.captions:
            for word in words_of(caption):
                numbers.setdefault(word, len(numbers))
    return numbers


def number_classes(captions: pd.DataFrame) -> dict[str, int]:
    """Return each image's class number: the class itself if all are numbers; without a class, one of its own."""
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
    """Repeat the first entries up to a multiple of ``batch``, because samplers drop a last batch that is not full."""
    more = -len(entries) % batch
    return entries + [entries[i % len(entries)] for i in range(more)] if entries else []


def boxes_of(images: pd.DataFrame) -> dict[str, Box]:
    """Return the box of each image; the whole image if it has none, so that nothing is cropped."""
    columns = ["image_id", "bbox_x", "bbox_y", "bbox_w", "bbox_h", "width", "height"]
    return {
        image_id: (0.0, 0.0, float(width), float(height)) if pd.isna(x) else (float(x), float(y), float(w), float(h))
        for image_id, x, y, w, h, width, height in images[columns].itertuples(index=False)
    }


def write_pickle(value: Any, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(pickle.dumps(value, protocol=PROTOCOL))


def write_data_folder(folder: Path, final: Path, train: list[Entry], test: list[Entry], shared: Shared) -> None:
    """Fill ``folder``, which is moved to ``final`` (absolute) later: links are relative to ``final``."""
    for split, entries in (("train", train), ("test", test)):
        write_pickle([entry.name for entry in entries], folder / split / "filenames.pickle")
        write_pickle([shared.classes[entry.image_id] for entry in entries], folder / split / "class_info.pickle")
    numbered = [
        [[shared.numbers[w] for w in words_of(c)] for entry in entries for c in cycled(entry.captions, shared.captions)]
        for entries in (train, test)
    ]
    words = {number: word for word, number in shared.numbers.items()}
    write_pickle([*numbered, words, shared.numbers], folder / "captions.pickle")
    os.symlink("captions.pickle", folder / "captions_DAMSM.pickle")
    images = folder / "CUB_200_2011" / "images"
    listed = list({entry.name: entry for entry in [*train, *test]}.values())
    for entry in track(listed, len(listed), f"names of {folder.name}"):
        text = folder / "text" / f"{entry.name}.txt"
        text.parent.mkdir(parents=True, exist_ok=True)
        text.write_text("\n".join(cycled(entry.captions, shared.captions)) + "\n", encoding="utf-8", newline="\n")
        link = images / f"{entry.name}.jpg"
        link.parent.mkdir(parents=True, exist_ok=True)
        os.symlink(os.path.relpath(shared.files[entry.image_id], final / link.parent.relative_to(folder)), link)
    os.symlink("CUB_200_2011/images", folder / "images")
    (folder / "oxford-102-flowers").mkdir()
    os.symlink("../CUB_200_2011/images", folder / "oxford-102-flowers" / "images")
    names = "".join(f"{number} {entry.name}.jpg\n" for number, entry in enumerate(listed, 1))
    write_text(names, images.parent / "images.txt")
    boxes = [" ".join(map(str, shared.boxes[entry.image_id])) for entry in listed]
    write_text("".join(f"{n} {box}\n" for n, box in enumerate(boxes, 1)), images.parent / "bounding_boxes.txt")


def check_images(images: pd.DataFrame, file: Path) -> None:
    if images.empty:
        raise UserError(
            f"{file}: no image has a file; the models train on images, so give the data set its photographs"
        )
    for image_id in images["image_id"]:
        if safe_id(image_id).split() != [image_id]:
            raise UserError(f"{file}: image {image_id!r} has a blank, at which the models split names; rename it")


def collect(captions: pd.DataFrame, split_of: pd.Series, prompts: pd.DataFrame, with_file: set[str]) -> Content:
    """Return the entries of all data folders: only images with a file, and captions with a word."""
    split = captions["image_id"].map(split_of)
    has_file = captions["image_id"].isin(with_file)
    train, wordless = entries_of(captions[(split == "train") & has_file])
    seen, more = entries_of(captions[(split == "test_seen") & has_file])
    unseen, _ = entries_of(captions[split == "test_unseen"])
    wordless += more
    entries: dict[str, list[Entry]] = {}
    for test in TESTS:
        rows = prompts[(prompts["split"] == test) & prompts["image_id"].isin(with_file)]
        entries[test], more = entries_of(rows, prompts=True)
        wordless += [f"{test} {name}" for name in more]
    return Content(train, seen, unseen, entries, wordless)


def summarise(
    content: Content, shared: Shared, batch: int, folders: Iterable[str], images: Iterable[str], prompts: Iterable[str]
) -> dict[str, Any]:
    """Return layout.json; ``images`` are those without a file, ``prompts`` those of images without a file."""
    lengths = [len(words_of(caption)) for entry in content.exported for caption in entry.captions]
    trained = [*content.train, *content.seen]
    return {
        "data_folders": list(folders),
        "captions_per_image": shared.captions,
        "batch": batch,
        "words": len(shared.numbers) - 1,
        "longest_caption": max(lengths),
        "captions_longer_than": {str(most): sum(n > most for n in lengths) for most in WORDS_READ},
        "train": {"images": len(content.train), "test": len(content.seen)},
        "prompts": {split: len(entries) for split, entries in content.prompts.items()},
        "images_repeating_captions": sum(len(entry.captions) < shared.captions for entry in trained),
        "images_without_file": named(sorted(images)),
        "prompts_without_file": named(list(prompts)),
        "captions_without_word": named(content.wordless),
    }


def main(step: ExportLayout) -> None:
    captions, images = read_table(step.captions, CAPTIONS), read_table(step.images, IMAGES)
    images = images[images["path"].notna()]
    check_images(images, step.images)
    with_file = set(images["image_id"])
    prompts = read_table(step.prompts, PROMPTS)
    split_of = read_table(step.splits, SPLIT).set_index("image_id")["split"]
    content = collect(captions, split_of, prompts, with_file)
    if not content.train:
        raise UserError(f"{step.splits}: no image of train has both a file and a caption with words; check both")
    shared = Shared(
        # With all captions of test_unseen, so that the numbers do not depend on which of them are prompts.
        numbers=number_words([*content.train, *content.seen, *content.unseen, *sum(content.prompts.values(), [])]),
        classes=number_classes(captions),
        boxes=boxes_of(images),
        files={
            i: Path(os.path.abspath(step.results / p)) for i, p in zip(images["image_id"], images["path"], strict=True)
        },
        captions=max(len(entry.captions) for entry in content.exported),
    )
    name = BIRDS if images["bbox_x"].notna().any() else step.dataset
    batch = step.layout.batch
    folders = {"train": (content.train, content.seen)}
    # Some models make a loader of both lists, which fails on an empty one.
    folders |= {split: (padded(entries, batch),) * 2 for split, entries in content.prompts.items() if entries}
    links = sum(len({entry.name for entry in [*train, *test]}) for train, test in folders.values())
    log.info("%d links to images, and as many text files", links)
    without = prompts[~prompts["image_id"].isin(with_file)].drop_duplicates(["split", "image_id", "caption_id"])
    summary = summarise(
        content, shared, batch, [f"{name}/{split}" for split in folders], set(split_of.index) - with_file,
        [f"{r.split} {r.image_id} {r.caption_id}" for r in without.itertuples()],
    )  # fmt: skip
    with atomic_folder(step.folder) as folder:
        for split, (train, test) in folders.items():
            final = Path(os.path.abspath(step.folder)) / name / split
            write_data_folder(folder / name / split, final, train, test, shared)
            if split in content.prompts:
                prompt_rows = [
                    (e.name, e.image_id, e.name.rpartition("_")[2], e.captions[0]) for e in content.prompts[split]
                ]
                table = pd.DataFrame(prompt_rows, columns=["name", "image_id", "caption_id", "text"])
                text = spreadsheet_safe(table).to_csv(index=False, lineterminator="\n")
                write_text(text, folder / name / split / "prompts.csv")
        write_json(summary, folder / "layout.json")
    for key in ("images_without_file", "prompts_without_file", "captions_without_word"):
        if summary[key]["count"]:
            log.warning("%s: %d skipped (layout.json)", key.replace("_", " "), summary[key]["count"])
    log.info(
        "for these folders, set TEXT.CAPTIONS_PER_IMAGE to %d and TEXT.WORDS_NUM to %d, which truncates no caption; "
        "to sample, TRAIN.BATCH_SIZE must divide %d",
        shared.captions, summary["longest_caption"], batch,
    )  # fmt: skip


if __name__ == "__main__":
    cli.run(main)
