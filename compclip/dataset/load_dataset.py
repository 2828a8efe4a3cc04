"""Read or draw the images and captions of one source."""

from pathlib import Path
from typing import Any

import pandas as pd

from compclip.core import plugins
from compclip.core.errors import UserError, require
from compclip.core.log import log
from compclip.core.pictures import BrokenImage, image_size
from compclip.core.progress import track
from compclip.core.records import CONTROL
from compclip.dataset.source import BOX, SOURCES, Loaded, named, unbroken
from compclip.io import safe_id


def check_captions(captions: pd.DataFrame, source: str) -> tuple[pd.DataFrame, list[str]]:
    """Return checked, sorted captions, each on one line, and ``image_id caption_id`` of each empty one."""
    for image_id in captions["image_id"].unique():
        safe_id(image_id)
    classes = captions.groupby("image_id")["class_id"].transform("nunique", dropna=False)
    for is_bad, fault, remedy in (
        (captions["text"].str.contains(CONTROL), "contains a control character", "remove it"),
        (captions.duplicated(["image_id", "caption_id"]), "duplicate caption_id", "number them differently"),
        (classes > 1, "the image has captions of two classes", "keep one class"),
    ):
        for row in captions[is_bad].head(1).itertuples():
            where = f"{source}: image {row.image_id!r}: caption {row.caption_id}"
            raise UserError(f"{where}: {fault} ({is_bad.sum()} in total); {remedy}: {row.text[:80]!r}")
    captions = captions.sort_values(["image_id", "caption_id"], ignore_index=True)
    captions["text"] = unbroken(captions["text"])
    is_empty = captions["text"] == ""
    empty = list(captions["image_id"][is_empty] + " " + captions["caption_id"][is_empty].astype(str))
    captions = captions[~is_empty].reset_index(drop=True)
    require(len(captions), source, f"no captions ({len(empty)} are empty)", "check the source's files")
    return captions, empty


def measure_images(images: pd.DataFrame, folder: Path) -> tuple[pd.DataFrame, list[str], list[str]]:
    """Decode every image file, and delete broken ones.

    Returns:
        Width and height in pixels by image_id; the ids without a file; ``image_id: reason`` of each broken file.
    """
    sizes: dict[str, tuple[int, int]] = {}
    missing, broken = list[str](), list[str]()
    for row in track(images.itertuples(), len(images), "images checked"):
        try:
            sizes[row.image_id] = image_size(folder / row.path)
        except FileNotFoundError:
            missing.append(row.image_id)
        except BrokenImage as error:
            broken.append(f"{row.image_id}: {error}")
            (folder / row.path).unlink()
    return pd.DataFrame.from_dict(sizes, "index", "Int64", ["width", "height"]), missing, broken


def check_image_files(
    captions: pd.DataFrame, images: pd.DataFrame, folder: Path, source: str
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Check the image files, and delete broken ones and those without captions.

    Returns:
        A row for each image with captions, sorted by image_id, with sizes in pixels, path null without a readable file;
        and the names of missing and broken files, of images without captions and of boxes outside their image.
    """
    for image_id in images["image_id"]:
        safe_id(image_id)
    duplicates = list(images["image_id"][images["image_id"].duplicated()])
    require(not duplicates, source, f"{len(duplicates)} duplicate images: {duplicates[:3]}", "keep one of each")
    ids = sorted(captions["image_id"].unique())
    silent = images[~images["image_id"].isin(ids)]
    for path in silent["path"].dropna():
        (folder / path).unlink(missing_ok=True)
    images = images.set_index("image_id").reindex(ids).rename_axis("image_id").reset_index()
    images = images.reindex(columns=["image_id", "path", *BOX])
    given = images["path"].notna()
    sizes, missing, broken = measure_images(images[given], folder)
    fault = f"none of {given.sum()} images is readable, the first: {[*broken, *missing, None][0]}"
    require(len(sizes) or not given.any(), source, fault, "check the files")
    images["path"] = images["path"].where(images["image_id"].isin(sizes.index), None)
    images, outside = check_boxes(images.join(sizes, on="image_id"))
    # If the data set has only captions, files are not missing.
    without = missing + list(images["image_id"][~given]) if given.any() else []
    report = {
        "images_without_file": named(without),
        "images_broken": named(broken),
        "images_without_captions": named(sorted(silent["image_id"])),
        "boxes_outside_image": named(outside),
    }
    return images, report


def check_boxes(images: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Return the images, with null for boxes that have no area inside their image, and the ids of those boxes."""
    images[BOX] = images[BOX].astype("float64")
    given = images[BOX].notna().any(axis=1) & images["path"].notna()
    inside = (
        images[[*BOX, "width", "height"]]
        .astype("float64")
        .eval("bbox_w > 0 and bbox_h > 0 and -bbox_w < bbox_x < width and -bbox_h < bbox_y < height")
    )
    images.loc[~inside, BOX] = float("nan")
    return images, list(images["image_id"][given & ~inside])


def warn(summary: dict[str, Any]) -> None:
    """Log one line for each kind of skipped entries, with the first names."""
    for key, value in summary.items():
        if isinstance(value, dict) and value.get("count"):
            first = ", ".join(value["names"][:3])
            log.warning("%s: %d (%s%s)", key.replace("_", " "), value["count"], first, ", …" * (value["count"] > 3))


def load_dataset(
    source: str, settings: dict[str, Any], folder: Path, *, seed: int = 0, limit: int | None = None,
    cache: Path = Path(".cache"), processes: int = 1,
) -> Loaded:  # fmt: skip
    """Read or draw the images and captions of one source.

    The summary counts and names skipped entries: empty captions (the others keep their caption_id), images without
    captions, and missing or broken images (their path is null).

    Args:
        source: a module in ``compclip/dataset/sources``.
        settings: fields of its ``Settings``.
        folder: existing folder for the image files, to which paths are relative.
        limit: number of images to take; None: all.
        cache: folder that keeps downloads.
        processes: processes that draw images; the result is the same.

    Returns:
        Checked captions (``tables.CAPTIONS``) and images (``tables.IMAGES``), the source's further tables, a summary.
    """
    module, where = plugins.load(SOURCES, source), f"dataset source {source}"
    parallel = {"processes": processes} if getattr(module, "PARALLEL", False) else {}
    parsed = plugins.settings(module, settings)
    loaded = module.load(parsed, seed=seed, limit=limit, folder=folder, cache=cache, **parallel)
    captions, empty = check_captions(loaded.captions, where)
    images, report = check_image_files(captions, loaded.images, folder, where)
    skipped = {"captions_empty": named(empty), **report}
    warn({**loaded.summary, **skipped})
    summary = {
        "source": source,
        "limit": limit,
        **loaded.summary,
        "images": len(images),
        "images_with_file": int(images["path"].notna().sum()),
        "images_with_box": int(images["bbox_w"].notna().sum()),
        "captions": len(captions),
        "captions_distinct": int(captions["text"].nunique()),
        "classes": int(captions["class_id"].nunique()),
        **skipped,
    }
    counts = "%(captions)d captions of %(images)d images, %(images_with_file)d with a file, %(classes)d classes"
    log.info(counts, summary)
    return Loaded(captions, images, loaded.tables, summary)
