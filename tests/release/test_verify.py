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
from compclip.release.released import RELEASE_FILE, Release
from compclip.release.verify import NEAR_TIES, SIMILARITY, unequal_values
from tests.project import COMPOSITION

Content = dict[str, Any]


def check(file: Path, release: Path, *options: object) -> None:
    arguments = [file, "--release", release, "--cache", release.parent / "cache", *options]
    run(verify.main, [*map(str, arguments)], "compclip verify")


def values_of(content: Content, name: str = "test_unseen") -> Content:
    return content["compositions"][COMPOSITION]["judges"]["0"]["values"][name]


def row_of(content: Content, split: str, measure: str) -> Content:
    return next(row for row in content["scores"] if row["split"] == split and row["measure"] == measure)


def change_score(content: Content) -> None:
    row_of(content, "test_unseen", "r_precision")["value"] += 0.01


def change_interval(content: Content) -> None:
    row_of(content, "test_swapped", "fraction_composed")["low"] = 0.5


def change_hit(content: Content) -> None:
    values = values_of(content)
    values["hit"][0] = not values["hit"][0]


def change_value(content: Content) -> None:
    values = values_of(content)
    row = next(n for n, value in enumerate(values["expected_top1"]) if value < 0.5)
    values["expected_top1"][row] = 1.0


def change_adjective(content: Content) -> None:
    values = values_of(content)
    values["adjective_first"] = [value and 0.9 for value in values["adjective_first"]]


def change_prompts(content: Content) -> None:
    content["compositions"][COMPOSITION]["prompts"] = "0" * 64


def change_judge(content: Content) -> None:
    content["compositions"][COMPOSITION]["judges"]["0"]["hash"] = "0" * 16


def drop_entry(content: Content) -> None:
    for column in values_of(content).values():
        column.pop()


def drop_image(content: Content) -> None:
    content["compositions"][COMPOSITION]["images"].popitem()


def count_missing(content: Content) -> None:
    images = content["compositions"][COMPOSITION]["images"]
    images[next(name for name in images if "test_unseen" in name)] = "missing"


def other_release(content: Content) -> None:
    content["release"]["version"] = "1.1.0"


def other_schema(content: Content) -> None:
    content["schema_version"] = 2


def drop_figure(content: Content) -> None:
    content["scores"].pop()


TAMPERED: list[tuple[Callable[[Content], None], str]] = [
    (change_score, "difference: scores: color, 0, test_unseen, pairs, r_precision: value is "),
    (change_interval, "test_swapped, swapped, fraction_composed: low is 0.5"),
    (change_hit, "r_precision_sampled: value is "),
    (change_value, "expected_top1 does not follow from p_beaten and p_tied"),
    (change_adjective, "adjective_first is not a chance among the prompt's adjectives"),
    (change_prompts, "prompts differ from those of the release; submit again"),
    (change_judge, "are not those of the release"),
    (drop_entry, "a missing image counts as wrong; submit again"),
    (drop_image, "a missing image counts as wrong; submit again"),
    (count_missing, "has no image but counts as scored"),
    (other_release, "is for release sketch 1.1.0 ("),
    (other_schema, "version 2 of the schema of a submission, expected 1"),
    (drop_figure, "rows, "),
]


@pytest.mark.parametrize("change, line", TAMPERED, ids=lambda of: getattr(of, "__name__", None))
def test_a_changed_submission_is_refused_without_images(
    submitted: Path, release: Release, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    change: Callable[[Content], None], line: str,
) -> None:  # fmt: skip
    content = read_json(submitted)
    change(content)
    write_json(content, file := tmp_path / "submission.json")
    with pytest.raises(SystemExit, match="1"):
        check(file, release.folder)
    printed = capsys.readouterr()
    text = printed.out + printed.err
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
        with pytest.raises(SystemExit, match="1"):
            check(file, release.folder)
        error = capsys.readouterr().err
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
    with pytest.raises(SystemExit, match="1"):
        check(submitted, release.folder, "--images", folder)
    assert "color: 1 images are not those submitted, the first sketch/color/test_unseen/" in capsys.readouterr().out
    other.unlink()
    with pytest.raises(SystemExit, match="1"):
        check(submitted, release.folder, "--images", folder)
    assert "2 images are not those submitted" in capsys.readouterr().out


def test_invented_values_pass_only_without_images(
    submitted: Path, release: Release, images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Similarities decide no figure, so that only the images tell that they are invented."""
    content = read_json(submitted)
    values_of(content)["similarity"][0] += 0.1
    write_json(content, file := tmp_path / "submission.json")
    check(file, release.folder)
    assert "similarities, ranks, hits and the controls" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="1"):
        check(file, release.folder, "--images", images)
    assert ": similarity: " in capsys.readouterr().out


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
    with pytest.raises(SystemExit, match="1"):
        check(submitted, folder)
    assert "not sketch 2.0.0" in capsys.readouterr().err
