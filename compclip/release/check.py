"""Check a release before it is used: which files it has, how large they get, and whether they fit
together.
"""

import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from compclip.core import limits
from compclip.core.digests import sha256
from compclip.core.errors import UserError, memory_for, one_line, require
from compclip.core.records import check_expansion
from compclip.core.tables import CAPTION_KEY, PROMPT_KEY, are_among
from compclip.io import read_json, safe_id
from compclip.release.models import DOWNLOAD, Contents
from compclip.score.entries import ENTRY
from compclip.split.pools import bounded, least_distractors

if TYPE_CHECKING:
    from compclip.release.released import Release, ReleasePart

RELEASE_FILE = "release.json"
# What Snakemake, git and the Hub's client put at the top of a folder; it is never read.
OF_TOOLS = (".snakemake_timestamp", ".git", ".gitattributes", ".cache")
ROUNDING = 2e-6  # of a sum of numbers with six decimals


def files_in(folder: Path) -> Iterator[str]:
    """Yield the relative path of each file in a folder; UserError for links, devices and other
    special files.
    """
    for path in folder.rglob("*"):
        name = path.relative_to(folder)
        mode = path.lstat().st_mode
        if name.parts[0] not in OF_TOOLS and not stat.S_ISDIR(mode):
            # A link may lead out of the folder, and a device or a pipe has no end.
            require(stat.S_ISREG(mode), path, "not a regular file", DOWNLOAD)
            yield name.as_posix()


def check_files(folder: Path, contents: Contents) -> None:
    """Raise UserError unless the folder has exactly the listed files, with their digests, none of
    which explodes.
    """
    actual = {*files_in(folder)} - {RELEASE_FILE}
    for name in sorted(actual ^ contents.files.keys()):
        fault = f"not listed in {RELEASE_FILE}" if name in actual else "missing"
        raise UserError(f"{folder / name}: {fault}; {DOWNLOAD}")
    for name, expected in contents.files.items():
        file = folder / name
        size = file.stat().st_size
        require(
            size <= limits.FILE_BYTES, file, limits.over("FILE_BYTES", f"{size:,} bytes"), DOWNLOAD
        )
        require(
            sha256(file) == expected,
            file,
            f"damaged: its sha256 is not that of {RELEASE_FILE}",
            DOWNLOAD,
        )
        if file.suffix == ".parquet":
            check_expansion(file)


def check_release(release: "Release") -> None:
    """Raise UserError unless all tables and JSON files can be read and fit together."""
    try:
        with memory_for(release.folder):
            for part in release.parts.values():
                check_part(part)
    except (ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError) as error:
        # Tables can contradict each other in more ways than are checked.
        fault = f"its files do not fit together ({one_line(error)[:200]})"
        raise UserError(f"{release.folder}: {fault}; {DOWNLOAD}") from error


def check_part(part: "ReleasePart") -> None:
    """Raise UserError unless the files of a composition can be read and fit together."""
    contents = part.release.contents
    about = part.about
    where = f"{part.folder.parent / RELEASE_FILE}: {part.name}"
    named = {contents.reference, *sum(about.anchors.values(), ())} - {None}
    require(
        named <= {*about.generators},
        where,
        "a reference or anchor is not one of its generators",
        DOWNLOAD,
    )
    prompts = part.tables["prompts"]
    file = part.folder / "prompts.parquet"
    require(
        len(prompts) and prompts["text"].str.strip().all(),
        file,
        "no prompts, or a blank one",
        DOWNLOAD,
    )
    for name, split in zip(prompts["file_name"], prompts["split"], strict=True):
        home = f"{contents.dataset}/{part.name}/{split}/"
        require(
            safe_id(name).startswith(home), file, f"file_name {name} is not in {home}", DOWNLOAD
        )
    _require_keys(file, prompts, part.release.captions, CAPTION_KEY)
    _require_keys(part.folder / "variants.parquet", part.tables["variants"], prompts, PROMPT_KEY)
    pools = {
        "captions": part.release.captions,
        "judged": part.judged,
        "swapped": part.tables["swapped"],
    }
    bounded(about.candidates, least_distractors(prompts=prompts, **pools), where)
    # Read the files that are not read with the scores.
    _ = part.health, part.matched, part.variants, part.divergences, part.rules
    for judge, released in about.judges.items():
        model = part.release.folder / released.folder / "model.json"
        require(model.is_file(), model, "missing", DOWNLOAD)
        adjustment = part.adjustment(judge)
        size = read_json(model)["model_cfg"]["embed_dim"]
        is_whole = adjustment is None or len(adjustment.mean) == size
        require(
            is_whole,
            part.folder / "adjustments" / f"{judge}.json",
            f"mean has not {size} numbers",
            DOWNLOAD,
        )
        for generator in about.generators:
            for name, table in part.control(judge, generator)[1].items():
                file = part.folder / "scores" / judge / generator / f"{name}.parquet"
                _require_keys(
                    file, table, prompts[prompts["split"] == name.partition(".")[0]], ENTRY
                )
                possible = ~(table["similarity"].abs() > 1) & (
                    table["p_beaten"] + table["p_tied"] <= 1 + ROUNDING
                )
                require(possible.all(), file, "impossible similarities or chances", DOWNLOAD)


def _require_keys(file: Path, table: pd.DataFrame, other: pd.DataFrame, key: list[str]) -> None:
    """Raise UserError unless each key of a table is in the table that it refers to."""
    is_known = are_among(table, other, key)
    require(is_known.all(), file, f"row {is_known.argmin()}: unknown {key}", DOWNLOAD)
