"""Read or draw the images and captions of one source."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
from pandas.util import hash_array

from compclip.core.artifacts.files import safe_id
from compclip.core.artifacts.parquet import image_ids, write_table
from compclip.core.errors import UserError, require
from compclip.core.log import log
from compclip.core.progress import track
from compclip.core.reading.normal import normalize
from compclip.core.reading.pictures import BrokenImage, NamesByKind, keep_as_shown
from compclip.core.reading.records import CONTROL
from compclip.core.settings import plugins
from compclip.core.tables import CAPTION_KEY, CAPTIONS, Blocks, in_blocks
from compclip.dataset.source import BOX, load_source, named, named_differences, unbroken

FLOAT_BOX = dict.fromkeys(BOX, "float64")
CHARACTERS_SHOWN = 60  # of a caption that is read otherwise than written


@dataclass
class CaptionFault:
    """A fault of captions that refuses the data set: how many have it, and the first one."""

    fault: str
    remedy: str
    count: int = 0
    first: Any = None

    def add(self, captions: pd.DataFrame, is_bad: pd.Series) -> None:
        self.count += int(is_bad.sum())
        if self.first is None:
            self.first = next(captions[is_bad].head(1).itertuples(), None)


def check_captions(
    captions: Blocks, source: str, empty: list[str], normalized: NamesByKind
) -> Iterator[pd.DataFrame]:
    """Yield checked, sorted captions, each on one line.

    Args:
        empty: a list that gets ``image_id caption_id`` of each caption without a visible character.
        normalized: a dict that gets the captions that are read otherwise than written, by
            ``captions_with_<kind>`` of ``normalize``.
    """
    control = CaptionFault("contains a control character", "remove it")
    duplicate = CaptionFault("duplicate caption_id", "number them differently")
    two_classes = CaptionFault("the image has captions of two classes", "keep one class")
    faults = (control, duplicate, two_classes)
    visible = 0
    for (block,) in in_blocks(captions):
        missing = [name for name in CAPTIONS.columns if name not in block]
        remedy = f"return captions with {', '.join(CAPTIONS.columns)}; class_id may be null"
        require(not missing, source, f"captions without {', '.join(missing)}", remedy)
        # Ids become names of files.
        for image_id in block["image_id"].unique():
            safe_id(image_id)
        # A null class differs from any other one.
        classes = block.groupby("image_id")["class_id"].transform("nunique", dropna=False)
        control.add(block, block["text"].str.contains(CONTROL))
        duplicate.add(block, block.duplicated(CAPTION_KEY))
        two_classes.add(block, classes > 1)
        # After a fault, the other blocks are only searched for more, to count all of them.
        if not any(fault.count for fault in faults):
            checked = _visible_captions(block, empty, normalized)
            visible += len(checked)
            yield checked
    for fault in faults:
        if fault.count:
            row = fault.first
            raise UserError(
                f"{source}: image {row.image_id!r}: caption {row.caption_id}: {fault.fault} "
                f"({fault.count} in total); {fault.remedy}: {row.text[:80]!r}"
            )
    require(visible, source, f"no captions ({len(empty)} are empty)", "check the source's files")


def _visible_captions(
    block: pd.DataFrame, empty: list[str], normalized: NamesByKind
) -> pd.DataFrame:
    """Return the captions with a visible character, sorted; for the other arguments, see
    ``check_captions``.
    """
    block = block.sort_values(CAPTION_KEY, ignore_index=True)
    block["text"] = unbroken(block["text"])
    is_visible = []
    for row in block.itertuples():
        name = f"{row.image_id} {row.caption_id}"
        reading = normalize(row.text)
        # A caption of invisible characters alone counts as empty.
        is_visible.append(bool(reading.text))
        if not reading.text:
            empty.append(name)
        for kind in reading.kinds:
            # Escaped, because what differs may be invisible.
            example = f"{name}: {row.text[:CHARACTERS_SHOWN]!a}"
            normalized.setdefault(f"captions_with_{kind}", []).append(example)
    return block.loc[is_visible]


def count_distinct(table: Path, column: str) -> int:
    """Return the number of distinct texts of a column, null excepted, by their hashes of 64
    bits.
    """
    hashes = []
    # In batches and by hashes, because all texts may not fit into memory.
    with pq.ParquetFile(table) as file:
        for batch in file.iter_batches(columns=[column]):
            texts = batch[0].unique().drop_null().to_numpy(zero_copy_only=False)
            hashes.append(hash_array(texts, categorize=False))
    return len(np.unique(np.concatenate(hashes)))


def turned_box(box: Sequence[float], orientation: int, size: tuple[int, int]) -> list[float]:
    """Return x, y, width and height of a box in an image of ``size`` that was turned by its EXIF
    orientation.
    """
    x, y, width, height = box
    image_width, image_height = size
    # EXIF orientations 5 to 8 exchange rows and columns before they mirror.
    is_transposed = orientation > 4
    is_mirrored = orientation in (2, 3, 6, 7)
    is_upside_down = orientation in (3, 4, 7, 8)
    if is_transposed:
        x, y, width, height = y, x, height, width
    if is_mirrored:
        x = image_width - x - width
    if is_upside_down:
        y = image_height - y - height
    return [x, y, width, height]


def measure_images(images: pd.DataFrame, folder: Path) -> tuple[pd.DataFrame, NamesByKind]:
    """Decode every image file, delete broken ones, and store others as people see them.

    Returns:
        By image_id, width and height in pixels, and path and box as they are now; the ids without a
        file (``missing``), ``image_id: reason`` of each broken file (``broken``), and the ids of
        files that differed from what people see.
    """
    rows: dict[str, list[Any]] = {}
    names: NamesByKind = {"missing": [], "broken": []}
    for row in track(images.itertuples(), len(images), "images checked"):
        source = folder / row.path
        try:
            file, size, orientation = keep_as_shown(source, row.image_id, names)
        except FileNotFoundError:
            names["missing"].append(row.image_id)
            continue
        except BrokenImage as error:
            names["broken"].append(f"{row.image_id}: {error}")
            # The folder of images becomes an artifact, which has only readable files.
            source.unlink()
            continue
        stored_box = [getattr(row, column) for column in BOX]
        box = turned_box(stored_box, orientation, size)
        path = file.relative_to(folder).as_posix()
        rows[row.image_id] = [*size, path, *box]
    measured = pd.DataFrame.from_dict(rows, "index", columns=["width", "height", "path", *BOX])
    return measured.astype({"width": "Int64", "height": "Int64", **FLOAT_BOX}), names


def check_image_files(
    ids: list[str], images: pd.DataFrame, folder: Path, source: str
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Check the image files, and delete broken ones and those of images that are not among ``ids``.

    Returns:
        A row for each image of ``ids``, with sizes in pixels, path null without a readable file;
        and the names of missing and broken files, of images without captions and of boxes outside
        their image.
    """
    for image_id in images["image_id"]:
        safe_id(image_id)
    # ``reindex`` fails for duplicates.
    duplicates = list(images["image_id"][images["image_id"].duplicated()])
    fault = f"{len(duplicates)} duplicate images: {duplicates[:3]}"
    require(not duplicates, source, fault, "keep one of each")
    without_captions = images[~images["image_id"].isin(ids)]
    # The folder of images becomes an artifact, which has the data set's images alone.
    for path in without_captions["path"].dropna():
        (folder / path).unlink(missing_ok=True)
    # A row for each image with captions, also for those without a file.
    images = images.set_index("image_id").reindex(ids).rename_axis("image_id").reset_index()
    images = images.reindex(columns=["image_id", "path", *BOX]).astype(FLOAT_BOX)
    has_path = images["path"].notna()
    measured, names = measure_images(images[has_path], folder)
    # The remaining names are of files that differed from what people see.
    missing = names.pop("missing")
    broken = names.pop("broken")
    first = [*broken, *missing, None][0]
    fault = f"none of {has_path.sum()} images is readable, the first: {first}"
    require(len(measured) or not has_path.any(), source, fault, "check the files")
    # If the data set has only captions, files are not missing.
    if has_path.any():
        missing = missing + list(images["image_id"][~has_path])
    images = images[["image_id"]].join(measured, on="image_id")
    # None, which becomes null in the file.
    images["path"] = images["path"].astype(object).where(images["path"].notna(), None)
    images, outside = check_boxes(images)
    report = {
        "images_without_file": named(missing),
        "images_broken": named(broken),
        "images_without_captions": named(sorted(without_captions["image_id"])),
        "boxes_outside_image": named(outside),
        **named_differences(names),
    }
    return images, report


def check_boxes(images: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Return the images, with null for boxes that have no area inside their image, and the ids of
    those boxes.
    """
    has_box = images[BOX].notna().any(axis=1) & images["path"].notna()
    lengths = images[[*BOX, "width", "height"]].astype("float64")
    # Comparisons with a missing length are false.
    is_inside = lengths.eval(
        "bbox_w > 0 and bbox_h > 0 and -bbox_w < bbox_x < width and -bbox_h < bbox_y < height"
    )
    images.loc[~is_inside, BOX] = float("nan")
    return images, list(images["image_id"][has_box & ~is_inside])


def warn(summary: dict[str, Any]) -> None:
    """Log one line for each kind of skipped entries, with the first names."""
    for key, value in summary.items():
        if not isinstance(value, dict) or not value.get("count"):
            continue
        names = ", ".join(value["names"][:3])
        if value["count"] > 3:
            names += ", …"
        log.warning("%s: %d (%s)", key.replace("_", " "), value["count"], names)


class Folders(NamedTuple):
    """Existing folders of a data set."""

    images: Path  # for the image files, to which paths are relative
    scratch: Path  # for temporary files, in which ``captions.parquet`` is written
    cache: Path  # keeps downloads


def load_dataset(
    source: str,
    settings: dict[str, Any],
    folders: Folders,
    *,
    seed: int = 0,
    limit: int | None = None,
    processes: int = 1,
) -> tuple[pd.DataFrame, dict[str, pd.DataFrame], dict[str, Any]]:
    """Read or draw the images and captions of one source.

    The summary counts and names skipped entries: empty captions (the others keep their caption_id),
    images without captions, and missing or broken images (their path is null).

    Args:
        source: a module in ``compclip/dataset/sources``.
        settings: fields of its ``Settings``.
        folders: for its images and temporary files, and the cache.
        limit: number of images to take; None: all.
        processes: processes that draw images; the result is the same.

    Returns:
        Checked images (``tables.IMAGES``), the source's further tables, a summary.
    """
    kind = load_source(source)
    label = f"dataset source {source}"
    further: dict[str, Any] = {}
    # Other sources do not take these arguments.
    if kind.PARALLEL:
        further["processes"] = processes
    if kind.SCRATCH:
        further["scratch"] = folders.scratch
    parsed = plugins.settings(kind, settings)
    places = {"folder": folders.images, "cache": folders.cache}
    loaded = kind.load(parsed, seed=seed, limit=limit, **places, **further)
    captions = folders.scratch / "captions.parquet"
    empty = list[str]()
    normalized: NamesByKind = {}
    write_table(check_captions(loaded.captions, label, empty, normalized), captions, CAPTIONS)
    # From the file, because captions may not fit into memory.
    ids, caption_count = image_ids(captions)
    images, report = check_image_files(ids.to_pylist(), loaded.images, folders.images, label)
    skipped = {"captions_empty": named(empty), **report}
    for name in sorted(normalized):
        skipped[name] = named(normalized[name])
    warn({**loaded.summary, **skipped})
    summary = {
        "source": source,
        "limit": limit,
        **loaded.summary,
        "images": len(images),
        "images_with_file": int(images["path"].notna().sum()),
        "images_with_box": int(images["bbox_w"].notna().sum()),
        "captions": caption_count,
        "captions_distinct": count_distinct(captions, "text"),
        "classes": count_distinct(captions, "class_id"),
        **skipped,
    }
    log.info(
        "%(captions)d captions of %(images)d images, %(images_with_file)d with a file, "
        "%(classes)d classes",
        summary,
    )
    return images, loaded.tables, summary
