"""What is generated from the workflow and committed: it must be what would be generated now."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import container, picture
from workflow_scripts.core.code import ROOT
from workflow_scripts.core.errors import UserError
from workflow_scripts.workflow.config import SCHEMA, load_config, schema_text
from workflow_scripts.workflow.make_dvc import config_keys, dvc_file, dvc_text
from workflow_scripts.workflow.run import read_config

CONFIGS = [ROOT / "config.yaml", *sorted((ROOT / "presets").glob("*/config.yaml"))]


@pytest.mark.parametrize("config", CONFIGS, ids=lambda path: path.parent.name)
def test_dvc_yaml_is_the_workflows(config: Path) -> None:
    assert dvc_file(config).read_text() == dvc_text(config), "run `make dvc`, with CONFIG=… for a preset"


def test_schema_is_the_models() -> None:
    assert schema_text() == SCHEMA.read_text(), "run `make schema`"


def test_picture_is_the_workflows() -> None:
    readme = (ROOT / "README.md").read_text()
    assert picture.with_picture(readme, picture.picture()) == readme, "run `make picture`"


def test_dockerfile_is_the_environments() -> None:
    assert container.dockerfile() == container.FILE.read_text(), "run `make container`"


@pytest.mark.parametrize("config", CONFIGS, ids=lambda path: path.parent.name)
def test_configs_are_valid(config: Path) -> None:
    assert read_config(config).results


def test_defaults_need_no_file() -> None:
    assert load_config({}).dataset.source == "sketch"


def test_stages_follow_the_keys_that_their_rules_use() -> None:
    assert {"split.heldout.fraction", "judge.train_on", "pairs.nouns", "seed"} <= set(config_keys("split"))
    assert {"judge", "threads", "seed"} <= set(config_keys("judge"))
    assert "score.bootstrap" in config_keys("report") and "score.bootstrap" not in config_keys("split")
    for stage in ("dataset", "pairs", "split"):
        assert not any(key.startswith(("judge.epochs", "score", "report", "generate")) for key in config_keys(stage))


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (ROOT / "mine.yaml", "mine.yaml: the dvc.yaml beside it is that of config.yaml: give it a folder of its own"),
        (Path("/elsewhere/config.yaml"), "/elsewhere/config.yaml: is not in "),
    ],
)
def test_no_config_takes_the_place_of_anothers_stages(config: Path, message: str) -> None:
    with pytest.raises(UserError) as error:
        dvc_file(config)
    assert str(error.value).startswith(message)


def test_runs_without_a_file_have_no_stages(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("runs: {a: {seed: 1}}\n")
    with pytest.raises(UserError, match="^runs.a: has no config file of its own"):
        dvc_text(config)


@pytest.mark.parametrize("key", ["results", "cache"])
def test_folders_are_local_and_plain(key: str) -> None:
    with pytest.raises(UserError, match=f"^config: {key}: must be a local folder"):
        load_config({key: "s3://bucket/folder"})
    assert getattr(load_config({key: "./out//x/"}), key) == "out/x"
