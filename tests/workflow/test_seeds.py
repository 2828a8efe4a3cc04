"""Separate seeds: of the world, the split, the halves and each judge."""

from typing import Any

from compclip.core.step import settings
from workflow_scripts.workflow.config import load_config

# Steps, and what rules give them beside the config.
STEPS = {
    "dataset.load_dataset": {}, "split.sample_heldout": {}, "split.make_splits": {}, "split.swap_adjectives": {},
    "split.make_prompts": {}, "judge.train_judge": {"seed": 4}, "generate.generate_images": {},
    "score.score_images": {}, "report.make_table": {"judges": ["4"]},
}  # fmt: skip


def changed(**values: Any) -> set[str]:
    """Return the steps whose settings differ from those of an empty config."""
    before, after = load_config({}), load_config(values)
    return {name for name, given in STEPS.items() if settings(name, before, given) != settings(name, after, given)}


def test_each_seed_changes_what_it_draws() -> None:
    """All other steps follow by what they read, or not at all."""
    assert changed(seeds={"world": 1}) == {"dataset.load_dataset"}
    split = {"split.sample_heldout", "split.make_splits", "split.swap_adjectives", "split.make_prompts"}
    assert changed(seeds={"split": 1}) == split
    assert changed(seeds={"halves": 1}) == {"split.make_prompts", "judge.train_judge", "score.score_images"}
    assert changed(judge={"seeds": [4, 7]}) == set()
    # A judge of a given seed depends on `seed` only by the halves.
    assert changed(seed=1) == set(STEPS) - {"report.make_table"}
    assert "judge.train_judge" not in changed(seed=1, seeds={"halves": 0})


def test_seeds_default_to_one() -> None:
    config = load_config({"seed": 3, "seeds": {"split": 5}})
    assert config.seeds.model_dump() == {"world": 3, "split": 5, "halves": 3} and config.judges == ["3"]
    assert load_config({"judge": {"seeds": [2, 0]}}).judges == ["2", "0"]
