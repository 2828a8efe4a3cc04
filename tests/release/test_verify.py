"""Changed submissions are refused with a line for each difference; what cannot be proven is
said.
"""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from compclip.core.artifacts.files import read_json, write_json
from compclip.core.errors import UserError
from compclip.core.settings.cli import run
from compclip.release import leaderboard, verify
from compclip.release.open_release import RELEASE_FILE, Release
from compclip.release.submission import SubmittedScores, figures_of, read_submission
from compclip.release.verify import NEAR_TIES, SIMILARITY, inconsistent, unequal_values
from tests.project import COMPOSITION
from tests.release.conftest import refused

Content = dict[str, Any]


def check(file: Path, release: Path, *options: object) -> None:
    arguments = [file, "--release", release, "--cache", release.parent / "cache", *options]
    run(verify.main, [*map(str, arguments)], "compclip verify")


def put(value: Any, *path: str | int) -> Callable[[Content], None]:
    """Return a change that puts a value at a place of the content, or what a function makes of the
    value there.
    """

    def change(content: Any) -> None:
        for key in path[:-1]:
            content = content[key]
        content[path[-1]] = value(content[path[-1]]) if callable(value) else value

    return change


def put_figure(split: str, measure: str, **values: float) -> Callable[[Content], None]:
    """Return a change of the row of a split and measure."""
    place = (split, measure)
    return put(
        lambda rows: [
            row | values if (row["split"], row["measure"]) == place else row for row in rows
        ],
        "scores",
    )


PART = ("compositions", COMPOSITION)
JUDGE = (*PART, "judges", "0")
VALUES = (*JUDGE, "values", "test_unseen")
CONTROL = (*JUDGE, "controls", "test_unseen pairs")
FILE = "x.png"
TAMPERED: list[tuple[Callable[[Content], None], str]] = [
    (
        put_figure("test_unseen", "r_precision", value=0.987),
        "difference: scores: color, 0, test_unseen, pairs, r_precision: value is 0.987",
    ),
    (
        put_figure("test_swapped", "r_precision", new_pairs_low=0.987),
        "test_swapped, swapped, r_precision: new_pairs_low is 0.987",
    ),
    (put(lambda hit: not hit, *VALUES, "hit", 0), "r_precision_sampled: value is "),
    (
        put(
            lambda column: [1.0 if value < 0.5 else value for value in column],
            *VALUES,
            "expected_top1",
        ),
        "expected_top1 does not follow from p_beaten and p_tied",
    ),
    (
        put(
            lambda column: [value if value is None else 0.9 for value in column],
            *VALUES,
            "adjective_first",
        ),
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
    (
        put(lambda images: dict.fromkeys(images, "missing"), *PART, "images"),
        "has no image but counts as scored",
    ),
    (put("1.1.0", "release", "version"), "is for release sketch 1.1.0 ("),
    (
        put(2, "schema_version"),
        ": version 2 of the schema of a submission, expected 3; make the submission again, ",
    ),
    (
        lambda content: content.update(schema_version=2, environment={"compclip": "2.0.0"}),
        "made by compclip 2.0.0: version 2 of the schema of a submission",
    ),
    (put(lambda rows: rows[1:], "scores"), "rows, "),
]
# What is refused in one line, wherever a submission is read.
FORGED: list[tuple[Callable[[Content], None], str]] = [
    (put(True, "schema_version"), "version True of the schema of a submission, expected 3"),
    (put(1, "more"), "more: Extra inputs are not permitted; submit again"),
    (
        put(lambda about: about | {"more": "x"}, "environment"),
        "environment.more: Extra inputs are not permitted",
    ),
    (
        put("a\nb", "environment", "processor"),
        "environment.processor: expected one line of printable characters",
    ),
    (put(None, "environment", "torch"), "environment.torch: Input should be a valid string"),
    (put("x" * 101, "name"), "name: String should have at most 100 characters"),
    (put("mine\u200b", "name"), "name: String should match pattern"),
    (put({}, *JUDGE, "controls"), "controls of , expected test_seen pairs, test_seen swapped"),
    (
        put({"blind_control": 0.1, "hubness": 0.1}, *JUDGE, "controls", "more"),
        "controls of test_seen pairs",
    ),
    (
        put(lambda of: of | {"adjective": 0.99}, *CONTROL),
        "test_unseen pairs.adjective: Extra inputs are not permitted",
    ),
    (put({"hubness": 0.1}, *CONTROL), "test_unseen pairs.blind_control: Field required"),
    (put(17, *CONTROL, "blind_control"), "blind_control: Input should be less than or equal to 1"),
    (put(True, *CONTROL, "blind_control"), "blind_control: Input should be a valid number"),
    (put(-5, *CONTROL, "hubness"), "hubness: Input should be greater than or equal to 0"),
    (put(1e308, *VALUES, "similarity", 0), "similarity.0: Input should be less than or equal to 1"),
    (
        put(-1.1, *VALUES, "similarity", 0),
        "similarity.0: Input should be greater than or equal to -1",
    ),
    (put("0.5", *VALUES, "similarity", 0), "similarity.0: Input should be a valid number"),
    (put(None, *VALUES, "similarity", 0), "has an image but no similarity"),
    (put(None, *VALUES, "hit", 0), "hit.0: Input should be a valid boolean"),
    (put(1, *VALUES, "hit", 0), "hit.0: Input should be a valid boolean"),
    (
        put(lambda of: [-0.01] * len(of), *VALUES, "p_beaten"),
        "p_beaten.0: Input should be greater than or equal to 0",
    ),
    (
        put(lambda of: [1.01] * len(of), *VALUES, "p_tied"),
        "p_tied.0: Input should be less than or equal to 1",
    ),
    (
        put(lambda of: of | {"more": []}, *VALUES),
        "test_unseen.more: Extra inputs are not permitted",
    ),
    (
        put(lambda of: [1.0] * len(of), *VALUES, "p_tied"),
        "p_beaten and p_tied are more than 1 together",
    ),
    (
        put(
            lambda of: [0.5] * len(of),
            *JUDGE,
            "values",
            "test_swapped.distractors-swapped",
            "similarity",
        ),
        "test_swapped.distractors-swapped: similarity differs from that of test_swapped, which "
        "has the same images",
    ),
    (
        put(lambda rows: [rows[0] | {"more": 1}, *rows[1:]], "scores"),
        "scores.0.more: Extra inputs are not permitted",
    ),
    (
        put(lambda rows: [rows[0] | {"value": True}, *rows[1:]], "scores"),
        "scores.0.value: Input should be",
    ),
    (put(lambda rows: [rows[0] | {"n": 10**400}, *rows[1:]], "scores"), "r_precision: n is 1000"),
    (put(lambda rows: [rows[1], rows[0], *rows[2:]], "scores"), "follows from the values"),
    (
        put(lambda images: dict.fromkeys(images, "0" * 64), *PART, "images"),
        "images are equal to that of another text, the first ",
    ),
    (
        put(True, "repeats_images"),
        "repeats_images is true, but no images repeat; submit again",
    ),
    (put("0" * 63, *PART, "images", FILE), "String should match pattern"),
]


@pytest.mark.parametrize("change, line", TAMPERED, ids=[line for _, line in TAMPERED])
def test_a_changed_submission_is_refused_without_images(
    submitted: Path,
    release: Release,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    change: Callable[[Content], None],
    line: str,
) -> None:
    content = read_json(submitted)
    change(content)
    write_json(content, file := tmp_path / "submission.json")
    text = refused(capsys, check, file, release.folder)
    assert line in text and "Traceback" not in text
    assert all(row.startswith(("difference: ", "error: ")) for row in text.splitlines())


@pytest.mark.parametrize("change, line", FORGED, ids=[line for _, line in FORGED])
def test_a_forged_submission_is_refused_when_read(
    submitted: Path, release: Release, tmp_path: Path, change: Callable[[Content], None], line: str
) -> None:
    content = read_json(submitted)
    change(content)
    (file := tmp_path / "submission.json").write_text(json.dumps(content))
    with pytest.raises(UserError) as error:
        raise UserError(next(inconsistent(release, read_submission(file, release)), ""))
    assert line in str(error.value) and "\n" not in str(error.value)


def test_what_is_computed_wins_over_controls(
    submitted: Path,
    release: Release,
    images: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Added controls replaced the accuracy from which a figure follows, and the figure was
    recomputed from them.
    """
    content = read_json(submitted)
    for controls in content["compositions"][COMPOSITION]["judges"]["0"]["controls"].values():
        controls |= {"adjective": 0.99, "adjective_chance": 0.01}
    for row in content["scores"]:
        row |= {"value": 0.989899} if row["measure"] == "adjective_accuracy_corrected" else {}
        row |= {"value": 0.01} if row["measure"] == "adjective_accuracy_chance" else {}
    write_json(content, file := tmp_path / "submission.json")
    text = refused(capsys, check, file, release.folder, "--images", images)
    assert "adjective: Extra inputs are not permitted; submit again" in text
    for controls in content["compositions"][COMPOSITION]["judges"]["0"]["controls"].values():
        del controls["adjective"], controls["adjective_chance"]
    write_json(content, file)
    text = refused(capsys, check, file, release.folder, "--images", images)
    assert "adjective_accuracy_corrected: value is 0.989899" in text


@pytest.mark.parametrize(
    "name", ["faithful", "Faithful", "FAITHFUL", "fa1thfu1", "faithfuI", "memorizer"]
)
def test_a_name_like_a_control_is_refused_when_read(
    submitted: Path,
    release: Release,
    images: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
) -> None:
    content = read_json(submitted)
    scores = [row | {"generator": name} for row in content["scores"]]
    write_json(content | {"name": name, "scores": scores}, file := tmp_path / "submission.json")
    assert "choose another name" in refused(capsys, check, file, release.folder, "--images", images)
    page = ["--release", release.folder, "--output", tmp_path / "page.html"]
    text = refused(
        capsys, run, leaderboard.main, [*map(str, [file, *page])], "compclip leaderboard"
    )
    assert "choose another name" in text and not (tmp_path / "page.html").exists()


@pytest.mark.parametrize(
    "name",
    ["faithful\u200b", "faithful ", "ｆaithful", "faıthful", "fai\u00adthful", "a\nb", "", "a\0"],
)
def test_a_name_that_is_not_plain_is_refused_when_read(
    submitted: Path, release: Release, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    content = read_json(submitted)
    scores = [row | {"generator": name} for row in content["scores"]]
    write_json(content | {"name": name, "scores": scores}, file := tmp_path / "submission.json")
    assert "name: String should match pattern" in refused(capsys, check, file, release.folder)


def test_another_processor_gains_no_hit(
    submitted: Path,
    release: Release,
    images: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In a small set, a single entry is more than near ties may change."""
    content = read_json(submitted)
    content["environment"]["processor"] = "another"
    hits = content["compositions"][COMPOSITION]["judges"]["0"]["values"]["test_unseen"]["hit"]
    hits[hits.index(False)] = True
    judges = {
        COMPOSITION: {
            "0": SubmittedScores.model_validate(content["compositions"][COMPOSITION]["judges"]["0"])
        }
    }
    write_json(
        content | {"scores": figures_of(release, "mine", judges)},
        file := tmp_path / "submission.json",
    )
    check(file, release.folder)
    assert "test_unseen: " in refused(capsys, check, file, release.folder, "--images", images)


@pytest.mark.parametrize("text", ["[]", '{"x": {}}', '{"x": {"name": "mine"}}', "{"])
def test_a_damaged_record_is_refused(
    submitted: Path, release: Release, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    (tmp_path / "verified.json").write_text(text)
    places = [submitted, "--release", release.folder, "--verified", tmp_path / "verified.json"]
    error = refused(capsys, run, leaderboard.main, [*map(str, places)], "compclip leaderboard")
    assert "verified.json: " in error and len(error.splitlines()) == 1


def test_a_submission_that_is_not_a_file_is_refused(
    release: Release, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(tmp_path / "submission.json")
    for file in (
        tmp_path / "submission.json",
        tmp_path,
        "/dev/zero",
        "x" * 5000,
        tmp_path / "none.json",
    ):
        assert ": not a regular file; submit again" in refused(capsys, check, file, release.folder)


def test_damaged_files_are_refused(
    submitted: Path, release: Release, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "submission.json"
    for raw, message in (
        (submitted.read_bytes()[:1000], "not valid JSON"),
        (b"[]", "version None of the schema of a submission"),
        (b'{"schema_version": 3}', "name: Field required; submit again"),
        (b'{"schema_version": 3, "schema_version": 3}', "duplicate key 'schema_version'"),
        (
            submitted.read_bytes().replace(b'"hubness":', b'"hubness":NaN,"x":', 1),
            "Out of range float values",
        ),
        (
            submitted.read_bytes().replace(b'"hubness":', b'"hubness":1e999,"x":', 1),
            "Out of range float values",
        ),
        (b"[" * 100_000, "nested too deeply"),
    ):
        file.write_bytes(raw)
        error = refused(capsys, check, file, release.folder)
        assert message in error and len(error.splitlines()) == 1


def test_a_submission_is_verified_and_recorded(
    submitted: Path,
    release: Release,
    images: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    check(submitted, release.folder)
    assert capsys.readouterr().out.startswith(
        "consistent: all figures of mine follow from its values. Without images"
    )
    error = refused(
        capsys, check, submitted, release.folder, "--record", tmp_path / "verified.json"
    )
    assert error.startswith(
        "error: --record: only a submission that is verified by its images is recorded"
    )
    check(submitted, release.folder, "--images", images, "--record", tmp_path / "verified.json")
    printed = capsys.readouterr().out
    assert (
        "follow from its images exactly" in printed
        and "Not proven: that the model drew the images" in printed
    )
    (of,) = read_json(tmp_path / "verified.json").values()
    assert of == {"name": "mine", "release": release.digest}


def test_other_images_are_refused(
    submitted: Path,
    release: Release,
    images: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
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
    submitted: Path,
    release: Release,
    images: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
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
