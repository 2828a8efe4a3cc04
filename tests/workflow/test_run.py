"""What `make run` does about other processes, and what it ends with; what `make verify` finds."""

import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import psutil
import pytest

from compclip.core.errors import UserError
from compclip.core.identity import digests, fingerprint
from compclip.core.identity.cache import Cache
from compclip.core.identity.code import ROOT
from compclip.core.settings.cli import Terminated, ended_by_signals
from compclip.report import summary
from tests.core.test_digests import flip
from tests.project import Project
from workflow_scripts.workflow import run, verify
from workflow_scripts.workflow.run import print_results, run_snakemake


def test_snakemake_ends_a_run_and_keeps_locks_logs_and_timestamps(tmp_path: Path) -> None:
    code = "import pathlib, sys, time; time.sleep(1.5); pathlib.Path(sys.argv[1]).touch()"
    threading.Timer(
        0.5, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT)
    ).start()
    with pytest.raises(KeyboardInterrupt):
        run_snakemake([sys.executable, "-c", code, str(tmp_path / "ended")])
    assert (tmp_path / "ended").exists()
    # None of the places of locks, logs and timestamps is documented.
    shell = "ls .snakemake/locks > locks; mkdir {output}"
    (tmp_path / "Snakefile").write_text(f'rule:\n  output: directory("made")\n  shell: "{shell}"\n')
    subprocess.run(["snakemake", "--cores", "1"], cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "locks").read_text() and not any(tmp_path.glob(".snakemake/locks/*"))
    assert [*tmp_path.glob(".snakemake/log/*.log")] and (
        tmp_path / "made" / ".snakemake_timestamp"
    ).is_file()
    # A run ends as Snakemake does.
    for code, ends in (
        ("0", None),
        ("exit(1)", SystemExit),
        ("os.kill(os.getpid(), 9)", UserError),
    ):
        with pytest.raises(ends) if ends else nullcontext():
            run_snakemake([sys.executable, "-c", f"import os; {code}"])


def test_making_a_release_ends_with_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.yaml").write_text(f"base: {ROOT}/config.yaml\nresults: out\n")
    targets = []
    monkeypatch.setattr(run, "main", lambda command: targets.append(command.snakemake))
    run.make_release(run.Run(config=Path("mine.yaml")))
    assert targets == [["make_release"]] and not capsys.readouterr().out
    Path("out", "release").mkdir(parents=True)
    run.make_release(run.Run(config=Path("mine.yaml")))
    assert capsys.readouterr().out == "release: out/release\n"


def test_the_lock_of_a_run_that_is_alive_is_not_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lock = Path(".snakemake", "locks", "0.input.lock")
    lock.parent.mkdir(parents=True)
    lock.touch()
    code = "from workflow_scripts.workflow.loading import mark_running as m; m(); print(); input()"
    command = [sys.executable, "-c", code]
    environment = {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as alive:
        assert alive.stdout and alive.stdout.readline()
        with pytest.raises(UserError, match="a run is still alive in this folder; wait until"):
            run.unlock(run.Unlock())
        assert lock.exists()
        alive.kill()
    run.unlock(run.Unlock())
    assert not lock.exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_the_run_alone_ends_all_that_it_started(
    tmp_path: Path, number: signal.Signals
) -> None:
    """Snakemake is interrupted, so that it removes its locks; its jobs are terminated."""
    begun = tmp_path / "begun"
    job = (
        f"import os, pathlib, time; pathlib.Path({str(begun)!r}).write_text(str(os.getpid())); "
        "time.sleep(60)"
    )
    code = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {job!r}])"

    def end() -> None:
        while not (begun.exists() and begun.read_text()):
            time.sleep(0.05)
        signal.pthread_kill(threading.main_thread().ident, number)

    # Those that run the tests may ignore it, or have a handler of their own.
    before = signal.signal(number, signal.SIG_DFL)
    try:
        threading.Thread(target=end).start()
        with pytest.raises(Terminated) as ended, ended_by_signals():
            run_snakemake([sys.executable, "-c", code])
    finally:
        signal.signal(number, before)
    assert ended.value.args == (number,)
    assert not psutil.pid_exists(int(begun.read_text()))


def test_results_end_with_their_headlines_and_places(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = {
        "report.html": "",
        "table.md": "# a\n\n" + summary.HEADLINES.format("| 1 |") + "\n## all\n\n| 2 |\n",
        "compun.md": "".join(f"| {row} |\n" for row in range(20)),
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
        digests.record(tmp_path / name, "stage.step")
    print_results(str(tmp_path), Path("this.log"))
    lines = capsys.readouterr().out.replace(f"{tmp_path}/", "").splitlines()
    assert lines == [
        "| 1 |",
        "",
        *(f"| {row} |" for row in range(12)),
        "…",
        "page:  report.html",
        "table: table.md",
        "table: compun.md",
        "log:   this.log",
    ]
    (tmp_path / "table.md").write_text("| 9.2 |")
    with pytest.raises(UserError, match=r"table.md: changed since stage.step wrote it"):
        print_results(str(tmp_path), Path("this.log"))


def test_a_dry_run_shows_snakemakes_jobs_and_no_earlier_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    log = tmp_path / ".snakemake" / "log" / "2026-01-01.snakemake.log"
    log.parent.mkdir(parents=True)
    log.touch()
    (tmp_path / "mine.yaml").write_text("judge: {model: sketch, trainable: ['*']}\n")
    commands: list[list[str]] = []
    monkeypatch.setattr(run, "run_snakemake", commands.append)
    run.main(run.Run(config=Path("mine.yaml"), snakemake=["-n"]))
    assert capsys.readouterr().out == ""
    run.main(run.Run(config=Path("mine.yaml")))
    assert ["--logger" in command for command in commands] == [False, True]


def test_verify_remakes_the_artifact_whose_record_is_damaged(tmp_path: Path) -> None:
    source, made = tmp_path / "source.json", tmp_path / "made.json"
    source.touch()
    made.touch()
    digests.record(source, "stage.first", "a")
    digests.record(made, "stage.second", "a", {source: "0"})
    digests.record_file(source).write_bytes(b"{bad")
    verify.read_once.cache_clear()
    faults = {fault for path in (source, made) for fault in verify.artifact_faults(path)}
    assert [path for _, path in faults] == [source]


flip_bit = partial(flip, rng=random.Random(0))


def remove_record(path: Path) -> None:
    digests.record_file(path).unlink()


def remake(path: Path) -> None:
    """Exchange an artifact, with its record, for another one of the same step."""
    path.write_bytes(path.read_bytes() + b"\n")
    digests.record(path, "stage.step")


@pytest.fixture(scope="module")
def finished(first_run: Project, tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = first_run.fork(tmp_path_factory.mktemp("verified"))
    # Here a working folder: its lexicons would have the names of the workflow's.
    shutil.rmtree(project.root / "lexicons")
    return project


@pytest.mark.parametrize(
    ("name", "damage", "expected"),
    [
        ("sketch/captions.parquet", flip_bit, "{}: changed"),
        ("sketch/color/ranking.parquet", Path.unlink, "{}: missing"),
        (
            "sketch/.digests/pairs.parquet",
            flip_bit,
            "{}: damaged, so results/sketch/pairs.parquet cannot be verified;",
        ),
        (
            "sketch/color/heldout.json",
            remake,
            "results/sketch/color/splits.parquet: made from another {}",
        ),
        (
            "sketch/captions.parquet",
            remove_record,
            "results/sketch/pairs.parquet: made from another {}, or its record",
        ),
    ],
)
def test_verify_names_what_is_not_as_recorded(
    finished: Project,
    name: str,
    damage: Callable[[Path], object],
    expected: str,
    capsys,
    caplog,
    monkeypatch,
) -> None:
    monkeypatch.chdir(finished.root)
    path = Path("results", name)
    kept = {file: file.read_bytes() for file in (path, digests.record_file(path)) if file.is_file()}
    caplog.set_level("INFO", "compclip")
    command = verify.Verify(config=Path("small.yaml"))
    damage(path)
    try:
        verify.read_once.cache_clear()
        fault = r"^small.yaml: \d+ of \d+ artifacts are not as recorded; make them again: `"
        with pytest.raises(UserError, match=fault):
            verify.main(command)
    finally:
        for file, content in kept.items():
            file.write_bytes(content)
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith(expected.format(path))], lines
    verify.read_once.cache_clear()
    verify.main(command)
    assert caplog.messages[-1].endswith(" artifacts are as their steps recorded them")


def test_verify_reads_the_users_files_again_and_needs_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, cache, config = tmp_path / "captions.csv", tmp_path / "cache", tmp_path / "own.yaml"
    file.write_text("image_id,text\na,a red bird\n")
    config.write_text(
        f"dataset: {{source: table, table: {{file: {file}}}}}\ncache: {cache}\nresults: "
        f"{tmp_path}/r\n"
    )
    monkeypatch.setattr(fingerprint, "TICK", -3600 * 10**9)  # also index files that are young
    fingerprint.fingerprint(file, cache=cache)
    verify.read_inputs_again(config)
    # Damage below the file system leaves size and times as they are; here the digest in the index
    # differs instead.
    with Cache(cache / "files.sqlite") as index:
        index.put(
            [
                (mark, b"0" * 64)
                for (mark,) in index.db.execute("SELECT key FROM entries").fetchall()
            ]
        )
    with pytest.raises(
        UserError,
        match="captions.csv: 1 of 1 files have other bytes than when they were first read;",
    ):
        verify.read_inputs_again(config)
    (tmp_path / "none.yaml").write_text(f"results: {tmp_path}/none\n")
    with pytest.raises(UserError, match="none.yaml: not run yet; `make run CONFIG="):
        verify.main(verify.Verify(config=tmp_path / "none.yaml"))
