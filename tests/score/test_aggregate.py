"""Aggregates of published predictions: by hand, against the released formula, and against our own scores."""

import json
import pickle
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.score.test_score_images import judge, run  # noqa: F401
from tests.score.world import build
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import empty_table, read_table
from workflow_scripts.core.seeds import rng
from workflow_scripts.core.step import parse
from workflow_scripts.core.tables import CAPTIONS, DIVERGENCE, SCORES, SWAPPED
from workflow_scripts.report.table import load_scores, table_row
from workflow_scripts.score import aggregate
from workflow_scripts.split.export import data_dict
from workflow_scripts.stats import balance
from workflow_scripts.stats import r_precision as precision
from workflow_scripts.stats.r_precision import sampled


def put(path: Path, value: Any) -> Path:
    path.write_bytes(pickle.dumps(value))
    return path


def annotations(counts: dict[str, int], captions: int = 1) -> dict[str, dict[int, dict[str, Any]]]:
    """Images of one pair each: as many as ``counts`` says, each with ``captions`` swapped captions and a plain one."""
    pairs = [pair for pair, n in counts.items() for _ in range(n)]
    result = {}
    for i, pair in enumerate(pairs):
        adjective, noun = pair.split("_")
        changes = {"noun": noun, "original_adj": "red", "new_adj": adjective}
        swapped = {"text": "a red bird", "swapped_text": "a tan bird", "changes_made": changes}
        result[f"{i:03d}.Kind/{pair}_{i}"] = dict.fromkeys(range(captions), swapped) | {captions: {"text": "a bird"}}
    return result


def asked(data: dict[str, dict[int, dict[str, Any]]], index: Any = lambda i: 0) -> list[tuple[str, int, str, int]]:
    """A prediction for each swapped caption."""
    keys = [(image, c) for image, captions in data.items() for c, found in captions.items() if "swapped_text" in found]
    return [(image, c, f"out/{i}.png", index(i)) for i, (image, c) in enumerate(keys)]


def call(capsys: pytest.CaptureFixture[str], predictions: Path, *flags: Any, as_json: bool = True) -> Any:
    words = ["--predictions", predictions, *flags, *(["--json"] if as_json else [])]
    aggregate.main(parse(aggregate.Aggregate, list(map(str, words)), "aggregate"))
    printed = capsys.readouterr().out
    return json.loads(printed) if as_json else printed


def released(predictions: np.ndarray, chunks: int = 10) -> tuple[float, float]:
    """The released formula, of hits that are shuffled already."""
    size = int(len(predictions) / chunks)
    means = [np.average(predictions[i * size : (i + 1) * size]) for i in range(chunks)]
    return np.average(means), np.std(means)


@given(st.lists(st.booleans(), min_size=10, max_size=200), st.integers(0, 9))
def test_published_chunks_are_the_released_formula(hits: list[bool], seed: int) -> None:
    values = np.array(hits, float)
    shuffled = rng(seed, "chunks").permutation(values)
    assert sampled(hits, 10, seed, "published") == pytest.approx(released(shuffled))
    if len(hits) % 10 == 0:
        assert sampled(hits, 10, seed, "published") == pytest.approx(sampled(hits, 10, seed))


def test_plain_by_hand(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # 12 entries of 3 images, 2 captions, 2 draws; 3 hits, all of the first image.
    entries = [(f"i{i}", c, f"{i}_{c}_{d}.png", 0 if i == 0 and (c, d) != (1, 1) else 7) for i in range(3)
               for c in range(2) for d in range(2)]  # fmt: skip
    found = call(capsys, put(tmp_path / "p.pkl", entries))
    assert (found["n"], found["images"], found["captions"], found["hits"]) == (12, 3, 6, 3)
    assert found["draws"] == {"least": 2, "most": 2, "fewer": 0} and found["equal_tuples"] == 0
    plain = found["plain"]
    assert plain["mean"] == plain["chunked"]["even"]["mean"] == 0.25
    # All of one image come and go together: the ends are those of 0 and 2 of 3 images.
    assert plain["low"] == 0 and plain["high"] == pytest.approx(0.75)
    assert plain["chunked"]["lost"] == 2 and plain["chunked"]["published"]["mean"] in (0.1, 0.2, 0.3)
    printed = call(capsys, tmp_path / "p.pkl", as_json=False)
    assert "12 entries of 3 images and 6 captions, 2 draws of each" in printed
    assert "published chunks drop 2 entries: 12 is not a multiple of 10" in printed and "25.00 [0.00, 75.00]" in printed
    assert call(capsys, tmp_path / "p.pkl") == found, "the same seed, the same numbers"


def test_too_few_resamples(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in ("0", "-5", "99"):
        with pytest.raises(UserError, match=f"--bootstrap: .*greater than or equal to 100, got '{number}'"):
            call(capsys, put(tmp_path / "p.pkl", [("i", 0, "x.png", 0)]), f"--bootstrap={number}")


def test_fewer_than_ten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    predictions = put(tmp_path / "p.pkl", [("a", 0, "x", 0)] * 3 + [("b", 0, "x", 1)] * 6)
    found = call(capsys, predictions)
    assert found["plain"]["chunked"]["published"] == {"mean": None, "deviation": None}
    assert found["plain"]["mean"] == pytest.approx(1 / 3, abs=1e-6) and found["equal_tuples"] == 7
    printed = call(capsys, predictions, as_json=False)
    assert "9 entries are fewer than 10 chunks; the released code gives NaN" in printed
    assert "7 entries repeat an earlier one, path included; they count again" in printed
    assert sampled([True] * 9, 10, 0, "published") is None and sampled([], 10, 0, "published") is None


COUNTS = {"purple_bill": 40, "tan_wing": 25, "red_eye": 8, "blue_eye": 3}


@pytest.mark.parametrize(
    ("dataset", "composition", "cut"),
    [
        ("C-CUB", "color", {"purple_bill": 10, "tan_wing": 10}),
        ("C_CUB", "color", {"purple_bill": 10, "tan_wing": 10}),
        ("C_CUB", "shape", {"purple_bill": 31}),
        ("C-Flowers", "color", {"purple_bill": 31}),
        ("C_Flowers", "shape", {"purple_bill": 31}),
    ],
)
def test_balanced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], dataset: str, composition: str, cut: dict[str, int]
) -> None:
    """purple_bill always hits, nothing else does: the mean is its share after the cut."""
    data = annotations(COUNTS)
    predictions = put(tmp_path / "p.pkl", asked(data, lambda i: 0 if i < 40 else 3))
    flags = "--annotations", put(tmp_path / "data.pkl", data), "--dataset", dataset, "--composition", composition
    found = call(capsys, predictions, *flags)
    balanced = found["balanced"]
    assert {pair: n["kept"] for pair, n in balanced["cut"].items()} == cut
    assert balanced["rule"].startswith("two-pair rule (C-CUB color)" if len(cut) == 2 else "one-pair rule (")
    left = sum(cut.get(pair, n) for pair, n in COUNTS.items())
    assert balanced["mean"] == pytest.approx(cut["purple_bill"] / left, abs=1e-6)
    assert balanced["chunked"]["n"] == left and balanced["chunked"]["even"]["mean"] == balanced["mean"]
    assert found["plain"]["mean"] == pytest.approx(40 / 76, abs=1e-6)
    assert found["missing"]["captions"]["count"] == 0
    printed = call(capsys, predictions, *flags, as_json=False)
    assert balanced["rule"] in printed and f"purple_bill 40 to {cut['purple_bill']}" in printed
    one = call(capsys, predictions, *flags, "--dominant", "1")["balanced"]
    assert one["cut"] == {"purple_bill": {"of": 40, "kept": 31}} and "--dominant" in one["rule"]


def released_balance(pairs: list[str], two: bool) -> int:
    """How many entries the released code keeps, where it does not fail."""
    top3 = Counter(pairs).most_common(3)
    cap = int(min(top3[0][1], 1.25 * (top3[-1] if two else top3[1])[1]))
    for pair, _ in top3[: 1 + two]:
        random.sample([p for p in pairs if p == pair], cap)
    return len(pairs) - sum(n for _, n in top3[: 1 + two]) + (1 + two) * cap


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(counts=st.lists(st.integers(1, 30), min_size=3, max_size=6, unique=True), two=st.booleans())
def test_balanced_keeps_as_many_as_published(counts: list[int], two: bool) -> None:
    pairs = [f"red_{i}" for i, n in enumerate(counts) for _ in range(n)]
    cut = balance.cut_dominant(pairs, 1 + two)
    kept = int(balance.subsample(pairs, cut, 0).sum())
    try:
        assert kept == released_balance(pairs, two)
    except ValueError:
        # The second pair is smaller than the cap: the released code stops, here it is kept whole.
        assert min(cut.counts[pair] for pair in cut.kept) in cut.kept.values()


def test_what_is_missing_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = annotations(COUNTS, captions=2)
    entries = asked(data)
    flags = "--annotations", put(tmp_path / "data.pkl", data), "--dataset", "C-CUB", "--composition", "color"
    found = call(capsys, put(tmp_path / "p.pkl", entries[3:] + entries[5:6]), *flags)
    images = list(data)
    assert found["missing"]["captions"] == {"count": 3, "names": [f"{images[0]} 0", f"{images[0]} 1", f"{images[1]} 0"]}
    assert found["missing"]["images"] == {"count": 1, "names": images[:1]}
    assert found["draws"] == {"least": 1, "most": 2, "fewer": 148}
    seen = call(capsys, tmp_path / "p.pkl", *flags[:2], "--split", "test_seen")
    assert "balanced" not in seen and seen["missing"]["of"] == 75 * 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda entries: [("nobody", 0, "x", 0), *entries], "1 images are not in .*data.pkl: 'nobody'"),
        (lambda entries: [(entries[0][0], 9, "x", 0), *entries], "1 captions are not in .*data.pkl: '.* 9'"),
        (lambda entries: [(entries[0][0], 1, "x", 0), *entries], "1 captions of .*data.pkl have no swapped text"),
        (lambda entries: [], "no predictions"),
    ],
)
def test_predictions_that_do_not_fit(tmp_path: Path, capsys: Any, change: Any, message: str) -> None:
    data = annotations(COUNTS)
    flags = "--annotations", put(tmp_path / "data.pkl", data), "--dataset", "C-CUB", "--composition", "color"
    with pytest.raises(UserError, match=message):
        call(capsys, put(tmp_path / "p.pkl", change(asked(data))), *flags)


def test_balanced_without_swapped_captions(tmp_path: Path, capsys: Any) -> None:
    plain = {"a": {0: {"text": "a bird"}}}
    predictions = put(tmp_path / "p.pkl", [("a", 0, "x", 0)])
    flags = "--annotations", put(tmp_path / "data.pkl", plain)
    with pytest.raises(UserError, match="no swapped captions, so nothing to balance; omit --annot"):
        call(capsys, predictions, *flags, "--dataset", "C-CUB", "--composition", "color")
    with pytest.raises(UserError, match="balancing needs --dataset and --composition, or --dominant"):
        call(capsys, predictions, *flags)


def test_the_command_line(tmp_path: Path) -> None:
    """Errors of the step as a user sees them: one line, exit 1."""
    command = [sys.executable, "-m", "workflow_scripts.score.aggregate", "--predictions"]

    def fails(path: Path) -> str:
        done = subprocess.run([*command, str(path)], capture_output=True, text=True)
        assert done.returncode == 1 and not done.stdout and len(done.stderr.splitlines()) == 1
        return done.stderr

    bad = tmp_path / "bad.pkl"
    bad.write_bytes(b"cos\nsystem\n(S'touch ran'\ntR.")
    assert "it would build os.system" in fails(bad)
    assert "expected a list" in fails(put(tmp_path / "data.pkl", {"a": 1}))


PUBLISHED_SCRIPT = """
import pickle, sys
predictions, data, split = (pickle.load(open(path, "rb")) for path in sys.argv[1:])
pairs = {}
for image, caption, path, index in predictions:
    found = data[image][caption]
    pair = found["changes_made"]["new_adj"] + "_" + found["changes_made"]["noun"]
    pairs.setdefault(pair, []).append(index == 0)
print(len(predictions), sum(map(sum, pairs.values())), len(split["test_seen"]), sorted(map(len, pairs.values())))
"""


def test_our_own_predictions(tmp_path: Path, judge: Any, capsys: Any) -> None:  # noqa: F811
    """A plain interpreter reads them; their aggregate is the sampled score of the table, balanced too."""
    results = build(tmp_path)
    folder, summary = run(results, "good", chunking="published", balance={"dominant": 1})
    place = results / "d" / "color"
    captions = read_table(results / "d" / "captions.parquet", CAPTIONS)
    data = data_dict(captions, read_table(place / "swapped.parquet", SWAPPED))
    annotated = put(tmp_path / "data.pkl", data)
    split = put(tmp_path / "split.pkl", {"test_seen": sorted(data)[::2]})
    swapped = read_table(place / "swapped.parquet", SWAPPED)[["image_id", "caption_id"]]
    for scored in load_scores(folder, swapped):
        score, row = scored.about, table_row(scored, empty_table(DIVERGENCE), 10, 100)
        assert (row["sampled_mean"], row["sampled_std"]) == pytest.approx((score["sampled_mean"], score["sampled_std"]))
        if (score["split"], score["prompts"]) == ("test_seen", "swapped"):
            continue
        file = folder / f"{score['set']}.predictions.pkl"
        balanced = score["split"] == "test_swapped"
        flags = ["--annotations", annotated, "--split", score["split"], *(["--dominant", "1"] if balanced else [])]
        found = call(capsys, file, *flags)
        chunked = found["plain"]["chunked"]["published"]
        assert (chunked["mean"], chunked["deviation"]) == (score["sampled_mean"], score["sampled_std"])
        entries = read_table(folder / f"{score['set']}.parquet", SCORES)
        assert found["plain"]["mean"] == pytest.approx(entries["hit"].mean(), abs=1e-6)
        predictions = pickle.loads(file.read_bytes())
        assert [index == 0 for *_, index in predictions] == entries["hit"].tolist()
        assert {type(value) for entry in predictions for value in entry} == {str, int}
        assert all(0 <= index < 5 and (results / path).is_file() for _, _, path, index in predictions)
        if balanced:
            published = found["balanced"]["chunked"]["published"]
            told = score["balance"]
            assert (published["mean"], published["deviation"]) == (told["sampled_mean"], told["sampled_std"])
            command = [sys.executable, "-I", "-S", "-c", PUBLISHED_SCRIPT, str(file), str(annotated), str(split)]
            printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            assert printed.split()[:3] == [str(len(entries)), str(int(entries["hit"].sum())), "12"]


def test_the_best_of_the_drawn_distractors_is_predicted() -> None:
    """Three distractors in their drawn order: a miss names the nearest, a hit is 0."""
    generator = np.random.default_rng(0)
    similarity = generator.random((40, 30))
    pool = precision.make_pool(np.arange(30), np.arange(30), np.arange(30))
    entries = precision.Entries(generator.integers(0, 30, 40), np.full(40, 99), [(f"i{i}", 0, 0) for i in range(40)])
    blocks = precision.blocks(lambda rows: similarity[rows], entries.classes)
    found = precision.judge(blocks, 30, entries, pool, candidates=4, ties="own_first", seed=0)
    drawn, _ = precision.sample_distractors(entries, np.arange(40), pool, 4, 0)
    candidates = np.column_stack([entries.own, drawn])
    expected = [int(np.argmax(similarity[i, candidates[i]])) for i in range(40)]
    assert found.predicted.tolist() == expected and len(set(expected)) == 4
