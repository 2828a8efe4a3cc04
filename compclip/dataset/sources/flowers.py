"""Oxford 102 Flowers with Reed's captions, from files in their published layout.

``102flowers.tgz`` contains ``jpg/image_00001.jpg`` and so on; ``imagelabels.mat`` one row ``labels``, the class of each
image in the order of their numbers, from 1; the archive of the captions ``text_c10/class_00077/image_00001.txt``, a
caption a line, beside files for the paper's own code (``.t7``). An image's id is ``image_00001``, its class the label.
"""

import io
from pathlib import Path

import numpy as np
from pydantic import Field
from scipy.io import loadmat

from compclip.core.errors import UserError, require
from compclip.dataset.archive import contents
from compclip.dataset.download import PublishedFile, google_drive
from compclip.dataset.reed import SHA256, WHERE, ArchiveLayout, Names, NamesOrNone, ReedFiles, take_images
from compclip.dataset.source import Loaded, named

IMAGES_FILE = "102flowers.tgz"
LABELS = "imagelabels.mat"
CAPTIONS_FILE = "cvpr2016_flowers.tar.gz"


def _oxford(name: str, sha256: str) -> PublishedFile:
    folders = ("https://www.robots.ox.ac.uk/~vgg/data/flowers/102", "https://thor.robots.ox.ac.uk/flowers/102")
    return PublishedFile(tuple(f"{folder}/{name}" for folder in folders), sha256)


PUBLISHED_FILES = {
    # The digests are from TensorFlow Datasets.
    IMAGES_FILE: _oxford(IMAGES_FILE, "2d01ecc807db462958cfe3d92f57a8c252b4abd240eb955770201e45f783b246"),
    LABELS: _oxford(LABELS, "4903e94206bac23bf772aadf06451916df56b58fc483a62db32a97b82656651d"),
    CAPTIONS_FILE: PublishedFile((google_drive("0B0ywwgffWnLLcms2WWJQRFNSWXM", "0-Av8zFbeDDvNcF1sSjDR32w"),)),
}

FLOWERS_LAYOUT = ArchiveLayout(
    r"(?:^|.*/)text(?:_c10)?/class_0*(?P<folder>\d+)/(?P<image_id>image_\d+)\.txt",
    "text_c10/class_<number>/image_<number>.txt",
    r"(?:^|.*/)jpg/(image_\d+)\.jpg",
    "jpg/image_<number>.jpg",
)


class Settings(ReedFiles):
    """Where the three files are; by default, at their public addresses."""

    published = PUBLISHED_FILES

    images: NamesOrNone = Field(IMAGES_FILE, description=f"{WHERE}; null: only captions")
    labels: Names = Field(LABELS, description=WHERE)
    captions: Names = Field(CAPTIONS_FILE, description=WHERE)
    labels_sha256: str | None = Field(None, pattern=SHA256, description="null: the published one")


def load(settings: Settings, *, seed: int, limit: int | None, folder: Path, cache: Path) -> Loaded:
    """Read the captions of all images with a label, and copy their photographs to ``folder``."""
    files, about = settings.obtain(cache)
    captions, undecodable = FLOWERS_LAYOUT.read_captions(files["captions"])
    labels = read_flower_labels(files["labels"])
    images = files.get("images")
    photographs = FLOWERS_LAYOUT.find_photographs(images, contents(images)[0]) if images else {}
    # Only their order tells whose the labels are, so the last image must have the last one.
    last = max(int(image_id.removeprefix("image_")) for image_id in photographs or captions["image_id"].unique())
    fault = f"expected {last} labels, the number of the last image, got {len(labels)}"
    require(last == len(labels), files["labels"], fault, "give files of the same data set")
    captions["class_id"] = captions["image_id"].map(labels)
    unknown = captions["class_id"].isna()
    fault = f"none of its images is among the {len(labels)} labelled ones"
    require(not unknown.all(), files["captions"], fault, "give files of the same data set")
    other = captions[~unknown & (captions["class_id"] != captions["folder"])].drop_duplicates("image_id")
    summary = {
        "files": about,
        "photographs_in_archive": len(photographs),
        "photographs_without_captions": named(sorted(set(photographs) - set(captions["image_id"]))),
        "caption_files_of_unknown_images": named(sorted(captions["image_id"][unknown].unique())),
        "caption_files_in_folder_of_another_class": named(list(other["image_id"])),
        "caption_files_not_utf8": named(undecodable),
    }
    captions = captions.loc[~unknown, ["image_id", "caption_id", "class_id", "text"]]
    captions, taken = take_images(captions, photographs, images, limit=limit, seed=seed, folder=folder)
    return Loaded(captions, taken, summary=summary)


def read_flower_labels(file: Path) -> dict[str, str]:
    """Return the class of each image, by image_id; the labels are in the order of the images' numbers."""
    try:
        # From memory, because loadmat also tries the name with another ending.
        labels = loadmat(io.BytesIO(file.read_bytes())).get("labels")
    except Exception as error:  # scipy raises many types for damaged files
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise UserError(f"{file}: truncated, damaged or not a MATLAB file ({reason}); get it again") from error
    require(labels is not None, file, "contains no labels", "give imagelabels.mat")
    values = np.asarray(labels).ravel()
    numbers = np.issubdtype(values.dtype, np.number) and np.isrealobj(values) and len(values)
    whole = numbers and (np.isfinite(values) & (values >= 1) & (values == np.floor(values))).all()
    require(whole, file, "expected labels to be whole numbers from 1", "give imagelabels.mat")
    return {f"image_{number:05d}": str(int(value)) for number, value in enumerate(values, 1)}
