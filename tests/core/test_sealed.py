"""A sealed file is read only as it was written."""

import random
from pathlib import Path

import pytest

from compclip.core import sealed as module
from compclip.core.sealed import is_whole, read_sealed, sealed
from tests.core.processes import run_at_once


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
    """Sealed files need no locks, which some network file systems lack: a rename replaces the whole file."""
    path = tmp_path / "checkpoint.pt"
    run_at_once(_write_large, [(path, byte) for byte in (b"a", b"b")])
    assert read_sealed(path) in (b"a" * 50_000, b"b" * 50_000) and list(tmp_path.iterdir()) == [path]
