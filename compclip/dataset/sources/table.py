"""A user's table of captions and, optionally, a folder of images.

The table is CSV, TSV, JSON lines, Parquet, lines ``id#n<TAB>caption`` or a folder of Hugging Face
``datasets``, with columns ``image_id`` and ``caption``, which may be a list, and optionally
``class_id``, ``caption_id`` (default: position among the image's captions, from 0) and ``path``.
``columns`` and ``KNOWN_AS`` give alternative names. Duplicate rows are dropped. An image's file is
``path``, or ``<image_id>`` with the ending jpg, jpeg, png or webp, below the folder of images; an
id with such an ending is a path. Without a folder, the captions can still be split. Images inside a
table are not read.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from compclip.core.artifacts.disk import check_space
from compclip.core.artifacts.files import safe_id
from compclip.core.errors import UserError, require
from compclip.core.limits import IMAGE_SUFFIXES
from compclip.core.log import log
from compclip.core.progress import track
from compclip.core.reading.documents import no_such
from compclip.core.reading.normal import tidy_id
from compclip.core.settings.section import Section
from compclip.core.tables import CAPTIONS, Column, Schema, text
from compclip.dataset.source import Loaded, named, spread_over_classes

if TYPE_CHECKING:
    import pandas as pd

    from compclip.core.reading.records import Records

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
OPTIONAL = ("caption_id", "class_id", "path")
TEXTS = dict.fromkeys(("where", "image_id", "caption", *OPTIONAL), text(nullable=True))
ROWS = Schema({"row": Column("int64"), **TEXTS})
# Faults of rows that cannot be read.
BAD = ("no image_id", "caption_id is not a whole number")


class Settings(Section):
    """The table and the folder."""

    file: str = Field(
        min_length=1,
        description="CSV, TSV, JSON lines or Parquet with image_id and caption, lines "
        "id#n<TAB>caption, or a folder of Hugging Face datasets",
    )
    columns: dict[TableColumn, str] = Field(
        {}, description="your column names, such as {caption: sentence}"
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
    import pandas as pd

    table = Path(settings.file)
    # A file, because a table of millions of captions may not fit into memory.
    rows = scratch / "rows.parquet"
    unreadable, changed_ids = spool_rows(table, settings.columns, rows)
    described, paths, summary = survey(table, rows, unreadable)
    if changed_ids:
        summary["ids_with_invisible_characters"] = named(changed_ids)
    if table.is_dir() and settings.images is None:
        log.warning(
            "%s: images in its files are not read; to use them, save them and set "
            "dataset.table.images",
            table,
        )
    files: dict[str, Path] = {}
    if settings.images is not None:
        files, unused = find_files(Path(settings.images), list(described["image_id"]), paths)
        summary["files_without_captions"] = named(unused)
        if limit is not None:
            # A limit counts only images with a file.
            described = described[described["image_id"].isin(files)]
    # Sorted, because the order of a set of texts differs between processes.
    image_ids = sorted(spread_over_classes(described, limit, seed))
    copied = {image_id: files[image_id] for image_id in image_ids if image_id in files}
    targets = copy_images(copied, folder)
    image_paths = [targets.get(image_id) for image_id in image_ids]
    images = pd.DataFrame({"image_id": image_ids, "path": image_paths})
    return Loaded(chosen_captions(rows, image_ids), images, summary=summary)


def chosen_captions(file: Path, image_ids: list[str]) -> Iterator[pd.DataFrame]:
    """Yield the captions of these images from the temporary file, in blocks."""
    for block in checked_blocks(file):
        is_chosen = (block["fault"] == "") & block["image_id"].isin(image_ids)
        yield block.loc[is_chosen, [*CAPTIONS.columns]]


def copy_images(files: Mapping[str, Path], folder: Path) -> dict[str, str]:
    """Copy the file of each image to ``folder``, named by its id; return the names by image_id."""
    if files:
        size = sum(file.stat().st_size for file in files.values())
        check_space(size, folder, f"copying {len(files)} images")
    targets = {}
    for image_id, file in track(files.items(), len(files), "images copied"):
        name = f"{image_id}{file.suffix.lower()}"
        targets[image_id] = name
        target = folder / name
        # An id with a slash is in a folder of its own.
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)
    return targets


def spool_rows(
    table: Path, columns: Mapping[TableColumn, str], file: Path
) -> tuple[list[str], list[str]]:
    """Write the rows of a table to a temporary file, sorted by image within a block.

    Returns:
        The rows that cannot be read, and the ids with invisible characters.
    """
    from compclip.core.artifacts.parquet import write_table
    from compclip.core.reading.records import record_blocks

    known_as = KNOWN_AS | {name: (user_name,) for name, user_name in columns.items()}
    # A column that the user names must exist.
    # Each once, in order.
    required = [*dict.fromkeys(("image_id", "caption", *columns))]
    optional = [name for name in OPTIONAL if name not in required]
    changed_ids = list[str]()
    blocks = record_blocks(table, required, optional, known_as, "caption", ROWS_READ, changed_ids)
    unreadable = list[str]()
    write_table(_sorted_blocks(blocks, unreadable), file, ROWS, ROWS_PER_GROUP)
    return unreadable, changed_ids


def _sorted_blocks(blocks: Iterable[Records], unreadable: list[str]) -> Iterator[pd.DataFrame]:
    """Yield the rows of ``ROWS``; ``unreadable`` gets those that cannot be read."""
    begin = 0
    for rows, bad_rows in blocks:
        unreadable.extend(bad_rows)
        numbers = range(begin, begin + len(rows))
        yield _tidy_rows(rows).assign(row=numbers).sort_values("image_id")
        begin += len(rows)


def _tidy_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows with all columns of ``TEXTS``; an id that names a file becomes its path, too."""
    # Columns that the table lacks are empty.
    rows = rows.reindex(columns=[*TEXTS]).astype(object)
    rows = rows.fillna({"image_id": "", "caption": ""})
    rows["path"] = rows["path"].map(tidy_id, na_action="ignore")
    image_ids = rows["image_id"]
    is_file_name = image_ids.str.lower().str.endswith(IMAGE_SUFFIXES)
    rows["path"] = rows["path"].where(~is_file_name | rows["path"].notna(), image_ids)
    stems = image_ids.str.rsplit(".", n=1).str[0]
    rows["image_id"] = image_ids.where(~is_file_name, stems)
    return rows.astype("str")


def checked_blocks(file: Path) -> Iterator[pd.DataFrame]:
    """Yield the rows of whole images at a time, ascending, each block in the order of the table.

    A row without a caption keeps its number, with an empty text. Column ``fault`` is "" for the
    rows to keep.
    """
    import numpy as np
    import pandas as pd

    from compclip.core.artifacts.parquet import blocks_of, read_frame
    from compclip.core.reading.records import is_count

    stated_numbers = read_frame(file, ["caption_id"])["caption_id"]
    # If one row has a number, all must: a counted one could repeat it.
    is_numbered = stated_numbers.notna().any()
    for images in blocks_of(file, ROWS_CHECKED):
        rows = read_frame(file, images=images).sort_values("row", ignore_index=True)
        # Equal rows are duplicates wherever they are in the table.
        is_duplicate = rows.drop(columns=["row", "where"]).duplicated()
        if is_numbered:
            number = rows["caption_id"].astype(object)
            is_bad_number = ~is_count(number)
        else:
            number = rows.groupby("image_id").cumcount()
            is_bad_number = pd.Series(False, rows.index)
        # The first fault of a row counts.
        faults = [rows["image_id"] == "", is_bad_number, is_duplicate]
        rows["fault"] = np.select(faults, [*BAD, "duplicate"], "")
        rows["caption_id"] = number.mask(is_bad_number, 0).astype("int64")
        # An empty cell means no class.
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
    images = []
    skipped = []
    paths = dict[str, str]()
    for block in checked_blocks(file):
        is_skipped = block["fault"] != ""
        # Rows of the fault are kept by number, to report them in the order of the table.
        skipped.append(block.loc[is_skipped, ["row", "where", "fault"]])
        rows = block[~is_skipped]
        firsts = rows.drop_duplicates("image_id")[["row", "where", "image_id", "class_id"]]
        _check_ids(table, firsts)
        images.append(firsts)
        paths |= _stated_paths(table, rows)
    described = _in_table_order(images)
    faults = _in_table_order(skipped)
    rows_by_fault = {fault: list(rows) for fault, rows in faults.groupby("fault")["where"]}
    # First the rows that no block has, because a cell of theirs is not a text.
    unreadable = list(unreadable)
    for fault in BAD:
        unreadable += [f"{row}: {fault}" for row in rows_by_fault.get(fault, [])]
    if unreadable:
        reason = f"{len(unreadable)} rows cannot be read, the first: {unreadable[0]}"
    else:
        reason = "it has no rows"
    require(len(described), table, f"no captions: {reason}", "correct the table")
    summary = {
        "rows_unreadable": named(unreadable),
        "rows_duplicate": named(rows_by_fault.get("duplicate", [])),
    }
    return described, paths, summary


def _in_table_order(blocks: list[pd.DataFrame]) -> pd.DataFrame:
    import pandas as pd

    return pd.concat(blocks).sort_values("row", ignore_index=True)


def _check_ids(table: Path, firsts: pd.DataFrame) -> None:
    """Raise UserError for an id that would leave the folder of images."""
    for row in firsts.itertuples():
        try:
            safe_id(row.image_id)
        except UserError as error:
            raise UserError(f"{table}: {row.where}: {error}") from error


def _stated_paths(table: Path, rows: pd.DataFrame) -> dict[str, str]:
    """Return the path of each image that has one; raises UserError if one has two."""
    stated = rows[rows["path"].fillna("") != ""].drop_duplicates(["image_id", "path"])
    second = stated[stated["image_id"].duplicated()]
    if len(second):
        row = second.iloc[0]
        fault = f"image {row['image_id']!r} has a second path, {row['path']!r}"
        raise UserError(f"{table}: {row['where']}: {fault}; remove one")
    return dict(zip(stated["image_id"], stated["path"], strict=True))


def find_files(
    folder: Path, ids: list[str], paths: Mapping[str, str]
) -> tuple[dict[str, Path], list[str]]:
    """Find the file of each image below ``folder``, by its path if it has one, else by its id.

    Returns:
        The files by image_id; the paths of images without captions, sorted.
    """
    if not folder.is_dir():
        raise UserError(no_such(folder, "folder of images"))
    present = sorted(
        path
        for path in folder.rglob("*")
        if path.suffix.lower() in IMAGE_SUFFIXES and path.is_file()
    )
    # Ids were tidied when they were read, so the names on the disk must be, too.
    by_path = {tidy_id(path.relative_to(folder).as_posix()): path for path in present}
    # Several files may have the same name but for their endings.
    by_id: dict[str, list[Path]] = {}
    for name, path in by_path.items():
        by_id.setdefault(name.rpartition(".")[0], []).append(path)
    files = {}
    for image_id in ids:
        if image_id in paths:
            file = _stated_file(folder, image_id, paths[image_id], by_path)
        else:
            file = min(by_id.get(tidy_id(image_id), []), key=_suffix_rank, default=None)
        if file is not None:
            files[image_id] = file
    if not files:
        # An example of either side shows how the names differ.
        wanted = paths.get(ids[0], f"{ids[0]}.jpg")
        example = f", for example {present[0].relative_to(folder).as_posix()}" if present else ""
        raise UserError(
            f"{folder}: none of the table's {len(ids)} images is in this folder, the first should "
            f"be {wanted}; it contains {len(present)} images{example}; rename them or state their "
            "paths"
        )
    unused = set(present) - set(files.values())
    return files, sorted(path.relative_to(folder).as_posix() for path in unused)


def _suffix_rank(path: Path) -> int:
    """Return the rank of a file's ending, by which an image with several files chooses one."""
    return IMAGE_SUFFIXES.index(path.suffix.lower())


def _stated_file(
    folder: Path, image_id: str, path: str, by_path: Mapping[str, Path]
) -> Path | None:
    """Return the file at an image's stated path, None if there is none."""
    try:
        file = folder / safe_id(path)
    except UserError as error:
        fault = f"image {image_id!r}: path {path!r} leaves the folder of images"
        raise UserError(f"{fault}; move the file into it") from error
    # The file's name may be written otherwise, such as in decomposed letters by macOS.
    file = by_path.get(tidy_id(path), file)
    if not file.is_file():
        return None
    return file
