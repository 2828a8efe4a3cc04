"""Images that any model has made of the prompts: a folder of files, or a manifest that names them.

In a folder, the file of a prompt is its ``file_name``, with the ending png, jpg, jpeg or webp:
``<dataset>/<composition>/<split>/<image_id>/<caption_id>[_<draw>]``. In a folder for one composition,
``<dataset>/<composition>/`` is optional; if no folder is named after a split, ``<split>/`` is too, as long as no two
splits have a prompt of the same caption. Without ``_<draw>`` it is draw 0. The names that the paper's models write,
given the data folders of ``export_layout``, are read too: ``<image_id>_<caption_id>_s-1[_<draw>][_R_<prediction>]``
(DM-GAN, AttnGAN) and ``<image_id>_<caption_id>_  <draw>`` (DF-GAN). These models write each split to another folder, so
``path`` may name one for each split. A manifest is CSV, TSV, JSON, JSON lines or Parquet with columns ``image_id``,
``caption_id``, ``path`` (relative to it) and, optionally, ``split`` and ``draw``.

``manifest.csv`` in a folder says from which texts its images were made: columns ``file_name``, and ``text`` or
``sha256`` (of the text as UTF-8). Every image must then have a row with the text of its prompt. Without it, at least
half of the images must be of prompts, of any draw.
"""

import hashlib
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Annotated, Literal, TypeVar

import pandas as pd
from pydantic import Field

from workflow_scripts.core.cli import log
from workflow_scripts.core.disk import check_space
from workflow_scripts.core.documents import no_such
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.fingerprint import fingerprint as fingerprint_of
from workflow_scripts.core.io import safe_id
from workflow_scripts.core.pictures import SUFFIXES, BrokenImage, image_size
from workflow_scripts.core.progress import track
from workflow_scripts.core.records import read_records, tidy_id
from workflow_scripts.core.section import COMPOSITION_FIELD, Section
from workflow_scripts.core.tables import TESTS
from workflow_scripts.dataset.source import named
from workflow_scripts.generate.generator import KEYS, Context, Generated

ABOUT = "images from a folder"
TABLES = ()
# Split (None if the place does not say), image_id, caption_id, draw.
Key = tuple[str | None, str, int, int]
V = TypeVar("V")
_NAME = re.compile(r"(?P<image>.+)/(?P<caption>\d{1,15})(?:_(?P<draw>\d{1,9}))?")
_SAMPLED = re.compile(
    r"(?P<image>.+)_(?P<caption>\d{1,15})_(?:s-1(?:_(?P<draw>\d{1,9}))?(?:_R_\d+)?| +(?P<spaced>\d+))"
)
_Place = Annotated[str, Field(min_length=1)]
MADE_FROM = "manifest.csv"


class Settings(Section):
    """Where the images are."""

    path: _Place | dict[Literal["test_seen", "test_unseen", "test_swapped"], _Place] = Field(
        description="folder of images, or manifest file; or one for each split, by the split's name; {composition} in a"
        " path is replaced"
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


@dataclass(frozen=True)
class MadeFrom:
    """What the ``manifest.csv`` of one place says: for each image, the SHA-256 of its text."""

    file: Path
    texts: dict[Key, str]


def fingerprint(settings: Settings, cache: Path | None = None) -> str:
    return fingerprint_of(*settings.places().values(), cache=cache)


def check_shared(settings: Settings, dataset: str, compositions: Sequence[str]) -> None:
    """Raise UserError if a place that exists does not say which of several compositions its images are for."""
    for place in settings.places().values():
        if place.exists() and not (place / dataset).is_dir():
            raise UserError(
                f"{place}: does not say which images are for {' and which for '.join(compositions)}; name them by the"
                f" prompts' file_name ({dataset}/{compositions[0]}/…), or give each composition a folder of its own"
                f" (path: …/{COMPOSITION_FIELD})"
            )


def generate(settings: Settings, prompts: pd.DataFrame, context: Context) -> Generated:
    """Copy each prompt's file, and name the missing and unreadable ones; raises UserError if there are no files."""
    places = settings.places()
    home = home_of(prompts)
    found = find(places, home)
    where = ", ".join(str(place) for place in places.values())
    check_collisions(found.files, prompts, where)
    keys = list(prompts[KEYS].itertuples(index=False, name=None))
    chosen = [_of(key, found.files) for key in keys]
    wanted = {file for file in chosen if file is not None}
    if not any(file.is_file() for file in wanted):
        raise UserError(
            f"{where}: contains no image of the {len(prompts)} prompts, the first should be"
            f" {prompts['file_name'].iloc[0]}; it contains {len(found.files)} files with such names"
            f"{_example(found, places)}; rename the files as the column file_name of prompts.jsonl says"
        )
    checked = [check_texts(made, prompts, keys, chosen) for made in made_from(places, home)]
    if not checked:
        check_purpose(found.files, keys, where)
        log.info("%s: no %s, so the texts from which the images were made are not checked", where, MADE_FROM)
    check_space(sum(f.stat().st_size for f in wanted if f.is_file()), context.folder, f"copying {len(wanted)} images")
    steps = track(zip(prompts["file_name"], chosen, strict=True), len(prompts), "images copied")
    paths, status = zip(*(_copy(name, file, context) for name, file in steps), strict=True)
    manifest = prompts[KEYS].assign(path=paths, status=status)
    summary = {
        "files_without_prompt": named(_shown({*found.files.values()} - wanted, places)),
        "files_not_understood": named(_shown(found.skipped, places)),
        "rows_unreadable": named(found.bad),
        "texts_checked": sum(checked),
    }
    return Generated(manifest, summary=summary)


def home_of(prompts: pd.DataFrame) -> str:
    """Return what all file names begin with: ``<dataset>/<composition>``."""
    first = prompts.iloc[0]
    return first["file_name"].partition(f"/{first['split']}/")[0]


def check_purpose(files: dict[Key, Path], keys: list[Key], where: str) -> None:
    """Raise UserError if most files are of no prompt: then others may be so by chance, with another text.

    Draws do not count, because a model may draw more than are asked for.
    """
    prompted = {(split, *key[1:3]) for key in keys for split in (key[0], None)}
    others = [file for key, file in files.items() if key[:3] not in prompted]
    if len(others) > len(files) / 2:
        raise UserError(
            f"{where}: only {len(files) - len(others)} of {len(files)} images are of this composition's prompts; give"
            f" the folder that was made from its prompts.jsonl (with {COMPOSITION_FIELD} in its path, each composition"
            f" has its own), or list the images' texts in a {MADE_FROM} (docs/generators.md)"
        )


def _of(key: Key, values: dict[Key, V]) -> V | None:
    return values.get(key, values.get((None, *key[1:])))


def _example(found: Found, places: dict[str | None, Path]) -> str:
    names = _shown([*found.files.values(), *found.skipped], places)
    return f", for example {names[0]}" if names else ""


def made_from(places: dict[str | None, Path], home: str) -> Iterator[MadeFrom]:
    """Yield what each ``manifest.csv`` says of the images for ``home``; raises UserError if one is faulty."""
    dataset = home.partition("/")[0]
    for split, place in places.items():
        file = next((f for f in (place / MADE_FROM, place / home / MADE_FROM) if f.is_file()), None)
        if file is None:
            continue
        rows, bad = read_records(file, ["file_name"], ["text", "sha256"])
        if not {"text", "sha256"} & {*rows.columns}:
            raise UserError(f"{file}: no column text or sha256; add one of them")
        if bad:
            raise UserError(f"{file}: {len(bad)} rows cannot be read, the first: {bad[0]}; correct them")
        texts: dict[Key, str] = {}
        for row in rows.to_dict("records"):
            name = (row["file_name"] or "").removeprefix(f"{home}/")
            if name.startswith(f"{dataset}/"):  # of another composition
                continue
            first, _, rest = name.partition("/")
            key = _key(first, _stem(rest)) if first in TESTS else _key(split, _stem(name))
            if key is None:
                raise UserError(f"{file}: {row['where']}: {row['file_name']!r} is no file_name of prompts.jsonl")
            digest = _sha256(row["text"]) if row.get("text") else (row.get("sha256") or "").lower()
            if texts.setdefault(key, digest) != digest:
                raise UserError(f"{file}: {row['where']}: a second text for {row['file_name']}; remove one")
        yield MadeFrom(file, texts)


def _stem(name: str) -> str:
    return str(PurePosixPath(name).with_suffix("")) if name.lower().endswith(SUFFIXES) else name


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def check_texts(made: MadeFrom, prompts: pd.DataFrame, keys: list[Key], chosen: list[Path | None]) -> int:
    """Return how many images were made from their prompts' texts; raises UserError if one was not."""
    rows = [
        (name, text, _of(key, made.texts))
        for name, text, key, file in zip(prompts["file_name"], prompts["text"], keys, chosen, strict=True)
        if file is not None and file.is_relative_to(made.file.parent)
    ]
    unlisted = [name for name, _, stated in rows if not stated]
    if unlisted:
        raise UserError(
            f"{made.file}: no text for {len(unlisted)} of {len(rows)} images, the first {unlisted[0]}; add their rows"
        )
    others = [(name, text) for name, text, stated in rows if stated != _sha256(text)]
    if others:
        raise UserError(
            f"{made.file}: {len(others)} of {len(rows)} images were made from another text than their prompt, the first"
            f" {others[0][0]}, whose prompt is {others[0][1]!r}; make them again from prompts.jsonl"
        )
    return len(rows)


def find(places: dict[str | None, Path], home: str) -> Found:
    result = Found()
    for split, place in places.items():
        if not place.exists():
            raise UserError(no_such(place, "folder or manifest of images"))
        found = files_of_manifest(place) if place.is_file() else files_of_folder(place, home)
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


def files_of_folder(folder: Path, home: str) -> Found:
    """Find the files of prompts by their names; if a folder has the data set's name, only those in ``home`` below it.

    Of several files for one prompt, the ending that comes first in ``pictures.SUFFIXES`` is taken, and ``_0`` before
    a name without a draw.
    """
    if (folder / home).parent.is_dir():
        folder /= home
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
        return split, tidy_id(match["image"]), int(match["caption"]), int(match["draw"] or 0)
    if match := _SAMPLED.fullmatch(name):
        return split, tidy_id(match["image"]), int(match["caption"]), int(match["draw"] or match["spaced"] or 0)
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
