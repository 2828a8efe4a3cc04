"""Texts of the user never reach a formatter: Snakemake's wildcards, the shell, a pattern."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from compclip.core.artifacts.parquet import read_table
from compclip.core.errors import UserError
from compclip.core.tables import CAPTIONS
from compclip.generate.config import Generator
from tests.conftest import ROOT
from tests.graph import jobs
from tests.project import Project
from workflow_scripts.workflow import config as config_module
from workflow_scripts.workflow.check import check_config
from workflow_scripts.workflow.config import load_config

# Everything that Snakemake, a shell, a glob, a regular expression or a format string reads.
STRANGE = "-own {3} {a,b+} {{c}} [x] * ? %s %(d)s 'q' \"d\" #&;|$(x) `y` \\1 ~ é\n"
CONSENT = "I {agree}, 100 % {0}"
MODELS = [{"name": "mine", "open_clip": "RN50", "pretrained": "openai"}]
BASE = {"model": "RN50", "pretrained": "openai", "epochs": 0}
INPUTS: list[tuple[dict[str, Any], str]] = [
    ({"human": {"answers": ["a{b}.csv"]}}, "human: {b} in a path"),
    (
        {"human": {"answers": ["ok.csv", "{ composition_2 }.csv"]}},
        "human: { composition_2 } in a path",
    ),
    (
        {"compun": {"compounds": {"file": "{1}.csv", "images": "i"}, "models": MODELS}},
        "compun: {1} in a path",
    ),
    (
        {"compun": {"compounds": {"file": "l.csv", "images": "i/{x}"}, "models": MODELS}},
        "compun: {x} in a path",
    ),
    ({"compun": {"captions": "t{exts}.json"}}, "compun: {exts} in a path"),
    ({"compun": {"models": [{"name": "m", "judge": "j{0}"}]}}, "compun: {0} in a path"),
    (
        {"specs": {"data": {"examples": "{a,b}.json", "increments": "i.json"}, "base": BASE}},
        "specs: {a, in a path",
    ),
    ({"judge": {"model": "RN50", "pretrained": "w{1}.pt"}}, "judge: {1} in a path"),
    (
        {"judge": {"model": "RN50", "pretrained": "{composition}{é}.pt", "shared": False}},
        "judge: {é} in a path",
    ),
    (
        {"judge": {"model": "birds", "tower": {"model": "m", "weights": "{w}.pth"}}},
        "judge: {w} in a path",
    ),
    ({"pairs": {"nouns": "{n}"}}, "pairs: {n} in a path"),
]


@pytest.fixture
def strange(tmp_path: Path) -> Path:
    """A folder with a strange name that has a table and images."""
    folder = tmp_path / STRANGE
    (folder / "images").mkdir(parents=True)
    (folder / "t.csv").write_text("image_id,caption\n1,a red chair\n2,a blue chair\n")
    return folder


def write_config(folder: Path, **values: Any) -> Path:
    """Write a config of captions alone into ``folder``."""
    config = {
        "results": str(folder.parent / "results"),
        "cache": str(folder.parent / "cache"),
        "compositions": ["color"],
        "dataset": {"source": "table", "table": {"file": str(folder / "t.csv")}},
        "pairs": {"nouns": None, "selection": {"min_count": 1}},
        **values,
    }
    (folder / "c.yaml").write_text(yaml.safe_dump(config))
    return folder / "c.yaml"


def test_a_table_with_any_name_is_read(strange: Path) -> None:
    config = write_config(strange)
    assert not check_config(load_config(yaml.safe_load(config.read_text()))).errors
    target = strange.parent / "results" / "table" / "captions.parquet"
    command = ["snakemake", "--cores", "1", "--configfile", str(config), "--", str(target)]
    done = subprocess.run(
        command, cwd=ROOT, env=Project(ROOT).environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert read_table(target, CAPTIONS)["text"].tolist() == ["a red chair", "a blue chair"]


def test_params_are_the_users_texts(strange: Path) -> None:
    """Paths of data, images, generators and weights, and free texts, reach the scripts
    unchanged.
    """
    pd.DataFrame({"image_id": ["1"], "caption": ["a red chair"]}).to_csv(
        strange / "t.csv", index=False
    )
    (strange / "images" / "1.png").touch()
    table = {"file": str(strange / "t.csv"), "images": str(strange / "images")}
    config = write_config(
        strange,
        dataset={"source": "table", "table": table},
        human={"consent": CONSENT},
        generate={"generators": [{"name": "it", "kind": "folder", "path": f"{strange}/images"}]},
        score={"fid": {"weights": str(strange / "w.pth")}},
        release={"creator": CONSENT, "name": "a"},
        judge={"model": "sketch"},
    )
    params = {job.rule: job.mock_job().params for job in jobs(config) if job.rule != "train_judge"}
    assert params["load_dataset"].files == [table["file"], table["images"]]
    assert params["load_dataset"].settings["file"] == table["file"]
    assert params["sample_tasks"].consent == CONSENT
    assert params["score_fid"].weights == str(strange / "w.pth")
    assert params["generate_images"].generator["options"]["path"] == f"{strange}/images"


def test_only_the_composition_is_replaced_in_a_generators_path() -> None:
    path = STRANGE + "{composition}/{composition"
    generator = Generator.model_validate({"name": "it", "kind": "folder", "path": path})
    assert generator.settings("color").path == STRANGE + "color/{composition"


@pytest.mark.parametrize(("values", "error"), INPUTS)
def test_a_wildcard_in_the_path_of_an_input_is_one_line(values: dict[str, Any], error: str) -> None:
    with pytest.raises(
        UserError, match=f"config: {re.escape(error)} is a wildcard for Snakemake; rename"
    ):
        load_config({"dataset": {"source": "sketch"}, **values})


@pytest.mark.parametrize(
    "path", ["a}b{.csv", "{}.csv", "a{b-c}.csv", "{composition}.csv", "[a] %s *.csv"]
)
def test_what_is_no_wildcard_is_an_input(path: str) -> None:
    assert load_config({"human": {"answers": [path], "consent": CONSENT}}).human.answers == [path]


def test_braces_in_the_checkouts_folder_are_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(config_module, "ROOT", tmp_path / "a{b}c")
    with pytest.raises(
        UserError,
        match=r"a\{b\}c: braces in the checkout's folder are wildcards for Snakemake; rename",
    ):
        load_config({})


@pytest.mark.slow
def test_a_checkout_with_any_other_name_runs(tmp_path: Path) -> None:
    """And one with braces says why it does not."""
    for name in (STRANGE.replace("{", "(").replace("}", ")"), "a{b}c"):
        run = Project(tmp_path / name).copy()
        run.config("small.yaml", "results")
        command = [
            "snakemake",
            "--cores",
            "1",
            "--configfile",
            "small.yaml",
            "--",
            "results/sketch/pairs.parquet",
        ]
        done = subprocess.run(
            command, cwd=run.root, env=run.environment, capture_output=True, text=True
        )
        if "{" in name:
            assert done.returncode == 1 and "braces in the checkout's folder" in done.stderr
        else:
            assert done.returncode == 0, done.stderr[-2000:]
        shutil.rmtree(run.root)
