"""A sealed file is read only as it was written."""

import random
from pathlib import Path

import pytest

from workflow_scripts.core import sealed as module
from workflow_scripts.core.sealed import is_whole, sealed


@pytest.mark.parametrize("size", [0, 1, 100, 1001])
def test_every_flipped_bit_is_found(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "BYTES_PER_READ", 100)
    path, draw = tmp_path / "sealed.bin", random.Random(0)
    assert not is_whole(path, "made again") and not caplog.text
    with sealed(path) as file:
        file.write(draw.randbytes(size // 2))
        file.write(draw.randbytes(size - size // 2))
    assert is_whole(path, "made again")
    whole = path.read_bytes()
    for _ in range(50):
        raw = bytearray(whole)
        raw[draw.randrange(len(raw))] ^= 1 << draw.randrange(8)
        path.write_bytes(raw)
        assert not is_whole(path, "made again")
    assert caplog.text.count(f"{path}: damaged; made again") == 50
    for shortened in (whole[:-1], whole[1:], b""):
        path.write_bytes(shortened)
        assert not is_whole(path, "made again")
