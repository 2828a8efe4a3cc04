"""People and compounds: the tasks, and the analysis of made-up answers with a known outcome."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from compclip.compun import sample_compun_tasks as library
from compclip.core.artifacts.files import read_json
from compclip.core.tables import ROLES
from compclip.human.task_pictures import encode_picture, read_picture
from compclip.human.tasks import read_tasks
from tests.compun.conftest import COMPLETE, read
from tests.human.conftest import outputs
from tests.scripts import job
from workflow_scripts.compun import analyze_people, sample_compun_tasks


@pytest.fixture(scope="module")
def tasks(place: Path) -> pd.DataFrame:
    files = {"compounds": "compounds.parquet", "images": "images.parquet", "folder": "images"}
    reads, writes = {name: place / file for name, file in files.items()}, outputs(place / "human")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(library, "PAGE_TASKS", 12)
        sample_compun_tasks.main(job(reads, writes, seed=0, consent=None))
    return read_tasks(writes["tasks"])


def test_every_complete_compound_is_asked_once_and_projects_reveal_nothing(
    tasks: pd.DataFrame, place: Path
) -> None:
    complete = read(place, "compounds").loc[lambda table: table["complete"], "compound"]
    assert sorted(tasks.loc[tasks["check"] == "none", "image_id"]) == sorted(complete)
    sizes = tasks[tasks["check"] == "none"].groupby("batch").size()
    assert len(sizes) == 2 and sizes.max() - sizes.min() <= 1
    checks = tasks.groupby("batch")["check"].value_counts().unstack()
    assert (checks["gold"] == 2).all() and (checks["repeat"] == 2).all()
    summary = read_json(place / "human" / "tasks.json")
    assert summary["incomplete"] == 1 and summary["none"] == COMPLETE
    data = [task["data"] for task in read_json(place / "human" / "label_studio" / "compound.json")]
    assert [shown["task_id"] for shown in data] == tasks["task_id"].tolist()
    assert {tuple(shown) for shown in data} == {
        ("task_id", "picture_1", "picture_2", "picture_3", "text_1")
    }


def test_the_right_answer_is_the_compounds_picture(tasks: pd.DataFrame, place: Path) -> None:
    images = read(place, "images").set_index(["compound", "role"])["path"]
    shown = tasks[tasks["check"] != "gold"]
    orders = set()
    for row in shown.to_dict("records"):
        of_roles = [
            encode_picture(read_picture(place / "images" / images[row["image_id"], role]))[0]
            for role in ROLES
        ]
        pictures = [
            (place / "human" / "pictures" / row[f"picture_{i}"]).read_bytes() for i in (1, 2, 3)
        ]
        orders.add(order := tuple(pictures.index(raw) for raw in of_roles))
        assert sorted(order) == [0, 1, 2] and order[0] == int(row["right"]) - 1
        assert row["text_1"] == row["image_id"]
    assert len(orders) == 6
    places = Counter(shown.loc[shown["check"] == "none", "right"])
    assert set(places) == {"1", "2", "3"} and max(places.values()) - min(places.values()) <= 1
    by_name = tasks.set_index("task_id")
    for row in tasks[tasks["check"] == "repeat"].to_dict("records"):
        first = by_name.loc[row["of"]]
        assert [row[f"picture_{i}"] for i in (1, 2, 3)] == [
            first[f"picture_{i}"] for i in (3, 2, 1)
        ]
        assert int(row["right"]) == 4 - int(first["right"]) and first["place"] < row["place"]


Answer = Callable[[dict[str, Any]], str]


def careless(row: dict[str, Any]) -> str:
    return str(int(row["right"]) % 3 + 1)


def careful(wrong: set[str]) -> Answer:
    """Answer all but the ``wrong`` compounds correctly."""
    return lambda row: careless(row) if row["image_id"] in wrong else row["right"]


def analyze(
    place: Path, tasks: pd.DataFrame, people: dict[str, Answer], output: Path
) -> dict[str, Any]:
    """Return the summary of what people answer to ``tasks`` of the study in ``place``."""
    records = [
        (row["task_id"], name, people[name](row))
        for name in people
        for row in tasks.to_dict("records")
    ]
    answers = output.with_suffix(".csv")
    pd.DataFrame(records, columns=["task_id", "annotator", "choice"]).to_csv(answers, index=False)
    files = {"people": "people.json", "by_compound": "items.csv", "by_worker": "workers.csv"}
    reads = {"tasks": place / "human" / "tasks.parquet", "answers": [answers]}
    writes = {name: output / file for name, file in files.items()}
    analyze_people.main(job(reads, writes, keep=0.75, seed=0))
    return read_json(writes["people"])


def test_accuracy_and_screening_of_all_or_some_answers(
    place: Path, tasks: pd.DataFrame, tmp_path: Path
) -> None:
    names = sorted(tasks.loc[tasks["check"] == "none", "image_id"].unique())
    people: dict[str, Answer] = {f"p{i}": careful(set(names[:n])) for i, n in enumerate((3, 2, 0))}
    summary = analyze(place, tasks, people | {"hurried": careless}, tmp_path / "out")
    assert summary["workers"] == {"answered": 4, "excluded": 1, "met_no_gold_task": 0}
    # The mean of the three: 3, 2 and 0 of 23 are wrong.
    assert summary["accuracy"]["value"] == pytest.approx(np.mean([20 / 23, 21 / 23, 1]), abs=1e-6)
    assert (
        summary["accuracy"]["n"] == COMPLETE
        and summary["accuracy"]["low"] < summary["accuracy"]["value"]
    )
    assert summary["answers"] == 3 * COMPLETE and 0.7 < summary["agreement"]["alpha"] < 1
    items = pd.read_csv(tmp_path / "out" / "items.csv").set_index("compound")
    # Two of three are wrong at the first two names; at the third one is.
    assert items.loc[names[:4], "fraction"].tolist() == pytest.approx(
        [1 / 3, 1 / 3, 2 / 3, 1], abs=1e-6
    )
    assert (items["answers"] == 3).all() and len(items) == COMPLETE
    written = "".join(path.read_text() for path in (tmp_path / "out").iterdir())
    assert "hurried" not in written and "p0" not in written
    summary = analyze(
        place, tasks[tasks["check"] == "none"].head(5), {"p": careful(set())}, tmp_path / "some"
    )
    assert summary["accuracy"]["value"] == 1 and summary["accuracy"]["n"] == summary["answers"] == 5
    assert summary["tasks"] == COMPLETE and summary["agreement"]["alpha"] is None
