"""The layout of the two data sets that Reed et al. (CVPR 2016) described: archives of photographs and of captions.

Each photograph has a file of ten captions, one a line; a caption's id is its line, from 0.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, ClassVar

import pandas as pd
from pydantic import BeforeValidator, Field

from compclip.core.disk import check_space
from compclip.core.errors import require
from compclip.core.section import Section
from compclip.dataset.archive import contents, unpack
from compclip.dataset.download import Candidate, Published, candidates, unchecked
from compclip.dataset.source import spread

PLACE = "name below root, address, or several in order"
SHA256 = r"^[0-9a-fA-F]{64}$"


def _names(value: object) -> object:
    names = value if isinstance(value, list) else [value]
    if value is not None and not (names and all(isinstance(name, str) and name for name in names)):
        raise ValueError("expected a name or an address, or a list of them")
    return value


# In the config: a name below the root, an address, or several.
Names = Annotated[str | list[str], BeforeValidator(_names)]
NamesOrNone = Annotated[str | list[str] | None, BeforeValidator(_names)]


class Files(Section):
    """Where the files are; by default, at their public addresses."""

    root: str | None = Field(None, min_length=1, description="folder or base address; null: the public addresses")
    images_sha256: str | None = Field(None, pattern=SHA256, description="null: the published one")
    captions_sha256: str | None = Field(None, pattern=SHA256, description="null: any")

    published: ClassVar[Mapping[str, Published]] = {}

    def places(self) -> dict[str, list[Candidate]]:
        """Return where each file may be; without ``images`` if only captions are taken."""
        return {
            key: candidates(getattr(self, key), self.root, getattr(self, f"{key}_sha256"), self.published)
            for key in ("captions", "labels", "images")
            if getattr(self, key, None) is not None
        }

    def reads(self) -> list[Path | None]:
        """Return the local files without a sha256 in the config."""
        return unchecked(place for places in self.places().values() for place in places)


def read_caption_files(archive: Path, pattern: re.Pattern[str], layout: str) -> tuple[pd.DataFrame, list[str]]:
    """Read the captions of an archive.

    Args:
        pattern: matches the whole name of a caption file in the archive; its first group becomes ``name``.
        layout: names of caption files, for errors.

    Returns:
        name, caption_id and text, sorted, with U+FFFD for bytes that are not UTF-8; the files that contain such bytes.
    """
    rows: list[tuple[str, int, str]] = []
    undecodable = []
    for name, raw in contents(archive, lambda name: pattern.fullmatch(name) is not None)[1].items():
        match = pattern.fullmatch(name)
        assert match is not None, name
        try:
            text = raw.decode("utf-8-sig")
        except UnicodeDecodeError:
            text = raw.decode("utf-8-sig", errors="replace")
            undecodable.append(name)
        lines = re.split(r"\r\n|\n|\r", text.rstrip())
        rows.extend((match[1], number, line) for number, line in enumerate(lines))
    require(rows, archive, f"contains no {layout}", "give the archive of the captions")
    table = pd.DataFrame(rows, columns=["name", "caption_id", "text"])
    check_single(table, "name", archive)
    return table.sort_values(["name", "caption_id"], ignore_index=True), sorted(undecodable)


def check_single(captions: pd.DataFrame, name: str, archive: Path) -> None:
    """Raise UserError if a value of column ``name`` has several caption files in ``archive``."""
    duplicates = list(captions[name][captions.duplicated([name, "caption_id"])])
    require(not duplicates, archive, f"{', '.join(duplicates[:1])} has several caption files", "keep one of them")


def take(
    captions: pd.DataFrame, photographs: dict[str, tuple[str, int]], archive: Path | None, *,
    limit: int | None, seed: int, folder: Path,
) -> tuple[pd.DataFrame, pd.DataFrame]:  # fmt: skip
    """Take at most ``limit`` images, and copy their photographs to ``folder``.

    Args:
        photographs: by image_id, the name in ``archive`` and the size in bytes.
        archive: None if there are no photographs.

    Returns:
        The captions of these images; the images with columns image_id and path.
    """
    described = captions[["image_id", "class_id"]].drop_duplicates()
    with_photograph = described[described["image_id"].isin(photographs)]
    fault = "none of its photographs has a caption"
    require(archive is None or len(with_photograph), archive, fault, "give archives of the same data set")
    # If there are photographs, a limit counts only images that have one.
    chosen = spread(described if limit is None or archive is None else with_photograph, limit, seed)
    copied = sorted(chosen & set(photographs))
    if archive is not None:
        check_space(sum(photographs[i][1] for i in copied), folder, f"unpacking {len(copied)} photographs")
        unpack(archive, folder, {photographs[i][0]: f"{i}.jpg" for i in copied})
    ids = sorted(chosen)
    images = pd.DataFrame({"image_id": ids, "path": [f"{i}.jpg" if i in photographs else None for i in ids]})
    return captions[captions["image_id"].isin(chosen)], images
