"""Read compound nouns and the three images of each: of the compound, and of what its two nouns are by themselves.

The images lie in a folder or an archive, here or at an address, named by the compound (``snow ball.jpg``), with the
endings ``_n1`` and ``_n2`` for the two nouns, whatever the image's format; or where the list's columns say. The list
selects: images of other compounds are left out, counted and named. A compound is called what its images are. Without a
list the images' names are the list; with --take-unlisted they are its authority, and a compound that has all three
images and is not listed is taken (the benchmark's own archive).

Writes compounds.parquet, images.parquet (paths relative to images/), images/ and compounds.json to the output folder.
A compound that lacks an image, or one of whose images cannot be read, is not complete; it is counted and named.
"""

from __future__ import annotations

import argparse
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
from workflow_scripts.core import cli
from workflow_scripts.core.cli import log
from workflow_scripts.core.disk import check_space
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.fingerprint import fingerprint as fingerprint_of
from workflow_scripts.core.io import atomic_folder, safe_id, write_json, write_table
from workflow_scripts.core.pictures import SUFFIXES, BrokenImage, image_size
from workflow_scripts.core.progress import track
from workflow_scripts.core.tables import COMPOUND_IMAGES, COMPOUNDS, NOUNS_SEEN, ROLES
from workflow_scripts.dataset import origins
from workflow_scripts.dataset.archive import contents, unpack
from workflow_scripts.dataset.download import is_remote, local_path, sha256_of
from workflow_scripts.dataset.origins import Obtained, Published, candidates, obtain
from workflow_scripts.dataset.source import named

# Where the benchmark's images are to be had (its repository, sonalkum/Compun); no sum is published.
PUBLISHED = {"compun": Published(("https://drive.google.com/file/d/1lj7KTlKhFM8oifnCwpAyBjaiRnf-jVKA/view",))}
DISTRACTOR = re.compile(r"(.+)_(n[12])", re.IGNORECASE)


# Which image is whose


def match(
    compounds: pd.DataFrame | None, names: Sequence[str], where: str, listed_in: str = "", take_unlisted: bool = False
) -> tuple[pd.DataFrame, pd.DataFrame, dict[str, Any]]:
    """The compounds, called as their images are; the name of each image that is there; what was found by the way.

    compounds: columns of ``read_list``, or None to take them from the images' names. names: of the files there;
    ``where`` they are and what the list is called stand in errors. images: compound, role, path (None: missing), three
    rows a compound. take_unlisted: compounds that are whole and not listed are taken too. Raises UserError where no
    image is of the list.
    """
    if compounds is not None and compounds[[*PATHS.values()]].notna().any(axis=None):
        return compounds, *_stated(compounds, names, where, listed_in)
    found, several = _by_name(names)
    if compounds is None:
        compounds, notes = _rows([_spelling(files) for files in found.values()]), {}
        owner = dict(zip(found, range(len(found)), strict=True))
    else:
        compounds, owner, notes = _reconcile(compounds, found, where, listed_in, take_unlisted)
    paths = {place: found[k] for k, place in owner.items()}
    images = [
        (name, role, paths.get(place, {}).get(role))
        for place, name in enumerate(compounds["compound"])
        for role in ROLES
    ]
    table = pd.DataFrame(images, columns=["compound", "role", "path"], dtype=object)
    return compounds, table, {"images_with_several_files": named(several)} | notes


def _reconcile(
    compounds: pd.DataFrame, found: dict[str, dict[str, str]], where: str, listed_in: str, take_unlisted: bool
) -> tuple[pd.DataFrame, dict[str, int], dict[str, Any]]:
    """The list, called as its images are, perhaps with those that are whole and not listed; each key's place in it."""
    owner = _owners(compounds["compound"], found)
    if not owner:
        raise UserError(
            f"{where}: holds no image of {listed_in}: looked for {compounds['compound'].iloc[0]!r} with any image's"
            f" ending; it holds those of {len(found)} others, for example {_spelling(next(iter(found.values())))!r}"
        )
    lost = [k for k in found if k not in owner]
    strays = [name for k in lost if set(found[k]) != set(ROLES) for name in found[k].values()]
    whole = [k for k in lost if set(found[k]) == set(ROLES)]
    unlisted = [_spelling(found[k]) for k in whole]
    new = unlisted if take_unlisted else []
    owner |= {k: len(compounds) + place for place, k in enumerate(whole) if take_unlisted}
    called = {place: _spelling(found[k]) for k, place in owner.items()}
    compounds = pd.concat([compounds, _rows(new)], ignore_index=True)
    listed = compounds["compound"]
    compounds = compounds.assign(compound=[called.get(place, name) for place, name in enumerate(listed)])
    changed = [f"{a}: {b}" for a, b in zip(listed, compounds["compound"], strict=True) if a != b]
    return compounds, owner, {
        f"compounds_not_listed_and_{'taken' if take_unlisted else 'left_out'}": named(unlisted),
        "images_that_name_no_listed_compound": named(strays),
        "compounds_called_as_their_images": named(changed),
    }  # fmt: skip


def _by_name(names: Sequence[str]) -> tuple[dict[str, dict[str, str]], list[str]]:
    """By ``key`` of a compound and by role, the file; the names of images that have several, of which one is taken."""
    found: dict[str, dict[str, list[str]]] = {}
    for name in sorted(names):
        base, role = _parts(name)
        found.setdefault(key(base), {}).setdefault(role, []).append(name)

    def first(files: list[str]) -> str:
        endings = [PurePosixPath(name).suffix.lower() for name in files]
        order = [SUFFIXES.index(ending) if ending in SUFFIXES else len(SUFFIXES) for ending in endings]
        return files[order.index(min(order))]

    several = [", ".join(files) for roles in found.values() for files in roles.values() if len(files) > 1]
    return {k: {role: first(files) for role, files in roles.items()} for k, roles in found.items()}, several


def _spelling(files: dict[str, str]) -> str:
    """What the images call their compound; that of the compound itself goes first."""
    return _parts(next(files[role] for role in ROLES if role in files))[0]


def _parts(name: str) -> tuple[str, str]:
    """The compound that an image's name states, and the role."""
    stem = PurePosixPath(name).stem.strip()
    part = DISTRACTOR.fullmatch(stem)
    return (plain(part[1]), part[2].lower()) if part else (plain(stem), "compound")


def _owners(listed: pd.Series, found: dict[str, dict[str, str]]) -> dict[str, int]:
    """The place in the list of the compounds that have images, by the images' key.

    Those that are spelled alike go first; then those left on both sides that differ by spaces and hyphens alone.
    """
    places = {key(name): place for place, name in enumerate(listed)}
    owner = {k: places[k] for k in found if k in places}
    letters = Counter(joined(k) for k in places if k not in owner)
    rest = {joined(k): place for k, place in places.items() if k not in owner and letters[joined(k)] == 1}
    left = Counter(joined(k) for k in found if k not in owner)
    return owner | {k: rest[joined(k)] for k in found if k not in owner and joined(k) in rest and left[joined(k)] == 1}


def _rows(compounds: Sequence[str]) -> pd.DataFrame:
    parts = [split_open(name) or (None, None) for name in compounds]
    first, second = zip(*parts, strict=True) if parts else ((), ())
    rows = pd.DataFrame({"compound": compounds, "first": first, "second": second, "n1": first, "n2": second})
    rows = rows.reindex(columns=["compound", *COLUMNS]).astype(object)
    return rows.where(rows.notna(), None)


def _stated(
    compounds: pd.DataFrame, names: Sequence[str], where: str, listed_in: str
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """The images that the list's columns state."""
    there = set(names)
    rows, absent = [], []
    for row in compounds.to_dict("records"):
        for role, column in PATHS.items():
            path = row[column]
            try:
                path = path and safe_id(path)
            except UserError as error:
                raise UserError(
                    f"{listed_in}: {row['compound']!r}: {column} {path!r} leaves the folder of images: correct it"
                ) from error
            if path and path not in there:
                absent.append(path)
            rows.append((row["compound"], role, path if path in there else None))
    images = pd.DataFrame(rows, columns=["compound", "role", "path"], dtype=object)
    if images["path"].isna().all():
        example = f", for example {sorted(there)[0]!r}" if there else ""
        raise UserError(
            f"{where}: holds no image of {listed_in}: looked for {absent[0]!r}; it holds {len(there)} images{example}"
        )
    unused = sorted(there - set(images["path"].dropna()))
    return images, {"images_stated_and_not_there": named(absent), "images_not_used": named(unused)}


# The files


@cache
def image_endings() -> frozenset[str]:
    """Those of the formats that can be read, in lower case."""
    return frozenset(ending for ending, kind in Image.registered_extensions().items() if kind in Image.OPEN)


def is_image(name: str) -> bool:
    """By its ending; not what a Mac puts into an archive beside the files."""
    parts = PurePosixPath(name).parts
    hidden = any(part.startswith(".") or part == "__MACOSX" for part in parts)
    return not hidden and PurePosixPath(name).suffix.lower() in image_endings()


def open_images(places: str | list[str], sha256: str | None, cache: Path) -> tuple[Path, Obtained | None]:
    """The first of the places that is there: a folder, or an archive, fetched if it must be."""
    for place in [places] if isinstance(places, str) else places:
        if place not in PUBLISHED and not is_remote(place) and local_path(place).is_dir():
            if sha256 is not None:
                raise UserError(f"{place}: a folder has no sha256: give the archive, or no sum")
            return local_path(place), None
    try:
        obtained = obtain(candidates(places, None, sha256, PUBLISHED), cache)
    except UserError as error:
        if PUBLISHED.keys().isdisjoint([places] if isinstance(places, str) else places):
            raise
        raise UserError(
            f"{error}; or fetch it with a browser and name what you got, images: FOLDER (by hand --images FOLDER)"
        ) from error
    return obtained.path, obtained


def sizes(source: Path) -> dict[str, int]:
    """The images in a folder or an archive, by their paths in it, with their sizes in bytes."""
    if source.is_dir():
        files = sorted(path for path in source.rglob("*") if path.is_file())
        found = {path.relative_to(source).as_posix(): path.stat().st_size for path in files}
    else:
        found = contents(source)[0]
    found = {name: size for name, size in found.items() if is_image(name)}
    if not found:
        raise UserError(f"{source}: holds no image")
    return found


def copy(source: Path, names: dict[str, int], folder: Path) -> None:
    """The files ``names``, of so many bytes, from a folder or an archive to ``folder``, under the same names."""
    check_space(sum(names.values()), folder, f"copying {len(names)} images")
    if not source.is_dir():
        unpack(source, folder, {name: name for name in names})
        return
    for name in track(names, len(names), "images copied"):
        target = folder / safe_id(name)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / name, target)


def remove_broken(images: pd.DataFrame, folder: Path) -> tuple[pd.DataFrame, list[str]]:
    """``images`` without the paths of files that cannot be read, which are removed; each with the reason."""
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
    """Of compounds two of whose three images hold the same bytes, which: ``snow ball: compound, n1``."""
    digest = {path: sha256_of(folder / path) for path in images["path"].dropna().unique()}
    there = images[images["path"].notna()].assign(digest=images["path"].map(digest))
    alike = there[there.duplicated(["compound", "digest"], keep=False)]
    return [f"{name}: {', '.join(part['role'])}" for name, part in alike.groupby("compound", sort=False)]


# The step


def load(
    file: Path | None,
    places: str | list[str] | None,
    *,
    sha256: str | None,
    folder: Path,
    cache: Path,
    take_unlisted: bool = False,
) -> tuple[pd.DataFrame, pd.DataFrame, dict[str, Any]]:
    """The compounds of a list, of images, or both: tables ``COMPOUNDS`` and ``COMPOUND_IMAGES``, and the summary.

    take_unlisted: as in ``match``. The images are copied to ``folder``. Without images no compound is complete. Raises
    UserError as ``read_list`` and ``match``, for neither list nor images, and where images are given and no compound is
    complete.
    """
    if file is None and places is None:
        raise UserError("no compounds: give a list, images, or both")
    compounds = None if file is None else read_list(file)
    summary: dict[str, Any] = {}
    if places is None:
        rows = [(name, role, None) for name in compounds["compound"] for role in ROLES]
        images, notes = pd.DataFrame(rows, columns=["compound", "role", "path"], dtype=object), {}
    else:
        source, obtained = open_images(places, sha256, cache)
        found = sizes(source)
        compounds, images, notes = match(compounds, list(found), str(source), str(file or ""), take_unlisted)
        copy(source, {name: found[name] for name in images["path"].dropna().unique()}, folder)
        images, broken = remove_broken(images, folder)
        notes["images_broken"] = named(broken)
        notes["images_of_a_compound_with_the_same_bytes"] = named(same_bytes(images, folder))
        if obtained is not None:
            obtained.read_well()
            summary["archive"] = obtained.summary
    there = images["path"].notna().groupby(images["compound"], sort=False).all()
    compounds = compounds.assign(complete=compounds["compound"].map(there).astype(bool))
    lacking = images[images["path"].isna()].groupby("compound", sort=False)["role"].agg(", ".join)
    if places is not None:
        notes["compounds_incomplete"] = named([f"{name}: {roles}" for name, roles in lacking.items()])
        if not compounds["complete"].any():
            raise UserError(
                f"{source}: no compound has its three images; {lacking.index[0]!r} lacks {lacking.iloc[0]}"
                + (f"; {broken[0]}" if broken else "")
            )
    unchecked = compounds["compound"][compounds["check"].notna()]
    notes["constituents_unchecked"] = named(list(unchecked))
    notes["two_spellings"] = named(two_spellings(compounds["compound"]))
    without = compounds["compound"][compounds["first"].isna()]
    summary |= {
        "compounds": len(compounds),
        "complete": int(compounds["complete"].sum()),
        "images": int(images["path"].notna().sum()),
        "kinds": {kind: int((compounds["kind"] == kind).sum()) for kind in NOUNS_SEEN},
        "without_kind": int(compounds["kind"].isna().sum()),
        "without_constituents": named(list(without)),
    }
    columns = [name for name in COMPOUNDS.columns if name != "complete"]
    compounds = compounds[[*columns, "complete"]].astype(dict.fromkeys(columns, "str"))
    return compounds, images.astype("str"), summary | notes


def fingerprint(file: str | None, places: str | list[str] | None) -> str:
    """Changes when the list or local images do."""
    return fingerprint_of(file) + (origins.fingerprint(candidates(places, None, None, PUBLISHED)) if places else "")


def warn(summary: dict[str, Any]) -> None:
    """One line for each thing that is wrong; each broken image has its own."""
    for line in summary.get("images_broken", {}).get("names", []):
        log.warning("warning: %s: not a readable image: its compound is left out: get it again", line)
    for name, value in summary.items():
        if isinstance(value, dict) and value.get("count") and name != "images_broken":
            first, more = "; ".join(value["names"][:3]), "; …" * (value["count"] > 3)
            log.warning("warning: %s: %d (%s%s)", name.replace("_", " "), value["count"], first, more)


def main(options: argparse.Namespace) -> None:
    with atomic_folder(options.output / "images") as folder:
        compounds, images, summary = load(
            options.file, options.images, sha256=options.sha256, folder=folder, cache=options.cache,
            take_unlisted=options.take_unlisted,
        )  # fmt: skip
    warn(summary)
    write_table(compounds, options.output / "compounds.parquet", COMPOUNDS)
    write_table(images, options.output / "images.parquet", COMPOUND_IMAGES)
    write_json(summary, options.output / "compounds.json")
    log.info("%d compounds, %d complete, %d images", summary["compounds"], summary["complete"], summary["images"])


if __name__ == "__main__":
    parser = cli.parser(__doc__)
    parser.add_argument("--file", type=Path, help="the list (lexicons/compounds/compun.csv); none: the images' names")
    parser.add_argument(
        "--images",
        nargs="+",
        metavar="PLACE",
        help="folder, archive or address, the first that is there; compun: the benchmark's; none: the list alone",
    )
    parser.add_argument("--sha256", help="of the archive")
    parser.add_argument(
        "--take-unlisted", action="store_true", help="compounds with all three images that the list lacks too"
    )
    parser.add_argument("--output", type=Path, required=True, metavar="FOLDER", help="for the tables and images/")
    parser.add_argument("--cache", type=Path, default=Path(".cache"), metavar="FOLDER", help="keeps downloads")
    cli.run(main, parser)
