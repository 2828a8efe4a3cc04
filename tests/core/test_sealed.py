"""A sealed file is read only as it was written."""

import random
from pathlib import Path

import pytest

from compclip.core import sealed as module
from compclip.core.sealed import is_whole, read_sealed, sealed


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
