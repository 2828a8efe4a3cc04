"""Images that any model has made of the prompts: a folder of files, or a manifest that names them.

In a folder, the file of a prompt is ``<split>/<image_id>/<caption_id>[_<draw>]`` with the ending png, jpg, jpeg or
webp; if no folder is named after a split, ``<image_id>/<caption_id>[_<draw>]``, as long as no two splits have a prompt
of the same caption. Without ``_<draw>`` it is draw 0. The names that the paper's models write, given the data folders
of ``export_layout``, are read too: ``<image_id>_<caption_id>_s-1[_<draw>][_R_<prediction>]`` (DM-GAN, AttnGAN) and
``<image_id>_<caption_id>_  <draw>`` (DF-GAN). These models write each split to another folder, so ``path`` may name one
for each split. A manifest is CSV, TSV, JSON, JSON lines or Parquet with columns ``image_id``, ``caption_id``, ``path``
(relative to it) and, optionally, ``split`` and ``draw``.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import pandas as pd
from pydantic import Field

from workflow_scripts.core.disk import check_space
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.fingerprint import fingerprint as fingerprint_of
from workflow_scripts.core.io import safe_id
from workflow_scripts.core.pictures import SUFFIXES, BrokenImage, image_size
from workflow_scripts.core.progress import track
from workflow_scripts.core.records import read_records
from workflow_scripts.core.section import Section
from workflow_scripts.core.tables import TESTS
from workflow_scripts.dataset.source import named
from workflow_scripts.generate.generator import KEYS, Context, Generated

SPLITS = TESTS
TABLES = ()
# Split (None if the place does not say), image_id, caption_id, draw.
Key = tuple[str | None, str, int, int]
_NAME = re.compile(r"(?P<image>.+)/(?P<caption>\d{1,15})(?:_(?P<draw>\d{1,9}))?")
_SAMPLED = re.compile(
    r"(?P<image>.+)_(?P<caption>\d{1,15})_(?:s-1(?:_(?P<draw>\d{1,9}))?(?:_R_\d+)?| +(?P<spaced>\d+))"
)
_Place = Annotated[str, Field(min_length=1)]


class Settings(Section):
    """Where the images are."""

    path: _Place | dict[Literal["test_seen", "test_unseen", "test_swapped"], _Place] = Field(
        description="folder of images, or manifest file; or one for each split, by the split's name"
    )

    def places(self) -> dict[str | None, Path]:
        """Return folders and manifests by split; None for one with all splits."""
        return {None: Path(self.path)} if isinstance(self.path, str) else {s: Path(p) for s, p in self.path.items()}


@dataclass
class Found:
    """The file of each prompt, and what else was found."""

    files: dict[Key, Path] = field(default_factory=dict)
    skipped: list[Path] = field(default_factory=list)  # names not understood, or that mean the same as another's
    bad: list[str] = field(default_factory=list)  # rows of manifests that cannot be read


def fingerprint(settings: Settings) -> str:
    return fingerprint_of(*settings.places().values())


def generate(settings: Settings, prompts: pd.DataFrame, context: Context) -> Generated:
    """Copy each prompt's file, and name the missing and unreadable ones; raises UserError if there are no files."""
    places = settings.places()
    found = find(places)
    where = ", ".join(str(place) for place in places.values())
    check_collisions(found.files, prompts, where)
    keys = prompts[KEYS].itertuples(index=False, name=None)
    chosen = [found.files.get(key, found.files.get((None, *key[1:]))) for key in keys]
    wanted = {file for file in chosen if file is not None}
    if not any(file.is_file() for file in wanted):
        raise UserError(
            f"{where}: contains no image of the {len(prompts)} prompts, the first should be"
            f" {prompts['file_name'].iloc[0]}; it contains {len(found.files)} files with such names; rename the files"
        )
    check_space(sum(f.stat().st_size for f in wanted if f.is_file()), context.folder, f"copying {len(wanted)} images")
    steps = track(zip(prompts["file_name"], chosen, strict=True), len(prompts), "images copied")
    paths, status = zip(*(_copy(name, file, context) for name, file in steps), strict=True)
    manifest = prompts[KEYS].assign(path=paths, status=status)
    summary = {
        "files_without_prompt": named(_shown({*found.files.values()} - wanted, places)),
        "files_not_understood": named(_shown(found.skipped, places)),
        "rows_unreadable": named(found.bad),
    }
    return Generated(manifest, summary=summary)


def find(places: dict[str | None, Path]) -> Found:
    result = Found()
    for split, place in places.items():
        if not place.exists():
            raise UserError(f"{place}: no such folder or manifest of images; correct the path")
        found = files_of_manifest(place) if place.is_file() else files_of_folder(place)
        # In a split's own place, files of other splits are skipped.
        files = {key: file for key, file in found.files.items() if split is None or key[0] in (None, split)}
        result.files |= {(split or key[0], *key[1:]): file for key, file in files.items()}
        result.skipped += found.skipped + sorted({*found.files.values()} - {*files.values()})
        result.bad += found.bad
    return result


def _shown(files: Iterable[Path], places: dict[str | None, Path]) -> list[str]:
    """Return the files' paths below their places, sorted, because artifacts contain no absolute path."""
    names = []
    for file in files:
        split, root = next(
            (split, root)
            for split, root in ((s, p.parent if p.is_file() else p) for s, p in places.items())
            if file.is_relative_to(root)
        )
        names.append("/".join(filter(None, (split, file.relative_to(root).as_posix()))))
    return sorted(names)


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


def files_of_folder(folder: Path) -> Found:
    """Find the files of prompts by their names.

    Of several files for one prompt, the ending that comes first in ``pictures.SUFFIXES`` is taken, and ``_0`` before
    a name without a draw.
    """
    has_splits = any((folder / split).is_dir() for split in TESTS)
    found = Found()
    files = (p for p in folder.rglob("*") if p.suffix.lower() in SUFFIXES and p.is_file())
    order = {suffix: number for number, suffix in enumerate(SUFFIXES)}
    for path in sorted(files, key=lambda p: (order[p.suffix.lower()], "_" not in p.stem, p.as_posix())):
        split: str | None = None
        name = path.relative_to(folder).with_suffix("").as_posix()
        if has_splits:
            split, _, name = name.partition("/")
        key = _key(split, name) if split is None or split in TESTS else None
        if key is None or key in found.files:
            found.skipped.append(path)
        else:
            found.files[key] = path
    return found


def _key(split: str | None, name: str) -> Key | None:
    """Return which prompt a file's name, without its ending, stands for; None if it is not understood."""
    if match := _NAME.fullmatch(name):
        return split, match["image"], int(match["caption"]), int(match["draw"] or 0)
    if match := _SAMPLED.fullmatch(name):
        return split, match["image"], int(match["caption"]), int(match["draw"] or match["spaced"] or 0)
    return None


def files_of_manifest(manifest: Path) -> Found:
    """Find the files of prompts in a manifest; raises UserError if two rows are for one prompt."""
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
            raise UserError(
                f"{manifest}: {row['where']}: a second file for image {key[1]} caption {key[2]}; remove one"
            )
        files[key] = path
    return Found(files, bad=bad)


def check_collisions(files: dict[Key, Path], prompts: pd.DataFrame, place: str) -> None:
    """Raise UserError if a file without a split could be for prompts of two splits."""
    for (image_id, caption_id, draw), splits in prompts.groupby(["image_id", "caption_id", "draw"])["split"]:
        if len(splits) > 1 and (None, image_id, caption_id, draw) in files:
            both = " and ".join(sorted(splits))
            raise UserError(
                f"{place}: image {image_id} caption {caption_id}: {both} have different prompts of it; put the files"
                f" into folders named {', '.join(TESTS)} (in a manifest, add a column split)"
            )
