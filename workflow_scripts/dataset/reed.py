"""What the two data sets share that Reed et al. (CVPR 2016) had described: archives of photographs and of captions.

A photograph has a file of ten captions, a caption a line; a caption's id is its line, from 0.
"""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd

from workflow_scripts.core.disk import check_space
from workflow_scripts.core.errors import UserError
from workflow_scripts.dataset.archive import contents, unpack
from workflow_scripts.dataset.source import spread


def read_caption_files(archive: Path, pattern: re.Pattern[str], layout: str) -> tuple[pd.DataFrame, list[str]]:
    """``name``, ``caption_id``, ``text`` of every caption file, sorted; the names of those that are not UTF-8.

    ``name`` is the first group of ``pattern``, which a file's whole name in the archive must match. Bytes that
    could not be read stand as U+FFFD. Empty lines at a file's end are no captions. Raises UserError for an archive
    without such files; ``layout`` says there what they look like.
    """
    rows: list[tuple[str, int, str]] = []
    undecodable = []
    for name, raw in contents(archive, lambda name: pattern.fullmatch(name) is not None)[1].items():
        try:
            text = raw.decode("utf-8-sig")
        except UnicodeDecodeError:
            text = raw.decode("utf-8-sig", errors="replace")
            undecodable.append(name)
        lines = re.split(r"\r\n|\n|\r", text.rstrip())
        rows.extend((pattern.fullmatch(name)[1], number, line) for number, line in enumerate(lines))
    if not rows:
        raise UserError(f"{archive}: holds no {layout}: is it the captions' archive?")
    table = pd.DataFrame(rows, columns=["name", "caption_id", "text"])
    check_single(table, "name", archive)
    return table.sort_values(["name", "caption_id"], ignore_index=True), sorted(undecodable)


def check_single(captions: pd.DataFrame, name: str, archive: Path) -> None:
    """Raise UserError where what column ``name`` names has captions in several files of ``archive``."""
    if len(twice := captions[captions.duplicated([name, "caption_id"])]):
        raise UserError(f"{archive}: {twice[name].iloc[0]} has several files of captions: keep one of them")


def take(
    captions: pd.DataFrame,
    photographs: dict[str, tuple[str, int]],
    archive: Path | None,
    *,
    limit: int | None,
    seed: int,
    folder: Path,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Captions of at most ``limit`` images, and those images: image_id, path; photographs are copied to ``folder``.

    captions: image_id, class_id and more. photographs: by image_id, the name in ``archive`` and the size in bytes;
    ``archive`` None: there are none. Raises UserError where no photograph has a caption.
    """
    described = captions[["image_id", "class_id"]].drop_duplicates()
    with_photograph = described[described["image_id"].isin(photographs)]
    if archive is not None and with_photograph.empty:
        raise UserError(f"{archive}: none of its photographs has a caption")
    # A first try is of use only with photographs, where there are any.
    chosen = spread(described if limit is None or archive is None else with_photograph, limit, seed)
    copied = sorted(chosen & set(photographs))
    if archive is not None:
        check_space(sum(photographs[i][1] for i in copied), folder, f"unpacking {len(copied)} photographs")
        unpack(archive, folder, {photographs[i][0]: f"{i}.jpg" for i in copied})
    ids = sorted(chosen)
    images = pd.DataFrame({"image_id": ids, "path": [f"{i}.jpg" if i in photographs else None for i in ids]})
    return captions[captions["image_id"].isin(chosen)], images
