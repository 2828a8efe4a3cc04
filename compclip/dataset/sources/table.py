"""A user's table of captions and, optionally, a folder of images.

The table is CSV, TSV, JSON lines, Parquet, lines ``id#n<TAB>caption`` or a folder of Hugging Face ``datasets``, with
columns ``image_id`` and ``caption``, which may be a list, and optionally ``class_id``, ``caption_id`` (default:
position among the image's captions, from 0) and ``path``. ``columns`` and ``KNOWN_AS`` give alternative names.
Duplicate rows are dropped. An image's file is ``path``, or ``<image_id>`` with the ending jpg, jpeg, png or webp, below
the folder of images; an id with such an ending is a path. Without a folder, the captions can still be split. Images
inside a table are not read.
"""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from pydantic import Field

from compclip.core.disk import check_space
from compclip.core.documents import no_such
from compclip.core.errors import UserError, require
from compclip.core.log import log
from compclip.core.pictures import SUFFIXES
from compclip.core.progress import track
from compclip.core.records import is_count, read_records, tidy_id
from compclip.core.section import Section
from compclip.dataset.source import Loaded, named, spread_over_classes
from compclip.io import safe_id

TableColumn = Literal["image_id", "caption", "caption_id", "class_id", "path"]
# Column names in the metadata of folders of images and in common data sets.
KNOWN_AS: dict[str, tuple[str, ...]] = {
    "image_id": ("image_id", "file_name", "filename", "image_name", "image"),
    "caption": ("caption", "text", "captions", "sentence"),
}


class Settings(Section):
    """The table and the folder."""

    file: str = Field(
        min_length=1,
        description="CSV, TSV, JSON lines or Parquet with image_id and caption, lines id#n<TAB>caption, or a folder of"
        " Hugging Face datasets",
    )
    columns: dict[TableColumn, str] = Field({}, description="your names of columns, such as {caption: sentence}")
    images: str | None = Field(None, min_length=1, description="folder of the images; null for only captions")

    def reads(self) -> list[str | None]:
        return [self.file, self.images]


def load(settings: Settings, *, seed: int, limit: int | None, folder: Path, cache: Path) -> Loaded:
    """Read the table's captions, and copy its images to ``folder``."""
    place = Path(settings.file)
    captions, paths, summary = caption_rows(place, settings.columns)
    if place.is_dir() and settings.images is None:
        log.warning("%s: images in its files are not read; to use them, save them and set dataset.table.images", place)
    described = captions[["image_id", "class_id"]].drop_duplicates("image_id")
    files: dict[str, Path] = {}
    if settings.images is not None:
        files, skipped = find_files(Path(settings.images), list(described["image_id"]), paths)
        summary = summary | skipped
        described = described if limit is None else described[described["image_id"].isin(files)]
    chosen = spread_over_classes(described, limit, seed)
    captions = captions[captions["image_id"].isin(chosen)]
    copied = {i: files[i] for i in sorted(chosen & set(files))}
    if copied:
        check_space(sum(f.stat().st_size for f in copied.values()), folder, f"copying {len(copied)} images")
    targets = {i: f"{i}{file.suffix.lower()}" for i, file in copied.items()}
    for image_id, file in track(copied.items(), len(copied), "images copied"):
        target = folder / targets[image_id]
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)
    ids = sorted(chosen)
    images = pd.DataFrame({"image_id": ids, "path": [targets.get(i) for i in ids]})
    return Loaded(captions, images, summary=summary)


def caption_rows(
    file: Path, columns: Mapping[TableColumn, str] | None = None
) -> tuple[pd.DataFrame, dict[str, str], dict[str, Any]]:
    """Return the captions of a table; a row without a caption keeps its number, with an empty text.

    Args:
        columns: the names of columns in the file.

    Returns:
        Columns of ``tables.CAPTIONS``; the path of each image that has one; and the skipped rows, for the summary.
    """
    optional = ["caption_id", "class_id", "path"]
    known_as = KNOWN_AS | {name: (own,) for name, own in (columns or {}).items()}
    required = [*dict.fromkeys(("image_id", "caption", *(columns or {})))]
    rows, bad = read_records(file, required, [name for name in optional if name not in required], known_as, "caption")
    rows = rows.reindex(columns=["where", "image_id", "caption", *optional]).astype(object)
    rows = rows.fillna({"image_id": "", "caption": ""})
    named_files = rows["image_id"].str.lower().str.endswith(SUFFIXES)
    rows["path"] = rows["path"].where(~named_files | rows["path"].notna(), rows["image_id"])
    rows["image_id"] = rows["image_id"].where(~named_files, rows["image_id"].str.rsplit(".", n=1).str[0])
    keep = rows["image_id"] != ""
    bad = [*bad, *(rows["where"][~keep] + ": no image_id")]
    if rows["caption_id"].notna().any():
        is_number = is_count(rows["caption_id"])
        bad += list(rows["where"][keep & ~is_number] + ": caption_id is not a whole number")
        keep &= is_number
    rows = rows[keep].reset_index(drop=True)
    reason = f"{len(bad)} rows cannot be read, the first: {bad[0]}" if bad else "it has no rows"
    require(len(rows), file, f"no captions: {reason}", "correct the table")
    for row in rows.drop_duplicates("image_id").itertuples():
        try:
            safe_id(row.image_id)
        except UserError as error:
            raise UserError(f"{file}: {row.where}: {error}") from error
    number = rows.groupby("image_id").cumcount()
    captions = pd.DataFrame(
        {
            "image_id": rows["image_id"].astype("str"),
            "caption_id": rows["caption_id"].fillna(number).astype("int64"),
            "class_id": rows["class_id"].replace("", None).astype("str"),
            "text": rows["caption"].astype("str"),
        }
    )
    again = rows.drop(columns="where").duplicated()
    skipped = {"rows_unreadable": named(bad), "rows_duplicate": named(list(rows["where"][again]))}
    stated = rows[rows["path"].fillna("") != ""].drop_duplicates(["image_id", "path"])
    for row in stated[stated["image_id"].duplicated()].itertuples():
        raise UserError(f"{file}: {row.where}: image {row.image_id!r} has a second path, {row.path!r}; remove one")
    return captions[~again].reset_index(drop=True), dict(zip(stated["image_id"], stated["path"], strict=True)), skipped


def find_files(folder: Path, ids: list[str], paths: dict[str, str]) -> tuple[dict[str, Path], dict[str, Any]]:
    """Find the file of each image below ``folder``, by its path if it has one, else by its id.

    Returns:
        The files by image_id; for the summary, the files without captions.
    """
    if not folder.is_dir():
        raise UserError(no_such(folder, "folder of images"))
    by_id: dict[str, list[Path]] = {}
    present = sorted(p for p in folder.rglob("*") if p.suffix.lower() in SUFFIXES and p.is_file())
    for path in present:
        by_id.setdefault(tidy_id(path.relative_to(folder).with_suffix("").as_posix()), []).append(path)
    files: dict[str, Path] = {}
    for image_id in ids:
        if image_id in paths:
            try:
                path = folder / safe_id(paths[image_id])
            except UserError as error:
                raise UserError(
                    f"image {image_id!r}: path {paths[image_id]!r} leaves the folder of images; move the file into it"
                ) from error
            candidates = [path] if path.is_file() else []
        else:
            candidates = by_id.get(tidy_id(image_id), [])
        if candidates:
            files[image_id] = min(candidates, key=lambda p: (SUFFIXES + (p.suffix,)).index(p.suffix.lower()))
    if not files:
        wanted = paths.get(ids[0], f"{ids[0]}.jpg")
        example = f", for example {present[0].relative_to(folder).as_posix()}" if present else ""
        fault = f"none of the table's {len(ids)} images is in this folder, the first should be {wanted}; it contains"
        raise UserError(f"{folder}: {fault} {len(present)} images{example}; rename them or state their paths")
    unused = sorted(p.relative_to(folder).as_posix() for p in set(present) - set(files.values()))
    return files, {"files_without_captions": named(unused)}
