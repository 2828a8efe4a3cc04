"""Beside Snakemake alone, rules are read; with `--use-conda`, they run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from compclip.core.identity.code import ROOT
from tests.project import Project
from tests.stub_conda import make_conda, make_environment, pinned

HIDDEN = "from tests.snakemake_alone import hide_others\nhide_others()\n"
KINDS = """
from compclip.core.settings import plugins
from compclip.dataset.source import SOURCES, load_source
from compclip.generate.generator import GENERATOR_KINDS, load_kind
from compclip.judge import chooser
for name in plugins.available(SOURCES):
    print(load_source(name).Settings.__module__)
for name in plugins.available(GENERATOR_KINDS):
    print(load_kind(name).Settings.__module__)
for name in plugins.available(chooser.JUDGE_KINDS):
    print(chooser.load_kind(name).Settings.__module__)
"""
PLANS = """
from pathlib import Path
from workflow_scripts.workflow import check, loading, rule_values
from workflow_scripts.workflow.config import read_config
from workflow_scripts.workflow.plan import RunPlan
for file in ["config.yaml", *sorted(map(str, Path("presets").glob("*.yaml")))]:
    print(file, len(RunPlan(read_config(Path(file))).outputs))
print(rule_values.code("judge.train_judge"))
"""
CHECK = """
from pathlib import Path
from workflow_scripts.workflow.check import check_config
from workflow_scripts.workflow.config import load_config
config = load_config({{"results": {results!r}, "judge": {{"model": "ViT-B-32"}}}})
print(check_config(config, is_local=False).errors)
"""
SMALL = """
base: config.yaml
compositions: [color]
dataset: {sketch: {images: 240, species: 20, captions: 6}}
pairs: {selection: {min_count: 1}}
split: {per_image: 2, heldout: {min_pairs: 2}}
divergence: {shuffles: 2}
judge: {epochs: 1, captions: 2, batch: 64, seeds: [0]}
generate: {generators: [photographs, faithful, memorizer]}
"""


def run_hidden(program: str) -> list[str]:
    """Return the lines that a program prints where only Snakemake's own packages are."""
    command = [sys.executable, "-c", HIDDEN + program]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("package", ["pandas", "pydantic_settings", "torch"])
def test_other_packages_are_hidden(package: str) -> None:
    program = f"from importlib.util import find_spec\nprint(find_spec({package!r}))"
    assert run_hidden(program) == ["None"]


def test_settings_of_all_kinds_load_beside_snakemake_alone() -> None:
    assert len(run_hidden(KINDS)) == len(
        [
            *(ROOT / "compclip/dataset/sources").glob("[a-z]*.py"),
            *(ROOT / "compclip/generate/generators").glob("[a-z]*.py"),
            *(ROOT / "compclip/judge/kinds").glob("[a-z]*.py"),
        ]
    )


def test_all_presets_are_planned_beside_snakemake_alone() -> None:
    *plans, identity = run_hidden(PLANS)
    assert len(plans) == 1 + len([*(ROOT / "presets").glob("*.yaml")])
    assert all(int(plan.split()[1]) > 0 for plan in plans) and len(identity) == 16


def test_configs_are_checked_beside_snakemake_alone(tmp_path: Path) -> None:
    """Without names of models that only open_clip knows."""
    assert run_hidden(CHECK.format(results=str(tmp_path / "results"))) == ["[]"]


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The variables of an environment with Snakemake and a conda, whose channel has stubs."""
    folder = tmp_path_factory.mktemp("alone")
    environment = make_environment(folder / "snakemake", [f"snakemake=={pinned('snakemake')}"])
    conda = make_conda(folder / "conda", sorted((ROOT / "envs").glob("*.yaml")))
    path = [str(conda), str(environment), "/usr/bin", "/bin"]
    return {
        **{name: os.environ[name] for name in ("HOME", "LANG", "TMPDIR") if name in os.environ},
        "PATH": os.pathsep.join(path),
        "CONDARC": str(conda.parent / "condarc"),
        "CONDA_SOLVER": "classic",
    }


@pytest.mark.slow
def test_use_conda_runs_beside_snakemake_alone(alone: dict[str, str], tmp_path: Path) -> None:
    project = Project(tmp_path / "project").copy()
    (project.root / "small.yaml").write_text(SMALL)
    command = ["snakemake", "--cores", "2", "--use-conda", "--configfile", "small.yaml"]
    done = subprocess.run(command, cwd=project.root, env=alone, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    made = {file.read_text() for file in (project.root / ".snakemake/conda").glob("*.yaml")}
    assert made == {(ROOT / f"envs/{name}.yaml").read_text() for name in ("base", "text", "torch")}
    assert (project.root / "results/table.csv").is_file()


@pytest.mark.slow
def test_a_dry_run_works_beside_snakemake_alone(alone: dict[str, str], tmp_path: Path) -> None:
    """With the rules of all stages."""
    project = Project(tmp_path / "project").copy()
    values = yaml.safe_load((ROOT / "presets/specs.yaml").read_text()) | {"compun": {}, "human": {}}
    (project.root / "all.yaml").write_text(yaml.safe_dump(values))
    command = ["snakemake", "-n", "--cores", "8", "--use-conda", "--configfile", "all.yaml"]
    done = subprocess.run(command, cwd=project.root, env=alone, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    for rule in ("classify", "sample_tasks", "train_specs"):
        assert f"rule {rule}:" in done.stdout
