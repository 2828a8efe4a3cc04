"""Changed submissions are refused with a line for each difference; what cannot be proven is said."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from compclip.core.cli import run
from compclip.io import read_json, write_json
from compclip.release import verify
from compclip.release.check import RELEASE_FILE
from compclip.release.released import Release
from compclip.release.verify import NEAR_TIES, SIMILARITY, unequal_values
from tests.project import COMPOSITION
from tests.release.conftest import refused

Content = dict[str, Any]


def check(file: Path, release: Path, *options: object) -> None:
    arguments = [file, "--release", release, "--cache", release.parent / "cache", *options]
    run(verify.main, [*map(str, arguments)], "compclip verify")


def put(value: Any, *path: str | int) -> Callable[[Content], None]:
    """Return a change that puts a value at a place of the content, or what a function makes of the value there."""

    def change(content: Any) -> None:
        for key in path[:-1]:
            content = content[key]
        content[path[-1]] = value(content[path[-1]]) if callable(value) else value

    return change


def put_figure(split: str, measure: str, **values: float) -> Callable[[Content], None]:
    """Return a change of the row of a split and measure."""
    place = (split, measure)
    return put(
        lambda rows: [row | values if (row["split"], row["measure"]) == place else row for row in rows], "scores"
    )


PART = ("compositions", COMPOSITION)
JUDGE = (*PART, "judges", "0")
VALUES = (*JUDGE, "values", "test_unseen")
TAMPERED: list[tuple[Callable[[Content], None], str]] = [
    (
        put_figure("test_unseen", "r_precision", value=0.987),
        "difference: scores: color, 0, test_unseen, pairs, r_precision: value is 0.987",
    ),
    (
        put_figure("test_swapped", "fraction_composed", new_pairs_low=0.5),
        "test_swapped, swapped, fraction_composed: new_pairs_low is 0.5",
    ),
    (put(lambda hit: not hit, *VALUES, "hit", 0), "r_precision_sampled: value is "),
    (
        put(lambda column: [1.0 if value < 0.5 else value for value in column], *VALUES, "expected_top1"),
        "expected_top1 does not follow from p_beaten and p_tied",
    ),
    (
        put(lambda column: [value and 0.9 for value in column], *VALUES, "adjective_first"),
        "adjective_first is not a chance among the prompt's adjectives",
    ),
    (put("0" * 64, *PART, "prompts"), "prompts differ from those of the release; submit again"),
    (put("0" * 16, *JUDGE, "hash"), "are not those of the release"),
    (
        put(lambda columns: {name: column[1:] for name, column in columns.items()}, *VALUES),
        "a missing image counts as wrong; submit again",
    ),
    (
        put(lambda images: dict([*images.items()][1:]), *PART, "images"),
        "a missing image counts as wrong; submit again",
    ),
    (put(lambda images: dict.fromkeys(images, "missing"), *PART, "images"), "has no image but counts as scored"),
    (put("1.1.0", "release", "version"), "is for release sketch 1.1.0 ("),
    (put(2, "schema_version"), "version 2 of the schema of a submission, expected 1"),
    (put(lambda rows: rows[1:], "scores"), "rows, "),
]


@pytest.mark.parametrize("change, line", TAMPERED, ids=[line for _, line in TAMPERED])
def test_a_changed_submission_is_refused_without_images(
    submitted: Path, release: Release, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    change: Callable[[Content], None], line: str,
) -> None:  # fmt: skip
    content = read_json(submitted)
    change(content)
    write_json(content, file := tmp_path / "submission.json")
    text = refused(capsys, check, file, release.folder)
    assert line in text and "Traceback" not in text
    assert all(row.startswith(("difference: ", "error: ")) for row in text.splitlines())


def test_damaged_files_are_refused(
    submitted: Path, release: Release, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "submission.json"
    for raw, message in (
        (submitted.read_bytes()[:1000], "not valid JSON"),
        (b"[]", "version None of the schema of a submission"),
        (b'{"schema_version": 1}', "name: Field required; submit again"),
    ):
        file.write_bytes(raw)
        error = refused(capsys, check, file, release.folder)
        assert message in error and len(error.splitlines()) == 1


def test_a_submission_is_verified_and_recorded(
    submitted: Path, release: Release, images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    check(submitted, release.folder)
    assert capsys.readouterr().out.startswith("consistent: all figures of mine follow from its values. Without images")
    check(submitted, release.folder, "--images", images, "--record", tmp_path / "verified.json")
    printed = capsys.readouterr().out
    assert "follow from its images exactly" in printed and "Not proven: that the model drew the images" in printed
    (of,) = read_json(tmp_path / "verified.json").values()
    assert of == {"name": "mine", "release": release.digest}


def test_other_images_are_refused(
    submitted: Path, release: Release, images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path(shutil.copytree(images, tmp_path / "images"))
    one, other, *_ = sorted((folder / "sketch" / COMPOSITION / "test_unseen").rglob("*.png"))
    one.write_bytes(other.read_bytes())
    text = refused(capsys, check, submitted, release.folder, "--images", folder)
    assert "color: 1 images are not those submitted, the first sketch/color/test_unseen/" in text
    other.unlink()
    text = refused(capsys, check, submitted, release.folder, "--images", folder)
    assert "2 images are not those submitted" in text


def test_invented_values_pass_only_without_images(
    submitted: Path, release: Release, images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Similarities decide no figure, so that only the images tell that they are invented."""
    content = read_json(submitted)
    put(lambda similarity: similarity + 0.1, *VALUES, "similarity", 0)(content)
    write_json(content, file := tmp_path / "submission.json")
    check(file, release.folder)
    assert "similarities, ranks, hits and the controls" in capsys.readouterr().out
    assert ": similarity: " in refused(capsys, check, file, release.folder, "--images", images)


def test_near_ties_are_accepted_elsewhere_up_to_a_limit() -> None:
    n = 2000
    names = pd.Series([f"{row}.png" for row in range(n)])
    given = {name: [0.5] * n for name in verify.MEASURED} | {"hit": [True] * n}
    computed = json.loads(json.dumps(given))
    computed["similarity"] = (np.array(given["similarity"]) + 0.9 * SIMILARITY).tolist()
    computed["hit"][7] = False
    assert unequal_values("set", given, computed, names, same=False) == ([], ["set: 7.png"])
    lines, ties = unequal_values("set", given, computed, names, same=True)
    assert len(lines) == 2 and not ties
    for row in range(int(NEAR_TIES * n) + 1):
        computed["hit"][row] = False
    assert unequal_values("set", given, computed, names, same=False)[0] == [
        "set: 0.png: hit: True submitted, False computed (4 entries)"
    ]
    computed["similarity"][3] += 2 * SIMILARITY
    assert "3.png: similarity" in unequal_values("set", given, computed, names, same=False)[0][0]


def test_another_version_of_the_release_is_refused(
    submitted: Path, release: Release, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path(shutil.copytree(release.folder, tmp_path / "release"))
    write_json(read_json(folder / RELEASE_FILE) | {"version": "2.0.0"}, folder / RELEASE_FILE)
    assert "not sketch 2.0.0" in refused(capsys, check, submitted, folder)
