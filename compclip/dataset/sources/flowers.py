"""Oxford 102 Flowers with Reed's captions, from files in their published layout.

``102flowers.tgz`` contains ``jpg/image_00001.jpg`` and so on; ``imagelabels.mat`` one row ``labels``, the class of each
image in the order of their numbers, from 1; the archive of the captions ``text_c10/class_00077/image_00001.txt``, a
caption a line, beside files for the paper's own code (``.t7``). An image's id is ``image_00001``, its class the label.
"""

import io
import re
import zlib
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd
from pydantic import Field
from scipy.io import loadmat
from scipy.io.matlab import MatReadError

from compclip.core.errors import UserError, require
from compclip.core.log import log
from compclip.dataset.archive import contents
from compclip.dataset.download import Published, google_drive, obtain
from compclip.dataset.reed import PLACE, SHA256, Files, Names, NamesOrNone, check_single, read_caption_files, take
from compclip.dataset.source import Loaded, named

PHOTOGRAPHS = "102flowers.tgz"
LABELS = "imagelabels.mat"
CAPTIONS = "cvpr2016_flowers.tar.gz"


def _oxford(name: str, sha256: str) -> Published:
    folders = ("https://www.robots.ox.ac.uk/~vgg/data/flowers/102", "https://thor.robots.ox.ac.uk/flowers/102")
    return Published(tuple(f"{folder}/{name}" for folder in folders), sha256)


PUBLISHED = {
    # The digests are from TensorFlow Datasets.
    PHOTOGRAPHS: _oxford(PHOTOGRAPHS, "2d01ecc807db462958cfe3d92f57a8c252b4abd240eb955770201e45f783b246"),
    LABELS: _oxford(LABELS, "4903e94206bac23bf772aadf06451916df56b58fc483a62db32a97b82656651d"),
    CAPTIONS: Published((google_drive("0B0ywwgffWnLLcms2WWJQRFNSWXM", "0-Av8zFbeDDvNcF1sSjDR32w"),)),
}

# Raised for truncated or altered files; NotImplementedError for MATLAB 7.3 files.
_DAMAGE = (MatReadError, ValueError, TypeError, KeyError, IndexError, OSError, NotImplementedError, zlib.error)
_CAPTIONS = re.compile(r"(?:^|.*/)text(?:_c10)?/(class_\d+/image_\d+)\.txt")
_IMAGE = re.compile(r"(?:^|.*/)jpg/(image_\d+)\.jpg")


class Settings(Files):
    """Where the three files are; by default, at their public addresses."""

    published = PUBLISHED

    images: NamesOrNone = Field(PHOTOGRAPHS, description=f"{PLACE}; null: only captions")
    labels: Names = Field(LABELS, description=PLACE)
    captions: Names = Field(CAPTIONS, description=PLACE)
    labels_sha256: str | None = Field(None, pattern=SHA256, description="null: the published one")


def load(settings: Settings, *, seed: int, limit: int | None, folder: Path, cache: Path) -> Loaded:
    """Read the captions of all images with a label, and copy their photographs to ``folder``."""
    obtained = {key: obtain(places, cache) for key, places in settings.places().items()}
    files = {key: path for key, (path, _) in obtained.items()}
    captions, undecodable = read_captions(files["captions"])
    log.info("%s: %d captions of %d images", files["captions"].name, len(captions), captions["image_id"].nunique())
    labels = read_labels(files["labels"])
    photographs: dict[str, tuple[str, int]] = {}
    if "images" in files:
        photographs = read_photographs(files["images"])
        log.info("%s: %d photographs", files["images"].name, len(photographs))
    check_labels(labels, photographs or captions["image_id"].unique(), files["labels"])
    captions["class_id"] = captions["image_id"].map(labels)
    unknown = captions["class_id"].isna()
    fault = f"none of its images is among the {len(labels)} labelled ones"
    require(not unknown.all(), files["captions"], fault, "give files of the same data set")
    other = captions[~unknown & (captions["class_id"] != captions["folder"])].drop_duplicates("image_id")
    described = set(captions["image_id"])
    summary = {
        "files": {key: about for key, (_, about) in obtained.items()},
        "photographs_in_archive": len(photographs),
        "photographs_without_captions": named(sorted(set(photographs) - described)),
        "caption_files_of_unknown_images": named(sorted(captions["image_id"][unknown].unique())),
        "caption_files_in_folder_of_another_class": named(list(other["image_id"])),
        "caption_files_not_utf8": named(undecodable),
    }
    captions = captions.loc[~unknown, ["image_id", "caption_id", "class_id", "text"]]
    captions, images = take(captions, photographs, files.get("images"), limit=limit, seed=seed, folder=folder)
    return Loaded(captions, images, summary=summary)


def read_captions(archive: Path) -> tuple[pd.DataFrame, list[str]]:
    """Return image_id, caption_id, text and folder of all captions, sorted; and the files that are not UTF-8.

    ``folder`` is the class number in the name of the caption file's folder.
    """
    table, undecodable = read_caption_files(archive, _CAPTIONS, "text_c10/class_<number>/image_<number>.txt")
    place = table["name"].str.extract(r"class_0*(?P<folder>\d+)/(?P<image_id>.*)")
    table = pd.concat([place, table.drop(columns="name")], axis=1)
    check_single(table, "image_id", archive)
    return table.sort_values(["image_id", "caption_id"], ignore_index=True), undecodable


def read_photographs(archive: Path) -> dict[str, tuple[str, int]]:
    """Return the name in the archive and the size in bytes of each photograph, by image_id."""
    photographs = {m[1]: (name, size) for name, size in contents(archive)[0].items() if (m := _IMAGE.fullmatch(name))}
    require(photographs, archive, "contains no jpg/image_<number>.jpg", "give the archive of the photographs")
    return photographs


def read_labels(file: Path) -> dict[str, str]:
    """Return the class of each image, by image_id; the labels are in the order of the images' numbers."""
    try:
        # From memory, because loadmat also tries the name with another ending.
        labels = loadmat(io.BytesIO(file.read_bytes())).get("labels")
    except _DAMAGE as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise UserError(f"{file}: truncated, damaged or not a MATLAB file ({reason}); get it again") from error
    require(labels is not None, file, "contains no labels", "give imagelabels.mat")
    values = np.asarray(labels).ravel()
    numbers = np.issubdtype(values.dtype, np.number) and np.isrealobj(values) and len(values)
    whole = numbers and (np.isfinite(values) & (values >= 1) & (values == np.floor(values))).all()
    require(whole, file, "expected labels to be whole numbers from 1", "give imagelabels.mat")
    return {f"image_{number:05d}": str(int(value)) for number, value in enumerate(values, 1)}


def check_labels(labels: dict[str, str], image_ids: Iterable[str], file: Path) -> None:
    """Raise UserError unless the last image has the last label, because only their order matches them."""
    last = max(int(i.removeprefix("image_")) for i in image_ids)
    fault = f"expected {last} labels, the number of the last image, got {len(labels)}"
    require(last == len(labels), file, fault, "give files of the same data set")
