"""Read or draw the images and captions of one source.

Writes captions.parquet, images.parquet, images/, dataset.json, and what further tables the source has, to
RESULTS/DATASET. What is left out is counted and named in dataset.json: empty captions (the others keep their
caption_id), images without captions, images that are missing or broken (their path is null).
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pandas as pd

from workflow_scripts.core import cli, plugins, tables
from workflow_scripts.core.cli import log
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import atomic_folder, safe_id, write_frame, write_json, write_table
from workflow_scripts.core.pictures import BrokenImage, image_size
from workflow_scripts.core.progress import track
from workflow_scripts.core.section import read_settings
from workflow_scripts.dataset.config import SOURCES
from workflow_scripts.dataset.source import clean, named

BOX = ["bbox_x", "bbox_y", "bbox_w", "bbox_h"]


def check_captions(captions: pd.DataFrame, source: str) -> tuple[pd.DataFrame, list[str]]:
    """Captions sorted by image_id and caption_id, each on one line, without empty ones; the names of those.

    captions: columns of ``tables.CAPTIONS``; ``source`` stands in the errors. Raises UserError for no captions, an
    image_id that cannot be a path, a caption that stands twice, an image of two classes.
    """
    for image_id in captions["image_id"].unique():
        safe_id(image_id)
    twice = captions[captions.duplicated(["image_id", "caption_id"])]
    if len(twice):
        first = twice.iloc[0]
        raise UserError(
            f"{source}: caption {first['caption_id']} of image {first['image_id']!r} stands twice "
            f"({len(twice)} such): give each caption of an image a number of its own"
        )
    classes = captions.groupby("image_id")["class_id"].nunique(dropna=False)
    if (classes > 1).any():
        raise UserError(f"{source}: image {classes.index[classes > 1][0]!r} has captions of two classes: keep one")
    captions = captions.assign(text=clean(captions["text"]))
    captions = captions.sort_values(["image_id", "caption_id"], ignore_index=True)
    empty = captions["text"] == ""
    left_out = [f"{row.image_id} {row.caption_id}" for row in captions[empty].itertuples()]
    captions = captions[~empty].reset_index(drop=True)
    if captions.empty:
        raise UserError(f"{source}: no captions{f', {len(left_out)} are empty' if left_out else ''}")
    return captions, left_out


def check_images(
    captions: pd.DataFrame, images: pd.DataFrame, folder: Path, source: str
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """A row for each image that has captions, sorted, with the size of its file; and what is wrong, by name.

    images: image_id, path relative to ``folder`` or null, boxes in pixels if there are any. A broken file is
    removed and its path null. Raises UserError for an image_id that stands twice or cannot be a path, and where
    files were given and none can be read.
    """
    for image_id in images["image_id"]:
        safe_id(image_id)
    twice = images["image_id"][images["image_id"].duplicated()]
    if len(twice):
        raise UserError(f"{source}: image {twice.iloc[0]!r} stands twice ({len(twice)} such): keep one")
    ids = sorted(captions["image_id"].unique())
    silent = images[~images["image_id"].isin(ids)]
    for path in silent["path"].dropna():
        (folder / path).unlink(missing_ok=True)
    images = images.set_index("image_id").reindex(ids).rename_axis("image_id").reset_index()
    images = images.reindex(columns=["image_id", "path", *BOX])

    given = images["path"].notna()
    sizes: dict[str, tuple[int, int]] = {}
    broken: list[str] = []
    missing: list[str] = []
    for row in track(images[given].itertuples(), int(given.sum()), "images checked"):
        try:
            sizes[row.image_id] = image_size(folder / row.path)
        except FileNotFoundError:
            missing.append(row.image_id)
        except BrokenImage as error:
            broken.append(f"{row.image_id}: {error}")
            (folder / row.path).unlink()
    if given.any() and not sizes:
        raise UserError(f"{source}: none of {given.sum()} images can be read: {(broken + missing)[0]}")
    readable = images["image_id"].isin(sizes)
    images["path"] = images["path"].where(readable, None)
    images["width"] = images["image_id"].map({i: s[0] for i, s in sizes.items()}).astype("Int64")
    images["height"] = images["image_id"].map({i: s[1] for i, s in sizes.items()}).astype("Int64")
    images, outside = check_boxes(images)
    report = {
        "images_without_file": named(missing + list(images["image_id"][~given])),
        "images_broken": named(broken),
        "images_without_captions": named(sorted(silent["image_id"])),
        "boxes_outside_image": named(outside),
    }
    return images, report


def check_boxes(images: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Boxes that have an area inside their image; the others null, and the ids of those."""
    images[BOX] = images[BOX].astype("float64")
    given = images[BOX].notna().any(axis=1) & images["path"].notna()
    width, height = (images[c].astype("float64") for c in ("width", "height"))
    right, bottom = images["bbox_x"] + images["bbox_w"], images["bbox_y"] + images["bbox_h"]
    inside = (
        (images["bbox_w"] > 0) & (images["bbox_h"] > 0) & (right > 0) & (bottom > 0)
        & (images["bbox_x"] < width) & (images["bbox_y"] < height)
    )  # fmt: skip
    images.loc[~inside, BOX] = float("nan")
    return images, list(images["image_id"][given & ~inside])


def warn(left_out: dict[str, Any]) -> None:
    """One line for each thing that was left out; more is in dataset.json."""
    for key, value in left_out.items():
        if isinstance(value, dict) and value.get("count"):
            first = ", ".join(value["names"][:3])
            log.warning("%s: %d (%s%s)", key.replace("_", " "), value["count"], first, ", …" * (value["count"] > 3))


def main(options: argparse.Namespace) -> None:
    source = plugins.load(SOURCES, options.source)
    settings = read_settings(source.Settings, options.settings)
    place = options.results / options.dataset
    where = f"dataset {options.dataset}"
    with atomic_folder(place / "images") as folder:
        loaded = source.load(
            settings, seed=options.seed, limit=options.limit or None, folder=folder, cache=options.cache
        )
        assert set(loaded.tables) == set(getattr(source, "TABLES", ())), f"TABLES of source {options.source}"
        captions, empty = check_captions(loaded.captions, where)
        images, report = check_images(captions, loaded.images, folder, where)
    images["path"] = [p if pd.isna(p) else f"{options.dataset}/images/{p}" for p in images["path"]]
    left_out = {"captions_empty": named(empty), **report}
    warn({**loaded.summary, **left_out})
    summary = {
        "source": options.source,
        "limit": options.limit or None,
        **loaded.summary,
        "images": len(images),
        "images_with_file": int(images["path"].notna().sum()),
        "images_with_box": int(images["bbox_w"].notna().sum()),
        "captions": len(captions),
        "captions_distinct": int(captions["text"].nunique()),
        "classes": int(captions["class_id"].nunique()),
        **left_out,
    }
    write_table(captions, place / "captions.parquet", tables.CAPTIONS)
    write_table(images, place / "images.parquet", tables.IMAGES)
    for name, table in loaded.tables.items():
        write_frame(table, place / f"{name}.parquet")
    write_json(summary, place / "dataset.json")
    log.info(
        "%d captions of %d images, %d with a file, %d classes",
        len(captions), len(images), summary["images_with_file"], summary["classes"],
    )  # fmt: skip


if __name__ == "__main__":
    parser = cli.parser(__doc__)
    parser.add_argument("--source", required=True, help="a file in workflow_scripts/dataset/sources")
    parser.add_argument("--settings", default="{}", metavar="JSON", help="the source's settings")
    parser.add_argument(
        "--limit", type=int, default=0, metavar="N", help="this many images alone, spread over the classes; 0: all"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--results", type=Path, default=Path("results"), metavar="FOLDER")
    parser.add_argument("--dataset", required=True, metavar="NAME", help="the folder in the results")
    parser.add_argument("--cache", type=Path, default=Path(".cache"), metavar="FOLDER", help="keeps downloads")
    cli.run(main, parser)
