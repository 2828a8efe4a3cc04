"""What scripts share: errors are a line on the screen and a traceback in the log; a damaged input
is not read.
"""

import errno
import random
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from compclip.core import tables
from compclip.core.artifacts.files import atomic_folder, write_json
from compclip.core.artifacts.parquet import write_table
from compclip.core.identity import digests
from compclip.core.identity.code import ROOT
from compclip.core.log import log
from tests.core.test_digests import flip
from workflow_scripts.job import Job, run_script
from workflow_scripts.root import workflow_version

Run = Callable[..., int]


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the ``main`` of a script as Snakemake does; returns the exit code."""
    script = sys.modules["__main__"]

    def start(
        main: Callable[[Job], None],
        reads: Any = (),
        code: str | None = None,
        **writes,
    ) -> int:
        inputs = Named(reads=[str(path) for path in reads])
        outputs = Named({name: str(path) for name, path in writes.items()})
        given = SimpleNamespace(
            input=inputs,
            output=outputs,
            params=Named({"code": code} if code else {}),
            wildcards=Named(),
            threads=1,
            log=[str(tmp_path / "logs" / "a.log")],
        )
        monkeypatch.setitem(vars(script), "snakemake", given)
        monkeypatch.setitem(vars(script), "__file__", "stage/step.py")
        try:
            run_script(main)
        except SystemExit as end:
            return int(end.code or 0)
        finally:
            log.handlers.clear()
        return 0

    return start


class Named(dict[str, Any]):
    """Snakemake's lists of files, which have names and yield each path."""

    def __iter__(self):
        return iter(
            [
                path
                for value in self.values()
                for path in ([value] if isinstance(value, str) else value)
            ]
        )


def make(job: Job) -> None:
    write_table(
        pd.DataFrame({"image_id": ["a", "b"], "split": "train"}), job.output.table, tables.SPLIT
    )
    write_json({"count": 2}, job.output.summary)
    with atomic_folder(job.output.folder) as folder:
        (folder / "a.png").write_bytes(bytes(range(256)))


def use(_: Job) -> None:
    log.info("used")


def test_an_error_is_one_line_that_names_the_log_also_of_another_library(
    tmp_path: Path, start: Run, monkeypatch, capsys
) -> None:
    def fail(_: Job) -> None:
        raise FileNotFoundError(errno.ENOENT, "No such file", "a.csv")

    assert start(use) == 0 and re.fullmatch(
        r"used\ndone in \d+\.\d CPU seconds\n", capsys.readouterr().err
    )
    assert "INFO used\n" in (tmp_path / "logs" / "a.log").read_text()
    assert start(fail) == 1
    file = tmp_path / "logs" / "a.log"
    assert capsys.readouterr() == ("", f"error: a.csv: No such file (traceback: {file})\n")
    assert "Traceback" in file.read_text() and "FileNotFoundError" in file.read_text()


@pytest.mark.parametrize(("version", "code"), [("0.1", 1), (workflow_version(), 0)])
def test_a_library_elsewhere_must_have_the_version_of_the_workflow(
    tmp_path: Path, start: Run, monkeypatch, capsys, version: str, code: int
) -> None:
    metadata = tmp_path / f"compclip-{version}.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text(f"Metadata-Version: 2.4\nName: compclip\nVersion: {version}\n")
    monkeypatch.setattr("compclip.__file__", f"{tmp_path}/compclip/__init__.py")
    assert start(use) == code
    line = (
        f"{tmp_path}: compclip 0.1, but the workflow in {ROOT} is of version "
        f"{workflow_version()}; install that version here, or uninstall this one\n"
    )
    assert (line in capsys.readouterr().err) == bool(code)


def test_a_flipped_input_is_refused_and_a_record_names_its_inputs(
    tmp_path: Path, start: Run, capsys
) -> None:
    made = {
        "table": tmp_path / "t.parquet",
        "summary": tmp_path / "s.json",
        "folder": tmp_path / "images",
    }
    assert start(make, **made) == 0
    rng = random.Random(0)
    for path in made.values():
        file = path / "a.png" if path.is_dir() else path
        before = file.read_bytes()
        for _ in range(50):
            flip(file, rng)
            assert start(use, [path]) == 1
            shown = capsys.readouterr().err
            assert (
                f"error: {file}: changed since " in shown
                and f"delete {path} and run again" in shown
            )
            file.write_bytes(before)
        assert start(use, [path]) == 0 and capsys.readouterr().err.startswith("used\n")
    names = ("table", "summary", "folder")
    start(make, **{name: tmp_path / "a" / name for name in names}, code="c1")
    recorded = digests.read_record(tmp_path / "a/folder")
    assert recorded and (recorded.step, recorded.code, recorded.inputs) == ("stage.step", "c1", {})
    (tmp_path / "none").touch()
    reads = [tmp_path / "a/folder", tmp_path / "a/table", tmp_path / "none"]
    start(make, reads, **{name: tmp_path / "b" / name for name in names})
    record = digests.read_record(tmp_path / "b/table")
    assert record and record.code is None and sorted(record.inputs) == ["../a/folder", "../a/table"]
    assert record.inputs["../a/folder"] == recorded.digest


HOLDER = """
import sys, time
from pathlib import Path
from workflow_scripts.job import _alone
with _alone(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_step_waits_and_only_the_first_of_several_checks(
    tmp_path: Path, start: Run, monkeypatch, capsys
) -> None:
    """It waits until that ends, even if it is killed."""
    command = [sys.executable, "-c", HOLDER, str(tmp_path / "logs" / "a.log")]
    with subprocess.Popen(command, cwd=ROOT, text=True, stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == "held\n"
        threading.Timer(1, holder.kill).start()
        assert start(lambda _: log.info("killed: %d", holder.wait(10))) == 0
    waiting = rf"process {holder.pid} on \S+ is still running this step, .*; waiting until it ends"
    assert re.match(rf"{waiting}\nkilled: -9\n", capsys.readouterr().err)
    assert [path.name for path in (tmp_path / "logs").iterdir()] == ["a.log"]
    (tmp_path / "file").write_text("a")
    digests.record(tmp_path / "file", "stage.step")
    (tmp_path / "file").write_text("changed")
    assert start(use, [tmp_path / "file"]) == 1
    monkeypatch.setenv("RANK", "1")
    assert start(use, [tmp_path / "file"]) == 0
