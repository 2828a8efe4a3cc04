"""The script that ``score`` is compared with gives the step's scores, and exact scores need little but the product."""

import json
from pathlib import Path

import pytest

from benchmarks import plain_score
from benchmarks.speed.score import exact_pass, largest_difference
from tests.project import COMPOSITION, DATASET


@pytest.mark.filterwarnings("ignore:divide by zero")  # where no caption ties
def test_both_ways_give_the_same_scores(results: Path, tmp_path: Path) -> None:
    generators = ["faithful", "memorizer"]
    plain_score.main(results / DATASET, COMPOSITION, "0", tmp_path / "plain.json", generators, candidates=10)
    plain = json.loads((tmp_path / "plain.json").read_text())
    assert len(plain) == 2 and 0 < plain["faithful"]["test_swapped"]["exact"] < 1
    assert largest_difference(results / DATASET / COMPOSITION / "scores" / "0", plain) < 1e-4


def test_exact_scores_are_measured_against_the_product() -> None:
    assert exact_pass(images=300, texts=500)["ratio"] > 0
