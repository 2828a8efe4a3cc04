"""Some of the forgeries of ``make forge``: none passes but what the documentation names, and none
is a raw error.
"""

import random
from pathlib import Path

from benchmarks.forge import (
    TOLD,
    WAYS,
    World,
    as_text,
    documented,
    drawn_forgeries,
    model_fields,
    try_releases,
)
from compclip.core.artifacts.files import read_json, write_text
from compclip.core.errors import UserError
from compclip.release.file_models import Contents
from compclip.release.open_release import Release
from compclip.release.submission import Submission, read_submission
from compclip.release.verify import inconsistent


def world(release: Release, images: Path, submitted: Path) -> World:
    return World(release, images, images, submitted, release.folder.parent / "cache")


def test_forged_submissions_do_not_pass(release: Release, submitted: Path, tmp_path: Path) -> None:
    """Without images, only what the documentation names; with images, ``make forge`` tries."""
    honest = {"": (Submission, read_json(submitted))}
    for forged in drawn_forgeries(honest, 24, random.Random(1)):
        write_text(as_text(forged.content), file := tmp_path / "submission.json")
        try:
            line = next(inconsistent(release, read_submission(file, release)), "")
        except UserError as error:
            line = str(error)
        names = {*forged.path} & (documented() | {*TOLD})
        assert "\n" not in line and (line or names), forged


def test_spoiled_releases_do_not_open(
    release: Release, images: Path, submitted: Path, tmp_path: Path
) -> None:
    rows = try_releases(world(release, images, submitted), 12, random.Random(1), tmp_path)
    assert len(rows) == 12 and not [row for row in rows if row[2] in ("raw", "opened")]


def test_fields_come_from_the_models() -> None:
    for model in (Submission, Contents):
        assert {path[0] for path in model_fields(model)} == {*model.model_fields}
    fields = model_fields(Submission)
    assert ("compositions", "*", "judges", "*", "controls", "*", "hubness") in fields and len(
        WAYS
    ) == 8
    assert {"similarity", "hit", "blind_control", "images"} <= documented()
