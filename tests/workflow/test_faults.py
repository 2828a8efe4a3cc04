"""Runs that are killed, at two moments of a small one; disks that are full or read-only: what is said, and the
same end. Many moments, of a whole run: ``make faults``."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.project import Project

pytestmark = pytest.mark.slow

# As few captions as there can be for a training.
TINY = """
results: {results}
cache: {cache}
compositions: [color]
dataset: {{source: sketch, sketch: {{images: 120, species: 12, captions: 4}}}}
pairs: {{nouns: birds, selection: {{min_count: 1}}}}
judge:
  {{model: sketch, pretrained: null, trainable: ["*"], epochs: 3, captions: 2, batch: 128, lr: 0.005, train_on: half}}
generate: {{generators: [photographs]}}
"""


class Trial:
    """A copy of the project in which the tiny config has made ``whole``, up to its judge."""

    def __init__(self, project: Project) -> None:
        self.project = project

    def command(self, name: str, *more: str, results: str = "") -> list[str]:
        """Return the command of ``make run`` for the tiny config."""
        config = TINY.format(results=results or name, cache=f".cache_{name}")
        (self.project.root / f"{name}.yaml").write_text(config)
        run = [sys.executable, "-m", "workflow_scripts.workflow.run", "--config", f"{name}.yaml", "--cores", "2"]
        return [*run, *more]


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    trial = Trial(Project(tmp_path_factory.mktemp("faults").resolve()).copy())
    trial.project.call(*trial.command("whole", "--", "whole/sketch/color/judges/0"))
    return trial


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Callable[[str], None]]:
    """A small disk at ``tmp_path/disk``, mounted anew with the options that it is called with."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if os.geteuid() or not shutil.which("mount"):
        pytest.skip("mounting a small disk needs root")
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], capture_output=True).returncode:
        pytest.skip("a small disk cannot be mounted here")

    def remount(options: str) -> None:
        subprocess.run(["mount", "-o", f"remount,{options}", folder], check=True)

    yield remount
    subprocess.run(["umount", "-l", folder], check=True)


def step(place: Path, module: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", f"workflow_scripts.{module}", *map(str, arguments), "--log", str(place / "step.log")],
        cwd=place, env={**os.environ, "PYTHONPATH": str(place)}, capture_output=True, text=True,
    )  # fmt: skip


def test_a_disk_that_is_full_of_results(trial: Trial, tmp_path: Path, disk: Callable[[str], None]) -> None:
    """The run says so in one line, and goes on once there is room."""
    target = f"{tmp_path}/disk/sketch/captions.parquet"
    command = trial.command("full", "--", target, results=f"{tmp_path}/disk")
    refused = trial.project.call(*command, check=False)
    assert re.search(r"warning: full.yaml: disk: the run needs about .* but 65.5 KB are free", refused.stderr)
    assert refused.returncode == 1
    *lines, last = refused.stderr.splitlines()
    assert last == (
        f"error: dataset: load dataset: {tmp_path}/disk/sketch/images: not written (no space left on device);"
        f" free some disk space and run again (log: {tmp_path}/disk/logs/dataset/load_dataset.log)"
    )
    assert not any("no space" in line for line in lines)
    assert not any((trial.project.root / ".snakemake" / "locks").glob("*"))
    disk("size=20m")
    trial.project.call(*command)
    made, expected = tmp_path / "disk" / "sketch", trial.project.root / "whole" / "sketch"
    assert (made / "captions.parquet").read_bytes() == (expected / "captions.parquet").read_bytes()
    assert len(list((made / "images").iterdir())) == len(list((expected / "images").iterdir()))

    # Read-only, a run is refused before it begins.
    disk("ro")
    refused = trial.project.call(*command, check=False)
    assert refused.returncode == 1
    assert refused.stderr.splitlines()[-1] == (
        f"error: full.yaml: results: {tmp_path}/disk: not writable (read-only file system);"
        " fix its permissions or choose another folder"
    )


def test_a_disk_that_is_full_of_what_steps_keep(trial: Trial, tmp_path: Path, disk: Callable[[str], None]) -> None:
    """Parses, pixels, a training's state: each says which file, and goes on once there is room."""
    place = trial.project.root
    color = "whole/sketch/color"
    parse = ["pairs.extract_pairs", "--captions", "whole/sketch/captions.parquet", "--parsing.model", "en_core_web_sm"]
    parse += ["--adjectives", "lexicons/adjectives/color.yaml", "--nouns", "lexicons/nouns/birds.yaml"]
    parse += ["--pairs", tmp_path / "pairs.parquet", "--summary", tmp_path / "pairs.json"]
    parse += ["--processes", 1, "--cache", tmp_path / "disk"]
    settings = '{"model": "sketch", "trainable": ["*"], "epochs": 3, "captions": 2, "batch": 128, "train_on": "half"}'
    train = ["judge.train_judge", "--captions", "whole/sketch/captions.parquet", "--images"]
    train += ["whole/sketch/images.parquet", "--splits", f"{color}/splits.parquet", "--results", "whole"]
    train += ["--settings", settings, "--cache", tmp_path / "disk", "--judge", tmp_path / "judge"]

    def refuse(command: list[object], size: str, file: str) -> None:
        disk(f"size={size}")
        refused = step(place, *command)
        assert refused.returncode == 1
        last = refused.stderr.strip().splitlines()[-1]
        assert re.fullmatch(rf"error: {tmp_path}/disk/\S+/{file}: .*(free (some )?disk space|no space).*", last), (
            refused.stderr
        )

    refuse(parse, "64k", "occurrences.sqlite")
    shutil.rmtree(tmp_path / "disk" / "pairs")
    refuse(train, "600k", r"\w+.bin")
    disk("size=30m")
    assert step(place, *train).returncode == 0
    (state,) = (tmp_path / "disk").rglob("checkpoint.pt")
    room = shutil.disk_usage(tmp_path / "disk").used  # the state's alone: the pixels need some of it
    state.unlink()
    shutil.rmtree(tmp_path / "judge")
    refuse(train, str(room), "checkpoint.pt")
    disk("size=30m")
    assert step(place, *train).returncode == 0
    assert (tmp_path / "judge" / "weights.safetensors").is_file()
