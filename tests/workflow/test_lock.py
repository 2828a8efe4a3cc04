"""One holder at a time, told by name; a holder that dies, however it dies, holds nothing."""

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from compclip.core.code import ROOT
from compclip.core.errors import UserError
from workflow_scripts.lock import locked

HOLDER = """
import sys, time
from pathlib import Path
from workflow_scripts.lock import locked
with locked(Path(sys.argv[1]), print, "config a.yaml"):
    print("held", flush=True)
    time.sleep(60)
"""
# As scripts are: two at once write the same file.
SCRIPT = """
import sys, time
from pathlib import Path
from types import SimpleNamespace
from workflow_scripts.job import run

__file__ = "stage/slow.py"
log = Path(sys.argv[1])
snakemake = SimpleNamespace(input={}, output={}, params={}, wildcards={}, log=[log], threads=1)

def main(job):
    print("begun", file=sys.stderr)
    file = log.with_name("begun.txt")
    written = file.read_text() + "x" if file.exists() else "x"
    file.write_text(written)
    time.sleep(float(sys.argv[2]))
    assert file.read_text() == written

run(main)
"""


def python(code: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def refuse(holder: str) -> None:
    raise UserError(holder)


def test_the_second_is_told_who_holds_it(tmp_path: Path) -> None:
    path = tmp_path / "run.lock"
    with python(HOLDER, path) as holder:
        assert holder.stdout.readline() == "held\n"
        with (
            pytest.raises(UserError, match=rf"^process {holder.pid} on \S+, since [-\d]+ [:\d]+, config a\.yaml$"),
            locked(path, refuse),
        ):
            raise AssertionError("held twice")
        holder.send_signal(signal.SIGKILL)
    # Its file remains, but the lock is free.
    assert path.exists()
    with locked(path, refuse):
        pass
    assert not path.exists()


def test_a_step_waits_for_one_that_was_left(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "step.log"
    with python(SCRIPT, log, 3) as first:
        while not (tmp_path / "logs" / "begun.txt").exists():
            assert first.poll() is None
            time.sleep(0.02)
        # As Snakemake does before it begins a step.
        log.unlink()
        with python(SCRIPT, log, 0) as second:
            printed = second.communicate()[1].splitlines()
        # It gives the lock away a moment before it ends.
        assert first.wait(timeout=10) == 0
    assert re.fullmatch(rf"process {first.pid} on \S+, since [-\d]+ [:\d]+, is still running this step, .*", printed[0])
    assert printed[1:] == ["begun"] and second.returncode == 0
    assert sorted(path.name for path in log.parent.iterdir()) == ["begun.txt", "step.log"]
