"""A download is complete and has the expected digest, or is absent; an archive cannot write outside
its folder.
"""

import hashlib
import re
import stat
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from compclip.core import limits
from compclip.core.artifacts.disk import check_space, size_text
from compclip.core.errors import UserError
from compclip.core.reading.records import _arrow_batches
from compclip.dataset.archive import contents, unpack
from compclip.dataset.download import RETRIES, FileLocation, fetch, google_drive, place_of
from compclip.dataset.sources.cub import Settings
from tests.dataset.conftest import Site, jpeg, tar, zipped
from tests.specs.evaluated import refused

CONTENT, OTHER = b"the archive", b"another archive"
SUM, OTHER_SUM = (hashlib.sha256(content).hexdigest() for content in (CONTENT, OTHER))


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def get(name: str, cache: Path, sha256: str | None = None, **known: FileLocation) -> Path:
    return fetch(place_of(name, None, sha256, {"x.tgz": known["known"]} if known else {}), cache)


def test_a_download_is_repeated_until_it_is_complete_and_then_kept(
    tmp_path: Path, site: Site
) -> None:
    site.files["/a%20b.tgz"], site.failing = CONTENT, RETRIES
    for _ in range(2):
        path = get(f"{site.address}/a%20b.tgz", tmp_path, SUM)
        assert path.read_bytes() == CONTENT and path.name == "a_b.tgz"
        assert len(site.asked) == RETRIES + 1
    path.write_bytes(OTHER)  # damaged by the disk
    assert get(f"{site.address}/a%20b.tgz", tmp_path, SUM).read_bytes() == CONTENT
    assert files_in(tmp_path) == [path]


@pytest.mark.parametrize(
    ("content", "failing", "sha256", "message"),
    [
        (None, 0, None, "404"),
        (CONTENT, 99, None, "IncompleteRead"),
        (CONTENT, 0, "0" * 64, f"expected {'0' * 64} but got {SUM}"),
        (b"<html><title>Sign in</title>", 0, None, "a page instead of the file"),
    ],
)
def test_a_failed_download_leaves_nothing(
    tmp_path: Path,
    site: Site,
    content: bytes | None,
    failing: int,
    sha256: str | None,
    message: str,
) -> None:
    site.files, site.failing = {"/x.tgz": content} if content else {}, failing
    said = refused(lambda: get(f"{site.address}/x.tgz", tmp_path, sha256))
    assert (
        re.search(f"/x.tgz: .*{message}.*; check the address .*in a browser", said)
        and files_in(tmp_path) == []
    )


def test_local_files_and_published_digests(tmp_path: Path, site: Site) -> None:
    path = tmp_path / "a b.tgz"
    path.write_bytes(CONTENT)
    for address in (str(path), f"file://{path}", path.as_uri()):
        assert get(address, tmp_path / "cache", SUM.upper()) == path
    assert files_in(tmp_path) == [path]
    for address, sha256, message in [
        (str(path), "0" * 64, "a b.tgz: sha256 is"),
        (str(tmp_path / "none"), None, "no such file"),
        (str(tmp_path), None, "is a folder"),
        ("ftp://host/x", None, "ftp://host/x: No connection adapters"),
    ]:
        with pytest.raises(UserError, match=message):
            get(address, tmp_path / "cache", sha256)
    site.files["/x.tgz"] = CONTENT
    assert (
        get(
            "x.tgz", tmp_path / "cache", known=FileLocation(f"{site.address}/x.tgz", SUM)
        ).read_bytes()
        == CONTENT
    )
    wrong = FileLocation(f"{site.address}/x.tgz", OTHER_SUM)
    with pytest.raises(UserError, match=f"expected {OTHER_SUM} but got {SUM}"):
        get("x.tgz", tmp_path / "cache", known=wrong)
    assert get("x.tgz", tmp_path / "cache", SUM.upper(), known=wrong).read_bytes() == CONTENT


def test_names_addresses_and_space(tmp_path: Path) -> None:
    known = {"x.tgz": FileLocation("https://one/1", SUM)}
    places = {
        ("x.tgz", None): ("https://one/1", SUM),
        ("x.tgz", "data/"): ("data/x.tgz", None),
        ("x.tgz", "https://b"): ("https://b/x.tgz", None),
        ("https://a/x", "https://b"): ("https://a/x", None),
        ("/abs/x.tgz", "data"): ("/abs/x.tgz", None),
    }
    for (name, root), expected in places.items():
        place = place_of(name, root, None, known)
        assert (place.address, place.sha256) == expected
    assert Settings(images="x.tgz", captions="y.tgz", captions_sha256=SUM).reads() == [
        Path("x.tgz")
    ]
    assert google_drive("0B-a", "0-k").endswith(
        "download?id=0B-a&export=download&confirm=t&resourcekey=0-k"
    )
    check_space(10, tmp_path, "copying")
    with pytest.raises(UserError, match="copying needs .* are free; free some disk space"):
        check_space(10**18, tmp_path, "copying")
    sizes = [size_text(n) for n in (0, 999, 1000, 37_103_894, 1_100_000_000)]
    assert sizes == ["0 bytes", "999 bytes", "1.0 KB", "37.1 MB", "1.1 GB"]


# Archives


@pytest.mark.parametrize(
    "name", ["../evil", "/evil", "a/./../evil", "./../evil", "a\\..\\..\\evil", "C:/evil", "a\nb"]
)
@pytest.mark.parametrize("pack", [tar, zipped])
def test_an_archive_with_a_path_outside_is_refused_as_a_whole(
    tmp_path: Path, pack: Any, name: str
) -> None:
    archive = pack(tmp_path / "x.archive", {"good": b"1", name: b"2"})
    for read in (
        contents,
        lambda path: unpack(path, tmp_path / "deep" / "er", {"good": "good", name: "evil"}),
    ):
        assert re.search(
            "x.archive: contains .*do not trust it", refused(lambda read=read: read(archive))
        )
    assert [p for p in tmp_path.rglob("*evil*")] == []
    with pytest.raises(UserError, match="not usable as a path"):
        unpack(pack(tmp_path / "y", {"a": b"1"}), tmp_path, {"a": "../a"})


def test_links_and_devices_are_never_made(tmp_path: Path) -> None:
    kinds = [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE]
    with tarfile.open(tmp_path / "x.tar", "w") as archive:
        for number, kind in enumerate(kinds):
            info = tarfile.TarInfo(f"thing{number}")
            info.type, info.linkname = kind, "../../etc/passwd"
            archive.addfile(info)
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as packed:
        link = zipfile.ZipInfo("thing0")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        packed.writestr(link, "/etc/passwd")
    assert contents(tmp_path / "x.tar")[0] == {}
    with pytest.raises(UserError, match="does not contain 'thing0'"):
        unpack(tmp_path / "x.tar", tmp_path / "out", {"thing0": "thing"})
    assert not (tmp_path / "out").exists()
    unpack(tmp_path / "x.zip", tmp_path / "out", {"thing0": "thing"})
    assert (tmp_path / "out" / "thing").read_text() == "/etc/passwd" and not (
        tmp_path / "out" / "thing"
    ).is_symlink()
    with pytest.raises(UserError, match="no such archive"):
        contents(tmp_path / "none.tgz")


@pytest.mark.parametrize("pack", [tar, zipped])
@pytest.mark.parametrize("fraction", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_a_truncated_or_altered_archive_is_a_one_line_error(
    tmp_path: Path, pack: Any, fraction: float
) -> None:
    archive = pack(tmp_path / "x.archive", {f"{n}.jpg": jpeg(n) for n in range(30)})
    raw = archive.read_bytes()
    for content in (raw[: int(len(raw) * fraction)], b"<html>Please log in</html>"):
        archive.write_bytes(content)
        message = refused(lambda: contents(archive))
        assert re.search("x.archive: truncated, damaged or not an archive .*get it again", message)
    middle = len(raw) // 60
    archive.write_bytes(raw[:middle] + bytes(50) + raw[middle + 50 :])
    with pytest.raises(UserError, match="get it again"):
        unpack(archive, tmp_path, {"0.jpg": "0.jpg"})


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_unpacked_files_are_those_packed(tmp_path: Path, mode: str) -> None:
    path, packed = tmp_path / "x", tmp_path / "packed"
    (packed / "a").mkdir(parents=True)
    (packed / "a" / "b.txt").write_bytes(b"./a/b.txt")
    (packed / "c.txt").write_bytes(b"./c.txt")
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        archive.add(packed, ".")
    assert contents(path, lambda name: name == "c.txt") == (
        {"a/b.txt": 9, "c.txt": 7},
        {"c.txt": b"./c.txt"},
    )
    unpack(path, tmp_path / "out", {"a/b.txt": "x/y"})
    assert {p.name: p.read_bytes() for p in files_in(tmp_path / "out")} == {"y": b"./a/b.txt"}


def test_a_file_that_unpacks_to_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = zipped(tmp_path / "x.zip", {"a": bytes(5_000_000)})
    raw = archive.read_bytes()
    archive.write_bytes(raw.replace((5_000_000).to_bytes(4, "little"), (5).to_bytes(4, "little")))
    for read in (
        lambda: contents(archive, lambda name: True),
        lambda: unpack(archive, tmp_path, {"a": "a"}),
    ):
        assert re.search("truncated, damaged", refused(read))
    assert (tmp_path / "a").stat().st_size <= 5
    for pack in (tar, zipped):
        archive = pack(tmp_path / "x", {"1": bytes(100_000), "2": bytes(100_000)})
        monkeypatch.setattr(limits, "ARCHIVE_RATIO", 0)
        monkeypatch.setattr(limits, "ARCHIVE_SMALL_BYTES", 200_000)
        assert len(contents(archive)[0]) == 2
        monkeypatch.setattr(limits, "ARCHIVE_SMALL_BYTES", 199_999)
        with pytest.raises(UserError, match="unpacks to over 0 times its size"):
            contents(archive)
    pd.DataFrame({"caption": ["a red bird " * 999] * 200}).to_parquet(
        tmp_path / "x.parquet", store_schema=False
    )
    with pytest.raises(UserError, match="x.parquet: unpacks to over 0 times its size"):
        [*_arrow_batches("x", tmp_path / "x.parquet")]
