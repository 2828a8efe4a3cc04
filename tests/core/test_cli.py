"""Commands: options follow from a model; errors are one line on the screen."""

import errno
import os
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest
from pydantic import Field

from compclip import __main__ as commands
from compclip.core.errors import UserError
from compclip.core.identity import digests
from compclip.core.identity.code import ROOT
from compclip.core.settings import cli
from compclip.core.settings.cli import Command, Terminated
from compclip.core.settings.section import Section, Seed


class Window(Section):
    low: int = Field(25, ge=0, description="lowest percentile")


class Draw(Command):
    """Draw something."""

    table: Path = Field(Path("t"), description="table.parquet")
    window: Window = Window()
    seed: Seed


class Write(Command):
    """Write something."""

    output: Path | None = Field(None, description="a file")


@pytest.mark.parametrize(
    ("output", "fault"),
    [
        ("pipe", "not a regular file"),
        ("/", "is a folder"),
        ("", "is a folder"),
        ("..", "is a folder"),
        ("folder", "is a folder"),
        ("pipe/a.csv", "not a folder"),
    ],
)
def test_an_output_that_cannot_be_a_file_is_refused_before_the_work(
    output: str, fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    os.mkdir("folder")
    with pytest.raises(UserError, match=fault):
        cli.parse(Write, [f"--output={output}"], "write")
    assert cli.parse(Write, ["--output=new/a.csv"], "write").output == Path("new/a.csv")
    assert (tmp_path / "pipe").is_fifo() and not (tmp_path / "new").exists()


def run(main, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["draw", *arguments])
    try:
        cli.run(main)
    except SystemExit as end:
        return int(end.code or 0)
    return 0


@pytest.mark.parametrize(
    ("error", "line", "code"),
    [
        (UserError("a.csv: line 3: no image_id"), "error: a.csv: line 3: no image_id", 1),
        (
            FileNotFoundError(errno.ENOENT, "No such file or directory", "a"),
            "error: a: No such file or directory",
            1,
        ),
        (
            MemoryError(),
            "error: out of memory; close other programs or use smaller batches in the config",
            1,
        ),
        (
            ImportError("libtorch_cpu.so: failed to map segment from shared object"),
            "error: libtorch_cpu.so: failed to map segment from shared object, probably because "
            "memory ran out;"
            " close other programs and run again",
            1,
        ),
        (ValueError("two\nlines"), "error: ValueError: two lines", 1),
        (KeyboardInterrupt(), "interrupted; run again to resume", 130),
        (Terminated(signal.SIGTERM), "terminated; run again to resume", 143),
        (Terminated(signal.SIGHUP), "terminated; run again to resume", 129),
    ],
)
def test_errors(error: BaseException, line: str, code: int, monkeypatch, capsys) -> None:
    def draw(_: Draw) -> None:
        raise error

    assert run(draw, monkeypatch) == code
    assert capsys.readouterr() == ("", f"{line}\n")


@pytest.mark.parametrize("number", cli.ENDING)
def test_a_signal_ends_a_command_as_ctrl_c_does(
    number: signal.Signals, monkeypatch, capsys
) -> None:
    def draw(_: Draw) -> None:
        os.kill(os.getpid(), number)
        time.sleep(60)

    # Those that run the tests may ignore it, or have a handler of their own.
    before = signal.signal(number, signal.SIG_DFL)
    try:
        assert run(draw, monkeypatch) == 128 + number
        assert signal.getsignal(number) is signal.SIG_DFL
    finally:
        signal.signal(number, before)
    assert capsys.readouterr() == ("", "terminated; run again to resume\n")


def test_a_signal_that_nohup_ignores_stays_ignored(monkeypatch, capsys) -> None:
    def draw(_: Draw) -> None:
        os.kill(os.getpid(), signal.SIGHUP)
        cli.log.info("went on")

    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert run(draw, monkeypatch) == 0
    finally:
        signal.signal(signal.SIGHUP, before)
    assert capsys.readouterr().err == "went on\n"


def test_options_and_a_changed_artifact_that_is_refused(
    tmp_path: Path, monkeypatch, capsys
) -> None:
    def draw(command: Draw) -> None:
        cli.log.info("%d %d", command.window.low, command.seed)

    assert run(draw, monkeypatch, "--window.low", "3", "--seed", "4") == 0
    assert capsys.readouterr().err == "3 4\n"
    assert run(draw, monkeypatch, "--window.low", "-1") == 1
    assert (
        "error: --window.low: Input should be greater than or equal to 0, got '-1'\n"
        in capsys.readouterr().err
    )
    assert run(draw, monkeypatch, "--help") == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "Draw something." in shown and "lowest percentile (default: 25)" in shown
    (tmp_path / "t").write_text("a")
    digests.record(tmp_path / "t", "split.make")
    (tmp_path / "t").write_text("b")

    def read(_: Draw) -> None:
        raise AssertionError("it was read")

    assert run(read, monkeypatch, "--table", str(tmp_path / "t")) == 1
    assert "t: changed since split.make wrote it" in capsys.readouterr().err


def test_each_command_tells_its_options_and_their_list_needs_no_dependency(
    monkeypatch, capsys
) -> None:
    """Before `make` has installed them, or with another Python on the PATH, the help is the
    same.
    """
    shown = [
        subprocess.run(
            [sys.executable, *options, "-m", "compclip", "--help"],
            cwd=ROOT,
            capture_output=True,
            text=True,
        )
        for options in ((), ("-S",))
    ]
    assert shown[0].stdout == shown[1].stdout and "score images by a judge" in shown[1].stdout
    for name in (*commands.COMMANDS, "--help", "unknown"):
        monkeypatch.setattr(
            sys, "argv", ["compclip", name, *["--help"] * (name in commands.COMMANDS)]
        )
        with pytest.raises(SystemExit) as end:
            commands.main()
        printed = capsys.readouterr()
        if name in commands.COMMANDS:
            assert end.value.code == 0 and printed.out.startswith(f"usage: compclip {name} [-h]")
        else:
            assert end.value.code == (0 if name == "--help" else 2)
            assert "usage: compclip COMMAND" in printed.out + printed.err


def test_a_misspelled_command_is_named_with_the_nearest_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["compclip", "rnu"])
    with pytest.raises(SystemExit) as end:
        commands.main()
    last = capsys.readouterr().err.splitlines()[-1]
    assert end.value.code == 2
    assert last == "error: compclip: unknown command 'rnu'; did you mean run?"


def test_the_version_is_that_of_the_package(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["compclip", "--version"])
    commands.main()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert capsys.readouterr().out == f"compclip {project['version']}\n"
