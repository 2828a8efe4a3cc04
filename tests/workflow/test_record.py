"""A run that Snakemake made by itself is recorded as DVC would have, and one that is not complete is refused."""

import os
import subprocess

import pytest

from tests.workflow.conftest import Repository
from workflow_scripts.core.lock import locked
from workflow_scripts.workflow.record import snakemake_lock

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def run(recorded: Repository, tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """A copy to break and to mend."""
    return Repository(recorded.fork(tmp_path_factory.mktemp("record")).root)


def record(run: Repository, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run.call("python", "-m", "workflow_scripts.workflow.record", *arguments, check=False)


def refused(run: Repository, *arguments: str) -> str:
    """The one line with which recording is refused; what DVC recorded is as before."""
    before = (run.root / "dvc.lock").read_bytes()
    done = record(run, *arguments)
    assert done.returncode == 1 and (run.root / "dvc.lock").read_bytes() == before
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1 and lines[0].startswith("error: "), done.stderr
    return lines[0]


def test_a_complete_run_is_recorded(run: Repository) -> None:
    lock = run.root / "dvc.lock"
    before = lock.read_bytes()
    lock.unlink()
    run.call("snakemake", "--touch", "--forceall", "--cores", "1")
    assert record(run).returncode == 0
    assert lock.read_bytes() == before
    # By times alone, as Snakemake looks at what is large, all is done too.
    assert "Nothing to be done" in run.call("snakemake", "--cores", "1", "--max-checksum-file-size", "0").stderr
    assert "up to date" in run.call("dvc", "status").stdout
    assert run.git("status", "--porcelain") == ""


def test_a_run_that_is_not_complete_is_refused(run: Repository) -> None:
    table = run.root / "results" / "table.csv"
    kept = table.with_name("kept")
    table.rename(kept)
    said = refused(run)
    assert (
        "not complete, nothing was recorded" in said and "make_table (results/table.csv: missing output files" in said
    )
    kept.rename(table)

    # A setting is not the run's.
    config = run.root / "config.yaml"
    text = config.read_text()
    config.write_text(text.replace("bootstrap: 200", "bootstrap: 201"))
    said = refused(run)
    assert "make_table (" in said and "params have changed" in said and "train_judge" not in said
    config.write_text(text)

    # A config that is laid over it counts.
    (run.root / "over.yaml").write_text("seed: 1\n")
    assert "load_dataset (" in refused(run, "--config", "over.yaml")
    (run.root / "over.yaml").unlink()


def test_a_run_that_is_at_work_is_refused(run: Repository) -> None:
    with locked(run.root / ".snakemake" / "compclip.lock", print, "config config.yaml"):
        assert "another run is active in this checkout (process " in refused(run)
    lock = run.root / ".snakemake" / "locks" / "0.output.lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    lock.write_text("results/table.csv\n")
    assert "make unlock" in refused(run)
    lock.unlink()


def test_no_run_begins_while_one_is_recorded(run: Repository) -> None:
    with snakemake_lock(["results/table.csv"], run.root / ".snakemake"):
        begun = run.call(
            "snakemake", "--cores", "1", "--forcerun", "make_table", "--", "results/table.csv", check=False
        )
        assert begun.returncode and "LockException" in begun.stderr
    assert not list((run.root / ".snakemake" / "locks").iterdir())


def test_an_emptied_file_is_refused(run: Repository) -> None:
    file = run.root / "results" / "sketch" / "color" / "export" / "train.csv"
    kept, times = file.read_bytes(), file.stat()
    file.write_bytes(b"")
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert "export/train.csv: empty file; delete results/sketch/color/export" in refused(run)
    file.write_bytes(kept)
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))


def test_stages_that_are_not_the_workflows_are_refused(run: Repository) -> None:
    stages = run.root / "dvc.yaml"
    text = stages.read_text()
    stages.write_text(text.replace("- results/report.html\n", ""))
    assert "dvc.yaml: outdated; `make dvc CONFIG=config.yaml`" in refused(run)
    stages.write_text(text)


def test_what_dvc_says_is_passed_on(run: Repository) -> None:
    # What was made of it is there, so Snakemake does not miss it.
    file = run.root / "results" / "sketch" / "color" / "prompts.json"
    kept = file.read_bytes()
    file.unlink()
    said = refused(run)
    assert "prompts.json" in said
    file.write_bytes(kept)
