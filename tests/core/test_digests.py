"""A flipped bit in an artifact is found before the artifact is read."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from workflow_scripts.core import digests
from workflow_scripts.core.errors import UserError


def write(place: Path, kind: str) -> Path:
    """Write an artifact, and its record."""
    path = place / kind
    if kind == "folder":
        for name in ("a.png", "b/c.png", "empty"):
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


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_flips_are_found(tmp_path: Path, kind: str) -> None:
    path = write(tmp_path, kind)
    files = [file for file in sorted(path.rglob("*")) if file.is_file() and file.stat().st_size] or [path]
    rng = random.Random(0)
    for _ in range(100):
        file = rng.choice(files)
        before = file.read_bytes()
        flip(file, rng)
        with pytest.raises(UserError, match=f"^{file}: changed since stage.step wrote it; delete {path} and run again"):
            digests.check([path])
        file.write_bytes(before)
        digests.check([path])


def test_files_that_appear_and_disappear(tmp_path: Path) -> None:
    path = write(tmp_path, "folder")
    (path / ".DS_Store").touch()
    (tmp_path / "beside").touch()
    digests.check([path, tmp_path / "beside", tmp_path / "none"])
    (path / "d.png").touch()
    (path / "empty").unlink()
    (path / "link").unlink()
    with pytest.raises(UserError, match=r"d.png: added since stage.step wrote it \(and 2 more files\)"):
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


def test_flips_in_a_record_are_found(tmp_path: Path) -> None:
    path = write(tmp_path, "file")
    file, rng = digests.record_file(path), random.Random(0)
    before, start = file.read_bytes(), file.read_bytes().index(b'"files"')
    for _ in range(100):
        data = bytearray(before)
        data[rng.randrange(start, len(data) - 1)] ^= 1 << rng.randrange(7)
        file.write_bytes(data)
        try:
            digests.check([path])
        except UserError:
            continue
        assert json.loads(data) == json.loads(before), "only white space differs"
