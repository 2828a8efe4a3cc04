"""The oracle's shares by hand, the facts of swapped captions, and the step on drawn scenes."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.score.world import COLORS, PARTS, build, make_step
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import read_json
from workflow_scripts.score.oracle import facts_of_captions, facts_of_swapped, fraction_true
from workflow_scripts.score.score_oracle import main
from workflow_scripts.score.steps import ScoreOracle
from workflow_scripts.stats.r_precision import expected_top1


def fact_rows(*rows: tuple) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["image_id", "caption_id", "part", "kind", "value", "start", "end"])


def test_shares_by_hand() -> None:
    scenes = pd.DataFrame({"wing:color": ["red", "blue"], "bill:shape": ["long", None]})
    captions = [
        frozenset({("wing", "color", "red"), ("bill", "shape", "long")}),
        frozenset({("wing", "color", "red"), ("bill", "shape", "short"), ("tail", "color", "red")}),
        frozenset(),
    ]
    values = fraction_true(scenes, captions)(np.array([0, 1]))
    assert values.tolist() == [[1, 1 / 3, 0], [0, 0, 0]]


def test_equal_shares_are_equal_floats() -> None:
    scenes = pd.DataFrame({f"p{i}:color": ["red"] for i in range(9)})

    def caption(true: int, of: int) -> frozenset:
        return frozenset((f"p{i}", "color", "red" if i < true else "blue") for i in range(of))

    values = fraction_true(scenes, [caption(1, 3), caption(2, 6), caption(3, 9)])(np.array([0]))[0]
    assert values[0] == values[1] == values[2]


def test_swapped_facts() -> None:
    facts = fact_rows(
        ("a", 0, "wing", "color", "red", 2, 5),
        ("a", 0, "bill", "shape", "long", 15, 19),
        ("a", 1, "wing", "color", "red", 2, 5),
        ("b", 0, "tail", "color", "red", 2, 5),
    )
    changes = [{"noun": "wing", "original_adj": "red", "new_adj": "blue", "start": 2, "end": 5}]
    swapped = pd.DataFrame({"image_id": ["a"], "caption_id": [0], "changes": [changes]})
    assert facts_of_swapped(facts, swapped) == {
        ("a", 0): frozenset({("wing", "color", "blue"), ("bill", "shape", "long")})
    }
    assert facts_of_captions(facts)["a", 0] == frozenset({("wing", "color", "red"), ("bill", "shape", "long")})


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """``build``'s data set with its scenes, facts and what the generators drew: good all, partial the first fact."""
    results = build(tmp_path)
    captions = pd.read_parquet(results / "d/captions.parquet")
    rows = []
    for image, caption, text in captions[["image_id", "caption_id", "text"]].itertuples(index=False):
        words = text.split()
        for i in range(1, len(words), 4):
            start = len(" ".join(words[:i])) + 1
            rows.append((image, caption, words[i + 1], "color", words[i], start, start + len(words[i])))
    fact_rows(*rows).to_parquet(results / "d/facts.parquet")
    scenes = [{"image_id": r[0], f"{r[2]}:color": r[4]} for r in rows]
    pd.DataFrame(scenes).groupby("image_id").first().reset_index().to_parquet(results / "d/scenes.parquet")
    prompts = pd.read_parquet(results / "d/color/prompts.parquet")
    for name in ("good", "partial"):
        drawn = []
        for row in prompts.itertuples():
            words = row.text.split()
            stated = {f"{words[i + 1]}:color": words[i] for i in range(1, len(words), 4)}
            scene = {f"{part}:color": "white" for part in PARTS}
            scene |= stated if name == "good" else dict(list(stated.items())[:1])
            keys = {k: getattr(row, k) for k in ("image_id", "caption_id", "split", "draw")}
            drawn.append(keys | scene)
        pd.DataFrame(drawn).to_parquet(results / f"d/color/generated/{name}/scenes.parquet")
    return results


def run(results: Path, generator: str, **more: Any) -> tuple[Path, dict]:
    folder = results.parent / "oracle"
    files = {name: results / f"d/{name}.parquet" for name in ("scenes", "facts")}
    files |= {"drawn": [results / f"d/color/generated/{generator}/scenes.parquet"]}
    main(make_step(ScoreOracle, results, generator, scores=folder, scoring={"distractors": "swapped"}, **files | more))
    return folder, read_json(folder / "summary.json")


def test_a_faithful_drawing_reaches_the_ceiling(results: Path) -> None:
    folder, summary = run(results, "good")
    assert summary["judge"] == "oracle"
    for score in summary["scores"]:
        assert score["true_captions"] == 1
        assert score["exact"] == score["ceiling"]
        table = pd.read_parquet(folder / f"{score['set']}.parquet")
        assert (table["p_beaten"] == 0).all() and (table["similarity"] == 1).all()
        if score["prompts"] != "swapped" or score["split"] == "test_swapped":
            assert score["true_distractors"] == pytest.approx(table["p_tied"].mean(), abs=2e-6)
            assert score["exact"] == pytest.approx(
                expected_top1(np.zeros(len(table)), table["p_tied"], 5).mean(), abs=1e-5
            )


def test_a_partial_drawing_does_not(results: Path) -> None:
    folder, summary = run(results, "partial")
    score = summary["scores"][0]
    assert score["true_captions"] == 0 and score["exact"] < score["ceiling"]
    assert (pd.read_parquet(folder / "test_seen.parquet")["similarity"] == 0.5).all()
    assert len(score["missing"]) == len(score["unreadable"]) == 1


def test_real_images_show_their_own_scene(results: Path) -> None:
    """A generator of real images: its paths lead to their scenes, whatever the caption."""
    place = results / "d/color/generated/good"
    manifest = pd.read_parquet(place / "manifest.parquet")
    manifest = manifest[manifest["split"] != "test_swapped"]
    manifest.assign(path="d/images/" + manifest["image_id"] + ".png").to_parquet(place / "manifest.parquet")
    (place / "scenes.parquet").unlink()
    pd.DataFrame({"image_id": []}).to_parquet(place / "scenes.parquet")
    _, summary = run(results, "good", serves=["test_seen"])
    assert summary["scores"][0]["true_captions"] == 1
    scenes = pd.read_parquet(results / "d/scenes.parquet")
    others = scenes["wing:color"].map({color: COLORS[i - 1] for i, color in enumerate(COLORS)})
    scenes.assign(**{"wing:color": others}).to_parquet(results / "d/scenes.parquet")
    _, summary = run(results, "good", serves=["test_seen"])
    assert summary["scores"][0]["true_captions"] == 0


def test_an_image_of_no_known_scene(results: Path) -> None:
    drawn = pd.read_parquet(results / "d/color/generated/good/scenes.parquet")
    drawn[drawn["image_id"] != "im/02"].to_parquet(results / "d/color/generated/good/scenes.parquet")
    with pytest.raises(UserError, match="im/02/0.png: unknown scene"):
        run(results, "good")
