"""Separate seeds: of the world, the split, the halves and each judge."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.project import Project
from workflow_scripts.core.code import ROOT
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.step import config_keys, declaration, settings
from workflow_scripts.workflow.config import load_config, read_config

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
    for name in ("dataset.load_dataset", "split.make_splits", "judge.train_judge"):
        assert "seed" in config_keys(declaration(name)), "DVC would not notice another seed"
    assert "judge.seeds" in config_keys(declaration("judge.train_judge"))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"judge": {"seeds": [1, 1]}}, r"judge: duplicate seed in \[1, 1\]; remove one"),
        ({"judge": {"seeds": [0, 1], "epochs": 0}}, r"judge: without training \(epochs: 0\) all judges are equal"),
        ({"judge": {"seeds": []}}, r"judge\.seeds: .*at least 1 item"),
        ({"seeds": {"judge": 1}}, r"seeds\.judge: unknown key; allowed: halves, split, world"),
        ({"seed": "x"}, r"^config: seed: [^\n]*$"),
    ],
)
def test_wrong_seeds_are_refused(values: dict[str, Any], expected: str) -> None:
    with pytest.raises(UserError, match=expected):
        load_config(values)


@pytest.mark.slow
def test_another_judge_reruns_only_its_own(first_run: Project, tmp_path: Path) -> None:
    run = first_run.fork(tmp_path / "run")
    one = (run.root / "small.yaml").read_text()
    (run.root / "small.yaml").write_text(one.replace("epochs: 2", "epochs: 2, seeds: [0, 4]"))
    planned = run.planned("small.yaml")
    assert planned["train_judge"] == 1 and planned["score_images"] == 1
    assert not {"load_dataset", "make_splits", "make_prompts", "generate_images", "score_oracle"} & set(planned)
    run.snakemake("small.yaml")
    assert run.planned("small.yaml") == {}
    # Without its judge folder, one judge alone is trained again.
    shutil.rmtree(run.root / "results/sketch/color/judges/4")
    assert run.planned("small.yaml", "results/sketch/color/judges/4") == {"train_judge": 1}


@pytest.mark.slow
def test_another_world_leaves_nothing_stale(first_run: Project, tmp_path: Path) -> None:
    run, empty = first_run.fork(tmp_path / "run"), Project(tmp_path / "empty").copy()
    (run.root / "small.yaml").write_text((run.root / "small.yaml").read_text() + "seeds: {world: 1}\n")
    planned = run.planned("small.yaml")
    assert "load_dataset" in planned and planned == empty.planned(empty.config("small.yaml", "results"))


def test_judges_of_the_default_run_train_side_by_side() -> None:
    """Steps of one thread take none of the `torch` resource, of which there is one."""
    config = read_config(ROOT / "config.yaml")
    assert len(config.judges) == 3 and config.threads == 1
