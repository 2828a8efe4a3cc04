"""Errors are one line on the screen and a traceback in the log."""

import errno
import sys
from pathlib import Path

import pytest

from compclip.core import cli
from compclip.core.errors import UserError
from compclip.core.step import Step


def run(step, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["step", *arguments])
    try:
        cli.run(step)
    except SystemExit as end:
        return int(end.code or 0)
    return 0


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (UserError("a.csv: line 3: no image_id"), "error: a.csv: line 3: no image_id"),
        (FileNotFoundError(errno.ENOENT, "No such file or directory", "a.csv"), "error: a.csv: No such file"),
        (MemoryError(), "error: out of memory; close other programs"),
        (ValueError("two\nlines"), "error: ValueError: two lines"),
    ],
)
def test_errors(error: Exception, line: str, tmp_path: Path, monkeypatch, capsys) -> None:
    def step(_: Step) -> None:
        raise error

    assert run(step, monkeypatch, "--log", str(tmp_path / "logs" / "a.log")) == 1
    shown = capsys.readouterr()
    assert shown.out == "" and len(shown.err.splitlines()) == 1
    assert shown.err.startswith(line)
    logged = (tmp_path / "logs" / "a.log").read_text()
    assert "Traceback" in logged and type(error).__name__ in logged
    assert ("traceback: " in shown.err) == (not isinstance(error, UserError))


def test_lines_go_to_the_screen_and_the_log(tmp_path: Path, monkeypatch, capsys) -> None:
    def step(_: Step) -> None:
        cli.log.info("one line")

    assert run(step, monkeypatch, "--log", str(tmp_path / "a.log")) == 0
    assert capsys.readouterr().err == "one line\n"
    assert (tmp_path / "a.log").read_text().endswith("INFO one line\n")


def test_an_interrupted_step(monkeypatch, capsys) -> None:
    def step(_: Step) -> None:
        raise KeyboardInterrupt

    assert run(step, monkeypatch) == 130
    assert capsys.readouterr().err == "interrupted; run again to resume\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_log_that_cannot_be_written_does_not_bury_the_error(monkeypatch, capsys) -> None:
    def step(_: Step) -> None:
        raise UserError("a: not written")

    assert run(step, monkeypatch, "--log", "/dev/full") == 1
    assert capsys.readouterr().err == "error: a: not written\n"
