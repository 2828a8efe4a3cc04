"""Caltech-UCSD Birds 200-2011 with Reed's captions, from archives in their published layout.

``CUB_200_2011.tgz`` holds ``images/<class>/<name>.jpg``, ``images.txt`` and ``bounding_boxes.txt``; the captions'
archive ``text/<class>/<name>.txt``, a caption a line. An image's id is ``<class>/<name>``, its class the number
before the dot (``182.Yellow_Warbler`` is 182), a caption's id its line, from 0.
"""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
from pydantic import Field

from workflow_scripts.common.cli import log
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.section import Section
from workflow_scripts.dataset.archive import check_space, contents, unpack
from workflow_scripts.dataset.download import fetch, join
from workflow_scripts.dataset.source import Loaded, named, spread

SHA256 = r"^[0-9a-fA-F]{64}$"
# Folders above are whatever the archive was packed from; `._name` are a Mac's own notes.
_CAPTIONS = re.compile(r"(?:^|.*/)text(?:_c10)?/([^/]+/(?!\._)[^/]+)\.txt")
_IMAGE = re.compile(r"(?:^|.*/)images/([^/]+/(?!\._)[^/]+)\.jpg")


class Settings(Section):
    """Where the two archives are."""

    root: str = Field(min_length=1, description="folder or base address (https, file) of the archives")
    images: str | None = Field("CUB_200_2011.tgz", description="below root, or an address; null for captions alone")
    captions: str = Field("cub_captions.zip", min_length=1, description="below root, or an address")
    images_sha256: str | None = Field(None, pattern=SHA256, description="of the archive; null to trust it")
    captions_sha256: str | None = Field(None, pattern=SHA256, description="of the archive; null to trust it")


def load(settings: Settings, *, seed: int, limit: int | None, folder: Path, cache: Path) -> Loaded:
    """Captions of all classes; photographs of those that the archive holds, copied to ``folder``."""
    archive = fetch(join(settings.root, settings.captions), cache, settings.captions_sha256)
    captions, undecodable = read_captions(archive)
    log.info("%s: %d captions of %d images", archive.name, len(captions), captions["image_id"].nunique())
    if settings.images is None:
        photographs, boxes, listed, archive = {}, {}, [], None
    else:
        archive = fetch(join(settings.root, settings.images), cache, settings.images_sha256)
        photographs, boxes, listed = read_photographs(archive)
        log.info("%s: %d photographs", archive.name, len(photographs))

    described = captions[["image_id", "class_id"]].drop_duplicates()
    with_photograph = described[described["image_id"].isin(photographs)]
    if archive is not None and with_photograph.empty:
        raise UserError(f"{archive}: none of its photographs has a caption in {settings.captions}")
    summary = {
        "photographs_in_archive": len(photographs),
        "photographs_without_captions": named(sorted(set(photographs) - set(described["image_id"]))),
        "photographs_without_bounding_box": named(sorted(set(photographs) - set(boxes))),
        "listed_but_not_in_archive": named(sorted(set(listed) - set(photographs))),
        "caption_files_not_utf8": named(undecodable),
    }
    # A first try is of use only with photographs, where there are any.
    chosen = spread(described if limit is None or archive is None else with_photograph, limit, seed)
    captions = captions[captions["image_id"].isin(chosen)]
    copied = sorted(chosen & set(photographs))
    if archive is not None:
        check_space(sum(photographs[i][1] for i in copied), folder, f"unpacking {len(copied)} photographs")
        unpack(archive, folder, {photographs[i][0]: f"{i}.jpg" for i in copied})
    images = pd.DataFrame({"image_id": sorted(chosen)})
    images["path"] = [f"{i}.jpg" if i in photographs else None for i in images["image_id"]]
    for column, name in enumerate(("bbox_x", "bbox_y", "bbox_w", "bbox_h")):
        images[name] = [
            boxes[i][column] if i in boxes and i in photographs else float("nan") for i in images["image_id"]
        ]
    return Loaded(captions, images, summary=summary)


def read_captions(archive: Path) -> tuple[pd.DataFrame, list[str]]:
    """Image_id, caption_id, class_id, text of every caption file, sorted; the files that are not UTF-8.

    Their bytes that could not be read stand as U+FFFD. Empty lines at a file's end are no captions.
    Raises UserError for an archive without caption files.
    """
    rows: list[tuple[str, int, str, str]] = []
    undecodable = []
    for name, raw in contents(archive, lambda name: _CAPTIONS.fullmatch(name) is not None)[1].items():
        image_id = _CAPTIONS.fullmatch(name)[1]
        try:
            text = raw.decode("utf-8-sig")
        except UnicodeDecodeError:
            text = raw.decode("utf-8-sig", errors="replace")
            undecodable.append(name)
        lines = re.split(r"\r\n|\n|\r", text.rstrip())
        rows.extend((image_id, number, image_id.split("/")[0].split(".")[0], line) for number, line in enumerate(lines))
    if not rows:
        raise UserError(f"{archive}: holds no text/<class>/<name>.txt: is it the captions' archive?")
    table = pd.DataFrame(rows, columns=["image_id", "caption_id", "class_id", "text"])
    return table.sort_values(["image_id", "caption_id"], ignore_index=True), sorted(undecodable)


def read_photographs(
    archive: Path,
) -> tuple[dict[str, tuple[str, int]], dict[str, tuple[float, ...]], list[str]]:
    """By image id: the name in the archive and its bytes; the box x, y, w, h in pixels; and all ids of images.txt.

    Raises UserError for an archive without photographs and for tables that cannot be read.
    """
    wanted = ("images.txt", "bounding_boxes.txt")
    sizes, kept = contents(archive, lambda name: name.rsplit("/", 1)[-1] in wanted)
    photographs = {m[1]: (name, size) for name, size in sizes.items() if (m := _IMAGE.fullmatch(name))}
    if not photographs:
        raise UserError(f"{archive}: holds no images/<class>/<name>.jpg: is it the photographs' archive?")
    tables = {name.rsplit("/", 1)[-1]: raw for name, raw in kept.items()}
    for name in wanted:
        if name not in tables:
            raise UserError(f"{archive}: holds no {name}")
    number_to_id = {
        number: value[0].rsplit(".", 1)[0] for number, value in _numbered(archive, "images.txt", tables, 1).items()
    }
    boxes = {}
    for number, values in _numbered(archive, "bounding_boxes.txt", tables, 4).items():
        if number in number_to_id:
            try:
                boxes[number_to_id[number]] = tuple(float(v) for v in values)
            except ValueError as error:
                raise UserError(f"{archive}: bounding_boxes.txt: image {number}: {error}") from error
    return photographs, boxes, sorted(number_to_id.values())


def _numbered(archive: Path, name: str, tables: dict[str, bytes], fields: int) -> dict[str, list[str]]:
    """Lines `number value…` of one of the archive's tables, by number."""
    found: dict[str, list[str]] = {}
    for number, line in enumerate(tables[name].decode("utf-8", errors="replace").splitlines(), 1):
        words = line.split()
        if not words:
            continue
        if len(words) != fields + 1:
            raise UserError(f"{archive}: {name}: line {number}: {len(words)} words, expected {fields + 1}")
        if words[0] in found:
            raise UserError(f"{archive}: {name}: line {number}: number {words[0]} stands twice")
        found[words[0]] = words[1:]
    return found
