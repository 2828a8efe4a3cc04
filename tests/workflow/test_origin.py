"""An artifact of another config, code or input is not taken for this run's, wherever it was copied to."""

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from snakemake_interface_common.exceptions import WorkflowError

from workflow_scripts.core import digests
from workflow_scripts.core.step import Step
from workflow_scripts.workflow import hooks, origin
from workflow_scripts.workflow.graph import Job
from workflow_scripts.workflow.run import look_ahead

# A chain of three steps: each artifact, its identity and what it is made from.
CHAIN = {"pairs": ("p1", []), "scores": ("s1", ["pairs"]), "table": ("t1", ["scores"])}


def write(place: Path, name: str, identity: str | None, text: str = "") -> None:
    """Write an artifact as its step would, with the record."""
    path = place / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text or f"{name} {identity}")
    inputs = digests.check(place / source for source in CHAIN[name][1])
    digests.record(path, f"stage.{name}", identity, inputs)


def commands(place: Path) -> list[tuple[str, list[str]]]:
    return [(f"python -m x --identity {made} --y", [str(place / name)]) for name, (made, _) in CHAIN.items()]


def strays(place: Path) -> dict[str, str]:
    return {path.name: reason for path, reason in origin.strays(commands(place)).items()}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The folder of a finished run."""
    for name, (made, _) in CHAIN.items():
        write(tmp_path / "run", name, made)
    return tmp_path / "run"


def test_a_run_that_is_moved_or_copied_is_its_own(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "other/place")
    assert strays(run) == strays(tmp_path / "other/place") == strays(run.rename(tmp_path / "moved")) == {}


def test_copies_of_other_settings_are_named_with_what_follows(run: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    for name in CHAIN:
        write(other, name, "s2" if name == "scores" else CHAIN[name][0])
    shutil.copytree(other, run, dirs_exist_ok=True)
    assert strays(run) == {"scores": origin.OTHER, "table": f"made from {run}/scores, which is not of this run"}


def test_an_artifact_made_from_another_input_is_named(run: Path) -> None:
    write(run, "pairs", "p1", "other bytes of the same step")
    assert strays(run) == {
        "scores": f"made from another {run}/pairs",
        "table": f"made from {run}/scores, which is not of this run",
    }
    write(run, "pairs", "p1")
    assert strays(run) == {}
    # What is gone cannot be compared, and a damaged record is named by others.
    (run / "pairs").unlink()
    digests.record_file(run / "scores").write_text("{")
    assert strays(run) == {}


def test_what_the_user_accepts_is_this_runs(run: Path) -> None:
    write(run, "pairs", "p1", "other bytes of the same step")
    write(run, "scores", "s2")
    write(run, "table", "t1")
    origin.forget()
    origin.accept(run / "scores", Step(identity="s1", also_reads=[run / "pairs"]))
    assert strays(run) == {}


def test_old_records_and_steps_run_by_hand_are_unknown(run: Path) -> None:
    write(run, "pairs", None)
    digests.record_file(run / "pairs").write_text('{"step": "x", "files": {".": "0"}}')
    assert strays(run)["pairs"] == origin.UNKNOWN


@pytest.fixture
def ahead(run: Path, monkeypatch: pytest.MonkeyPatch):
    """Return what ``make run`` adds to Snakemake's arguments, which finds ``left`` to do."""
    jobs = []
    for command, (path,) in commands(run):
        rule = Path(path).name
        jobs.append(Job(rule, tuple(str(run / source) for source in CHAIN[rule][1]), (path,), "", command, ""))

    def ahead(*words: str, left: int = 0) -> list[str] | None:
        def planned(config: Path, everything: bool = True) -> list[Job]:
            return jobs if everything else jobs[:left]

        monkeypatch.setattr("workflow_scripts.workflow.run.jobs", planned)
        return look_ahead(Path("config.yaml"), [*words])

    return ahead


def test_a_run_makes_strays_and_what_is_gone_again(run: Path, ahead, caplog) -> None:
    assert ahead() is None and ahead("--forceall") == ["--forceall"] and ahead(left=1) == []
    write(run, "table", "t2")
    table, pairs = str(run / "table"), str(run / "pairs")
    assert ahead() == ["--forcerun", table]
    assert caplog.messages == [f"1 artifact not of this run, first: {table} ({origin.OTHER}); made again"]
    # What Snakemake makes anyway is not named; targets need what they are made from.
    assert ahead(left=3) == [] and ahead("scores") == ["scores"]
    (run / "pairs").unlink()
    assert ahead("scores", "-q") == ["scores", "-q", "--forcerun", pairs]
    assert ahead("--forcerun", "x", "-q") == ["--forcerun", pairs, table, "x", "-q"]
    # Unknown here: what these options change.
    assert ahead("--config", "seed=3") == ["--config", "seed=3"]


def test_unknown_artifacts_are_not_made_again_but_named(run: Path, ahead, caplog) -> None:
    write(run, "pairs", None, "pairs p1")
    assert ahead() is None
    assert f"1 artifact of unknown origin, first: {run}/pairs" in caplog.text and "make verify" in caplog.text


def workflow(run: Path, *needrun: str) -> SimpleNamespace:
    jobs = [SimpleNamespace(shellcmd=command, output=outputs) for command, outputs in commands(run)]
    return SimpleNamespace(dag=SimpleNamespace(jobs=jobs, needrun=lambda job: Path(job.output[0]).name in needrun))


def test_snakemake_by_itself_refuses_to_go_on_from_strays(run: Path) -> None:
    hooks.check_origin(workflow(run, "table"))
    write(run, "scores", "s2")
    hooks.check_origin(workflow(run, "scores", "table"))
    with pytest.raises(WorkflowError, match=f"^{run}/scores: {origin.OTHER}; .* add `--forcerun {run}/scores`"):
        hooks.check_origin(workflow(run, "table"))
