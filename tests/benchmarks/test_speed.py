"""The benchmarks of speed, in small: both sides do the same, and what Snakemake measured is read."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks import plain_score
from benchmarks.plain_divergence import plain_greedy
from benchmarks.speed import default_run, judge_training, parse
from benchmarks.speed import divergence as bench
from benchmarks.speed.score import exact_pass, largest_difference
from compclip.divergence.samples import from_bags
from tests.divergence.random_samples import adjective_noun_bags
from tests.project import COMPOSITION, DATASET, Project


@pytest.mark.filterwarnings("ignore:divide by zero")  # where no caption ties
def test_both_ways_give_the_same_scores(results: Path, tmp_path: Path) -> None:
    generators = ["faithful", "memorizer"]
    plain_score.main(results / DATASET, COMPOSITION, "0", tmp_path / "plain.json", generators, candidates=10)
    plain = json.loads((tmp_path / "plain.json").read_text())
    assert len(plain) == 2 and 0 < plain["faithful"]["test_swapped"]["exact"] < 1
    assert largest_difference(results / DATASET / COMPOSITION / "scores" / "0", plain) < 1e-4


def test_exact_scores_are_measured_against_the_product_and_another_choice_is_found() -> None:
    assert exact_pass(images=300, texts=500)["ratio"] > 0
    bags = adjective_noun_bags(30)
    division = bench.own(from_bags(*bags))
    given = *bags, *bench.part_sizes(30), bench.ATOM, bench.COMPOUND, bench.first_sample(30)
    train, test, path = plain_greedy(*given)
    bench.check_choices(division, train, test, path)
    swapped = division.test.copy()
    swapped[[0, 1]] = swapped[[1, 0]]
    with pytest.raises(AssertionError):
        bench.check_choices(dataclasses.replace(division, test=swapped), train, test, path)


def test_both_loops_learn_the_same() -> None:
    data = judge_training.draw_data(24)
    data.settings.update(batch=8, captions=2)
    for steps, tolerance in judge_training.TOLERANCES.items():
        losses = (loop(data.head(8 * steps), 1)[0] for loop in (judge_training.ours, judge_training.plain_training))
        np.testing.assert_allclose(*losses, rtol=tolerance)


def test_each_rule_of_a_run_is_measured(first_run: Project) -> None:
    figures = default_run.measure(first_run.root / "results")
    assert {"train_judge", "make_table"} <= figures["CPU seconds"].keys()
    assert figures["ours"] > 0 and figures["n"] >= len(figures["CPU seconds"]) > 10
    assert abs(sum(figures["CPU seconds"].values()) - figures["baseline"]) < figures["n"]


@pytest.mark.slow
def test_both_ways_find_the_same_pairs() -> None:
    texts = [f"this bird has a {color} {noun}." for color in ("red", "dark brown") for noun in ("bill", "eye ring")]
    texts += ["its wings are long and pointed", "the bill"]
    captions = pd.DataFrame({"image_id": [f"i{n // 2}" for n in range(6)], "caption_id": [0, 1] * 3, "text": texts})
    measured = parse.measure(captions=pd.concat([captions, captions]).assign(class_id=""))
    assert (measured["n"], measured["unit"]) == (6, "captions/s")
    assert min(measured["ratio"], measured["bound"], measured["cpu_s"], measured["baseline_cpu_s"]) > 0
