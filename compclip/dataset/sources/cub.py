"""Caltech-UCSD Birds 200-2011 with Reed's captions, from archives in their published layout.

``CUB_200_2011.tgz`` contains ``images/<class>/<name>.jpg``, ``images.txt`` and ``bounding_boxes.txt``; the archive of
the captions ``text_c10/<class>/<name>.txt`` (or ``text/…``), a caption a line. An image's id is ``<class>/<name>``, its
class the number before the dot (``182.Yellow_Warbler`` is 182), a caption's id its line, from 0.

Seventeen classes have other names in Reed's archive (``009.Brewers_Blackbird``) than in Caltech's: a caption file
belongs to the photograph of its name, else to the one with the same class number and the same two numbers at its end.
"""

import re
from collections.abc import Iterable
from pathlib import Path

import pandas as pd
from pydantic import Field

from compclip.core.errors import UserError, require
from compclip.core.log import log
from compclip.dataset.archive import contents
from compclip.dataset.download import Published, google_drive, obtain
from compclip.dataset.reed import PLACE, Files, Names, NamesOrNone, read_caption_files, take
from compclip.dataset.source import Loaded, named

PHOTOGRAPHS = "CUB_200_2011.tgz"
CAPTIONS = "cvpr2016_cub.tar.gz"
PUBLISHED = {
    PHOTOGRAPHS: Published(
        (
            "https://data.caltech.edu/records/65de6-vp158/files/CUB_200_2011.tgz",
            "https://s3.amazonaws.com/fast-ai-imageclas/CUB_200_2011.tgz",
        ),
        # From TensorFlow Datasets.
        "0c685df5597a8b24909f6a7c9db6d11e008733779a671760afef78feb49bf081",
    ),
    CAPTIONS: Published((google_drive("0B0ywwgffWnLLZW9uVHNjb2JmNlE", "0-8y2UVmBHAlG26HafWYNoFQ"),)),
}

# Archives may be packed with any folders above; a Mac adds files `._name`.
_CAPTIONS = re.compile(r"(?:^|.*/)text(?:_c10)?/([^/]+/(?!\._)[^/]+)\.txt")
_IMAGE = re.compile(r"(?:^|.*/)images/([^/]+/(?!\._)[^/]+)\.jpg")
_NUMBERS = re.compile(r"(\d+)\.[^/]+/.*?(\d+_\d+)")


class Settings(Files):
    """Where the two archives are; by default, at their public addresses."""

    published = PUBLISHED

    images: NamesOrNone = Field(PHOTOGRAPHS, description=f"{PLACE}; null: only captions")
    captions: Names = Field([CAPTIONS, "cub_captions.zip"], description=PLACE)


def load(settings: Settings, *, seed: int, limit: int | None, folder: Path, cache: Path) -> Loaded:
    """Read the captions of all classes, and copy the photographs that the archive contains to ``folder``."""
    obtained = {key: obtain(places, cache) for key, places in settings.places().items()}
    archives = {key: path for key, (path, _) in obtained.items()}
    captions, undecodable = read_captions(archives["captions"])
    log.info("%s: %d captions of %d images", archives["captions"].name, len(captions), captions["image_id"].nunique())
    photographs: dict[str, tuple[str, int]] = {}
    boxes: dict[str, tuple[float, ...]] = {}
    listed, renamed = list[str](), dict[str, str]()
    if "images" in archives:
        photographs, boxes, listed = read_photographs(archives["images"])
        log.info("%s: %d photographs", archives["images"].name, len(photographs))
        renamed = renames(captions["image_id"].unique(), {*photographs, *listed})
        captions["image_id"] = captions["image_id"].replace(renamed)
        captions = captions.sort_values(["image_id", "caption_id"], ignore_index=True)

    described = set(captions["image_id"])
    summary = {
        "files": {key: about for key, (_, about) in obtained.items()},
        "photographs_in_archive": len(photographs),
        "photographs_without_captions": named(sorted(set(photographs) - described)),
        "photographs_without_bounding_box": named(sorted(set(photographs) - set(boxes))),
        "listed_but_not_in_archive": named(sorted(set(listed) - set(photographs))),
        "caption_files_of_another_name": named([f"{old} is {new}" for old, new in sorted(renamed.items())]),
        "caption_files_not_utf8": named(undecodable),
    }
    captions, images = take(captions, photographs, archives.get("images"), limit=limit, seed=seed, folder=folder)
    for column, name in enumerate(("bbox_x", "bbox_y", "bbox_w", "bbox_h")):
        known = {i: box[column] for i, box in boxes.items() if i in photographs}
        images[name] = [known.get(i, float("nan")) for i in images["image_id"]]
    return Loaded(captions, images, summary=summary)


def read_captions(archive: Path) -> tuple[pd.DataFrame, list[str]]:
    """Return image_id, caption_id, class_id and text of all captions, sorted; and the files that are not UTF-8."""
    table, undecodable = read_caption_files(archive, _CAPTIONS, "text/<class>/<name>.txt")
    table = table.rename(columns={"name": "image_id"})
    table["class_id"] = [i.split("/")[0].split(".")[0] for i in table["image_id"]]
    return table[["image_id", "caption_id", "class_id", "text"]], undecodable


def renames(ids: Iterable[str], known: set[str]) -> dict[str, str]:
    """Map unknown ids to the known id with the same numbers, if exactly one such id is not taken."""
    ids = set(ids)
    numbers: dict[tuple[str, ...], list[str]] = {}
    for image_id in known - ids:
        if match := _NUMBERS.fullmatch(image_id):
            numbers.setdefault(match.groups(), []).append(image_id)
    wanted: dict[str, list[str]] = {}
    for image_id in ids - known:
        match = _NUMBERS.fullmatch(image_id)
        free = numbers.get(match.groups(), []) if match else []
        if len(free) == 1:
            wanted.setdefault(free[0], []).append(image_id)
    return {old[0]: new for new, old in wanted.items() if len(old) == 1}


def read_photographs(archive: Path) -> tuple[dict[str, tuple[str, int]], dict[str, tuple[float, ...]], list[str]]:
    """List the photographs of an archive.

    Returns:
        The name in the archive and the size in bytes, by image_id; the box x, y, w, h in pixels, by image_id; all
        image_ids of images.txt.
    """
    wanted = ("images.txt", "bounding_boxes.txt")
    sizes, kept = contents(archive, lambda name: name.rsplit("/", 1)[-1] in wanted)
    photographs = {m[1]: (name, size) for name, size in sizes.items() if (m := _IMAGE.fullmatch(name))}
    require(photographs, archive, "contains no images/<class>/<name>.jpg", "give the archive of the photographs")
    tables = {name.rsplit("/", 1)[-1]: raw for name, raw in kept.items()}
    for name in wanted:
        require(name in tables, archive, f"contains no {name}", "get the archive again")
    numbered = _numbered(archive, "images.txt", tables, 1)
    number_to_id = {number: name.rsplit(".", 1)[0] for number, (name,) in numbered.items()}
    boxes = {}
    for number, values in _numbered(archive, "bounding_boxes.txt", tables, 4).items():
        if number in number_to_id:
            try:
                boxes[number_to_id[number]] = tuple(float(v) for v in values)
            except ValueError as error:
                raise UserError(f"{archive}: bounding_boxes.txt: image {number}: {error}; get it again") from error
    return photographs, boxes, sorted(number_to_id.values())


def _numbered(archive: Path, name: str, tables: dict[str, bytes], fields: int) -> dict[str, list[str]]:
    """Return the values of the lines ``number value…`` of one of the archive's tables, by number."""
    rows: dict[str, list[str]] = {}
    for number, line in enumerate(tables[name].decode("utf-8", errors="replace").splitlines(), 1):
        words = line.split()
        if not words:
            continue
        where = f"{archive}: {name}: line {number}"
        require(len(words) == fields + 1, where, f"expected {fields + 1} words, got {len(words)}", "get it again")
        require(words[0] not in rows, where, f"duplicate number {words[0]}", "get it again")
        rows[words[0]] = words[1:]
    return rows
