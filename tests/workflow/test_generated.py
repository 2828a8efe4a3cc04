"""What is generated from the workflow and committed: it must be what would be generated now."""

from pathlib import Path

import pytest
import yaml

from benchmarks import container, picture
from workflow_scripts.core.code import ROOT
from workflow_scripts.core.errors import UserError
from workflow_scripts.workflow.config import load_config
from workflow_scripts.workflow.make_dvc import dvc_file, dvc_text
from workflow_scripts.workflow.reference import WRITTEN

CONFIGS = [ROOT / "config.yaml", *sorted((ROOT / "presets").glob("*/config.yaml"))]


@pytest.mark.parametrize("config", CONFIGS, ids=lambda path: path.parent.name)
def test_dvc_yaml_is_the_workflows(config: Path) -> None:
    assert dvc_file(config).read_text() == dvc_text(config), "run `make dvc`, with CONFIG=… for a preset"


@pytest.mark.parametrize("file", WRITTEN, ids=lambda file: file.name)
def test_the_reference_is_the_code(file: Path) -> None:
    assert WRITTEN[file]() == file.read_text(), "run `make reference`"


def test_picture_is_the_workflows() -> None:
    page = picture.PAGE.read_text()
    assert picture.with_picture(page, picture.picture()) == page, "run `make picture`"


def test_dockerfile_is_the_environments() -> None:
    assert container.dockerfile() == container.FILE.read_text(), "run `make container`"


def test_stages_follow_the_keys_that_their_steps_take(tmp_path: Path) -> None:
    stages = yaml.safe_load((ROOT / "dvc.yaml").read_text())["stages"]
    keys = {
        name: {key for listed in stage.get("params", []) for key in listed["config.yaml"]}
        for name, stage in stages.items()
    }
    assert {"seed", "split.per_image", "judge.train_on"} <= keys["split"]
    assert {"judge.epochs", "judge.lr", "seed"} <= keys["judge"]
    assert "pairs.nouns" not in keys["split"] and not any(key.startswith("judge") for key in keys["pairs"])
    assert (
        "workflow_scripts/judge" in stages["judge"]["deps"] and "workflow_scripts/score" not in stages["judge"]["deps"]
    )


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (ROOT / "mine.yaml", "mine.yaml: the dvc.yaml beside it belongs to config.yaml; move the config to its own"),
        (Path("/elsewhere/config.yaml"), "/elsewhere/config.yaml: not in "),
    ],
)
def test_no_config_takes_the_place_of_anothers_stages(config: Path, message: str) -> None:
    with pytest.raises(UserError) as error:
        dvc_file(config)
    assert str(error.value).startswith(message)


def test_runs_without_a_file_have_no_stages(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("runs: {a: {seed: 1}}\n")
    with pytest.raises(UserError, match="^runs.a: expected a config file"):
        dvc_text(config)


@pytest.mark.parametrize("key", ["results", "cache"])
def test_folders_are_local_and_plain(key: str) -> None:
    with pytest.raises(UserError, match=f"^config: {key}: expected a local folder"):
        load_config({key: "s3://bucket/folder"})
    assert str(getattr(load_config({key: "./out//x/"}), key)) == "out/x"
