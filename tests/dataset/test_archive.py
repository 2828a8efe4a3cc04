"""Archives cannot write outside their folder, and every error is one line."""

import io
import shutil
import stat
import tarfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.dataset.conftest import jpeg, tar, zipped
from workflow_scripts.core import limits
from workflow_scripts.core.disk import check_space, size_text
from workflow_scripts.core.errors import UserError
from workflow_scripts.dataset.archive import contents, unpack

OUTSIDE = ["../evil", "/evil", "a/../../evil", "..", "a\\..\\..\\evil", "C:/evil", "a/./../evil", "./../evil", "a\nb"]


@pytest.mark.parametrize("name", OUTSIDE)
@pytest.mark.parametrize("pack", [tar, zipped])
def test_an_archive_with_a_path_outside_is_refused_as_a_whole(tmp_path: Path, pack, name: str) -> None:
    archive = pack(tmp_path / "x.archive", {"good": b"1", name: b"2"})
    folder = tmp_path / "deep" / "er"
    folder.mkdir(parents=True)
    with pytest.raises(UserError, match="x.archive: contains .*do not trust it") as error:
        contents(archive)
    assert "\n" not in str(error.value)
    with pytest.raises(UserError, match="do not trust it"):
        unpack(archive, folder, {"good": "good", name: "evil"})
    assert [p for p in tmp_path.rglob("*evil*")] == []


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(["..", ".", "a", "", "b\\..", "/", "\\"]), min_size=1, max_size=4))
def test_nothing_is_written_outside_whatever_the_name(tmp_path: Path, parts: list[str]) -> None:
    name = "/".join(parts)
    for pack in (tar, zipped):
        archive = pack(tmp_path / "x.archive", {name: b"2"})
        folder = tmp_path / "deep" / "folder"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        try:
            for member in contents(archive)[0]:
                unpack(archive, folder, {member: member})
        except UserError:
            pass
        outside = [p for p in tmp_path.rglob("*") if p.is_file() and folder not in p.parents and p != archive]
        assert outside == []


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE])
@pytest.mark.parametrize("link", ["../../etc/passwd", "/etc/passwd", "..", "b/../../.."])
def test_devices_and_links_to_outside_in_a_tar_are_refused(tmp_path: Path, kind: bytes, link: str) -> None:
    path = tmp_path / "x.tar"
    with tarfile.open(path, "w") as archive:
        info = tarfile.TarInfo("a/thing" if link == "../../etc/passwd" else "thing")
        info.type, info.linkname = kind, link
        archive.addfile(info)
    with pytest.raises(UserError, match="device or a link to outside"):
        unpack(path, tmp_path, {info.name: "thing"})
    assert not (tmp_path / "thing").exists()


@pytest.mark.parametrize(
    ("kind", "target"),
    [(tarfile.SYMTYPE, "file"), (tarfile.SYMTYPE, "../a/./file"), (tarfile.SYMTYPE, ".."), (tarfile.LNKTYPE, "a/file")],
)
def test_links_that_stay_inside_are_skipped(tmp_path: Path, kind: bytes, target: str) -> None:
    path = tmp_path / "x.tar"
    with tarfile.open(path, "w") as archive:
        info = tarfile.TarInfo("a/file")
        info.size = 4
        archive.addfile(info, io.BytesIO(b"text"))
        link = tarfile.TarInfo("a/link")
        link.type, link.linkname = kind, target
        archive.addfile(link)
    assert contents(path)[0] == {"a/file": 4}
    with pytest.raises(UserError, match="does not contain 'a/link'"):
        unpack(path, tmp_path, {"a/link": "link"})


def test_links_in_a_zip_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as archive:
        info = zipfile.ZipInfo("thing")
        info.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(info, "/etc/passwd")
    with pytest.raises(UserError, match="device or a link"):
        contents(path)


def test_a_target_outside_is_refused(tmp_path: Path) -> None:
    archive = tar(tmp_path / "x.tgz", {"a": b"1"})
    with pytest.raises(UserError, match="not usable as a path"):
        unpack(archive, tmp_path, {"a": "../a"})


@pytest.mark.parametrize("pack", [tar, zipped])
@pytest.mark.parametrize("fraction", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_a_truncated_archive_is_a_one_line_error(tmp_path: Path, pack, fraction: float) -> None:
    archive = pack(tmp_path / "x.archive", {f"{n}.jpg": jpeg(n) for n in range(30)})
    raw = archive.read_bytes()
    archive.write_bytes(raw[: int(len(raw) * fraction)])
    with pytest.raises(UserError, match="x.archive: truncated, damaged or not an archive .*get it again") as error:
        contents(archive)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("pack", [tar, zipped])
def test_altered_bytes_are_detected(tmp_path: Path, pack) -> None:
    archive = pack(tmp_path / "x.archive", {"a.jpg": jpeg(1, (200, 200))})
    raw = bytearray(archive.read_bytes())
    middle = len(raw) // 2
    raw[middle : middle + 50] = bytes(50)
    archive.write_bytes(raw)
    with pytest.raises(UserError, match="get it again"):
        unpack(archive, tmp_path, {"a.jpg": "a.jpg"})


@pytest.mark.parametrize("mode", ["zip", "w", "w:gz"])
def test_duplicate_members_are_refused(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "x"
    # Both names are of the same file.
    if mode == "zip":
        with zipfile.ZipFile(path, "w") as packed:
            for name in ("a/b.txt", "./a/b.txt"):
                packed.writestr(zipfile.ZipInfo(name), name)
    else:
        with tarfile.open(path, mode) as archive:
            for name in ("a/b.txt", "./a/b.txt"):
                info = tarfile.TarInfo(name)
                info.size = len(name)
                archive.addfile(info, io.BytesIO(name.encode()))
    for read in (contents, lambda path: unpack(path, tmp_path, {"a/b.txt": "b"})):
        with pytest.raises(UserError, match="x: contains 'a/b.txt' twice, perhaps with different content"):
            read(path)


@pytest.mark.parametrize("pack", [tar, zipped])
@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"ARCHIVE_MEMBERS": 2}, "more files than the limit of 2 "),
        ({"ARCHIVE_MEMBER_BYTES": 99_999}, "'1' has 100,000 bytes, more than the limit of 99,999 "),
        ({"ARCHIVE_SMALL_BYTES": 9, "ARCHIVE_RATIO": 0}, "unpacks to more than the limit of 0 .* times its size"),
    ],
)
def test_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack, values: dict[str, int], message: str) -> None:
    archive = pack(tmp_path / "x", {"1": bytes(100_000), "2": bytes(100_000), "3": bytes(100_000)})
    assert len(contents(archive)[0]) == 3
    for name, value in values.items():
        monkeypatch.setattr(limits, name, value)
    with pytest.raises(UserError, match=message):
        contents(archive)


def test_files_that_are_not_archives(tmp_path: Path) -> None:
    (tmp_path / "x.tgz").write_text("<html>Please log in</html>")
    with pytest.raises(UserError, match="not an archive"):
        contents(tmp_path / "x.tgz")
    with pytest.raises(UserError, match="no such archive"):
        contents(tmp_path / "none.tgz")
    with pytest.raises(UserError, match="does not contain 'b'"):
        unpack(tar(tmp_path / "y.tgz", {"a": b""}), tmp_path, {"b": "b"})


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_unpacked_files_are_those_packed(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "x"
    with tarfile.open(path, mode) as archive:
        for name in ("./", "./a/", "./a/b.txt", "./c.txt"):
            info = tarfile.TarInfo(name)
            info.type = tarfile.DIRTYPE if name.endswith("/") else tarfile.REGTYPE
            info.size = 0 if name.endswith("/") else len(name)
            archive.addfile(info, io.BytesIO(name.encode()))
    assert contents(path, lambda name: name == "c.txt") == ({"a/b.txt": 9, "c.txt": 7}, {"c.txt": b"./c.txt"})
    unpack(path, tmp_path / "out", {"a/b.txt": "x/y"})
    assert {p.name: p.read_bytes() for p in (tmp_path / "out").rglob("*") if p.is_file()} == {"y": b"./a/b.txt"}


def test_space(tmp_path: Path) -> None:
    check_space(10, tmp_path, "copying")
    with pytest.raises(UserError, match="copying needs .* are free; free some disk space"):
        check_space(10**18, tmp_path, "copying")
    assert [size_text(n) for n in (0, 999, 1000, 37_103_894, 1_100_000_000)] == [
        "0 bytes", "999 bytes", "1.0 KB", "37.1 MB", "1.1 GB",
    ]  # fmt: skip
