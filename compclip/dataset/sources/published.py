"""The captions of a published data.pkl, and a folder of images if there is one.

An image's file is ``<image_id>`` with the ending jpg, jpeg, png or webp, below the folder of images. Its class is the
number before the dot of its id, as for C-CUB, or comes from a file; without either, each image is its own class. The
splits and swapped captions published with the file are read by ``split.published``. For C-CUB's bounding boxes, to
which the published judge crops, use source ``cub`` with the same published splits.
"""

from pathlib import Path

from pydantic import Field

from compclip.core.documents import decode, no_such
from compclip.core.errors import UserError, require
from compclip.core.published import read_data
from compclip.core.section import Section
from compclip.dataset.source import Loaded, named
from compclip.dataset.sources.table import with_images


class Settings(Section):
    """The published file and what goes with it."""

    data: str = Field(min_length=1, description="data.pkl (of several compositions, any: their captions are the same)")
    images: str | None = Field(None, min_length=1, description="folder of the images; null for only captions")
    classes: str | None = Field(
        "number", description="number: before the dot of the image id; a file of image id, tab, class; null: none"
    )

    def reads(self) -> list[str | None]:
        return [self.data, self.images, None if self.classes == "number" else self.classes]


def load(settings: Settings, *, seed: int, limit: int | None, folder: Path, cache: Path) -> Loaded:
    """Read the published captions, and copy their images to ``folder``."""
    table, silent = read_data(settings.data)
    ids = table["image_id"].unique()
    if settings.classes == "number":
        classes = {image_id: class_of(image_id, settings.data) for image_id in ids}
    else:
        classes = read_classes(Path(settings.classes)) if settings.classes else {}
    captions = table[["image_id", "caption_id", "text"]]
    captions.insert(2, "class_id", table["image_id"].map(classes).astype("str"))
    summary = {
        "images_without_captions_in_file": named(silent),
        "images_without_class": named(sorted(set(ids) - set(classes))),
        "captions_swapped_in_file": int(table["swapped_text"].notna().sum()),
    }
    return with_images(captions, settings.images, {}, summary, seed=seed, limit=limit, folder=folder)


def class_of(image: str, path: str) -> str:
    """Return the class by C-CUB's rule: 182 for ``182.Yellow_Warbler/Yellow_Warbler_0026_176337``."""
    number = image.split(".")[0]
    remedy = "set dataset.published.classes to a file of lines image id, tab, class, or to null"
    require(number.isdecimal(), f"{path}: image {image!r}", "expected a number before a dot, the class", remedy)
    return number


def read_classes(path: Path) -> dict[str, str]:
    """Read lines ``image_id<tab>class``; raises UserError for other lines, and for an image of two classes."""
    try:
        lines = decode(path).splitlines()
    except FileNotFoundError as error:
        raise UserError(f"{no_such(path)}; or set dataset.published.classes to number or null") from error
    classes: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        image, _, class_id = line.strip().partition("\t")
        where, class_id = f"{path}: line {number}", class_id.strip()
        require(class_id, where, f"expected image id, tab, class; got {line.strip()[:60]!r}")
        same = classes.setdefault(image, class_id) == class_id
        require(same, where, f"image {image!r} has a second class", "remove one")
    return classes
