"""Pos, Neg and increment rate by brute force, and the formats of the data."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compclip.core.artifacts.files import read_json
from compclip.specs.config import INTRINSIC_MEASURES
from compclip.specs.intrinsic import intrinsic, measure_gains, read_steps, score_captions
from tests.project import Project
from tests.score.world import FakeJudge
from tests.specs.evaluated import drawn, opener, refused


def run(folder: Path, data: Path) -> dict[str, Any]:
    """Return the result of an evaluation of a fake judge."""
    steps, skipped = read_steps(data, folder)
    with opener(FakeJudge(), folder)() as embedder:
        return intrinsic(steps, [("fake", embedder)], skipped=skipped)[0]


VALUE = st.integers(0, 3)
STEP = st.tuples(VALUE, st.none() | VALUE)


@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.lists(STEP, min_size=1, max_size=5)),
        min_size=1,
        max_size=6,
    )
)
def test_brute_force(captions: list[tuple[str, list[tuple[int, int | None]]]]) -> None:
    rows, expected = [], []
    for number, (image, steps) in enumerate(captions):
        rows += [(image, str(number), s, np.nan if n is None else n) for s, n in steps]
        if len(steps) < 3:
            continue
        rises = [b[0] > a[0] for a, b in zip(steps, steps[1:], strict=False)]
        against = [(s, n) for s, n in steps if n is not None]
        pos = sum(rises) / len(rises)
        neg = sum(s > n for s, n in against) / len(against) if against else np.nan
        rate = (pos + 1 - sum(n > s for s, n in against) / len(against)) / 2 if against else np.nan
        expected.append([pos, neg, rate])
    table = pd.DataFrame(rows, columns=["image", "caption_id", "similarity", "negative_similarity"])
    found = score_captions(table)[list(INTRINSIC_MEASURES)].to_numpy(float)
    assert found == pytest.approx(np.array(expected).reshape(-1, 3), nan_ok=True)


SHOWN = {
    "a.png": "red wing blue bill",
    "b.png": "green tail black wing",
    "c.png": "blue bill green tail",
}
# in any order
STEPS = """image,caption_id,step,text,negative
c.png,0,1,bill tail,bill wing
c.png,0,0,bill,
b.png,0,2,green tail black,green tail red
b.png,0,1,green tail,green bill
b.png,0,0,green,
a.png,1,2,blue bill tail red,blue bill tail x
a.png,1,1,blue bill tail,blue bill green
a.png,1,0,blue bill,
a.png,0,2,red wing blue bill,red wing blue tail
a.png,0,1,red wing blue,red wing green
a.png,0,0,red wing,
"""


def test_missing_images_and_faults_are_named_and_empty_texts_skipped(tmp_path: Path) -> None:
    for name, text in SHOWN.items():
        drawn(tmp_path / name, text)
    path = tmp_path / "steps.csv"
    path.write_text(STEPS)
    (tmp_path / "b.png").unlink()
    found = run(tmp_path, path)
    assert found["excluded"] == {"images missing": 1}
    assert found["excluded_names"] == {"images missing": ["b.png"]}
    assert found["judges"][0]["pos"]["n"] == 2
    assert found["captions"] == 4 and found["captions_with_one_increment_or_none"] == 1
    # The only caption of c.png has two texts.
    (tmp_path / "a.png").unlink()
    short = (
        "captions has more than one increment, as the measures require; add captions with "
        "three texts or more"
    )
    assert refused(lambda: run(tmp_path, path)).endswith(f"none of 1 readable {short}")
    (tmp_path / "c.png").unlink()
    message = refused(lambda: run(tmp_path, path))
    assert message.startswith("none of 3 images can be read: ") and "a.png" in message
    # The error comes before any judge is read.
    steps = read_steps(path, tmp_path)[0]
    assert refused(lambda: intrinsic(steps[steps["step"] < 2], [])).endswith(f"none of 4 {short}")
    rows = "a.png,0,0,red,\na.png,0,1, ,\na.png,1,0,red,\na.png,1,1,red wing, \n"
    (tmp_path / "t.csv").write_text("image,caption_id,step,text,negative\n" + rows)
    steps, excluded = read_steps(tmp_path / "t.csv", tmp_path)
    assert excluded == {"captions empty": ["a.png 0"]}
    assert steps["caption_id"].tolist() == ["1", "1"] and steps["negative"].isna().all()
    (tmp_path / "t.csv").write_text("image,caption_id,step,text\na.png,0,0,\n")
    assert "none of 0 captions" in refused(lambda: run(tmp_path, tmp_path / "t.csv"))
    for content, message in (
        (
            "a.png,0,one,red\n",
            "line 2: step: expected a number; correct this row (1 rows are wrong)",
        ),
        ("a.png,0,1,red\na.png,0,1,red wing\n", "line 3: duplicate step of its caption"),
        ("a.png,0,1\n", "line 2: 3 values"),
        ("a.png, ,1,red\n", "line 2: no caption_id"),
    ):
        (tmp_path / "t.csv").write_text("image,caption_id,step,text\n" + content)
        assert message in refused(lambda: read_steps(tmp_path / "t.csv", tmp_path))


def test_the_small_run(first_run: Project) -> None:
    """Means of the captions' measures, and paired differences of judges."""
    folder = first_run.root / "results" / "sketch" / "specs" / "0"
    result, steps = (
        read_json(folder / "intrinsic.json"),
        pd.read_parquet(folder / "similarities.parquet"),
    )
    captions = {name: score_captions(of_judge) for name, of_judge in steps.groupby("judge")}
    means = {name: of_judge[list(INTRINSIC_MEASURES)].mean() for name, of_judge in captions.items()}
    for judge in result["judges"]:
        assert [judge[m]["value"] for m in INTRINSIC_MEASURES] == pytest.approx(
            [*means[judge["folder"]]], abs=1e-6
        )
    for difference in result["differences"]:
        gains = means[difference["a"]] - means[difference["b"]]
        assert [difference[m]["value"] for m in INTRINSIC_MEASURES] == pytest.approx(
            [*gains], abs=1e-6
        )
        assert all(
            difference[m]["low"] < difference[m]["value"] < difference[m]["high"]
            for m in INTRINSIC_MEASURES
        )
    # A judge does not differ from itself in any resample.
    one = captions["specs"]
    itself = measure_gains(one, one.sample(frac=1, random_state=0), 0)["pos"]
    assert itself == {"value": 0.0, "low": 0.0, "high": 0.0, "n": 40, "images": 40}
    # Captions of an image are resampled together: the same ones once more tell nothing new.
    pair = [captions[result["differences"][0][name]] for name in ("a", "b")]
    once, twice = (
        measure_gains(
            *(pd.concat([of, *[of.assign(caption_id="again")] * more]) for of in pair), 0
        )["neg"]
        for more in (0, 1)
    )
    assert once["low"] < once["high"] and twice == once | {"n": 80}
