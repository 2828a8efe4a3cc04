"""The layout of the two data sets with captions by Reed et al. (CVPR 2016): archives of photographs
and of captions.

Each photograph has a file of ten captions, one per line; a caption's id is its line number, from 0.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from pydantic import Field

from compclip.core.artifacts.disk import check_space
from compclip.core.errors import require
from compclip.core.identity.digests import sha256 as sha256_of
from compclip.core.log import log
from compclip.core.settings.section import Section
from compclip.dataset.archive import contents, unpack
from compclip.dataset.download import FileLocation, fetch, place_of
from compclip.dataset.source import spread_over_classes

if TYPE_CHECKING:
    import pandas as pd

WHERE = "name below root, or an address"
SHA256 = r"^[0-9a-fA-F]{64}$"


class ArchivedFile(NamedTuple):
    """A file of an archive: its name there, and its size in bytes."""

    name: str
    size: int


Photographs = dict[str, ArchivedFile]  # by image_id


class ReedFiles(Section):
    """The locations of the files; by default, their public addresses."""

    root: str | None = Field(
        None, min_length=1, description="folder or base address; null: the public addresses"
    )
    images_sha256: str | None = Field(None, pattern=SHA256, description="null: the published one")
    captions_sha256: str | None = Field(None, pattern=SHA256, description="null: any")

    published: ClassVar[Mapping[str, FileLocation]] = {}

    def places(self) -> dict[str, FileLocation]:
        """Return the location of each file, without ``images`` if only captions are used."""
        locations = {}
        for key in ("captions", "labels", "images"):
            # Only flowers have labels.
            name = getattr(self, key, None)
            if name is not None:
                sha256 = getattr(self, f"{key}_sha256")
                locations[key] = place_of(name, self.root, sha256, self.published)
        return locations

    def reads(self) -> list[Path]:
        """Return the local files for which the config has no sha256."""
        return [
            location.local(Path())
            for location in self.places().values()
            if not (location.sha256 or location.is_remote)
        ]

    def obtain(self, cache: Path) -> tuple[dict[str, Path], dict[str, str]]:
        """Return the files by key, and their sha256."""
        files = {key: fetch(location, cache) for key, location in self.places().items()}
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
        import pandas as pd

        pattern = re.compile(self.captions)
        rows = []
        undecodable = []
        _, files = contents(archive, lambda name: pattern.fullmatch(name) is not None)
        for name, content in files.items():
            # Its groups become columns.
            match = pattern.fullmatch(name)
            assert match is not None, name
            text = content.decode("utf-8-sig", errors="replace")
            # U+FFFD has replaced a byte, or the text would encode to the same bytes.
            if text.encode() != content.removeprefix(BOM_UTF8):
                undecodable.append(name)
            # Not splitlines, which also ends lines at U+2028 and form feeds.
            lines = re.split(r"\r\n|\n|\r", text.rstrip())
            for number, line in enumerate(lines):
                rows.append({**match.groupdict(), "caption_id": number, "text": line})
        fault = f"contains no {self.captions_name}"
        require(rows, archive, fault, "give the archive of the captions")
        table = pd.DataFrame(rows).sort_values(["image_id", "caption_id"], ignore_index=True)
        # Two folders of an archive may contain a file of the same name.
        duplicates = table["image_id"][table.duplicated(["image_id", "caption_id"])]
        fault = f"{', '.join(duplicates[:1])} has several caption files"
        require(duplicates.empty, archive, fault, "keep one of them")
        images = table["image_id"].nunique()
        log.info("%s: %d captions of %d images", archive.name, len(table), images)
        return table, sorted(undecodable)

    def find_photographs(self, archive: Path, sizes: Mapping[str, int]) -> Photographs:
        """Return the photographs among the files of an archive, given with their sizes."""
        photographs = {}
        # An archive also has other files, which match no pattern.
        for name, size in sizes.items():
            match = re.fullmatch(self.photographs, name)
            if match:
                photographs[match[1]] = ArchivedFile(name, size)
        fault = f"contains no {self.photographs_name}"
        require(photographs, archive, fault, "give the archive of the photographs")
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
    import pandas as pd

    described = captions[["image_id", "class_id"]].drop_duplicates()
    # Without an archive, only captions are used.
    if archive is not None:
        with_photograph = described[described["image_id"].isin(photographs)]
        fault = "none of its photographs has a caption"
        require(len(with_photograph), archive, fault, "give archives of the same data set")
        if limit is not None:
            # If there are photographs, a limit counts only images with one.
            described = with_photograph
    # Sorted, because the order of a set of texts differs between processes.
    image_ids = sorted(spread_over_classes(described, limit, seed))
    targets = {image_id: f"{image_id}.jpg" for image_id in image_ids if image_id in photographs}
    if archive is not None:
        files = {image_id: photographs[image_id] for image_id in targets}
        size = sum(file.size for file in files.values())
        check_space(size, folder, f"unpacking {len(files)} photographs")
        unpack(archive, folder, {files[i].name: targets[i] for i in targets})
    paths = [targets.get(image_id) for image_id in image_ids]
    images = pd.DataFrame({"image_id": image_ids, "path": paths})
    # Images without a photograph stay, for their captions.
    return captions[captions["image_id"].isin(image_ids)], images
