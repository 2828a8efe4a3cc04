"""The steps of a small run, called as functions in one process: watching them does not change what they make."""

import contextlib
import importlib
import json
import shlex
import shutil
import sqlite3
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import get_type_hints

import pytest

from benchmarks.digests import digests as digests_of
from tests.clip.test_imports import loaded
from tests.project import SMALL
from tests.workflow.test_envs import rules
from workflow_scripts.core import cli, code, digests, disk, errors, fingerprint, lock, progress
from workflow_scripts.core.code import ROOT, UNDECISIVE
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.step import parse
from workflow_scripts.workflow import origin, verify
from workflow_scripts.workflow.graph import Job, jobs

TINY = SMALL.replace("images: 240, species: 20", "images: 120, species: 12").replace(
    "epochs: 2", "epochs: 1, seeds: [0, 4]"
)


def in_order(planned: list[Job]) -> Iterator[Job]:
    """Yield jobs after those whose outputs they read."""
    pending = list(planned)
    while pending:
        unmade = {output for job in pending for output in job.outputs}
        ready = next(job for job in pending if not unmade & set(job.inputs))
        pending.remove(ready)
        yield ready


def run_chain(folder: Path) -> Path:
    """Run the steps of the small config in the order of the workflow; return the folder."""
    config = folder / "config.yaml"
    config.write_text(TINY.format(results=folder / "results", cache=folder / "cache"))
    for job in in_order(jobs(config)):
        words = shlex.split(job.command)
        module = importlib.import_module(words[2])
        declared = next(iter(get_type_hints(module.main).values()))
        with contextlib.chdir(ROOT):
            cli.run_checked(module.main, parse(declared, words[3:], words[2]), words[2])
    return folder


def records_of(folder: Path) -> dict[str, dict]:
    """Return what the records of a chain hold, by their paths; fingerprints of the user's files are replaced here."""
    files = sorted((folder / "results").rglob(f"{digests.FOLDER}/*"))
    values = {str(file.relative_to(folder)): json.loads(file.read_bytes()) for file in files}
    return {name: {key: value[key] for key in ("step", "inputs", "files")} for name, value in values.items()}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_chain(tmp_path_factory.mktemp("chain"))


def test_nothing_is_made_of_a_split_before_it_is_accepted() -> None:
    planned = jobs(ROOT / "config.yaml")
    reading = {job.rule for job in planned if any(path.endswith("/color/accepted.json") for path in job.inputs)}
    assert reading == {"export", "make_prompts", "train_judge"}
    # The audit's own job does not fail: Snakemake deletes the outputs of one that does.
    (accepting,) = {job.inputs for job in planned if job.rule == "accept_split" and "/color/" in job.outputs[0]}
    assert [Path(path).name for path in accepting] == ["audit.json"]


def test_the_chain_ends_in_the_table_and_the_page(made: Path) -> None:
    files = {name for name, _ in digests_of(made / "results")}
    assert {"table.csv", "comparisons.csv", "report.html", "sketch/color/audit.json"} <= files


@pytest.fixture
def unwatched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace what the undecisive modules do: nothing is logged, counted, locked or checked."""

    def nothing(*_: object, **__: object) -> None:
        return None

    @contextlib.contextmanager
    def free(*_: object, **__: object) -> Iterator[None]:
        yield

    changed: list[tuple[object, str, Callable[..., object]]] = [
        (cli.log, "handle", nothing),
        (disk.shutil, "disk_usage", lambda folder: (0, 0, sys.maxsize)),
        (progress.Progress, "add", nothing),
        (lock, "locked", free),
        (digests, "faults", lambda path, recorded: []),
        (errors.UserError, "__str__", lambda self: "another text"),
    ]
    for owner, name, value in changed:
        monkeypatch.setattr(owner, name, value)
    monkeypatch.setattr(disk, "check_space", nothing)
    monkeypatch.setattr(fingerprint, "fingerprint", nothing)


def test_undecisive_modules_change_no_artifact(made: Path, unwatched: None, tmp_path: Path) -> None:
    covered = {module.__name__ for module in (cli, code, digests, disk, errors, fingerprint, lock, progress)}
    # Declarations of steps are the command lines themselves.
    assert covered | {"workflow_scripts.core.step"} == UNDECISIVE
    first, again = (dict(digests_of(folder / "results")) for folder in (made, run_chain(tmp_path)))
    assert {name for name in first.keys() | again.keys() if first.get(name) != again.get(name)} == set()
    assert records_of(made) == records_of(tmp_path)


def test_verify_names_what_another_config_made_and_a_moved_run_is_as_recorded(made: Path, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere"
    shutil.copytree(made / "results", moved / "results")
    config = moved / "config.yaml"
    config.write_text(TINY.format(results=moved / "results", cache=moved / "cache"))
    planned = [(job.command, job.outputs) for job in jobs(config)]
    assert origin.strays(planned) == {}
    config.write_text(config.read_text().replace("candidates: 10", "candidates: 20"))
    found = origin.strays((job.command, job.outputs) for job in jobs(config))
    names = {str(path.relative_to(moved / "results")): reason for path, reason in found.items()}
    assert names["sketch/color/scores/0/faithful"] == origin.OTHER and "table.md" in names
    assert not {"sketch/color/judges/0", "sketch/color/splits.parquet"} & names.keys()


def test_verify_names_what_is_not_as_recorded(made: Path, capsys, caplog) -> None:
    caplog.set_level("INFO", "compclip")
    config, place = made / "config.yaml", made / "results" / "sketch"
    verify.verify(config)
    assert " files) are as their steps recorded them" in caplog.messages[-1]
    cache = made / "cache" / "pairs" / "occurrences.sqlite"
    with contextlib.closing(sqlite3.connect(cache, isolation_level=None)) as db:
        db.execute("UPDATE entries SET value = x'00' WHERE rowid < 4")
    image = next(file for file in (place / "images").rglob("*.png"))
    image.write_bytes(image.read_bytes()[:-1] + b"x")
    (place / "color" / "ranking.parquet").unlink()
    digests.record_file(place / "pairs.json").unlink()
    digests.record_file(place / "pairs.parquet").write_text("{")
    with pytest.raises(UserError, match="^of .*, 3 damaged or missing, 0 not of this run; make them again: `") as error:
        verify.verify(config)
    assert "--record" not in str(error.value)  # which would accept the damage
    lines = capsys.readouterr().out.splitlines()
    damaged = f"{place}/.digests/pairs.parquet: damaged, so nothing tells whether {place}/pairs.parquet is"
    assert {
        f"{place}/color/ranking.parquet: missing",
        f"{image}: changed",
        f"{place}/pairs.json: not recorded",
        f"{damaged}; delete both and run again",
    } <= set(lines)
    assert f"{cache}: damaged values: 3; they are computed again when needed" in caplog.messages
    assert "no step wrote them: lexicons/adjectives/color.yaml" in caplog.messages[-1]
    (place / "color" / "ranking.parquet").touch()
    verify.record(config)
    verify.verify(config)
    digests.record_file(place / "pairs.json").unlink()
    with pytest.raises(UserError, match="^nothing tells whether 1 of .* `dvc pull`, record them: .* --record`;"):
        verify.verify(config)


def test_steps_without_torch_do_not_import_it() -> None:
    modules = sorted({name for _, env, names in rules() if env.stem in ("base", "text") for name in names})
    assert len(modules) > 15
    assert "torch" not in loaded("\n".join(f"import {name}" for name in modules))
