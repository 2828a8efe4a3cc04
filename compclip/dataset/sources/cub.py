"""Caltech-UCSD Birds 200-2011 with Reed's captions, from archives in their published layout.

``CUB_200_2011.tgz`` contains ``images/<class>/<name>.jpg``, ``images.txt`` and
``bounding_boxes.txt``; the archive of the captions ``text_c10/<class>/<name>.txt`` (or ``text/…``),
one caption per line. An image's id is ``<class>/<name>``, its class the number before the dot
(``182.Yellow_Warbler`` is 182), a caption's id its line number, from 0.

Seventeen classes have other names in Reed's archive (``009.Brewers_Blackbird``) than in Caltech's:
a caption file belongs to the photograph of its name, else to the one with the same class number and
the same two numbers at its end.
"""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field

from compclip.core.errors import UserError, require
from compclip.dataset.archive import contents
from compclip.dataset.download import FileLocation, google_drive
from compclip.dataset.reed_captions import WHERE, ArchiveLayout, Photographs, ReedFiles, take_images
from compclip.dataset.source import BOX, Loaded, named

if TYPE_CHECKING:
    import pandas as pd

IMAGES_FILE = "CUB_200_2011.tgz"
CAPTIONS_FILE = "cvpr2016_cub.tar.gz"
PUBLISHED_FILES = {
    IMAGES_FILE: FileLocation(
        "https://data.caltech.edu/records/65de6-vp158/files/CUB_200_2011.tgz",
        # from TensorFlow Datasets
        "0c685df5597a8b24909f6a7c9db6d11e008733779a671760afef78feb49bf081",
    ),
    CAPTIONS_FILE: FileLocation(
        google_drive("0B0ywwgffWnLLZW9uVHNjb2JmNlE", "0-8y2UVmBHAlG26HafWYNoFQ")
    ),
}
# macOS adds files `._name`.
CUB_LAYOUT = ArchiveLayout(
    r"(?:^|.*/)text(?:_c10)?/(?P<image_id>(?P<class_id>[^/.]*)[^/]*/(?!\._)[^/]+)\.txt",
    "text/<class>/<name>.txt",
    r"(?:^|.*/)images/([^/]+/(?!\._)[^/]+)\.jpg",
    "images/<class>/<name>.jpg",
)
# The class number, and the two numbers at the end of an id.
_NUMBERS = re.compile(r"(\d+)\.[^/]+/.*?(\d+_\d+)")


class Settings(ReedFiles):
    """The locations of the two archives; by default, their public addresses."""

    published = PUBLISHED_FILES

    images: str | None = Field(
        IMAGES_FILE, min_length=1, description=f"{WHERE}; null: only captions"
    )
    captions: str = Field(CAPTIONS_FILE, min_length=1, description=WHERE)


def load(settings: Settings, *, seed: int, limit: int | None, folder: Path, cache: Path) -> Loaded:
    """Read the captions of all classes, and copy the photographs that the archive contains to
    ``folder``.
    """
    import pandas as pd

    files, digests = settings.obtain(cache)
    captions, undecodable = CUB_LAYOUT.read_captions(files["captions"])
    # Without photographs, there are no boxes, and no ids but those of the captions.
    photographs: Photographs = {}
    boxes = pd.DataFrame(columns=BOX, dtype="float64")
    listed = set[str]()
    if "images" in files:
        photographs, boxes, listed = read_photographs(files["images"])
    # images.txt also has the ids of photographs that an incomplete archive lacks.
    renamed = renames(captions["image_id"].unique(), {*photographs, *listed})
    captions["image_id"] = captions["image_id"].replace(renamed)
    captions = captions[["image_id", "caption_id", "class_id", "text"]]
    # Other names sort otherwise.
    captions = captions.sort_values(["image_id", "caption_id"], ignore_index=True)
    without_captions = set(photographs) - set(captions["image_id"])
    without_box = set(photographs) - set(boxes.index)
    renaming = [f"{old} is {new}" for old, new in sorted(renamed.items())]
    summary = {
        "files": digests,
        "photographs_in_archive": len(photographs),
        "photographs_without_captions": named(sorted(without_captions)),
        "photographs_without_bounding_box": named(sorted(without_box)),
        "listed_but_not_in_archive": named(sorted(listed - set(photographs))),
        "caption_files_of_another_name": named(renaming),
        "caption_files_not_utf8": named(undecodable),
    }
    archive = files.get("images")
    captions, images = take_images(
        captions, photographs, archive, limit=limit, seed=seed, folder=folder
    )
    # images.txt may list photographs that the archive does not contain.
    boxes = boxes[boxes.index.isin(photographs)]
    return Loaded(captions, images.join(boxes, on="image_id"), summary=summary)


def renames(ids: Iterable[str], archived: set[str]) -> dict[str, str]:
    """Map ids that are not in the archive to the archived id with the same numbers, if exactly one
    such id is free.
    """
    ids = set(ids)
    old_ids = _by_numbers(ids - archived)
    new_ids = _by_numbers(archived - ids)
    shared = old_ids.keys() & new_ids.keys()
    return {old_ids[numbers]: new_ids[numbers] for numbers in shared}


def _by_numbers(ids: set[str]) -> dict[tuple[str, ...], str]:
    """Return the ids whose numbers no other id has, by these numbers."""
    numbers = {}
    for image_id in ids:
        match = _NUMBERS.fullmatch(image_id)
        if match:
            numbers[image_id] = match.groups()
    # Numbers that two ids share do not identify a photograph.
    counts = Counter(numbers.values())
    return {key: image_id for image_id, key in numbers.items() if counts[key] == 1}


def read_photographs(archive: Path) -> tuple[Photographs, pd.DataFrame, set[str]]:
    """Return the photographs of an archive; the boxes in pixels, by image_id; all image_ids of
    images.txt.
    """
    wanted = ("images.txt", "bounding_boxes.txt")
    sizes, files = contents(archive, lambda name: name.rsplit("/", 1)[-1] in wanted)
    photographs = CUB_LAYOUT.find_photographs(archive, sizes)
    tables = {name.rsplit("/", 1)[-1]: content for name, content in files.items()}
    for name in wanted:
        require(name in tables, archive, f"contains no {name}", "get the archive again")
    names = _numbered(archive, "images.txt", tables, ["name"], "str")["name"]
    image_ids = names.str.removesuffix(".jpg").rename("image_id")
    boxes = _numbered(archive, "bounding_boxes.txt", tables, BOX, "float64")
    # Both tables begin with the number of the image.
    boxes = boxes.join(image_ids, how="inner").set_index("image_id")
    return photographs, boxes, set(image_ids)


def _numbered(
    archive: Path, name: str, tables: Mapping[str, bytes], columns: list[str], dtype: str
) -> pd.DataFrame:
    """Return the values of the lines ``number value…`` of a table, by number."""
    import pandas as pd

    content = io.BytesIO(tables[name])
    dtypes = {"number": "int64"} | dict.fromkeys(columns, dtype)
    try:
        rows = pd.read_csv(content, sep=" ", names=[*dtypes], dtype=dtypes, index_col="number")
    except ValueError as error:
        raise UserError(f"{archive}: {name}: {error}; get the archive again") from error
    is_complete = rows.index.is_unique and rows.notna().all(axis=None)
    fault = f"expected lines of a number and {len(columns)} values"
    require(is_complete, f"{archive}: {name}", fault, "get the archive again")
    return rows
