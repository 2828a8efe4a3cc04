"""The steps of a small run, called as functions in one process: watching them does not change what
they make.
"""

import contextlib
import importlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

import workflow_scripts.job
from compclip.core import errors, log, progress
from compclip.core.artifacts import disk
from compclip.core.identity import code, digests, fingerprint, installation, parsed_modules
from compclip.core.identity.code import ROOT, UNDECISIVE
from compclip.core.settings import cli
from tests.clip.test_imports import loaded
from tests.graph import Job, jobs
from tests.project import SMALL, Project
from tests.workflow.test_envs import rules
from workflow_scripts.job import run_checked


def in_order(planned: list[Job]) -> Iterator[Job]:
    """Yield jobs after those whose outputs they read."""
    pending = list(planned)
    while pending:
        unmade = {output for job in pending for output in job.outputs}
        ready = next(job for job in pending if not unmade & set(job.inputs))
        pending.remove(ready)
        yield ready


def records_of(results: Path) -> dict[str, dict]:
    """Return what the records of a run hold, by their paths."""
    files = sorted(results.rglob(f"{digests.FOLDER}/*"))
    return {
        str(file.relative_to(results)): json.loads(file.read_bytes().rpartition(b"\n")[0])
        for file in files
    }


def test_nothing_is_judged_by_a_split_before_it_is_accepted() -> None:
    planned = jobs(ROOT / "config.yaml")
    reading = {
        job.rule
        for job in planned
        if any(path.endswith("/color/accepted.json") for path in job.inputs)
    }
    assert reading == {"export", "make_prompts"}
    # The audit's own job does not fail: Snakemake deletes the outputs of one that does.
    (accepting,) = {
        job.inputs for job in planned if job.rule == "accept_split" and "/color/" in job.outputs[0]
    }
    assert [Path(path).name for path in accepting] == ["audit.json"]


@pytest.fixture
def unwatched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace what the undecisive modules do: nothing is logged, counted, locked or checked."""

    def nothing(*_: object, **__: object) -> None:
        return None

    changed: list[tuple[object, str, Callable[..., object]]] = [
        (log.log, "handle", nothing),
        (disk.shutil, "disk_usage", lambda folder: SimpleNamespace(free=sys.maxsize)),
        (progress.Progress, "add", nothing),
        (workflow_scripts.job, "_alone", contextlib.nullcontext),
        (digests, "faults", lambda path, recorded: []),
        (errors.UserError, "__str__", lambda self: "another text"),
    ]
    for owner, name, value in changed:
        monkeypatch.setattr(owner, name, value)
    monkeypatch.setattr(disk, "check_space", nothing)
    monkeypatch.setattr(
        fingerprint, "_digests", lambda place, files, cache: dict.fromkeys(files, "")
    )


def test_undecisive_modules_change_no_artifact(
    first_run: Project, unwatched: None, tmp_path: Path
) -> None:
    modules = (
        cli,
        code,
        digests,
        disk,
        errors,
        fingerprint,
        log,
        parsed_modules,
        progress,
        installation,
    )
    covered = {module.__name__ for module in modules}
    assert covered | {"workflow_scripts.job"} == UNDECISIVE
    config = tmp_path / "config.yaml"
    config.write_text(SMALL.format(results=tmp_path / "results", cache=tmp_path / "cache"))
    for job in in_order(jobs(config)):
        module, made = importlib.import_module(job.script), job.mock_job()
        with contextlib.chdir(ROOT):
            run_checked(module.main, made, job.script.split(".", 1)[1], job.inputs, job.outputs)
    results = first_run.root / "results"
    assert first_run.artifacts("results") == Project(tmp_path).artifacts("results")
    assert records_of(results) == records_of(tmp_path / "results")


def test_steps_without_torch_do_not_import_it() -> None:
    modules = sorted(
        {name for _, env, names in rules() if env.stem in ("base", "text") for name in names}
    )
    assert len(modules) > 15
    assert "torch" not in loaded("\n".join(f"import {name}" for name in modules))
