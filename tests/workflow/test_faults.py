"""A disk that is full or read-only is one line, and the run resumes once there is room."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.project import SMALL, Project


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


@pytest.mark.slow
def test_a_disk_that_is_full_of_results(first_run: Project, tmp_path: Path, disk: Callable[[str], None]) -> None:
    project = Project(tmp_path / "project").copy()
    (project.root / "full.yaml").write_text(SMALL.format(results=tmp_path / "disk", cache=".cache"))
    run = ["python", "-m", "workflow_scripts.workflow.run", "--config", "full.yaml", "--cores", "2", "--"]
    run.append(f"{tmp_path}/disk/sketch/captions.parquet")
    refused = project.call(*run, check=False)
    assert refused.returncode == 1
    *lines, last = refused.stderr.splitlines()
    assert last == (
        f"error: dataset: {tmp_path}/disk/sketch/images: not written (no space left on device);"
        f" free some disk space and run again (log: {tmp_path}/disk/logs/dataset/load_dataset.log)"
    )
    assert not any("no space" in line for line in lines)
    assert not any((project.root / ".snakemake" / "locks").glob("*"))
    disk("size=20m")
    project.call(*run)
    made, expected = tmp_path / "disk" / "sketch", first_run.root / "results" / "sketch"
    assert (made / "captions.parquet").read_bytes() == (expected / "captions.parquet").read_bytes()
    assert len(list((made / "images").iterdir())) == len(list((expected / "images").iterdir()))

    # Read-only, a run is refused before it begins.
    disk("ro")
    refused = project.call(*run, check=False)
    assert refused.returncode == 1
    assert refused.stderr.splitlines()[-1] == (
        f"error: {tmp_path}/disk: not writable (read-only file system); fix its permissions or choose another folder"
    )
