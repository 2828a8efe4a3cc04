"""Separate seeds: of the world, the split, the halves and each judge."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from workflow_scripts.stand_in import load_workflow, stand_in
from workflow_scripts.workflow.config import load_config

# Rules, and the wildcards of a job.
COLOR = {"composition": "color"}
RULES: dict[str, dict[str, str]] = {
    "load_dataset": {}, "sample_heldout": COLOR, "make_splits": COLOR, "swap_adjectives": COLOR, "make_prompts": COLOR,
    "train_judge": COLOR | {"judge": "4"}, "generate_images": COLOR | {"generator": "photographs"},
    "score_images": COLOR, "make_table": {},
}  # fmt: skip


@pytest.fixture
def settings(tmp_path: Path):
    """Return the params of each rule that Snakemake compares, for a config."""

    def settings(**values: Any) -> dict[str, dict[str, Any]]:
        config = tmp_path / "config.yaml"
        config.write_text(yaml.safe_dump({"judge": {"seeds": [4]}} | values))
        workflow = load_workflow(config)
        return {rule: vars(stand_in(rule, workflow, **given).params) for rule, given in RULES.items()}

    return settings


def test_each_seed_changes_what_it_draws(settings) -> None:
    """All other steps follow by what they read, or not at all."""
    before = settings()

    def changed(**values: Any) -> set[str]:
        return {rule for rule, params in settings(**values).items() if params != before[rule]}

    assert changed(seeds={"world": 1}) == {"load_dataset"}
    split = {"sample_heldout", "make_splits", "swap_adjectives", "make_prompts"}
    assert changed(seeds={"split": 1}) == split
    assert changed(seeds={"halves": 1}) == {"make_prompts", "train_judge", "score_images"}
    # Only what reads all judges changes with one more.
    assert changed(judge={"seeds": [4, 7]}) == {"score_images", "make_table"}
    # A judge of a given seed depends on `seed` only by the halves.
    assert changed(seed=1) == {*RULES} - {"make_table"}
    assert "train_judge" not in changed(seed=1, seeds={"halves": 0})


def test_seeds_default_to_one_and_judges_to_two() -> None:
    config = load_config({"seed": 3, "seeds": {"split": 5}})
    assert config.seeds.model_dump() == {"world": 3, "split": 5, "halves": 3} and config.judges == ["3", "4"]
    for alone in ({"share": False}, {"epochs": 0}):
        assert load_config({"seed": 3, "judge": alone}).judges == ["3"]
    assert load_config({"judge": {"seeds": [2, 0]}}).judges == ["2", "0"]
