"""Images that any model has made of the prompts: a folder in which each is named by its prompt's ``file_name``.

``file_name`` (in prompts.jsonl) is ``<dataset>/<composition>/<split>/<image_id>/<caption_id>[_<draw>].png``; the ending
may also be jpg, jpeg or webp. ``manifest.csv`` in the folder says from which texts its images were made: columns
``file_name`` and ``text``. Every image must then have a row with the text of its prompt. Without it, at least half of
the images must be of prompts, of any draw.
"""

import re
import shutil
import unicodedata
from pathlib import Path

import pandas as pd
from pydantic import Field

from compclip.core.disk import check_space
from compclip.core.errors import UserError, require
from compclip.core.fingerprint import fingerprint as fingerprint_of
from compclip.core.log import log
from compclip.core.pictures import SUFFIXES, BrokenImage, image_size
from compclip.core.progress import track
from compclip.core.section import Section
from compclip.dataset.source import named
from compclip.generate.generator import KEYS, Context, Generated

ABOUT = "images from a folder"
TABLES = ()


class Settings(Section):
    """Where the images are."""

    path: str = Field(min_length=1, description="folder of the images; {composition} in it is replaced")


def fingerprint(settings: Settings, cache: Path | None = None) -> str:
    return fingerprint_of(settings.path, cache=cache)


def generate(settings: Settings, prompts: pd.DataFrame, context: Context) -> Generated:
    """Copy each prompt's file, and name the missing and unreadable ones; raises UserError if there are no files."""
    folder, names = Path(settings.path), prompts["file_name"].tolist()
    require(folder.is_dir(), folder, "no such folder of images", "correct the path")
    home = names[0].partition(f"/{prompts['split'].iloc[0]}/")[0]
    images = [path for path in (folder / home).rglob("*") if path.suffix.lower() in SUFFIXES and path.is_file()]
    # Of several endings, the first of SUFFIXES is taken. Some file systems decompose accents.
    images.sort(key=lambda path: (SUFFIXES.index(path.suffix.lower()), path.name), reverse=True)
    files = {unicodedata.normalize("NFC", _stem(path.relative_to(folder).as_posix())): path for path in images}
    chosen = {name: files[_stem(name)] for name in names if _stem(name) in files}
    fault = f"contains no image of the {len(names)} prompts, the first should be {names[0]}"
    require(chosen, folder, fault, "name the images by the column file_name of prompts.jsonl")
    if listed := (folder / "manifest.csv").is_file():
        check_texts(folder / "manifest.csv", prompts[prompts["file_name"].isin(chosen)])
    else:
        # A model may draw more than are asked for, so draws do not count.
        prompted = {_stem(name, draw=False) for name in names}
        known = sum(_stem(name, draw=False) in prompted for name in files)
        fault = f"only {known} of {len(files)} images are of this composition's prompts"
        remedy = "give the folder made from its prompts.jsonl, or list the images' texts in its manifest.csv"
        require(2 * known >= len(files), folder, fault, remedy)
        log.info("%s: no manifest.csv, so the texts from which the images were made are not checked", folder)
    check_space(sum(file.stat().st_size for file in chosen.values()), context.folder, f"copying {len(chosen)} images")
    copied = [_copy(name, chosen.get(name), context) for name in track(names, len(names), "images copied")]
    paths, status = zip(*copied, strict=True)
    unused = sorted(file.relative_to(folder).as_posix() for file in {*files.values()} - {*chosen.values()})
    summary = {"files_without_prompt": named(unused), "texts_checked": listed * len(chosen)}
    return Generated(prompts[KEYS].assign(path=paths, status=status), summary=summary)


def _stem(name: str, *, draw: bool = True) -> str:
    """Return a file name without its ending and, if asked, without its draw."""
    stem = name.rpartition(".")[0] if name.lower().endswith(SUFFIXES) else name
    return stem if draw else re.sub(r"_\d+$", "", stem)


def check_texts(file: Path, prompts: pd.DataFrame) -> None:
    """Raise UserError unless ``manifest.csv`` says that images were made from the texts of ``prompts``."""
    try:
        rows = pd.read_csv(file, dtype=str, keep_default_na=False, usecols=["file_name", "text"])
    except ValueError as error:  # of the parser, the columns and the encoding
        reason = " ".join(str(error).split())
        raise UserError(f"{file}: not a CSV file with columns file_name and text ({reason}); correct it") from error
    stated = dict(zip(rows["file_name"].map(_stem), rows["text"], strict=True))
    others = prompts[prompts["file_name"].map(_stem).map(stated) != prompts["text"]]
    first = others[["file_name", "text"]].head(1).to_dict("records")
    fault = f"{len(others)} of {len(prompts)} images have no row or were made from another text than {first}"
    require(others.empty, file, fault, "correct their rows, or make them again from prompts.jsonl")


def _copy(name: str, file: Path | None, context: Context) -> tuple[str | None, str]:
    if file is None:
        return None, "missing"
    try:
        image_size(file)
    except BrokenImage:
        return None, "unreadable"
    target = _stem(name) + file.suffix.lower()
    (context.folder / target).parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, context.folder / target)
    return f"{context.place}/{target}", "ok"
