"""Fingerprints follow the content of the user's files; the index only saves reading."""

import os
from pathlib import Path

import pytest

from compclip.core.errors import UserError
from compclip.core.identity import fingerprint as module
from compclip.core.identity.fingerprint import fingerprint

HOUR = 3600 * 10**9  # ns


@pytest.fixture
def images(tmp_path: Path) -> Path:
    folder = tmp_path / "images"
    for number in range(20):
        file = folder / f"{number % 3}" / f"{number}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"%06d" % number)
        os.utime(file, (0, 0))  # their change time is recent
    return folder


def test_images_of_equal_size_and_time_are_another_content(images: Path, tmp_path: Path) -> None:
    for cache in (None, tmp_path / "cache"):
        before = fingerprint(images, cache=cache)
        file = images / "0" / "0.png"
        kept, status = file.read_bytes(), file.stat()
        file.write_bytes(bytes(len(kept)))
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
        assert file.stat().st_size == status.st_size and file.stat().st_ino == status.st_ino
        assert fingerprint(images, cache=cache) != before
        file.write_bytes(kept)
        assert fingerprint(images, cache=cache) == before


def test_only_changed_and_young_files_are_read_again(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[str] = []
    read = module._digest
    monkeypatch.setattr(module, "_digest", lambda file: reads.append(file.name) or read(file))
    monkeypatch.setattr(module, "TICK", -HOUR)  # no file is young
    before = fingerprint(images, cache=tmp_path)
    assert len(reads) == 20
    assert fingerprint(images, cache=tmp_path) == before == fingerprint(images) and len(reads) == 40
    reads.clear()
    (images / "0" / "3.png").write_bytes(b"000004")
    (images / "0" / "21.png").write_bytes(b"new")
    (images / "1" / "1.png").unlink()
    after = fingerprint(images, cache=tmp_path)
    assert sorted(reads) == ["21.png", "3.png"]
    assert after == fingerprint(images) != before
    # Within a tick of the file system's clock, a second change leaves size, times and inode as they
    # are.
    monkeypatch.setattr(module, "TICK", HOUR)
    reads.clear()
    fingerprint(images, cache=tmp_path / "young")
    fingerprint(images, cache=tmp_path / "young")
    assert len(reads) == 40


def test_links_are_followed_and_names_have_any_encoding(images: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (images / "linked").symlink_to(other)
    (images / "link.png").symlink_to(other / "a.png")
    (images / "broken.png").symlink_to("nothing")
    found = []
    for content in (b"a", b"b"):
        (other / "a.png").write_bytes(content)
        found.append(fingerprint(images, cache=tmp_path / "cache"))
        assert found[-1] == fingerprint(images)
    assert found[0] != found[1]
    folder = tmp_path / "encoded"
    folder.mkdir()
    with open(os.fsencode(folder) + b"/\xff\n.png", "wb") as file:
        file.write(b"x")
    assert fingerprint(folder, cache=tmp_path) == fingerprint(folder)


def test_bits_lost_below_the_file_system_are_found_by_reading_again(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stand-in for a bad disk: the index takes all times of a file for equal."""
    key = module.key
    monkeypatch.setattr(module, "TICK", -HOUR)
    monkeypatch.setattr(
        module, "key", lambda path, size, modified, changed, inode: key(path, size, inode)
    )
    before = fingerprint(images, cache=tmp_path)
    (images / "1" / "1.png").write_bytes(b"lost!!")
    assert fingerprint(images, cache=tmp_path) == before
    monkeypatch.setenv(module.REREAD, "1")
    for _ in range(2):  # what is wrong is not learned
        with pytest.raises(
            UserError,
            match=r"1/1\.png: 1 of 20 files have other bytes than when they were first read;",
        ):
            fingerprint(images, cache=tmp_path)
    (images / "1" / "1.png").write_bytes(b"%06d" % 1)
    assert fingerprint(images, cache=tmp_path) == before
