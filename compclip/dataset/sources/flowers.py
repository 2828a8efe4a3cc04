"""Oxford 102 Flowers with Reed's captions, from files in their published layout.

``102flowers.tgz`` contains ``jpg/image_00001.jpg`` and so on; ``imagelabels.mat`` one row
``labels``, the class of each image in the order of their numbers, from 1; the archive of the
captions ``text_c10/class_00077/image_00001.txt``, one caption per line, beside files for the
paper's code (``.t7``). An image's id is ``image_00001``, its class the label.
"""

import io
from pathlib import Path

from pydantic import Field

from compclip.core.errors import UserError, require
from compclip.dataset.archive import contents
from compclip.dataset.download import FileLocation, google_drive
from compclip.dataset.reed_captions import (
    SHA256,
    WHERE,
    ArchiveLayout,
    Photographs,
    ReedFiles,
    take_images,
)
from compclip.dataset.source import Loaded, named

IMAGES_FILE = "102flowers.tgz"
LABELS = "imagelabels.mat"
CAPTIONS_FILE = "cvpr2016_flowers.tar.gz"
OXFORD = "https://www.robots.ox.ac.uk/~vgg/data/flowers/102"
PUBLISHED_FILES = {
    # The digests are from TensorFlow Datasets.
    IMAGES_FILE: FileLocation(
        f"{OXFORD}/{IMAGES_FILE}",
        "2d01ecc807db462958cfe3d92f57a8c252b4abd240eb955770201e45f783b246",
    ),
    LABELS: FileLocation(
        f"{OXFORD}/{LABELS}", "4903e94206bac23bf772aadf06451916df56b58fc483a62db32a97b82656651d"
    ),
    CAPTIONS_FILE: FileLocation(
        google_drive("0B0ywwgffWnLLcms2WWJQRFNSWXM", "0-Av8zFbeDDvNcF1sSjDR32w")
    ),
}

FLOWERS_LAYOUT = ArchiveLayout(
    r"(?:^|.*/)text(?:_c10)?/class_\d+/(?P<image_id>image_\d+)\.txt",
    "text_c10/class_<number>/image_<number>.txt",
    r"(?:^|.*/)jpg/(image_\d+)\.jpg",
    "jpg/image_<number>.jpg",
)


class Settings(ReedFiles):
    """The locations of the three files; by default, their public addresses."""

    published = PUBLISHED_FILES

    images: str | None = Field(
        IMAGES_FILE, min_length=1, description=f"{WHERE}; null: only captions"
    )
    labels: str = Field(LABELS, min_length=1, description=WHERE)
    captions: str = Field(CAPTIONS_FILE, min_length=1, description=WHERE)
    labels_sha256: str | None = Field(None, pattern=SHA256, description="null: the published one")


def load(settings: Settings, *, seed: int, limit: int | None, folder: Path, cache: Path) -> Loaded:
    """Read the captions of all images with a label, and copy their photographs to ``folder``."""
    files, digests = settings.obtain(cache)
    captions, undecodable = FLOWERS_LAYOUT.read_captions(files["captions"])
    captioned = captions["image_id"]
    labels = read_flower_labels(files["labels"])
    archive = files.get("images")
    photographs: Photographs = {}
    if archive:
        sizes, _ = contents(archive)
        photographs = FLOWERS_LAYOUT.find_photographs(archive, sizes)
    image_ids = list(photographs or captioned.unique())
    numbers = [int(image_id.removeprefix("image_")) for image_id in image_ids]
    # Labels have an order but no ids, so the last image must have the last label.
    last = max(numbers)
    n_labels = len(labels)
    remedy = "give files of the same data set"
    fault = f"expected {last} labels, the number of the last image, got {n_labels}"
    require(last == n_labels, files["labels"], fault, remedy)
    # The caption archive has folders of classes, but the labels are the data set's.
    captions["class_id"] = captioned.map(labels)
    is_unlabelled = captions["class_id"].isna()
    fault = f"none of its images is among the {n_labels} labelled ones"
    require(not is_unlabelled.all(), files["captions"], fault, remedy)
    without_captions = set(photographs) - set(captioned)
    unlabelled = captioned[is_unlabelled].unique()
    summary = {
        "files": digests,
        "photographs_in_archive": len(photographs),
        "photographs_without_captions": named(sorted(without_captions)),
        "caption_files_of_unknown_images": named(sorted(unlabelled)),
        "caption_files_not_utf8": named(undecodable),
    }
    captions = captions.loc[~is_unlabelled, ["image_id", "caption_id", "class_id", "text"]]
    captions, images = take_images(
        captions, photographs, archive, limit=limit, seed=seed, folder=folder
    )
    return Loaded(captions, images, summary=summary)


def read_flower_labels(file: Path) -> dict[str, str]:
    """Return the class of each image, by image_id; the labels are in the order of the images'
    numbers.
    """
    from scipy.io import loadmat

    try:
        # from memory, because loadmat would also try other endings of the name
        content = loadmat(io.BytesIO(file.read_bytes()))
        labels = content["labels"].ravel().astype(int)
    except Exception as error:  # scipy raises many types of exceptions for damaged files
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise UserError(f"{file}: not the labels of the images ({reason}); get it again") from error
    return {f"image_{number:05d}": str(label) for number, label in enumerate(labels, 1)}
