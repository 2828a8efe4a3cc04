"""Majorities, checks and preferences of small examples worked by hand."""

import numpy as np
import pandas as pd
import pytest

from compclip.human.opinions import majorities, opinions_of, preferences, workers_of
from compclip.human.tasks import TASKS


def task(name: str, kind: str, generators: str = "g", **more: object) -> dict[str, object]:
    row = dict.fromkeys(TASKS.columns) | {
        "task_id": name, "kind": kind, "check": "none", "batch": 1, "place": 1, "split": "test_seen", "image_id": name,
        "caption_id": 0, "draw": 0, "picture_1": "x.png",
    }  # fmt: skip
    row |= {f"generator_{i}": g for i, g in enumerate(generators.split(), 1)}
    return row | more


def answer(worker: str, name: str, choice: str, seconds: float = 1.0) -> dict[str, object]:
    return {"worker": worker, "task_id": name, "answer": choice, "seconds": seconds}


TASKS_BY_HAND = pd.DataFrame(
    [
        task("p1", "perceptual", "b a"),
        task("p2", "perceptual", "a b", split="test_swapped"),
        task("p1again", "perceptual", "a b", check="repeat", of="p1", image_id="p1"),
        task("m1", "match"),
        task("m2", "match", "h"),
        task("c1", "caption", right="2"),
        task("g1", "match", "", check="gold", right="yes", split=None, image_id=None),
        task("g2", "match", "", check="gold", right="no", split=None, image_id=None),
        task("m3", "match", "h"),
    ]
).astype(object)
ANSWERS_BY_HAND = pd.DataFrame(
    [
        # a is preferred twice to once on p1; p1again changes nothing.
        answer("x", "p1", "2", 3), answer("y", "p1", "2", 5), answer("z", "p1", "1", 100),
        answer("x", "p1again", "1"), answer("y", "p1again", "2"),
        answer("x", "p2", "1"), answer("y", "p2", "2"),
        answer("x", "m1", "yes"), answer("y", "m1", "yes"), answer("x", "m2", "no"),
        answer("x", "c1", "2"), answer("y", "c1", "1"), answer("z", "c1", "1"),
        answer("x", "g1", "yes"), answer("x", "g2", "no"), answer("y", "g1", "yes"), answer("y", "g2", "yes"),
    ]
)  # fmt: skip


def test_majorities() -> None:
    table = majorities(opinions_of(ANSWERS_BY_HAND, TASKS_BY_HAND), TASKS_BY_HAND).set_index("task_id")
    assert list(table.index) == ["p1", "p2", "m1", "m2", "c1", "m3"]
    assert table["answers"].tolist() == [3, 2, 2, 1, 3, 0]
    assert table["share"].round(3).tolist()[:5] == [0.667, 0.5, 1, 0, 0.333] and np.isnan(table.at["m3", "share"])
    assert table["majority"].tolist()[:5] == ["a", "tie", "yes", "no", "other"] and pd.isna(table.at["m3", "majority"])


def test_workers() -> None:
    opinions = opinions_of(ANSWERS_BY_HAND, TASKS_BY_HAND)
    workers = workers_of(opinions, keep=0.75).set_index("worker")
    assert workers[["gold", "gold_right"]].values.tolist() == [[2, 2], [2, 1], [0, 0]]
    # x stayed with a on the repeat, y went from a to b.
    assert workers[["repeats", "repeats_same"]].values.tolist() == [[1, 1], [1, 0], [0, 0]]
    # z met no gold task: kept, and counted elsewhere.
    assert workers["kept"].tolist() == [True, False, True]
    assert workers_of(opinions, keep=0.5)["kept"].all()
    assert workers.at["z", "seconds_mean"] == 50.5 and workers.at["x", "seconds_median"] == 1


def test_preferences() -> None:
    opinions = opinions_of(ANSWERS_BY_HAND, TASKS_BY_HAND)
    shares = preferences(opinions, 200, 0).set_index(["kind", "generator", "against", "split"])["share"]
    assert shares["perceptual", "a", "all", "all"] == pytest.approx(3 / 5)
    assert shares["perceptual", "b", "a", "all"] == pytest.approx(2 / 5)
    assert shares["perceptual", "a", "b", "test_seen"] == pytest.approx(2 / 3)
    shares = preferences(opinions, 200, 0)
    one = shares[(shares["kind"] == "match") & (shares["split"] == "all")].set_index("generator")
    assert one["share"].to_dict() == {"g": 1, "h": 0}
    # One image tells little.
    assert one[["low", "high"]].round(3).values.tolist() == [[0.025, 1], [0, 0.975]]
    assert shares[shares["kind"] == "caption"]["share"].tolist()[-1] == pytest.approx(1 / 3)
