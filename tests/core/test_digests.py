"""A flipped bit in an artifact, its record or a sealed file is found before it is read."""

import random
from pathlib import Path

import pytest

from compclip.core.artifacts import sealed as module
from compclip.core.artifacts.sealed import SEAL, is_whole, read_sealed, sealed
from compclip.core.errors import UserError
from compclip.core.identity import digests
from tests.core.processes import run_at_once


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


def test_files_that_appear_and_disappear_and_a_folder_that_moves(tmp_path: Path) -> None:
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


def test_a_damaged_record_is_blamed(tmp_path: Path) -> None:
    """Whoever edits a record by hand, or restores it without its last line, does not make an
    artifact right.
    """
    path = write(tmp_path, "file")
    file, rng = digests.record_file(path), random.Random(0)
    whole = file.read_bytes()
    flip(file, rng)
    with pytest.raises(UserError) as error:
        digests.check([path])
    assert str(error.value) == f"{file}: damaged, so {path} cannot be verified; make it again"
    file.write_bytes(whole[:-SEAL])
    with pytest.raises(UserError, match="damaged, so .* cannot be verified"):
        digests.check([path])


@pytest.mark.parametrize("size", [0, 1, 100, 1001])
def test_every_flipped_bit_is_found(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "BYTES_PER_READ", 100)
    path, draw = tmp_path / "sealed.bin", random.Random(0)
    assert not is_whole(path, "made again") and not caplog.text
    content = draw.randbytes(size)
    with sealed(path) as file:
        file.write(content[: size // 2])
        file.write(content[size // 2 :])
    assert is_whole(path, "made again") and read_sealed(path) == content
    whole = path.read_bytes()
    damaged = [whole[:-1], whole[1:], b""]
    for bit in draw.sample(range(8 * len(whole)), 50):
        raw = bytearray(whole)
        raw[bit // 8] ^= 1 << bit % 8
        damaged.append(bytes(raw))
    for raw in damaged:
        path.write_bytes(raw)
        assert not is_whole(path, "made again") and read_sealed(path) is None
    assert caplog.text.count(f"{path}: damaged; made again") == len(damaged)


def _write_large(path: Path, byte: bytes) -> None:
    for _ in range(30):
        with sealed(path) as file:
            file.write(byte * 50_000)


def test_two_processes_that_write_a_file_leave_one_of_both(tmp_path: Path) -> None:
    """Sealed files need no locks, which some network file systems lack: a rename replaces the whole
    file.
    """
    path = tmp_path / "checkpoint.pt"
    run_at_once(_write_large, [(path, byte) for byte in (b"a", b"b")])
    assert read_sealed(path) in (b"a" * 50_000, b"b" * 50_000) and list(tmp_path.iterdir()) == [
        path
    ]
