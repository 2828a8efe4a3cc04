"""The oracle's fractions by hand, the facts of swapped captions, and the step on drawn scenes."""

import numpy as np
import pandas as pd
import pytest

from compclip.core.artifacts.files import read_json
from compclip.core.errors import UserError
from compclip.score.entries import EntrySet
from compclip.score.score_oracle import (
    FactTable,
    Oracle,
    fraction_stated,
    fraction_true,
    scenes_of_entries,
)
from compclip.stats.r_precision import expected_top1
from tests.project import Project


def test_shares_swapped_facts_and_scenes_by_hand() -> None:
    scenes = pd.DataFrame({"wing:color": ["red", "blue"], "bill:shape": ["long", None]})
    captions = [
        frozenset({("wing", "color", "red"), ("bill", "shape", "long")}),
        frozenset({("wing", "color", "red"), ("bill", "shape", "short"), ("tail", "color", "red")}),
        frozenset(),
    ]
    table = FactTable(captions)
    true, columns = table.true_facts(scenes), table.columns(captions)
    values = fraction_true(true, columns)(np.array([0, 1]))
    assert values.tolist() == [[1, np.float32(1 / 3), 0], [0, 0, 0]]
    each = fraction_stated(true, np.array([0, 0, 1]), columns)
    assert each.tolist() == [1, 1 / 3, 0]
    # Equal fractions are equal floats.
    scenes = pd.DataFrame({f"p{i}:color": ["red"] for i in range(9)})
    captions = [
        frozenset((f"p{i}", "color", "red" if i < true else "blue") for i in range(3 * true))
        for true in (1, 2, 3)
    ]
    table = FactTable(captions)
    similarities = fraction_true(table.true_facts(scenes), table.columns(captions))
    assert len(set(similarities(np.array([0]))[0])) == 1
    rows = [
        ("a", 0, "wing", "color", "red", 2, 5),
        ("a", 0, "bill", "shape", "long", 15, 19),
        ("a", 1, "wing", "color", "red", 2, 5),
        ("b", 0, "tail", "color", "red", 2, 5),
    ]
    facts = pd.DataFrame(
        rows, columns=["image_id", "caption_id", "part", "kind", "value", "start", "end"]
    )
    changes = [{"noun": "wing", "original_adj": "red", "new_adj": "blue", "start": 2, "end": 5}]
    swapped = pd.DataFrame({"image_id": ["a"], "caption_id": [0], "changes": [changes]})
    oracle = Oracle(facts, facts, facts, swapped, swapped)
    changed = frozenset({("wing", "color", "blue"), ("bill", "shape", "long")})
    assert oracle.swapped == {("a", 0): changed} and oracle.of_variants == [changed]
    assert oracle.original["a", 0] == frozenset(
        {("wing", "color", "red"), ("bill", "shape", "long")}
    )
    entries = pd.DataFrame(
        {"image_id": ["a"], "caption_id": [0], "draw": [0], "path": ["made/a.png"]}
    )
    scenes = pd.DataFrame({"image_id": ["a"], "wing:color": ["red"]})
    images = pd.DataFrame({"image_id": ["a"], "path": ["a.png"]})
    classes = pd.Series({"a": "image a"})
    part = EntrySet("test_seen", "test_seen", "original", entries, entries, classes, swapped)
    drawn = scenes.assign(image_id="b", caption_id=0, draw=0, split="test_seen")
    with pytest.raises(UserError, match=r"made/a\.png: unknown scene; generate it again"):
        scenes_of_entries(part, images, scenes, drawn)
    shown = scenes_of_entries(part, images, scenes, drawn.assign(image_id="a"))
    assert shown["wing:color"].tolist() == ["red"]


def test_scores_of_the_run(first_run: Project) -> None:
    """A faithful drawing reaches the ceiling; one that ignores the swap does not; real images show
    their own scene.
    """
    folder = first_run.root / "results/sketch/color/scores/oracle"
    of = {
        name: read_json(folder / name / "summary.json")["scores"]
        for name in ("faithful", "memorizer", "photographs")
    }
    for score in of["faithful"]:
        assert score["true_captions"] == 1 and score["exact"] == pytest.approx(
            score["ceiling"], abs=2e-6
        )
        table = pd.read_parquet(folder / "faithful" / f"{score['set']}.parquet")
        assert (table["p_beaten"] == 0).all() and (table["similarity"] == 1).all()
        if score["prompts"] != "swapped" or score["split"] == "test_swapped":
            first = table[table["draw"] == 0]
            assert score["true_distractors"] == pytest.approx(first["p_tied"].mean(), abs=2e-6)
            ceiling = expected_top1(np.zeros(len(first)), first["p_tied"], 10).mean()
            assert score["exact"] == pytest.approx(ceiling, abs=1e-5)
    swapped = next(score for score in of["memorizer"] if score["set"] == "test_swapped")
    assert swapped["true_captions"] < 1 and swapped["exact"] < swapped["ceiling"]
    assert [score["true_captions"] for score in of["photographs"]] == [1] * len(of["photographs"])
