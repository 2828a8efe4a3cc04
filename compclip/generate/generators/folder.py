"""A folder of images made from the prompts by any model, each named by its prompt's ``file_name``.

``file_name`` (in prompts.jsonl) is
``<dataset>/<composition>/<split>/<image_id>/<caption_id>[_<draw>].png``; the ending may also be
jpg, jpeg or webp. ``manifest.jsonl`` in the folder has the texts from which its images were made:
one object per line with ``file_name`` and ``text``, and optionally ``seed`` and ``status``. Every
image must then have a line with the text of its prompt; images whose status is not ``ok`` are
missing. Without this file, texts are not checked, and at least half of the images must be of
prompts, of any draw. The folder is refused if more than ``MOST_EQUAL`` of the images equal the
image of a different text.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from compclip.core.artifacts.disk import check_space
from compclip.core.errors import UserError, require
from compclip.core.identity.digests import sha256
from compclip.core.identity.fingerprint import fingerprint as fingerprint_of
from compclip.core.limits import IMAGE_SUFFIXES
from compclip.core.log import log
from compclip.core.progress import track
from compclip.core.reading.normal import normalize, tidy_id
from compclip.core.settings.section import Section
from compclip.dataset.source import named, named_differences
from compclip.generate.generator import MANIFEST_NAME, PROMPT_KEYS, Context, Generated

if TYPE_CHECKING:
    import pandas as pd

ABOUT = "images from a folder"
# Fraction of images that may equal the image of a different text, for example if all are black.
MOST_EQUAL = 0.01
PREVIEWED = 50  # images whose pixels `make check` reads
TABLES = ()
TRAINING_DATA = "unknown"


class Settings(Section):
    """The location of the images."""

    path: str = Field(
        min_length=1, description="folder of the images; {composition} in it is replaced"
    )


def fingerprint(settings: Settings, cache: Path | None = None) -> str:
    return fingerprint_of(settings.path, cache=cache)


def find_images(folder: Path, prompts: pd.DataFrame) -> tuple[dict[str, Path], list[str]]:
    """Return each prompt's file by ``file_name``, and a list of other files.

    Raises:
        UserError: there are no images, or they were made for other prompts.
    """
    names = prompts["file_name"].tolist()
    require(folder.is_dir(), folder, "no such folder of images", "correct the path")
    # The folder of the data set and the composition; other compositions' images are not unused.
    home = names[0].partition(f"/{prompts['split'].iloc[0]}/")[0]
    # Without endings, which may differ from the prompts' .png.
    files = _files_by_stem(folder, home)
    chosen = {name: files[_stem(name)] for name in names if _stem(name) in files}
    fault = f"contains no image of the {len(names)} prompts, the first should be {names[0]}"
    require(chosen, folder, fault, "name the images by the column file_name of prompts.jsonl")
    manifest = folder / MANIFEST_NAME
    if manifest.is_file():
        failed = check_texts(manifest, prompts[prompts["file_name"].isin(chosen)])
        chosen = {name: file for name, file in chosen.items() if name not in failed}
    else:
        _check_names(folder, names, files)
    unused = set(files.values()) - set(chosen.values())
    return chosen, sorted(file.relative_to(folder).as_posix() for file in unused)


def _files_by_stem(folder: Path, home: str) -> dict[str, Path]:
    """Return the images below ``home`` by their names without ending."""
    images = [
        path
        for path in (folder / home).rglob("*")
        if path.suffix.lower() in IMAGE_SUFFIXES and path.is_file()
    ]
    # The last file of a name stays: the first ending in IMAGE_SUFFIXES takes precedence.
    images.sort(
        key=lambda path: (IMAGE_SUFFIXES.index(path.suffix.lower()), path.name), reverse=True
    )
    return {_stem(path.relative_to(folder).as_posix()): path for path in images}


def _check_names(folder: Path, names: Sequence[str], stems: Collection[str]) -> None:
    """Raise UserError unless at least half of the images are named as those of prompts."""
    # A model may draw more images than requested, so draws are ignored.
    prompted = {_stem(name, draw=False) for name in names}
    matching = sum(_stem(stem, draw=False) in prompted for stem in stems)
    fault = f"only {matching} of {len(stems)} images are of this composition's prompts"
    remedy = (
        "give the folder made from its prompts.jsonl, or list the images' texts in its "
        f"{MANIFEST_NAME}"
    )
    require(2 * matching >= len(stems), folder, fault, remedy)
    log.warning(
        "warning: %s: no %s, so texts are not checked (compclip.write_manifest)",
        folder,
        MANIFEST_NAME,
    )


def generate(settings: Settings, prompts: pd.DataFrame, context: Context) -> Generated:
    """Copy each prompt's file, and record missing and broken ones; raises UserError if there
    are no files.
    """
    from compclip.dataset.load_dataset import warn

    folder = Path(settings.path)
    names = prompts["file_name"].tolist()
    chosen, unused = find_images(folder, prompts)
    equal = _check_equal(folder, prompts, chosen)
    # Before anything is copied, not when the disk is full.
    size = sum(file.stat().st_size for file in chosen.values())
    check_space(size, context.folder, f"copying {len(chosen)} images")
    differing: dict[str, list[str]] = {}
    paths = []
    statuses = []
    # In the order of the prompts, which is that of the manifest.
    for name in track(names, len(names), "images copied"):
        file = chosen.get(name)
        path, status = _copy(name, file, context, differing)
        paths.append(path)
        statuses.append(status)
    warn(named_differences(differing))
    summary: dict[str, Any] = {
        "files_without_prompt": named(unused),
        "equal_images": named(equal),
    }
    has_texts = (folder / MANIFEST_NAME).is_file()
    summary["texts_checked"] = len(chosen) if has_texts else 0
    summary |= named_differences(differing)
    return Generated(prompts[PROMPT_KEYS].assign(path=paths, status=statuses), summary=summary)


def preview(settings: Settings, prompts: pd.DataFrame) -> str:
    """Return a note on missing images, "" if there are none; raises the UserErrors of a run, for a
    sample of images.
    """
    from compclip.core.reading.pictures import BrokenImage, image_size

    folder = Path(settings.path)
    chosen, _ = find_images(folder, prompts)
    _check_equal(folder, prompts, chosen)
    files = list(chosen.values())
    step = max(1, len(files) // PREVIEWED)
    # Evenly over all prompts, because decoding every image takes long.
    for file in files[::step]:
        try:
            image_size(file)
        except BrokenImage as error:
            raise UserError(f"{file}: not a readable image ({error}); make it again") from error
    missing = [name for name in prompts["file_name"] if name not in chosen]
    if not missing:
        return ""
    count = f"{len(missing):,} of {len(prompts):,} images are missing and would count as wrong"
    return f"{count}, the first {missing[0]}"


def _stem(name: str, *, draw: bool = True) -> str:
    """Return a tidy file name without its ending and, unless ``draw``, without its draw."""
    name = tidy_id(name)
    stem = name.rpartition(".")[0] if name.lower().endswith(IMAGE_SUFFIXES) else name
    return stem if draw else re.sub(r"_\d+$", "", stem)


def check_texts(file: Path, prompts: pd.DataFrame) -> set[str]:
    """Return the file names whose status is not ok; UserError unless all images were made from
    their prompts' texts.

    Texts are equal if they are read alike (``normalize``). All lines of an image must have its
    text.
    """
    from compclip.core.reading.records import read_records

    rows, bad = read_records(file, ["file_name", "text"], ["status"])
    require(not bad, file, f"not objects with file_name and text: {bad[:1]}", "correct these lines")
    # Lines name images by any ending.
    rows = rows.assign(stem=rows["file_name"].fillna("").map(_stem)).set_index("stem")
    stems = prompts["file_name"].map(_stem)
    expected = dict(zip(stems, _as_read(prompts["text"]), strict=True))
    texts = _as_read(rows["text"].fillna(""))
    is_right = texts == rows.index.map(expected)
    # An image may have several lines.
    are_right = is_right.groupby(level=0).all()
    right_stems = are_right.index[are_right]
    wrong = prompts[~stems.isin(right_stems)]
    first = wrong[["file_name", "text"]].head(1).to_dict("records")
    fault = (
        f"{len(wrong)} of {len(prompts)} images have no line or were made from another text "
        f"than {first}"
    )
    require(wrong.empty, file, fault, "correct their lines, or make them again from prompts.jsonl")
    # The column is optional.
    if "status" not in rows:
        return set()
    failed = rows.index[rows["status"].fillna("ok") != "ok"]
    return set(prompts.loc[stems.isin(failed), "file_name"])


def _as_read(texts: pd.Series) -> pd.Series:
    """Return texts as they are compared; each distinct one is normalized once."""
    return texts.map({text: normalize(text).text for text in texts.unique()})


def equal_images(prompts: pd.DataFrame, digests: Mapping[str, str]) -> list[str]:
    """Return the file names of images that equal an earlier image of a prompt with a different
    text.

    Args:
        digests: of each image, by file_name; a prompt without a digest has no image.
    """
    image_digests = prompts["file_name"].map(digests)
    # Images of the same text may be equal.
    first_texts = prompts["text"].groupby(image_digests).transform("first")
    is_equal = image_digests.notna() & (prompts["text"] != first_texts)
    return prompts.loc[is_equal, "file_name"].tolist()


def equal_fault(equal: Sequence[str], images: int) -> str:
    """Return what is wrong if too many of the images are equal (``equal_images``), else ""."""
    # A few images may be equal, for example if they are all black.
    if len(equal) <= MOST_EQUAL * images:
        return ""
    return (
        f"{len(equal)} of {images} images are equal to that of another text, the first {equal[0]}"
    )


def _check_equal(folder: Path, prompts: pd.DataFrame, chosen: Mapping[str, Path]) -> list[str]:
    """Return the file names of equal images; UserError if there are too many."""
    digests = {name: sha256(file) for name, file in chosen.items()}
    equal = equal_images(prompts, digests)
    fault = equal_fault(equal, len(digests))
    require(not fault, folder, fault, "draw an image for each text")
    return equal


def _copy(
    name: str, file: Path | None, context: Context, differing: dict[str, list[str]]
) -> tuple[str | None, str]:
    """Return the path and the status of a prompt's image; add to ``differing`` what people see
    differently.
    """
    from compclip.core.reading.pictures import BrokenImage, keep_as_shown

    if file is None:
        return None, "missing"
    # Named by the prompt, whatever the letters and the ending of the user's name.
    target = context.folder / (_stem(name) + file.suffix.lower())
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, target)
    # The file may become a PNG of another name.
    try:
        target, _, _ = keep_as_shown(target, name, differing)
    except BrokenImage:
        target.unlink()
        return None, "broken"
    path = target.relative_to(context.folder).as_posix()
    return f"{context.place}/{path}", "ok"
