"""Read compound nouns and three images of each: of the compound, and of each of its two nouns."""

import re
import shutil
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

import pandas as pd
from PIL import Image

from workflow_scripts.compun.compounds import COLUMNS, PATHS, joined, key, plain, read_list, split_open, two_spellings
from workflow_scripts.compun.config import Compounds
from workflow_scripts.compun.steps import LoadCompounds
from workflow_scripts.core import cli
from workflow_scripts.core.cli import log
from workflow_scripts.core.digests import sha256
from workflow_scripts.core.disk import check_space
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.fingerprint import fingerprint as fingerprint_of
from workflow_scripts.core.io import atomic_folder, safe_id, write_json, write_table
from workflow_scripts.core.pictures import SUFFIXES, BrokenImage, image_size
from workflow_scripts.core.progress import track
from workflow_scripts.core.tables import COMPOUND_IMAGES, COMPOUNDS, NOUNS_SEEN, ROLES
from workflow_scripts.dataset.archive import contents, unpack
from workflow_scripts.dataset.download import (
    Published,
    candidates,
    google_drive,
    is_remote,
    local_path,
    obtain,
    unchecked,
)
from workflow_scripts.dataset.source import named

# The benchmark's images (its repository is sonalkum/Compun); no checksum is published.
PUBLISHED = {"compun": Published((google_drive("1lj7KTlKhFM8oifnCwpAyBjaiRnf-jVKA"),))}
DISTRACTOR = re.compile(r"(.+)_(n[12])", re.IGNORECASE)

# By ``key`` of a compound and by role, the name of the image file.
Files = dict[str, dict[str, str]]


def match(
    compounds: pd.DataFrame | None, names: Sequence[str], where: str, listed_in: str = "", take_unlisted: bool = False
) -> tuple[pd.DataFrame, pd.DataFrame, dict[str, Any]]:
    """Match image files to compounds; ``where`` and ``listed_in`` are the places of images and list, for errors.

    Args:
        compounds: columns of ``read_list``, or None to take the compounds from ``names`` of the images.
        take_unlisted: also take compounds that have all three images and are not listed.

    Returns:
        The compounds, called as their images are; a table of compound, role and path (None if missing) with three rows
        a compound; and the counts for the summary.
    """
    if compounds is not None and compounds[[*PATHS.values()]].notna().any(axis=None):
        return compounds, *_by_columns(compounds, names, where, listed_in)
    files, several = _by_name(names)
    notes: dict[str, Any] = {}
    if compounds is None:
        compounds = _rows([_spelling(roles) for roles in files.values()])
        owner = {name: place for place, name in enumerate(files)}
    else:
        compounds, owner, notes = _reconcile(compounds, files, where, listed_in, take_unlisted)
    paths = {place: files[name] for name, place in owner.items()}
    rows = [
        (name, role, paths.get(place, {}).get(role))
        for place, name in enumerate(compounds["compound"])
        for role in ROLES
    ]
    images = pd.DataFrame(rows, columns=["compound", "role", "path"], dtype=object)
    return compounds, images, {"images_with_several_files": named(several)} | notes


def _reconcile(
    compounds: pd.DataFrame, files: Files, where: str, listed_in: str, take_unlisted: bool
) -> tuple[pd.DataFrame, dict[str, int], dict[str, Any]]:
    """Return the compounds, called as their images are; the row of each key of ``files``; and counts."""
    owner = _owners(compounds["compound"], files)
    if not owner:
        raise UserError(
            f"{where}: holds no image of {listed_in}; expected {compounds['compound'].iloc[0]!r} with the ending of an"
            f" image; it holds images of {len(files)} others, such as {_spelling(next(iter(files.values())))!r}"
        )
    whole = [name for name, roles in files.items() if name not in owner and set(roles) == set(ROLES)]
    strays = [file for name in files if name not in {*owner, *whole} for file in files[name].values()]
    unlisted = [_spelling(files[name]) for name in whole]
    if take_unlisted:
        owner |= {name: len(compounds) + place for place, name in enumerate(whole)}
        compounds = pd.concat([compounds, _rows(unlisted)], ignore_index=True)
    listed = compounds["compound"]
    called = {place: _spelling(files[name]) for name, place in owner.items()}
    compounds = compounds.assign(compound=[called.get(place, name) for place, name in enumerate(listed)])
    changed = [f"{a}: {b}" for a, b in zip(listed, compounds["compound"], strict=True) if a != b]
    return compounds, owner, {
        f"compounds_not_listed_and_{'taken' if take_unlisted else 'left_out'}": named(unlisted),
        "images_that_name_no_listed_compound": named(strays),
        "compounds_called_as_their_images": named(changed),
    }  # fmt: skip


def _by_name(names: Sequence[str]) -> tuple[Files, list[str]]:
    """Return the file of each image, and the names of files that are the same image, of which one is used."""
    files: dict[str, dict[str, list[str]]] = {}
    for name in sorted(names):
        base, role = _parts(name)
        files.setdefault(key(base), {}).setdefault(role, []).append(name)

    def rank(name: str) -> int:
        ending = PurePosixPath(name).suffix.lower()
        return SUFFIXES.index(ending) if ending in SUFFIXES else len(SUFFIXES)

    several = [", ".join(same) for roles in files.values() for same in roles.values() if len(same) > 1]
    return {name: {role: min(same, key=rank) for role, same in roles.items()} for name, roles in files.items()}, several


def _spelling(roles: dict[str, str]) -> str:
    """Return what the images call their compound; the compound's own image takes precedence."""
    return _parts(next(roles[role] for role in ROLES if role in roles))[0]


def _parts(name: str) -> tuple[str, str]:
    """Return the compound that an image's name states, and the role."""
    stem = PurePosixPath(name).stem.strip()
    distractor = DISTRACTOR.fullmatch(stem)
    return (plain(distractor[1]), distractor[2].lower()) if distractor else (plain(stem), "compound")


def _owners(listed: pd.Series, files: Files) -> dict[str, int]:
    """Return the row in the list of each key that has one.

    Equal spellings match first; then those left on both sides that differ only by spaces and hyphens.
    """
    places = {key(name): place for place, name in enumerate(listed)}
    owner = {name: places[name] for name in files if name in places}
    in_list = Counter(joined(name) for name in places if name not in owner)
    rest = {joined(name): place for name, place in places.items() if name not in owner and in_list[joined(name)] == 1}
    in_files = Counter(joined(name) for name in files if name not in owner)
    return owner | {
        name: rest[joined(name)]
        for name in files
        if name not in owner and joined(name) in rest and in_files[joined(name)] == 1
    }


def _rows(compounds: Sequence[str]) -> pd.DataFrame:
    """Return rows of ``read_list`` for names of images."""
    parts = [split_open(name) or (None, None) for name in compounds]
    first, second = zip(*parts, strict=True) if parts else ((), ())
    rows = pd.DataFrame({"compound": compounds, "first": first, "second": second, "n1": first, "n2": second})
    rows = rows.reindex(columns=["compound", *COLUMNS]).astype(object)
    return rows.where(rows.notna(), None)


def _by_columns(
    compounds: pd.DataFrame, names: Sequence[str], where: str, listed_in: str
) -> tuple[pd.DataFrame, dict[str, Any]]:
    existing = set(names)
    rows, absent = [], []
    for row in compounds.to_dict("records"):
        for role, column in PATHS.items():
            path = row[column]
            try:
                path = path and safe_id(path)
            except UserError as error:
                place = f"{listed_in}: {row['compound']!r}: {column} {path!r}"
                raise UserError(f"{place} leaves the folder of images; correct it") from error
            if path and path not in existing:
                absent.append(path)
            rows.append((row["compound"], role, path if path in existing else None))
    images = pd.DataFrame(rows, columns=["compound", "role", "path"], dtype=object)
    if images["path"].isna().all():
        example = f", such as {sorted(existing)[0]!r}" if existing else ""
        held = f"it holds {len(existing)} images{example}"
        raise UserError(f"{where}: holds no image of {listed_in}; expected {absent[0]!r}; {held}")
    unused = sorted(existing - set(images["path"].dropna()))
    return images, {"images_stated_and_not_there": named(absent), "images_not_used": named(unused)}


@cache
def image_endings() -> frozenset[str]:
    """Return the endings of all readable image formats, in lower case."""
    return frozenset(ending for ending, kind in Image.registered_extensions().items() if kind in Image.OPEN)


def is_image(name: str) -> bool:
    """Return whether a path ends as an image does, and is no hidden file of macOS or other systems."""
    parts = PurePosixPath(name).parts
    hidden = any(part.startswith(".") or part == "__MACOSX" for part in parts)
    return not hidden and PurePosixPath(name).suffix.lower() in image_endings()


def open_images(places: str | list[str], sha256: str | None, cache: Path) -> tuple[Path, dict[str, str] | None]:
    """Return the first of the places that exists: a folder, or an archive, which is downloaded if necessary."""
    places = [places] if isinstance(places, str) else places
    for place in places:
        if place not in PUBLISHED and not is_remote(place) and local_path(place).is_dir():
            if sha256 is not None:
                raise UserError(f"{place}: a folder has no sha256; give the archive, or remove sha256")
            return local_path(place), None
    return obtain(candidates(places, None, sha256, PUBLISHED), cache)


def sizes(source: Path) -> dict[str, int]:
    """Return the images in a folder or an archive, by their paths in it, with their sizes in bytes."""
    if source.is_dir():
        paths = sorted(path for path in source.rglob("*") if path.is_file())
        files = {path.relative_to(source).as_posix(): path.stat().st_size for path in paths}
    else:
        files = contents(source)[0]
    images = {name: size for name, size in files.items() if is_image(name)}
    if not images:
        raise UserError(f"{source}: holds no image; choose another folder or archive")
    return images


def copy(source: Path, names: dict[str, int], folder: Path) -> None:
    """Copy files, with their sizes in bytes, from a folder or an archive to ``folder``, under the same names."""
    check_space(sum(names.values()), folder, f"copying {len(names)} images")
    if not source.is_dir():
        unpack(source, folder, {name: name for name in names})
        return
    for name in track(names, len(names), "images copied"):
        target = folder / safe_id(name)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / name, target)


def remove_broken(images: pd.DataFrame, folder: Path) -> tuple[pd.DataFrame, list[str]]:
    """Remove unreadable files; return ``images`` without their paths, and each with the reason."""
    broken: dict[str, str] = {}
    paths = images["path"].dropna().unique()
    for path in track(paths, len(paths), "images checked"):
        try:
            image_size(folder / path)
        except BrokenImage as error:
            broken[path] = f"{path}: {error}"
            (folder / path).unlink()
    return images.assign(path=images["path"].where(~images["path"].isin(broken), None)), list(broken.values())


def same_bytes(images: pd.DataFrame, folder: Path) -> list[str]:
    """Return compounds with images of equal bytes, as ``snow ball: compound, n1``."""
    present = images[images["path"].notna()]
    digest = {path: sha256(folder / path) for path in present["path"].unique()}
    present = present.assign(digest=present["path"].map(digest))
    equal = present[present.duplicated(["compound", "digest"], keep=False)]
    return [f"{name}: {', '.join(rows['role'])}" for name, rows in equal.groupby("compound", sort=False)]


def load(
    origin: Compounds, *, folder: Path, cache: Path, take_unlisted: bool = False
) -> tuple[pd.DataFrame, pd.DataFrame, dict[str, Any]]:
    """Read the list, copy its images to ``folder``; return ``COMPOUNDS``, ``COMPOUND_IMAGES``, and the summary."""
    listed = None if origin.file is None else read_list(Path(origin.file))
    source, obtained = open_images(origin.images, origin.sha256, cache)
    files = sizes(source)
    compounds, images, notes = match(listed, list(files), str(source), origin.file or "", take_unlisted)
    copy(source, {name: files[name] for name in images["path"].dropna().unique()}, folder)
    images, broken = remove_broken(images, folder)
    complete = images["path"].notna().groupby(images["compound"], sort=False).all()
    compounds = compounds.assign(complete=compounds["compound"].map(complete).astype(bool))
    missing = images[images["path"].isna()].groupby("compound", sort=False)["role"].agg(", ".join)
    if not complete.any():
        first = f"{missing.index[0]!r} lacks {missing.iloc[0]}" + (f"; {broken[0]}" if broken else "")
        raise UserError(f"{source}: no compound has all three images; {first}")
    summary = ({} if obtained is None else {"archive": obtained}) | {
        "compounds": len(compounds),
        "complete": int(compounds["complete"].sum()),
        "images": int(images["path"].notna().sum()),
        "kinds": {kind: int((compounds["kind"] == kind).sum()) for kind in NOUNS_SEEN},
        "without_kind": int(compounds["kind"].isna().sum()),
        "without_constituents": named(list(compounds["compound"][compounds["first"].isna()])),
        **notes,
        "images_broken": named(broken),
        "images_of_a_compound_with_the_same_bytes": named(same_bytes(images, folder)),
        "compounds_incomplete": named([f"{name}: {roles}" for name, roles in missing.items()]),
        "constituents_unchecked": named(list(compounds["compound"][compounds["check"].notna()])),
        "two_spellings": named(two_spellings(compounds["compound"])),
    }
    columns = [name for name in COMPOUNDS.columns if name != "complete"]
    return compounds[[*columns, "complete"]].astype(dict.fromkeys(columns, "str")), images.astype("str"), summary


def fingerprint(origin: Compounds, cache: Path | None = None) -> str:
    """Return a fingerprint of the list and of local images."""
    images = fingerprint_of(*unchecked(candidates(origin.images, None, None, PUBLISHED)), cache=cache)
    return fingerprint_of(origin.file, cache=cache) + images


def warn(summary: dict[str, Any]) -> None:
    """Log a line for each kind of fault, and one for each broken image."""
    for line in summary["images_broken"]["names"]:
        log.warning("warning: %s: not a readable image; its compound is skipped", line)
    for name, value in summary.items():
        if isinstance(value, dict) and value.get("count") and name != "images_broken":
            first, more = "; ".join(value["names"][:3]), "; …" * (value["count"] > 3)
            log.warning("warning: %s: %d (%s%s)", name.replace("_", " "), value["count"], first, more)


def main(step: LoadCompounds) -> None:
    # The benchmark's own archive is more complete than its list; of other images, the list selects.
    places = [step.origin.images] if isinstance(step.origin.images, str) else step.origin.images
    take_unlisted = step.take_unlisted or "compun" in places
    with atomic_folder(step.files) as folder:
        compounds, images, summary = load(step.origin, folder=folder, cache=step.cache, take_unlisted=take_unlisted)
    warn(summary)
    write_table(compounds, step.compounds, COMPOUNDS)
    write_table(images, step.images, COMPOUND_IMAGES)
    write_json(summary, step.summary)
    log.info("%d compounds, %d complete, %d images", summary["compounds"], summary["complete"], summary["images"])


if __name__ == "__main__":
    cli.run(main)
