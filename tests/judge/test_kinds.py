"""Judge kinds: what a table of answers is read as, what is refused, and how chances are checked."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from compclip.core.errors import UserError
from compclip.core.identity.code import ROOT
from compclip.core.settings import plugins
from compclip.judge.chooser import (
    JUDGE_KINDS,
    Context,
    JudgedImage,
    chances_of_scores,
    check_chances,
    load_kind,
)
from compclip.judge.open_judge import open_judge

IMAGES = [JudgedImage(Path("x.png"), "g/1"), JudgedImage(Path("y.png"), "g/2")]
OPTIONS = [["a red bill", "a blue bill"], ["a gray wing", "a tan wing", "a buff wing"]]
# Each answers the first text of the first image, and the second of the second.
ANSWERS = {
    "text": "id,text\ng/1,a red bill\ng/2,a tan wing\n",
    "number": "id,number\ng/2,2\ng/1,1\n",
    "score": "id,text,score\ng/1,a red bill,.5\ng/1,a blue bill,-1\ng/2,a gray wing,0\n"
    "g/2,a buff wing,1e-3\ng/2,a tan wing,2\n",
}
REFUSED = {
    "id,text\n": "no rows",
    "name,answer\ng/1,2\n": "no column 'id'",
    "id,score\ng/1,2\n": "expected id and text, id and number, or id, text and score",
    "id,text\ng/1,a red bill\n": r"no answer to 1 of 2 ids, the first \['g/2'\]",
    "id,text\ng/1,a red bill\ng/1,a red bill\ng/2,a tan wing\n": "duplicate answer: 1 of 3 rows",
    "id,text\ng/1,a red bill\ng/2,a tan wing\ng/3,x\n": r"does not ask, the first \['g/3'\]",
    "id,text\ng/1,A red bill\ng/2,a tan wing\n": "g/1: text 'A red bill', expected one of",
    "id,number\ng/1,0\ng/2,1\n": "g/1: number '0', expected one of",
    "id,number\ng/1,3\ng/2,1\n": "g/1: number '3', expected one of",
    "id,text,score\ng/1,a red bill,nan\ng/1,a blue bill,1\n": "score is not a finite number",
    "id,text,score\ng/1,a red bill,high\ng/1,a blue bill,1\n": "score is not a finite number",
    "id,text,score\ng/1,a red bill,1\ng/2,a tan wing,1\n": "g/1: scores of",
    "id,text,score\ng/1,,1\ng/2,a tan wing,1\n": "no id or text or score: 1 of 2 rows",
    "id,text\n ,a red bill\ng/2,a tan wing\n": "no id: 1 of 2 rows",
    "id,text,number\ng/1,a red bill,1\ng/2,a tan wing,1\n": "expected id and text, id and number",
}


def answered(text: str, folder: Path) -> list[np.ndarray]:
    """Return the chances that a table of answers gives."""
    file = folder / "answers.csv"
    file.write_text(text)
    chooser = open_judge("table", file=str(file))
    chooser.prepare(IMAGES, OPTIONS)  # type: ignore[attr-defined]
    return check_chances(chooser, chooser.choose(IMAGES, OPTIONS), OPTIONS)


@pytest.mark.parametrize("form", ANSWERS)
def test_a_table_names_a_text_a_number_or_scores(form: str, tmp_path: Path) -> None:
    first, second = answered(ANSWERS[form], tmp_path)
    assert first.tolist() == [1, 0]
    assert second.tolist() == [0, 1, 0]


def test_an_empty_answer_has_no_chance(tmp_path: Path) -> None:
    first, second = answered("id,text\ng/1,\ng/2,a tan wing\n", tmp_path)
    assert first.tolist() == [0, 0]
    assert second.tolist() == [0, 1, 0]


@pytest.mark.parametrize("form", ANSWERS)
def test_spaces_around_ids_and_texts_do_not_count(form: str, tmp_path: Path) -> None:
    file = tmp_path / "answers.csv"
    file.write_text(ANSWERS[form].replace(",", " , "))
    chooser = open_judge("table", file=str(file))
    images = [JudgedImage(image.path, f" {image.id}") for image in IMAGES]
    options = [[f"{text} " for text in texts] for texts in OPTIONS]
    chooser.prepare(images, options)  # type: ignore[attr-defined]
    first, second = chooser.choose(images, options)
    assert first.tolist() == [1, 0]
    assert second.tolist() == [0, 1, 0]


def test_a_missing_text_of_parquet_is_named(tmp_path: Path) -> None:
    file = tmp_path / "answers.parquet"
    rows = pd.DataFrame({"id": ["g/1", "g/1"], "text": ["a red bill", None], "score": [1.0, 2.0]})
    rows.to_parquet(file)
    with pytest.raises(UserError, match="no id or text or score: 1 of 2 rows, the first .*'g/1'"):
        open_judge("table", file=str(file))


def test_a_name_of_a_table_that_is_too_long_is_refused() -> None:
    with pytest.raises(UserError, match="no such table of answers"):
        open_judge("table", file="a" * 5000)


@pytest.mark.parametrize("make", [None, os.mkdir, os.mkfifo])
def test_an_image_that_is_not_a_file_is_refused(
    tmp_path: Path, make: Callable[[Path], None] | None
) -> None:
    path = tmp_path / "a.png"
    if make:
        make(path)
    with pytest.raises(UserError, match=r"a\.png: no such file, or not a regular one"):
        JudgedImage(path).read()


@pytest.mark.parametrize("text", REFUSED)
def test_a_table_that_does_not_fit_is_refused_in_one_line(text: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=REFUSED[text]) as error:
        answered(text, tmp_path)
    assert "\n" not in str(error.value)


def test_another_table_has_another_hash(tmp_path: Path) -> None:
    hashes = set()
    for text in ANSWERS.values():
        file = tmp_path / "answers.csv"
        file.write_text(text)
        hashes.add(open_judge("table", file=str(file)).hash)
    assert len(hashes) == 3


def test_the_highest_score_is_chosen_and_ties_share() -> None:
    assert chances_of_scores(np.array([0.1, 0.3, 0.2])).tolist() == [0, 1, 0]
    assert chances_of_scores(np.array([0.3, 0.3, 0.2])).tolist() == [0.5, 0.5, 0]
    assert chances_of_scores(np.array([np.nan, 0.3])).tolist() == [0, 0]


class Wrong:
    """A judge whose answers are given."""

    name = "wrong"
    hash = ""

    def __init__(self, answers: list[list[float]]) -> None:
        self.answers = answers

    def choose(self, images: object, options: object) -> list[np.ndarray]:
        return [np.array(answer) for answer in self.answers]


@pytest.mark.parametrize(
    "answers",
    [
        [[1, 0]],
        [[1, 0], [1, 0]],
        [[0.5, 0.4], [1, 0, 0]],
        [[np.nan, 1], [1, 0, 0]],
        [[2, -1], [1, 0, 0]],
    ],
)
def test_chances_are_a_number_for_each_text_whose_sum_is_one(answers: list[list[float]]) -> None:
    chooser = Wrong(answers)
    with pytest.raises(UserError, match="correct judge wrong"):
        check_chances(chooser, chooser.choose(IMAGES, OPTIONS), OPTIONS)


@pytest.mark.parametrize(
    "answer",
    ["a red bill", {"a red bill": 1}, [[1], [0, 0]], None, iter([1, 0]), [10**400, 0]],
    ids=["text", "dict", "ragged", "none", "iterator", "huge"],
)
def test_an_answer_that_is_not_numbers_is_refused(answer: object) -> None:
    with pytest.raises(UserError, match="^judge wrong: choice 0: .*; correct judge wrong$"):
        check_chances(Wrong([]), [answer], [["a", "b"]])  # type: ignore[list-item]


def test_a_dict_of_answers_is_refused() -> None:
    with pytest.raises(UserError, match="^judge wrong: choice 0: expected an array of numbers"):
        check_chances(Wrong([]), {"a": [1, 0]}, OPTIONS[:1])  # type: ignore[arg-type]


def test_a_tensor_that_requires_grad_is_refused() -> None:
    answer = torch.tensor([1.0, 0.0], requires_grad=True)
    with pytest.raises(UserError, match="^judge wrong: choice 0: expected an array of numbers"):
        check_chances(Wrong([]), [answer], [["a", "b"]])  # type: ignore[list-item]


@pytest.mark.parametrize("answers", [None, iter([])], ids=["none", "iterator"])
def test_answers_that_are_not_a_list_are_refused(answers: object) -> None:
    with pytest.raises(UserError, match="^judge wrong: expected a list of arrays, got"):
        check_chances(Wrong([]), answers, OPTIONS)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", plugins.available(JUDGE_KINDS))
def test_each_kind_has_settings_and_a_text_for_the_page(kind: str) -> None:
    module = load_kind(kind)
    assert module.ABOUT
    for field in module.Settings.model_fields.values():
        assert field.description


def test_a_kind_that_does_not_exist_is_named() -> None:
    with pytest.raises(UserError, match="did you mean table"):
        open_judge("tabel", file="x.csv")


def test_a_clip_needs_the_folder_of_a_trained_judge() -> None:
    with pytest.raises(UserError, match="no folder of a trained judge"):
        open_judge("clip", Context())


def test_the_documented_kind_works_as_written(tmp_path: Path) -> None:
    """The file of docs/judges.md defines a kind, which chooses the color of each image."""
    page = (ROOT / "docs" / "judges.md").read_text()
    source = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)[0]
    assert len(source.splitlines()) <= 60
    module = ModuleType("palette")
    exec(source, module.__dict__)
    chooser = module.open_chooser(module.Settings(), Context())
    images = []
    colors = ("red", "blue", "green")
    for color in colors:
        file = tmp_path / f"{color}.png"
        Image.new("RGB", (8, 8), color).save(file)
        images.append(JudgedImage(file, color))
    options = [[f"a {color} bird" for color in colors]] * 3
    answers = check_chances(chooser, chooser.choose(images, options), options)
    assert np.stack(answers).tolist() == np.eye(3).tolist()
