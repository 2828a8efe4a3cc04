"""The wheel carries the workflow: `compclip run` works in any folder, without a checkout."""

import os
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path

import pytest

from compclip.core.identity.code import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
WHEEL = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
INSIDE = "compclip/_workflow"
# What a run reads.
FOLDERS = ("envs", "lexicons", "presets", "profiles", "rules", "workflow_scripts")
FILES = ("Snakefile", "config.yaml")
# The whole chain, small.
CONFIG = """
base: config.yaml
results: out
version: {version}
compositions: [color]
dataset: {{sketch: {{images: 240, species: 20, captions: 6}}}}
pairs: {{selection: {{min_count: 1}}}}
split: {{per_image: 2, heldout: {{min_pairs: 0}}}}
divergence: {{shuffles: 2, subgraphs: {{nodes: 3, keep: 2000}}}}
judge: {{seeds: [0], epochs: 1, captions: 2, batch: 64}}
generate: {{generators: [photographs, faithful]}}
score: {{candidates: 10}}
"""


def tracked(*places: str) -> set[str]:
    """Return the files in these places that git tracks or would track."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *places]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return {name for name in listed.stdout.splitlines() if (ROOT / name).is_file()}


def test_the_wheel_is_declared_to_have_what_a_run_reads() -> None:
    carried = WHEEL["force-include"]
    assert carried == {name: f"{INSIDE}/{name}" for name in (*FOLDERS, *FILES)}
    # hatchling leaves out __pycache__ alone.
    files = {
        path.relative_to(ROOT).as_posix()
        for name in carried
        for path in [ROOT / name, *(ROOT / name).rglob("*")]
        if path.is_file() and path.parent.name != "__pycache__"
    }
    assert files == tracked(*carried)


def test_without_the_extra_a_run_says_what_to_install(tmp_path: Path) -> None:
    # Without site-packages.
    command = [sys.executable, "-S", "-m", "compclip", "run", "mine.yaml"]
    environment = {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 1 and not done.stdout
    missing = "error: compclip run: the package snakemake is not installed"
    assert done.stderr == f"{missing}; pip install 'compclip[workflow]'\n"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout, which needs PyPI's hatchling."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", str(folder)]
    done = subprocess.run([*command, str(ROOT)], capture_output=True, text=True)
    if done.returncode and "No matching distribution found for hatchling" in done.stderr:
        pytest.skip("needs hatchling from PyPI")
    assert done.returncode == 0, done.stderr
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def bin_folder(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The commands of an environment with the wheel and the packages of this environment."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "outer.pth").write_text(sysconfig.get_path("purelib"))
    python = folder / "bin" / "python"
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-deps"]
    subprocess.run([*command, "--quiet", str(wheel)], check=True)
    return python.parent


def run(bin_folder: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run compclip of an environment that is not activated."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [str(bin_folder / "compclip"), *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


@pytest.mark.slow
def test_the_wheel_has_the_files_of_the_checkout(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    carried = {name.removeprefix(f"{INSIDE}/") for name in names if name.startswith(INSIDE)}
    assert carried == tracked(*FOLDERS, *FILES)


@pytest.mark.slow
def test_the_wheel_runs_in_an_empty_folder(bin_folder: Path, tmp_path: Path) -> None:
    config = CONFIG.format(version=PROJECT["project"]["version"])
    (tmp_path / "mine.yaml").write_text(config)
    done = run(bin_folder, tmp_path, "run", "mine.yaml", "--cores", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-3:-1] == ["page:  out/report.html", "table: out/table.md"]
    checked = run(bin_folder, tmp_path, "run", "verify", "mine.yaml")
    assert "artifacts are as their steps recorded them" in checked.stderr
    assert {path.name for path in tmp_path.iterdir()} <= {
        "mine.yaml",
        "out",
        ".cache",
        ".snakemake",
    }


@pytest.mark.slow
def test_what_init_writes_passes_the_check(bin_folder: Path, tmp_path: Path) -> None:
    assert run(bin_folder, tmp_path, "init").returncode == 0
    done = run(bin_folder, tmp_path, "run", "check", "mine.yaml")
    assert done.stderr == "mine.yaml: no problems found; `compclip run mine.yaml` starts the run\n"
