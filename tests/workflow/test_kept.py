"""A failed rerun deletes nothing that was valid, and Snakemake knows what is out of date."""

import logging
import os
from pathlib import Path

import pytest
from snakemake.api import SnakemakeApi
from snakemake.exceptions import WorkflowError
from snakemake.settings.enums import Quietness
from snakemake.settings.types import ConfigSettings, DAGSettings, OutputSettings, ResourceSettings

from workflow_scripts.workflow import graph
from workflow_scripts.workflow.kept import FOLDER, Kept, recover

SNAKEFILE = """
from workflow_scripts.workflow.kept import Kept

kept = Kept(workflow, ["results", "results/inner"])

onstart:
    kept.keep()

onsuccess:
    kept.discard()

onerror:
    kept.restore()

rule last:
    input:
        "results/inner/made",
    output:
        "results/last",
    shell:
        "cp {input} {output}"

rule make:
    output:
        file="results/inner/made",
        folder=directory("results/folder"),
    params:
        value=config["value"],
        end=config["end"],
    shell:
        "mkdir -p results/.digests; echo {params.value} > t; mv t results/.digests/folder;"
        "mkdir {output.folder}; echo {params.value} | tee {output.folder}/x > {output.file}; {params.end}"
"""


def snakemake(place: Path, value: int, end: str, dry: bool = False) -> list[str]:
    """Run the workflow; return the rules of a dry run."""
    collector = graph._Collector()
    with SnakemakeApi(OutputSettings(dryrun=dry, quiet={Quietness.ALL})) as api:
        workflow = api.workflow(
            resource_settings=ResourceSettings(cores=1),
            config_settings=ConfigSettings(config={"value": value, "end": end}),
            snakefile=place / "Snakefile",
            workdir=place,
        )
        dag = workflow.dag(DAGSettings())
        if dry:
            logging.getLogger("snakemake.logging").handlers = [collector]
        dag.execute_workflow(executor="dryrun" if dry else "local")
    return sorted(job.rule for job in collector.jobs)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A finished run."""
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    snakemake(tmp_path, 1, "true")
    return tmp_path


def contents(place: Path) -> dict[str, tuple[str, int]]:
    files = [file for file in sorted((place / "results").rglob("*")) if file.is_file()]
    return {str(file.relative_to(place)): (file.read_text(), file.stat().st_mtime_ns) for file in files}


def test_a_failed_rerun_leaves_everything_as_it_was(place: Path) -> None:
    before = contents(place)
    with pytest.raises(WorkflowError):
        snakemake(place, 2, "false")
    assert contents(place) == before and (place / "results" / "folder" / "x").read_text() == "1\n"
    # Undoing the change leaves nothing to do; the change itself is not taken for done.
    assert snakemake(place, 1, "true", dry=True) == []
    assert snakemake(place, 2, "false", dry=True) == ["last", "make"]
    snakemake(place, 3, "true")
    assert (place / "results" / "last").read_text() == "3\n"
    assert not list(place.glob(f"**/{FOLDER}"))


def test_what_a_killed_run_kept_is_removed_and_links_may_be_impossible(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / "results" / FOLDER).mkdir()

    def refuse(*_: object, **__: object) -> None:
        raise OSError("no hard links")

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(WorkflowError):
        snakemake(place, 2, "false")
    assert not (place / "results" / "inner" / "made").exists() and (place / "results" / "last").exists()
    assert not list(place.glob(f"**/{FOLDER}"))


def test_what_a_killed_run_removed_comes_back(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = [name for name in contents(place) if "folder" in name]
    before = contents(place)
    monkeypatch.setattr(Kept, "restore", lambda self: None)
    with pytest.raises(WorkflowError):
        snakemake(place, 2, "false")
    assert not (place / "results" / "folder").exists() and list(place.glob(f"**/{FOLDER}"))
    recover([place / "results" / "inner", place / "results"])
    assert [contents(place)[name] for name in recorded] == [before[name] for name in recorded] and recorded
    assert not list(place.glob(f"**/{FOLDER}"))


def test_outputs_are_kept_in_the_folder_of_their_run() -> None:
    kept = Kept(None, ["r", "r/a", "other"])
    places = {path: str(kept.place(Path(path))) for path in ("r/x", "r/a/b/y", "other/z")}
    assert places == {"r/x": "r/.kept/x", "r/a/b/y": "r/a/.kept/b/y", "other/z": "other/.kept/z"}
