"""A flipped bit in an artifact is found before the artifact is read."""

import random
from pathlib import Path

import pytest

from compclip.core import digests
from compclip.core.errors import UserError
from compclip.core.sealed import SEAL


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


def test_files_that_appear_and_disappear_and_a_record_that_moves_with_its_folder(tmp_path: Path) -> None:
    path = write(tmp_path, "folder")
    (path / ".DS_Store").touch()
    (tmp_path / "beside").touch()
    digests.check([path, tmp_path / "beside", tmp_path / "none"])
    (path / "d.png").touch()
    (path / "empty").unlink()
    (path / "link").unlink()
    with pytest.raises(UserError, match=r"d.png: added since stage.step wrote it \(and 2 more\)"):
        digests.check([path])
    path = write(tmp_path / "one", "folder")
    first = digests.record_file(path).read_bytes()
    assert first == digests.record_file(write(tmp_path / "two", "folder")).read_bytes()
    moved = (tmp_path / "one").rename(tmp_path / "three") / "folder"
    digests.check([moved])
    (moved / "a.png").unlink()
    with pytest.raises(UserError, match="three/folder/a.png: missing"):
        digests.check([moved])


def test_a_flip_in_a_record_blames_the_record_and_one_without_its_seal_is_refused(tmp_path: Path) -> None:
    """Whoever edits a record by hand, or restores it without its last line, does not make an artifact right."""
    path = write(tmp_path, "file")
    file, rng = digests.record_file(path), random.Random(0)
    whole = file.read_bytes()
    flip(file, rng)
    with pytest.raises(UserError) as error:
        digests.check([path])
    assert str(error.value) == f"{file}: damaged, so {path} cannot be verified; delete both and run again"
    file.write_bytes(whole[:-SEAL])
    with pytest.raises(UserError, match="damaged, so .* cannot be verified"):
        digests.check([path])
