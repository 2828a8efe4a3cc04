"""The benchmarks of speed and scale, in small: both sides do the same, and figures of a run are
read.
"""

import dataclasses
import json
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks import plain_score, scale
from benchmarks.plain_divergence import plain_greedy
from benchmarks.speed import default_run, judge_training, parse
from benchmarks.speed import divergence as bench
from benchmarks.speed.score import exact_pass, largest_difference
from compclip.core.errors import UserError
from compclip.divergence.samples import from_bags
from tests.divergence.random_samples import adjective_noun_bags
from tests.project import COMPOSITION, DATASET, Project
from workflow_scripts.workflow.config import load_config


def test_both_ways_give_the_same_scores(results: Path, tmp_path: Path) -> None:
    generators = ["faithful", "memorizer"]
    plain_score.main(
        results / DATASET, COMPOSITION, "0", tmp_path / "plain.json", generators, candidates=10
    )
    plain = json.loads((tmp_path / "plain.json").read_text())
    assert len(plain) == 2 and 0 < plain["faithful"]["test_swapped"]["exact"] < 1
    assert largest_difference(results / DATASET / COMPOSITION / "scores" / "0", plain) < 1e-4


def test_both_loops_learn_the_same_and_another_choice_is_found() -> None:
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
    data = judge_training.draw_data(24)
    data.settings.update(batch=8, captions=2)
    for steps, tolerance in judge_training.TOLERANCES.items():
        losses = (
            loop(data.head(8 * steps), 1)[0]
            for loop in (judge_training.ours, judge_training.plain_training)
        )
        np.testing.assert_allclose(*losses, rtol=tolerance)


def test_each_rule_of_a_run_is_measured_and_growth_is_an_exponent(
    tmp_path: Path, first_run: Project
) -> None:
    figures = default_run.measure(first_run.root / "results")
    assert {"train_judge", "make_table"} <= figures["CPU seconds"].keys()
    assert figures["ours"] > 0 and figures["n"] >= len(figures["CPU seconds"]) > 10
    assert abs(sum(figures["CPU seconds"].values()) - figures["baseline"]) < figures["n"]
    for part, size in (("images", 10_000), ("captions", 30)):
        load_config(scale.config_of(part, size, None, tmp_path))
    rows = [row | {"images": 10} for row in scale.measured_rules(first_run.root / "results")]
    slower = [
        row | {"images": 100, "CPU seconds": 100 * max(row["CPU seconds"], 1)} for row in rows
    ]
    table = scale.growth_table([*rows, *slower], "images")
    assert len(table.splitlines()) == 2 + 2 * len(rows)
    line = next(line for line in table.splitlines() if "train_judge" in line and " 100 " in line)
    cells = [cell.strip() for cell in line.split("|")]
    assert cells[-3:-1] == ["2", "0"]


@pytest.mark.slow
def test_both_ways_find_the_same_pairs() -> None:
    texts = [
        f"this bird has a {color} {noun}."
        for color in ("red", "dark brown")
        for noun in ("bill", "eye ring")
    ]
    texts += ["its wings are long and pointed", "the bill"]
    captions = pd.DataFrame(
        {"image_id": [f"i{n // 2}" for n in range(6)], "caption_id": [0, 1] * 3, "text": texts}
    )
    measured = parse.measure(captions=pd.concat([captions, captions]).assign(class_id="bird"))
    assert (measured["n"], measured["unit"]) == (6, "captions/s")
    assert (
        min(measured["ratio"], measured["bound"], measured["cpu_s"], measured["baseline_cpu_s"]) > 0
    )


def test_captions_are_distinct_as_many_as_asked_and_joined_by_bird(tmp_path: Path) -> None:
    captions = scale.make_captions(333, None)
    assert len(captions) == captions["caption"].nunique() == 333
    assert captions.equals(scale.make_captions(333, None))
    archive = tmp_path / "captions.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for bird in range(2):
            texts = [f"bird {bird} has {color} wings" for color in ("red", "blue", "tan")]
            file.writestr(f"text/00{bird + 1}.Kind/Kind_{bird}.txt", "\n".join(texts))
    assert next(scale.joined_captions(archive)) == [
        "bird 0 has red wings. bird 0 has blue wings.",
        "bird 0 has blue wings. bird 0 has tan wings.",
        "bird 0 has tan wings. bird 0 has red wings.",
    ]
    with pytest.raises(UserError, match="too few captions"):
        scale.make_captions(4000, archive)
