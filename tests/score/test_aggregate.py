"""Aggregates of published predictions: by hand, against the released formula, and against our own
scores.
"""

import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compclip.core.artifacts.files import read_json
from compclip.core.artifacts.parquet import read_table
from compclip.core.errors import UserError
from compclip.core.seeds import rng
from compclip.core.settings.cli import parse
from compclip.core.tables import CAPTIONS, SCORES, SWAPPED
from compclip.score import aggregate
from compclip.split.export import data_dict
from compclip.stats import r_precision as precision
from compclip.stats.r_precision import sampled
from tests.project import Project

COUNTS = {"purple_bill": 40, "tan_wing": 25, "red_eye": 8, "blue_eye": 3}
COLOR = ["--dataset", "C-CUB", "--composition", "color"]


def put(path: Path, value: Any) -> Path:
    path.write_bytes(pickle.dumps(value))
    return path


def annotations(captions: int = 1) -> dict[str, dict[int, dict[str, Any]]]:
    """Images of one pair each: as many as COUNTS says, each with ``captions`` swapped captions and
    a plain one.
    """
    result = {}
    for i, pair in enumerate(pair for pair, n in COUNTS.items() for _ in range(n)):
        adjective, noun = pair.split("_")
        changes = {"noun": noun, "original_adj": "red", "new_adj": adjective}
        swapped = {"text": "a red bird", "swapped_text": "a tan bird", "changes_made": changes}
        result[f"{i:03d}.Kind/{pair}_{i}"] = dict.fromkeys(range(captions), swapped) | {
            captions: {"text": "a bird"}
        }
    return result


def asked(
    data: dict[str, dict[int, dict[str, Any]]], index: Any = lambda i: 0
) -> list[tuple[str, int, str, int]]:
    """A prediction for each swapped caption."""
    keys = [
        (image, c)
        for image, captions in data.items()
        for c, found in captions.items()
        if "swapped_text" in found
    ]
    return [(image, c, f"out/{i}.png", index(i)) for i, (image, c) in enumerate(keys)]


def call(capsys: pytest.CaptureFixture[str], predictions: Path, *flags: Any) -> Any:
    aggregate.main(
        parse(
            aggregate.Aggregate, list(map(str, ["--predictions", predictions, *flags])), "aggregate"
        )
    )
    return json.loads(capsys.readouterr().out)


def released(predictions: np.ndarray, chunks: int = 10) -> tuple[float, float]:
    """The released formula, of hits that are shuffled already."""
    size = int(len(predictions) / chunks)
    means = [np.average(predictions[i * size : (i + 1) * size]) for i in range(chunks)]
    return np.average(means), np.std(means)


@given(st.lists(st.booleans(), min_size=10, max_size=200), st.integers(0, 9))
def test_published_chunks_are_the_released_formula(hits: list[bool], seed: int) -> None:
    shuffled = rng(seed, "chunks").permutation(np.array(hits, float))
    assert sampled(hits, 10, seed, "published") == pytest.approx(released(shuffled))
    if len(hits) % 10 == 0:
        assert sampled(hits, 10, seed, "published") == pytest.approx(sampled(hits, 10, seed))


def test_plain_by_hand_and_what_is_missing_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # 12 entries of 3 images, 2 captions, 2 draws; 3 hits, all of the first image.
    entries = [
        (f"i{i}", c, f"{i}_{c}_{d}.png", 0 if i == 0 and (c, d) != (1, 1) else 7)
        for i in range(3)
        for c in range(2)
        for d in range(2)
    ]
    found = call(capsys, put(tmp_path / "p.pkl", entries))
    assert (found["n"], found["images"], found["captions"], found["equal_tuples"]) == (12, 3, 6, 0)
    plain = found["plain"]
    assert plain["mean"] == plain["even"]["mean"] == 0.25 and plain["published"]["mean"] in (
        0.1,
        0.2,
        0.3,
    )
    # All of one image come and go together: the ends are those of 0 and 2 of 3 images.
    assert plain["low"] == 0 and plain["high"] == pytest.approx(0.75)
    assert call(capsys, tmp_path / "p.pkl") == found, "the same seed, the same numbers"
    few = call(capsys, put(tmp_path / "p.pkl", [("a", 0, "x", 0)] * 3 + [("b", 0, "x", 1)] * 6))
    assert few["plain"]["published"] == {"mean": None, "deviation": None}, "fewer than ten"
    assert few["plain"]["mean"] == pytest.approx(1 / 3, abs=1e-6) and few["equal_tuples"] == 7
    data = annotations(captions=2)
    flags = "--annotations", put(tmp_path / "data.pkl", data), *COLOR
    found = call(capsys, put(tmp_path / "p.pkl", asked(data)[3:]), *flags)
    images = list(data)
    assert found["missing"] == {
        "count": 3,
        "names": [f"{images[0]} 0", f"{images[0]} 1", f"{images[1]} 0"],
    }
    seen = call(capsys, tmp_path / "p.pkl", *flags[:2], "--split", "test_seen")
    assert (
        "balanced" not in seen and seen["missing"]["count"] == 75 + 1
    )  # plain captions, and one swapped


@pytest.mark.parametrize(
    ("dataset", "composition", "cut"),
    [
        ("C_CUB", "color", {"purple_bill": 10, "tan_wing": 10}),
        ("C-CUB", "shape", {"purple_bill": 31}),
        ("C-Flowers", "color", {"purple_bill": 31}),
    ],
)
def test_balanced(
    tmp_path: Path, capsys: Any, dataset: str, composition: str, cut: dict[str, int]
) -> None:
    """purple_bill always hits, nothing else does: the mean is its fraction after the cut."""
    data = annotations()
    predictions = put(tmp_path / "p.pkl", asked(data, lambda i: 0 if i < 40 else 3))
    flags = (
        "--annotations",
        put(tmp_path / "data.pkl", data),
        "--dataset",
        dataset,
        "--composition",
        composition,
    )
    found = call(capsys, predictions, *flags)
    balanced = found["balanced"]
    assert {pair: n["kept"] for pair, n in balanced["cut"].items()} == cut
    assert balanced["rule"].startswith("two-pair rule" if len(cut) == 2 else "one-pair rule")
    left = sum(cut.get(pair, n) for pair, n in COUNTS.items())
    assert balanced["mean"] == pytest.approx(cut["purple_bill"] / left, abs=1e-6)
    assert balanced["n"] == left and balanced["even"]["mean"] == balanced["mean"]
    assert (
        found["plain"]["mean"] == pytest.approx(40 / 76, abs=1e-6)
        and found["missing"]["count"] == 0
    )
    one = call(capsys, predictions, *flags, "--dominant", "1")["balanced"]
    assert one["cut"] == {"purple_bill": {"of": 40, "kept": 31}}


@pytest.mark.parametrize(
    ("change", "flags", "message"),
    [
        (
            lambda entries: [("nobody", 0, "x", 0), *entries],
            COLOR,
            r"p\.pkl: caption nobody 0 is not in .*data\.pkl",
        ),
        (
            lambda entries: [(entries[0][0], 1, "x", 0)],
            COLOR,
            r"p\.pkl: caption .* 1 of .*data\.pkl has no swapped",
        ),
        (lambda entries: [], COLOR, r"p\.pkl: no predictions"),
        (
            lambda entries: entries,
            [],
            "--annotations: balancing needs --dataset and --composition, or --dominant",
        ),
        (
            lambda entries: entries,
            ["--bootstrap=99"],
            "--bootstrap: .*greater than or equal to 100, got '99'",
        ),
        (lambda entries: {"a": 1}, COLOR, r"p\.pkl: .*expected a list"),
    ],
)
def test_what_does_not_fit(
    tmp_path: Path, capsys: Any, change: Any, flags: list[str], message: str
) -> None:
    data = annotations()
    predictions = put(tmp_path / "p.pkl", change(asked(data)))
    with pytest.raises(UserError, match=message):
        call(capsys, predictions, "--annotations", put(tmp_path / "data.pkl", data), *flags)


PUBLISHED_SCRIPT = """
import pickle, sys
predictions, data = (pickle.load(open(path, "rb")) for path in sys.argv[1:])
pairs = {}
for image, caption, path, index in predictions:
    found = data[image][caption]
    pair = found["changes_made"]["new_adj"] + "_" + found["changes_made"]["noun"]
    pairs.setdefault(pair, []).append(index == 0)
print(len(predictions), sum(map(sum, pairs.values())))
"""


def test_our_own_predictions(first_run: Project, tmp_path: Path, capsys: Any) -> None:
    """A plain interpreter reads them; their aggregate is the sampled score of the table, balanced
    too.
    """
    data = first_run.root / "results" / "sketch"
    folder = data / "color" / "scores" / "0" / "faithful"
    swapped = read_table(data / "color" / "swapped.parquet", SWAPPED)
    annotated = put(
        tmp_path / "data.pkl", data_dict(read_table(data / "captions.parquet", CAPTIONS), swapped)
    )
    scores = {
        score["set"]: score for score in reversed(read_json(folder / "summary.json")["scores"])
    }
    for split in ("test_seen", "test_unseen", "test_swapped"):
        file, entries = (
            folder / f"{split}.predictions.pkl",
            read_table(folder / f"{split}.parquet", SCORES).query("draw == 0"),
        )
        found = call(capsys, file, "--annotations", annotated, "--split", split, "--dominant", "1")
        even, told = found["plain"]["even"], scores[split]
        assert (even["mean"], even["deviation"]) == (told["sampled_mean"], told["sampled_std"])
        assert found["plain"]["mean"] == pytest.approx(entries["hit"].mean(), abs=1e-6)
        predictions = pickle.loads(file.read_bytes())
        assert [index == 0 for *_, index in predictions] == entries["hit"].tolist()
        assert {type(value) for entry in predictions for value in entry} == {str, int}
        assert all(
            0 <= index < 10 and (data.parent / path).is_file() for _, _, path, index in predictions
        )
    even, told = found["balanced"]["even"], told["balance"]
    assert (even["mean"], even["deviation"]) == (told["sampled_mean"], told["sampled_std"])
    command = [sys.executable, "-I", "-S", "-c", PUBLISHED_SCRIPT, str(file), str(annotated)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed.split() == [str(len(entries)), str(int(entries["hit"].sum()))]


def test_the_best_of_the_drawn_distractors_is_predicted() -> None:
    """Three distractors in their drawn order: a miss names the nearest, a hit is 0."""
    generator = np.random.default_rng(0)
    similarity = generator.random((40, 30))
    pool = precision.make_pool(np.arange(30), np.arange(30), np.arange(30))
    entries = precision.Entries(
        generator.integers(0, 30, 40), np.full(40, 99), [(f"i{i}", 0, 0) for i in range(40)]
    )
    blocks = precision.blocks(lambda rows: similarity[rows], entries.classes)
    draws = precision.sample_distractors(entries, pool, 4, 0)
    weights = precision.Weights(pool, 30)
    found = precision.judge_entries(blocks, entries, weights, draws, "own_first")
    candidates = np.column_stack([entries.own, pool.texts[draws.captions]])
    expected = [int(np.argmax(similarity[i, candidates[i]])) for i in range(40)]
    assert found.predicted.tolist() == expected and len(set(expected)) == 4
