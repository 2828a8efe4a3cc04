"""A flipped bit in an artifact is found before the artifact is read."""

import logging
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pandas as pd
import pytest

from compclip import io
from compclip.core import cli, digests, tables
from compclip.core.errors import UserError
from compclip.core.step import Input, Output, Step


class Make(Step):
    table: Output
    summary: Output
    folder: Output


class Use(Step):
    tables: list[Input] = []
    folder: Input | None = None


def make(step: Make) -> None:
    io.write_table(pd.DataFrame({"image_id": ["a", "b"], "split": "train"}), step.table, tables.SPLIT)
    io.write_json({"count": 2}, step.summary)
    with io.atomic_folder(step.folder) as folder:
        (folder / "a.png").write_bytes(bytes(range(256)))


def use(step: Use) -> None:
    cli.log.info("used")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Callable[..., str]]:
    """Run a step with a command line and return what it prints."""

    def run(main: Callable, **paths: object) -> str:
        monkeypatch.setattr(
            sys, "argv", ["", *(word for name, path in paths.items() for word in (f"--{name}", str(path)))]
        )
        with suppress(SystemExit):
            cli.run(main)
        return capsys.readouterr().err

    yield run
    cli.log.handlers.clear()
    logging.raiseExceptions = True


@pytest.mark.parametrize("role", ["tables", "folder", "also-reads"])
@pytest.mark.parametrize("name", ["t.parquet", "s.json", "images"])
def test_a_step_refuses_a_flipped_input(tmp_path: Path, run, role: str, name: str) -> None:
    path, rng = tmp_path / name, random.Random(0)
    run(make, table=tmp_path / "t.parquet", summary=tmp_path / "s.json", folder=tmp_path / "images")
    file = path / "a.png" if name == "images" else path
    for _ in range(100 if role == "tables" else 3):
        before = file.read_bytes()
        flip(file, rng)
        shown = run(use, **{role: path if role == "folder" else f'["{path}"]'})
        assert shown.startswith(f"error: {file}: changed since ") and f"delete {path} and run again" in shown
        file.write_bytes(before)
    assert run(use, folder=path) == "used\n"


def test_what_has_no_record_is_not_checked(tmp_path: Path, run) -> None:
    (tmp_path / "mine").touch()
    assert run(use, folder=tmp_path / "mine") == "used\n"


def test_only_the_first_of_several_processes_checks_and_records(tmp_path: Path, run, monkeypatch) -> None:
    path = write(tmp_path, "file")
    path.write_text("changed")
    monkeypatch.setenv("RANK", "1")
    assert run(use, folder=path) == "used\n"


def write(place: Path, kind: str) -> Path:
    """Write an artifact, and its record."""
    path = place / kind
    if kind == "folder":
        for name in ("a.png", "b/c.png", "b/.d.png", "empty"):
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_bytes(random.Random(name).randbytes(200 if name != "empty" else 0))
        (path / "link").symlink_to("b")
    else:
        path.write_bytes(b"some bytes" * 20)
    digests.record(path, "stage.step")
    return path


def flip(file: Path, rng: random.Random) -> None:
    """Flip one bit of a file."""
    data = bytearray(file.read_bytes())
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    file.write_bytes(data)


def test_files_that_appear_and_disappear(tmp_path: Path) -> None:
    path = write(tmp_path, "folder")
    (path / ".DS_Store").touch()
    (tmp_path / "beside").touch()
    digests.check([path, tmp_path / "beside", tmp_path / "none"])
    (path / "d.png").touch()
    (path / "empty").unlink()
    (path / "link").unlink()
    with pytest.raises(UserError, match=r"d.png: added since stage.step wrote it \(and 2 more\)"):
        digests.check([path])


def test_a_record_moves_with_its_folder_and_is_the_same_again(tmp_path: Path) -> None:
    path = write(tmp_path / "one", "folder")
    first = digests.record_file(path).read_bytes()
    assert first == digests.record_file(write(tmp_path / "two", "folder")).read_bytes()
    moved = (tmp_path / "one").rename(tmp_path / "three") / "folder"
    digests.check([moved])
    (moved / "a.png").unlink()
    with pytest.raises(UserError, match="three/folder/a.png: missing"):
        digests.check([moved])


def test_flips_in_a_record_are_found_and_blame_the_record(tmp_path: Path) -> None:
    path = write(tmp_path, "file")
    file, rng = digests.record_file(path), random.Random(0)
    before = file.read_bytes()
    for _ in range(100):
        file.write_bytes(before)
        flip(file, rng)
        with pytest.raises(UserError) as error:
            digests.check([path])
        assert str(error.value) == f"{file}: damaged, so {path} cannot be verified; delete both and run again"
    # A record without its seal is refused too.
    file.write_bytes(before.rpartition(b"\n")[0])
    with pytest.raises(UserError, match="cannot be verified"):
        digests.check([path])


def test_a_record_says_what_its_artifact_was_made_of(tmp_path: Path, run) -> None:
    run(make, table=tmp_path / "a/t.parquet", summary=tmp_path / "a/s.json", folder=tmp_path / "images", code="c1")
    recorded = digests.read_record(tmp_path / "images")
    assert recorded and recorded.code == "c1" and recorded.inputs == {}
    (tmp_path / "none").touch()
    inputs = f'["{tmp_path}/images", "{tmp_path}/a/t.parquet", "{tmp_path}/none"]'
    run(make, **{"also-reads": inputs}, **{name: tmp_path / "b" / name for name in ("table", "summary", "folder")})
    made = digests.read_record(tmp_path / "b/table")
    assert made and made.code is None and sorted(made.inputs) == ["../a/t.parquet", "../images"]
    assert made.inputs["../images"] == recorded.digest
