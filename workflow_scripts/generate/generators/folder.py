"""Images that somebody's model has made from ``prompts.jsonl``: a folder of files, or a manifest that names them.

In a folder, the file of a prompt is ``<split>/<image_id>/<caption_id>[_<draw>]`` with the ending png, jpg, jpeg or
webp; where there is no folder named after a split, ``<image_id>/<caption_id>[_<draw>]``, as long as no two splits ask
for the same caption. Without ``_<draw>`` it is draw 0. A manifest is CSV, TSV, JSON, JSON lines or Parquet with
columns ``image_id``, ``caption_id``, ``path`` (relative to it) and, optionally, ``split`` and ``draw``.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pandas as pd
from pydantic import Field

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.fingerprint import fingerprint as fingerprint_of
from workflow_scripts.common.io import safe_id
from workflow_scripts.common.pictures import SUFFIXES, BrokenImage, image_size
from workflow_scripts.common.progress import track
from workflow_scripts.common.records import read_records
from workflow_scripts.common.section import Section
from workflow_scripts.common.tables import TESTS
from workflow_scripts.dataset.archive import check_space
from workflow_scripts.dataset.source import named
from workflow_scripts.generate.generator import KEYS, Context, Generated

SPLITS = TESTS
TABLES = ()
# split (None where the place says none), image_id, caption_id, draw.
Key = tuple[str | None, str, int, int]
_NAME = re.compile(r"(?P<image>.+)/(?P<caption>\d{1,15})(?:_(?P<draw>\d{1,9}))?")


class Settings(Section):
    """Where the images are."""

    path: str = Field(min_length=1, description="a folder of images, or a manifest file that names them")


def fingerprint(settings: Settings) -> str:
    """Changes when the manifest does, or the names or sizes of the files in the folder."""
    return fingerprint_of(settings.path)


def generate(settings: Settings, prompts: pd.DataFrame, context: Context) -> Generated:
    """Each prompt's file, copied; missing and unreadable ones named. Raises UserError where none is found."""
    place = Path(settings.path)
    if not place.exists():
        raise UserError(f"{place}: no such folder or manifest of images")
    files, bad = files_of_manifest(place) if place.is_file() else files_of_folder(place)
    check_collisions(files, prompts, place)
    found = [_file(files, key) for key in prompts[KEYS].itertuples(index=False, name=None)]
    wanted = {file for file in found if file is not None}
    if not any(file.is_file() for file in wanted):
        raise UserError(
            f"{place}: holds no image of the {len(prompts)} prompts; the first is looked for as "
            f"{prompts['file_name'].iloc[0]}; there are {len(files)} files with such names"
        )
    check_space(sum(f.stat().st_size for f in wanted if f.is_file()), context.folder, f"copying {len(wanted)} images")
    rows = []
    steps = zip(prompts["file_name"], found, strict=True)
    for name, file in track(steps, len(prompts), "images copied"):
        rows.append(_copy(name, file, context))
    manifest = prompts[KEYS].assign(path=[r[0] for r in rows], status=[r[1] for r in rows])
    unused = sorted(str(f.relative_to(place.parent if place.is_file() else place)) for f in {*files.values()} - wanted)
    return Generated(manifest, summary={"files_without_prompt": named(unused), "rows_unreadable": named(bad)})


def _copy(name: str, file: Path | None, context: Context) -> tuple[str | None, str]:
    if file is None or not file.is_file():
        return None, "missing"
    try:
        image_size(file)
    except BrokenImage:
        return None, "unreadable"
    target = str(Path(name).with_suffix(file.suffix.lower()))
    (context.folder / target).parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, context.folder / target)
    return f"{context.place}/{target}", "ok"


def _file(files: dict[Key, Path], key: Key) -> Path | None:
    return files.get(key, files.get((None, *key[1:])))


def files_of_folder(folder: Path) -> tuple[dict[Key, Path], list[str]]:
    """The files by what their names say; and nothing, for a folder has no bad rows.

    Where one prompt has several files, the ending that comes first in ``pictures.SUFFIXES`` is taken, and
    ``_0`` before none.
    """
    has_splits = any((folder / split).is_dir() for split in TESTS)
    files: dict[Key, Path] = {}
    there = (p for p in folder.rglob("*") if p.suffix.lower() in SUFFIXES and p.is_file())
    order = {suffix: number for number, suffix in enumerate(SUFFIXES)}
    for path in sorted(there, key=lambda p: (order[p.suffix.lower()], "_" not in p.stem, p.as_posix())):
        split, name = None, path.relative_to(folder).with_suffix("").as_posix()
        if has_splits:
            split, _, name = name.partition("/")
        match = _NAME.fullmatch(name)
        if match and (split is None or split in TESTS):
            files.setdefault((split, match["image"], int(match["caption"]), int(match["draw"] or 0)), path)
    return files, []


def files_of_manifest(manifest: Path) -> tuple[dict[Key, Path], list[str]]:
    """The files by the manifest's columns, and its bad rows. Raises UserError where two rows are for one prompt."""
    rows, bad = read_records(manifest, ["image_id", "caption_id", "path"], ["split", "draw"])
    files: dict[Key, Path] = {}
    for row in rows.to_dict("records"):
        split, draw = row.get("split") or None, row.get("draw") or "0"
        try:
            if not (row["image_id"] and row["caption_id"] and row["path"]):
                raise ValueError("image_id, caption_id and path must have values")
            if split is not None and split not in TESTS:
                raise ValueError(f"unknown split {split!r}; allowed: {', '.join(TESTS)}")
            key = (split, row["image_id"], int(row["caption_id"]), int(draw))
            path = manifest.parent / safe_id(row["path"])
        except (ValueError, UserError) as error:
            bad.append(f"{row['where']}: {error}")
            continue
        if key in files:
            raise UserError(f"{manifest}: {row['where']}: a second image for image {key[1]} caption {key[2]}: keep one")
        files[key] = path
    return files, bad


def check_collisions(files: dict[Key, Path], prompts: pd.DataFrame, place: Path) -> None:
    """UserError where a file without a split could be for prompts of two splits."""
    for key, splits in prompts.groupby(["image_id", "caption_id", "draw"])["split"]:
        image_id, caption_id, draw = key
        if len(splits) > 1 and (None, image_id, caption_id, draw) in files:
            both = " and ".join(sorted(splits))
            raise UserError(
                f"{place}: image {image_id} caption {caption_id}: {both} ask for different images of it: "
                f"put the files into folders named {', '.join(TESTS)} (in a manifest: a column split)"
            )
