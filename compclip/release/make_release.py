"""Write a release: copies of a run's artifacts, adjustments of similarities, a data card and
``croissant.json``.
"""

import shutil
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from compclip.core.artifacts.files import atomic_folder, write_json, write_text
from compclip.core.artifacts.parquet import write_table
from compclip.core.identity.digests import digests
from compclip.core.log import log
from compclip.core.tables import TEXT_CHOICES
from compclip.release.card import croissant, data_card
from compclip.release.check import RELEASE_FILE
from compclip.release.config import ReleaseConfig
from compclip.release.file_models import Contents
from compclip.release.recorded import FIGURES
from compclip.report.make_table import as_csv
from compclip.score.choices import Adjustment


@dataclass(frozen=True)
class RecordedJudges:
    """What judges that are not in a release said of a composition's control generators.

    Attributes:
        choices: their answers, by judge (``tables.TEXT_CHOICES``).
        figures: of all judges, as ``compare_judges`` returns them.
    """

    choices: Mapping[str, pd.DataFrame]
    figures: pd.DataFrame


ZIP_TIME = (1980, 1, 1, 0, 0, 0)  # the earliest date, so that equal content has equal bytes


def make_release(
    to: Path,
    config: ReleaseConfig,
    contents: Contents,
    files: Mapping[str, Path],
    adjustments: Mapping[str, Adjustment | None],
    images: Mapping[str, Path],
    recorded: Mapping[str, RecordedJudges],
) -> None:
    """Write a release.

    Args:
        to: folder of the release, which is replaced.
        contents: ``release.json`` without its files.
        files: files to copy, by path in the release.
        adjustments: by path in the release.
        images: real images by path in ``images.parquet``; if empty, there is no archive.
        recorded: what other judges answered, by composition; empty without any.
    """
    with atomic_folder(to) as folder:
        # Copies, since a release with links is refused (``check.files_in``).
        for name, source in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, folder / name)
        for name, adjustment in adjustments.items():
            write_json(adjustment and adjustment_file(adjustment), folder / name)
        for composition, judges in recorded.items():
            write_recorded(folder / composition, judges)
        if images:
            write_archive(folder / "images.zip", images)
        write_text(data_card(config, contents, folder), folder / "README.md")
        write_json(croissant(config, contents, folder), folder / "croissant.json")
        # Last, since it has the digests of all other files.
        complete = contents.model_copy(update={"files": digests(folder)})
        write_json(complete.model_dump(mode="json"), folder / RELEASE_FILE)
        sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    version = f"{contents.name} {contents.version}"
    log.info("%s: %d files, %.1f MB", version, len(complete.files) + 1, sum(sizes) / 1e6)


def write_recorded(folder: Path, judges: RecordedJudges) -> None:
    """Write the answers of other judges, and the figures of all."""
    (folder / "choices").mkdir()
    for name, choices in judges.choices.items():
        write_table(choices, folder / "choices" / f"{name}.parquet", TEXT_CHOICES)
    write_text(as_csv(judges.figures), folder / FIGURES)


def adjustment_file(adjustment: Adjustment) -> dict[str, Any]:
    """Return the content of an adjustment's file, as ``ReleasedTables.adjustment`` reads it."""
    return {
        "multiple": adjustment.multiple,
        "of_seen": dict(adjustment.of_seen),
        # Decimals preserve float32.
        "mean": adjustment.mean.tolist(),
    }


def write_archive(file: Path, images: Mapping[str, Path]) -> None:
    """Write images into an archive, by their path in it."""
    # Not compressed: image files are.
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, path in images.items():
            archive.writestr(zipfile.ZipInfo(name, ZIP_TIME), path.read_bytes())
