"""Some of the forgeries of ``make forge``: none passes but what the documentation names, and none is a raw error."""

import random
from pathlib import Path

from benchmarks.forge import WAYS, World, documented, model_fields, summary, try_releases, try_submissions
from compclip.release.models import Contents
from compclip.release.released import Release
from compclip.release.submission import Submission


def world(release: Release, images: Path, submitted: Path) -> World:
    return World(release, images, images, submitted, release.folder.parent / "cache")


def test_forged_submissions_do_not_pass(release: Release, images: Path, submitted: Path, tmp_path: Path) -> None:
    rows = try_submissions(world(release, images, submitted), 16, random.Random(1), tmp_path)
    assert not [row for row in rows if row[2] in ("raw", "with")]
    assert len(rows) == 16 and "of these not named as unprovable: 0" in summary(rows, [])[2]


def test_spoiled_releases_do_not_open(release: Release, images: Path, submitted: Path, tmp_path: Path) -> None:
    rows = try_releases(world(release, images, submitted), 12, random.Random(1), tmp_path)
    assert len(rows) == 12 and not [row for row in rows if row[2] in ("raw", "opened")]


def test_fields_come_from_the_models() -> None:
    for model in (Submission, Contents):
        assert {path[0] for path in model_fields(model)} == {*model.model_fields}
    fields = model_fields(Submission)
    assert ("compositions", "*", "judges", "*", "controls", "*", "hubness") in fields and len(WAYS) == 8
    assert {"similarity", "hit", "blind_control", "images"} <= documented()
