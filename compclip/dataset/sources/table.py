"""A user's table of captions and, optionally, a folder of images.

The table is CSV, TSV, JSON lines, Parquet, lines ``id#n<TAB>caption`` or a folder of Hugging Face
``datasets``, with columns ``image_id`` and ``caption``, which may be a list, and optionally
``class_id``, ``caption_id`` (default: position among the image's captions, from 0) and ``path``.
``columns`` and ``KNOWN_AS`` give alternative names. Duplicate rows are dropped. An image's file is
``path``, or ``<image_id>`` with the ending jpg, jpeg, png or webp, below the folder of images; an
id with such an ending is a path. Without a folder, the captions can still be split. Images inside a
table are not read.
"""

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from compclip.core.disk import check_space
from compclip.core.documents import no_such
from compclip.core.errors import UserError, require
from compclip.core.log import log
from compclip.core.normal import tidy_id
from compclip.core.pictures import SUFFIXES
from compclip.core.progress import track
from compclip.core.records import is_count, record_blocks
from compclip.core.section import Section
from compclip.core.tables import CAPTIONS, Column, Schema, text
from compclip.dataset.source import Loaded, named, spread_over_classes
from compclip.io import blocks_of, read_frame, safe_id, write_table

TableColumn = Literal["image_id", "caption", "caption_id", "class_id", "path"]
# Column names in the metadata of folders of images and in common data sets.
KNOWN_AS: dict[str, tuple[str, ...]] = {
    "image_id": ("image_id", "file_name", "filename", "image_name", "image"),
    "caption": ("caption", "text", "captions", "sentence", "comment"),
    "caption_id": ("caption_id", "comment_number"),
}
SCRATCH = True
ROWS_READ = 50_000  # rows of the table that are read, and sorted by image, at a time
ROWS_PER_GROUP = 1000  # of the temporary file
ROWS_CHECKED = 250_000  # rows that are checked at a time
TEXTS = dict.fromkeys(
    ("where", "image_id", "caption", "caption_id", "class_id", "path"), text(nullable=True)
)
ROWS = Schema({"row": Column("int64"), **TEXTS})
BAD = ("no image_id", "caption_id is not a whole number")


class Settings(Section):
    """The table and the folder."""

    file: str = Field(
        min_length=1,
        description="CSV, TSV, JSON lines or Parquet with image_id and caption, lines "
        "id#n<TAB>caption, or a folder of"
        " Hugging Face datasets",
    )
    columns: dict[TableColumn, str] = Field(
        {}, description="your names of columns, such as {caption: sentence}"
    )
    images: str | None = Field(
        None, min_length=1, description="folder of the images; null for only captions"
    )

    def reads(self) -> list[str | None]:
        return [self.file, self.images]


def load(
    settings: Settings, *, seed: int, limit: int | None, folder: Path, cache: Path, scratch: Path
) -> Loaded:
    """Read the table's captions, and copy its images to ``folder``."""
    place = Path(settings.file)
    unreadable, changed_ids = spool_rows(place, settings.columns, rows := scratch / "rows.parquet")
    described, paths, summary = survey(place, rows, unreadable)
    if changed_ids:
        summary["ids_with_invisible_characters"] = named(changed_ids)
    if place.is_dir() and settings.images is None:
        log.warning(
            "%s: images in its files are not read; to use them, save them and set "
            "dataset.table.images",
            place,
        )
    files: dict[str, Path] = {}
    if settings.images is not None:
        files, skipped = find_files(Path(settings.images), list(described["image_id"]), paths)
        summary = summary | skipped
        described = described if limit is None else described[described["image_id"].isin(files)]
    chosen = spread_over_classes(described, limit, seed)
    copied = {i: files[i] for i in sorted(chosen & set(files))}
    if copied:
        check_space(
            sum(f.stat().st_size for f in copied.values()), folder, f"copying {len(copied)} images"
        )
    targets = {i: f"{i}{file.suffix.lower()}" for i, file in copied.items()}
    for image_id, file in track(copied.items(), len(copied), "images copied"):
        target = folder / targets[image_id]
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)
    ids = sorted(chosen)
    images = pd.DataFrame({"image_id": ids, "path": [targets.get(i) for i in ids]})
    captions = (
        block.loc[
            (block["fault"] == "") & block["image_id"].isin(images["image_id"]), [*CAPTIONS.columns]
        ]
        for block in checked_blocks(rows)
    )
    return Loaded(captions, images, summary=summary)


def spool_rows(
    table: Path, columns: Mapping[TableColumn, str], file: Path
) -> tuple[list[str], list[str]]:
    """Write the rows of a table to a temporary file; return those that cannot be read, and changed
    ids.
    """
    optional, unreadable = ["caption_id", "class_id", "path"], list[str]()
    changed_ids = list[str]()
    known_as = KNOWN_AS | {name: (own,) for name, own in columns.items()}
    required = [*dict.fromkeys(("image_id", "caption", *columns))]
    others = [name for name in optional if name not in required]
    blocks = record_blocks(table, required, others, known_as, "caption", ROWS_READ, changed_ids)

    def sorted_blocks() -> Iterator[pd.DataFrame]:
        begin = 0
        for rows, bad in blocks:
            unreadable.extend(bad)
            rows = rows.reindex(columns=["where", "image_id", "caption", *optional]).astype(object)
            rows = rows.fillna({"image_id": "", "caption": ""})
            rows["path"] = rows["path"].map(tidy_id, na_action="ignore")
            named_files = rows["image_id"].str.lower().str.endswith(SUFFIXES)
            rows["path"] = rows["path"].where(~named_files | rows["path"].notna(), rows["image_id"])
            rows["image_id"] = rows["image_id"].where(
                ~named_files, rows["image_id"].str.rsplit(".", n=1).str[0]
            )
            yield (
                rows.astype("str")
                .assign(row=range(begin, begin + len(rows)))
                .sort_values("image_id")
            )
            begin += len(rows)

    write_table(sorted_blocks(), file, ROWS, ROWS_PER_GROUP)
    return unreadable, changed_ids


def checked_blocks(file: Path) -> Iterator[pd.DataFrame]:
    """Yield the rows of whole images at a time, ascending, each block in the order of the table.

    A row without a caption keeps its number, with an empty text. Column ``fault`` is "" for the
    rows to keep.
    """
    is_numbered = read_frame(file, ["caption_id"])["caption_id"].notna().any()
    for images in blocks_of(file, ROWS_CHECKED):
        rows = read_frame(file, images=images).sort_values("row", ignore_index=True)
        again = rows.drop(columns=["row", "where"]).duplicated()
        number = (
            rows["caption_id"].astype(object)
            if is_numbered
            else rows.groupby("image_id").cumcount()
        )
        is_bad = ~is_count(number) if is_numbered else number < 0
        rows["fault"] = np.select([rows["image_id"] == "", is_bad, again], [*BAD, "duplicate"], "")
        rows["caption_id"] = number.mask(is_bad, 0).astype("int64")
        rows["class_id"] = rows["class_id"].where(rows["class_id"] != "")
        yield rows.rename(columns={"caption": "text"})


def survey(
    table: Path, file: Path, unreadable: list[str]
) -> tuple[pd.DataFrame, dict[str, str], dict[str, Any]]:
    """Check all rows.

    Returns:
        image_id and class_id of each image; the path of each that has one; and the skipped rows,
        for the summary.
    """
    firsts, skipped, paths = list[pd.DataFrame](), list[pd.DataFrame](), dict[str, str]()
    for block in checked_blocks(file):
        skipped.append(block.loc[block["fault"] != "", ["row", "where", "fault"]])
        rows = block[block["fault"] == ""]
        firsts.append(rows.drop_duplicates("image_id")[["row", "where", "image_id", "class_id"]])
        for row in firsts[-1].itertuples():
            try:
                safe_id(row.image_id)
            except UserError as error:
                raise UserError(f"{table}: {row.where}: {error}") from error
        stated = rows[rows["path"].fillna("") != ""].drop_duplicates(["image_id", "path"])
        for row in stated[stated["image_id"].duplicated()].itertuples():
            raise UserError(
                f"{table}: {row.where}: image {row.image_id!r} has a second path, {row.path!r}; "
                "remove one"
            )
        paths |= zip(stated["image_id"], stated["path"], strict=True)
    described, faults = (
        pd.concat(tables).sort_values("row", ignore_index=True) for tables in (firsts, skipped)
    )
    where = {fault: list(rows) for fault, rows in faults.groupby("fault")["where"]}
    unreadable = unreadable + [f"{row}: {fault}" for fault in BAD for row in where.get(fault, [])]
    reason = (
        f"{len(unreadable)} rows cannot be read, the first: {unreadable[0]}"
        if unreadable
        else "it has no rows"
    )
    require(len(described), table, f"no captions: {reason}", "correct the table")
    summary = {
        "rows_unreadable": named(unreadable),
        "rows_duplicate": named(where.get("duplicate", [])),
    }
    return described, paths, summary


def find_files(
    folder: Path, ids: list[str], paths: dict[str, str]
) -> tuple[dict[str, Path], dict[str, Any]]:
    """Find the file of each image below ``folder``, by its path if it has one, else by its id.

    Returns:
        The files by image_id; for the summary, the files without captions.
    """
    if not folder.is_dir():
        raise UserError(no_such(folder, "folder of images"))
    by_id: dict[str, list[Path]] = {}
    present = sorted(p for p in folder.rglob("*") if p.suffix.lower() in SUFFIXES and p.is_file())
    by_path = {tidy_id(path.relative_to(folder).as_posix()): path for path in present}
    for name, path in by_path.items():
        by_id.setdefault(name.rpartition(".")[0], []).append(path)
    files: dict[str, Path] = {}
    for image_id in ids:
        if image_id in paths:
            try:
                path = folder / safe_id(paths[image_id])
            except UserError as error:
                raise UserError(
                    f"image {image_id!r}: path {paths[image_id]!r} leaves the folder of images; "
                    "move the file into it"
                ) from error
            path = by_path.get(tidy_id(paths[image_id]), path)
            candidates = [path] if path.is_file() else []
        else:
            candidates = by_id.get(tidy_id(image_id), [])
        if candidates:
            files[image_id] = min(
                candidates, key=lambda p: (SUFFIXES + (p.suffix,)).index(p.suffix.lower())
            )
    if not files:
        wanted = paths.get(ids[0], f"{ids[0]}.jpg")
        example = f", for example {present[0].relative_to(folder).as_posix()}" if present else ""
        fault = (
            f"none of the table's {len(ids)} images is in this folder, the first should be "
            f"{wanted}; it contains"
        )
        raise UserError(
            f"{folder}: {fault} {len(present)} images{example}; rename them or state their paths"
        )
    unused = sorted(p.relative_to(folder).as_posix() for p in set(present) - set(files.values()))
    return files, {"files_without_captions": named(unused)}
