"""One holder at a time, told by name; a holder that dies, however it dies, holds nothing."""

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from filelock import FileLock

from workflow_scripts.core.code import ROOT
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.lock import locked

HOLDER = """
import sys, time
from pathlib import Path
from workflow_scripts.core.lock import locked
with locked(Path(sys.argv[1]), print, "config a.yaml"):
    print("held", flush=True)
    time.sleep(float(sys.argv[2]))
"""
# As steps are: two at once write the same file.
STEP = """
import time
from pathlib import Path
from workflow_scripts.core import cli

from workflow_scripts.core.step import Step

class Slow(Step):
    seconds: float

def main(step: Slow):
    cli.log.info("begun")
    file = step.log.with_name("begun.txt")
    written = file.read_text() + "x" if file.exists() else "x"
    file.write_text(written)
    time.sleep(step.seconds)
    assert file.read_text() == written

cli.run(main)
"""


def python(code: str, *arguments: object, **more: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more,
    )  # fmt: skip


def refuse(holder: str) -> None:
    raise UserError(holder)


def test_the_second_is_told_who_holds_it(tmp_path: Path) -> None:
    path = tmp_path / "run.lock"
    with python(HOLDER, path, 60) as holder:
        assert holder.stdout.readline() == "held\n"
        with (
            pytest.raises(UserError, match=rf"^process {holder.pid} on \S+, since [-\d]+ [:\d]+, config a\.yaml$"),
            locked(path, refuse),
        ):
            raise AssertionError("held twice")
        holder.send_signal(signal.SIGKILL)
    # Its file is there still, and nobody holds it.
    assert path.exists()
    with locked(path, refuse):
        pass
    assert not path.exists()


def test_who_waits_gets_it(tmp_path: Path) -> None:
    path = tmp_path / "run.lock"
    said: list[str] = []
    with python(HOLDER, path, 1) as holder:
        assert holder.stdout.readline() == "held\n"
        with locked(path, said.append):
            assert holder.wait(timeout=10) == 0
    assert len(said) == 1 and said[0].startswith(f"process {holder.pid} on ")
    assert list(tmp_path.iterdir()) == []


def test_a_holder_that_leaves_while_it_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(path: Path, **_: object) -> str:
        raise FileNotFoundError(path)

    path = tmp_path / "run.lock"
    with FileLock(path), monkeypatch.context() as patch:
        patch.setattr(Path, "read_text", gone)
        with pytest.raises(UserError, match="^a process that has just started$"), locked(path, refuse):
            raise AssertionError("held twice")


def test_many_at_once_hold_it_one_after_another(tmp_path: Path) -> None:
    path, shared = tmp_path / "run.lock", tmp_path / "count"
    shared.write_text("0")
    add = f"""
import sys
from pathlib import Path
from workflow_scripts.core import lock
for _ in range(10):
    with lock.locked(Path({str(path)!r}), lambda holder: None):
        value = int(Path({str(shared)!r}).read_text())
        Path({str(shared)!r}).write_text(str(value + 1))
"""
    for process in [python(add) for _ in range(4)]:
        assert process.communicate()[1] == ""
        assert process.returncode == 0
    assert shared.read_text() == "40"


def test_a_step_waits_for_one_that_was_left(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "step.log"
    with python(STEP, "--log", log, "--seconds", 3) as first:
        while not (tmp_path / "logs" / "begun.txt").exists():
            assert first.poll() is None
            time.sleep(0.02)
        # As Snakemake does before it begins a step.
        log.unlink()
        with python(STEP, "--log", log, "--seconds", 0) as second:
            printed = second.communicate()[1].splitlines()
        # It gives the lock away a moment before it ends.
        assert first.wait(timeout=10) == 0
    assert re.fullmatch(rf"process {first.pid} on \S+, since [-\d]+ [:\d]+, is still running this step, .*", printed[0])
    assert printed[1:] == ["begun"] and second.returncode == 0
    assert sorted(path.name for path in log.parent.iterdir()) == ["begun.txt", "step.log"]
