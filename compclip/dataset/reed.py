"""The layout of the two data sets with captions by Reed et al. (CVPR 2016): archives of photographs
and of captions.

Each photograph has a file of ten captions, one per line; a caption's id is its line number, from 0.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
from pydantic import Field

from compclip.core.digests import sha256 as sha256_of
from compclip.core.disk import check_space
from compclip.core.errors import require
from compclip.core.log import log
from compclip.core.section import Section
from compclip.dataset.archive import contents, unpack
from compclip.dataset.download import FilePlace, fetch, place_of
from compclip.dataset.source import spread_over_classes

WHERE = "name below root, or an address"
SHA256 = r"^[0-9a-fA-F]{64}$"

Photographs = dict[str, tuple[str, int]]  # by image_id: name in the archive, size in bytes


class ReedFiles(Section):
    """The locations of the files; by default, their public addresses."""

    root: str | None = Field(
        None, min_length=1, description="folder or base address; null: the public addresses"
    )
    images_sha256: str | None = Field(None, pattern=SHA256, description="null: the published one")
    captions_sha256: str | None = Field(None, pattern=SHA256, description="null: any")

    published: ClassVar[Mapping[str, FilePlace]] = {}

    def places(self) -> dict[str, FilePlace]:
        """Return the location of each file, without ``images`` if only captions are used."""
        return {
            key: place_of(name, self.root, getattr(self, f"{key}_sha256"), self.published)
            for key in ("captions", "labels", "images")
            if (name := getattr(self, key, None)) is not None
        }

    def reads(self) -> list[Path]:
        """Return the local files for which the config has no sha256."""
        return [
            place.local(Path())
            for place in self.places().values()
            if not (place.sha256 or place.is_remote)
        ]

    def obtain(self, cache: Path) -> tuple[dict[str, Path], dict[str, str]]:
        """Return the files by key, and their sha256."""
        files = {key: fetch(place, cache) for key, place in self.places().items()}
        return files, {key: sha256_of(path) for key, path in files.items()}


@dataclass(frozen=True)
class ArchiveLayout:
    """The names of a data set's files in its archives, below any folders."""

    captions: str  # a pattern with a group ``image_id``; its other groups become columns
    captions_name: str  # for errors
    photographs: str  # a pattern whose group is the image_id
    photographs_name: str

    def read_captions(self, archive: Path) -> tuple[pd.DataFrame, list[str]]:
        """Read the captions of an archive.

        Returns:
            The groups of the name, caption_id and text, sorted, with U+FFFD for bytes that are not
            UTF-8; and the files with such bytes.
        """
        pattern, rows, undecodable = re.compile(self.captions), list[dict[str, Any]](), list[str]()
        for name, raw in contents(archive, lambda name: pattern.fullmatch(name) is not None)[
            1
        ].items():
            match = pattern.fullmatch(name)
            assert match is not None, name
            text = raw.decode("utf-8-sig", errors="replace")
            if text.encode() != raw.removeprefix(b"\xef\xbb\xbf"):
                undecodable.append(name)
            lines = re.split(r"\r\n|\n|\r", text.rstrip())
            rows += [
                {**match.groupdict(), "caption_id": number, "text": line}
                for number, line in enumerate(lines)
            ]
        require(
            rows, archive, f"contains no {self.captions_name}", "give the archive of the captions"
        )
        table = pd.DataFrame(rows).sort_values(["image_id", "caption_id"], ignore_index=True)
        duplicates = table["image_id"][table.duplicated(["image_id", "caption_id"])]
        require(
            duplicates.empty,
            archive,
            f"{', '.join(duplicates[:1])} has several caption files",
            "keep one of them",
        )
        log.info(
            "%s: %d captions of %d images", archive.name, len(table), table["image_id"].nunique()
        )
        return table, sorted(undecodable)

    def find_photographs(self, archive: Path, sizes: Mapping[str, int]) -> Photographs:
        """Return the photographs among the files of an archive, given with their sizes."""
        matches = {name: re.fullmatch(self.photographs, name) for name in sizes}
        photographs = {match[1]: (name, sizes[name]) for name, match in matches.items() if match}
        require(
            photographs,
            archive,
            f"contains no {self.photographs_name}",
            "give the archive of the photographs",
        )
        log.info("%s: %d photographs", archive.name, len(photographs))
        return photographs


def take_images(
    captions: pd.DataFrame,
    photographs: Photographs,
    archive: Path | None,
    *,
    limit: int | None,
    seed: int,
    folder: Path,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Take at most ``limit`` images, and copy their photographs to ``folder``.

    Args:
        archive: of the photographs; None if there are none.

    Returns:
        The captions of these images; the images with columns image_id and path.
    """
    described = captions[["image_id", "class_id"]].drop_duplicates()
    with_photograph = described[described["image_id"].isin(photographs)]
    fault = "none of its photographs has a caption"
    require(
        archive is None or len(with_photograph),
        archive,
        fault,
        "give archives of the same data set",
    )
    # If there are photographs, a limit counts only images with one.
    chosen = spread_over_classes(
        described if limit is None or archive is None else with_photograph, limit, seed
    )
    copied = sorted(chosen & set(photographs))
    if archive is not None:
        check_space(
            sum(photographs[i][1] for i in copied), folder, f"unpacking {len(copied)} photographs"
        )
        unpack(archive, folder, {photographs[i][0]: f"{i}.jpg" for i in copied})
    ids = sorted(chosen)
    images = pd.DataFrame(
        {"image_id": ids, "path": [f"{i}.jpg" if i in photographs else None for i in ids]}
    )
    return captions[captions["image_id"].isin(chosen)], images
