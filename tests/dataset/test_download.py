"""Downloads survive broken connections, and are either complete and correct or absent."""

import hashlib
import re
import ssl
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
import trustme

from tests.dataset.conftest import Site
from tests.loopback import Handler, serving
from workflow_scripts.core.errors import UserError
from workflow_scripts.dataset import download
from workflow_scripts.dataset.download import direct, fetch, join

CONTENT = np.random.default_rng(0).bytes(1_000_000)
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@dataclass
class Server:
    """What the test server does: it ends answers after ``cut`` bytes, ``failing`` times."""

    address: str = ""
    authority: Path | None = None
    content: bytes = CONTENT
    etag: str | None = '"one"'
    cut: int = 300_000
    failing: int = 0
    ranges: bool = True
    length: bool = True
    status: int = 200
    asked: list[str | None] = field(default_factory=list)


@pytest.fixture(params=["http"])
def server(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory, request) -> Iterator[Server]:
    """A server on loopback; with the parameter ``https``, of an authority that ``authority.pem`` names."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    state = Server()

    class Archive(Handler):
        def do_GET(self) -> None:
            state.asked.append(self.headers["Range"])
            if state.status != 200 and state.failing:
                state.failing -= 1
                self.send_error(state.status)
                return
            begin, size = 0, len(state.content)
            asked = re.match(r"bytes=(\d+)-", self.headers["Range"] or "")
            if asked and state.ranges and self.headers["If-Range"] in (None, state.etag):
                begin = int(asked[1])
            if asked and state.ranges and begin >= size:
                self.answer(416, headers={"Content-Range": f"bytes */{size}"})
                return
            whole = f"bytes {begin}-{size - 1}/{size}" if begin else None
            length = size - begin if state.length else None
            cut = None
            if state.failing:
                state.failing, cut = state.failing - 1, state.cut
            headers = {"Content-Range": whole, "Content-Length": length, "ETag": state.etag}
            self.answer(206 if begin else 200, state.content[begin:][:cut], headers)
            self.close_connection = True

    context = None
    if request.param == "https":
        authority = trustme.CA()
        state.authority = tmp_path_factory.mktemp("authority") / "authority.pem"
        authority.cert_pem.write_to_path(state.authority)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("127.0.0.1").configure_cert(context)
    with serving(Archive, context) as address:
        state.address = f"{address}/data/birds%201.tgz"
        yield state


def test_a_broken_download_is_resumed(tmp_path: Path, server: Server, lines: list[str]) -> None:
    server.failing = 2
    path = fetch(server.address, tmp_path, SHA256, pause=0)
    assert path.read_bytes() == CONTENT and path.name == "birds_1.tgz"
    assert server.asked == [None, "bytes=300000-", "bytes=600000-"]
    assert any("downloading 1.0 MB" in line and "free" in line for line in lines)
    assert any("interrupted after 300.0 KB" in line for line in lines)
    assert sorted(p.name for p in path.parent.iterdir()) in (["birds_1.tgz"], ["birds_1.tgz", "birds_1.tgz.lock"])


@pytest.mark.parametrize("server", ["https"], indirect=True)
def test_https_is_resumed_and_its_certificate_checked(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("REQUESTS_CA_BUNDLE", raising=False)
    with pytest.raises(UserError, match="certificate is not trusted on this machine"):
        fetch(server.address, tmp_path, SHA256)
    assert server.asked == []
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(server.authority))
    server.failing = 1
    assert fetch(server.address, tmp_path, SHA256, pause=0).read_bytes() == CONTENT
    assert server.asked == [None, "bytes=300000-"]


@pytest.fixture
def part(tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The first 300,000 bytes, kept by a run that gave up."""
    server.failing = 1
    with monkeypatch.context() as patch:
        patch.setattr(download, "ATTEMPTS", 1)
        with pytest.raises(UserError, match="300.0 KB are kept; run again to resume"):
            fetch(server.address, tmp_path, SHA256, pause=0)
    (part,) = tmp_path.rglob("*.part")
    return part


def test_a_second_run_resumes_the_first(tmp_path: Path, server: Server, part: Path) -> None:
    assert not [p for p in tmp_path.rglob("*.tgz")]
    assert fetch(server.address, tmp_path, SHA256, pause=0).read_bytes() == CONTENT
    assert server.asked == [None, "bytes=300000-"]
    # A complete file is not requested again.
    fetch(server.address, tmp_path, SHA256, pause=0)
    assert len(server.asked) == 2


def test_a_changed_file_is_not_mixed_with_its_old_part(tmp_path: Path, server: Server, part: Path) -> None:
    server.content, server.etag = CONTENT[::-1], '"two"'
    assert fetch(server.address, tmp_path, pause=0).read_bytes() == CONTENT[::-1]


@pytest.mark.parametrize("content", [CONTENT, CONTENT + b"more"], ids=["complete", "too long"])
def test_a_part_as_long_as_the_file_or_longer(tmp_path: Path, server: Server, part: Path, content: bytes) -> None:
    part.write_bytes(content)
    assert fetch(server.address, tmp_path, SHA256, pause=0).read_bytes() == CONTENT


def test_two_processes_download_once(tmp_path: Path, server: Server) -> None:
    with ThreadPoolExecutor(2) as pool:
        paths = list(pool.map(lambda _: fetch(server.address, tmp_path, SHA256, pause=0), range(2)))
    assert paths[0] == paths[1] and paths[0].read_bytes() == CONTENT
    assert server.asked == [None]


def test_a_server_that_ignores_ranges_sends_all_again(tmp_path: Path, server: Server, lines: list[str]) -> None:
    server.failing, server.ranges = 1, False
    assert fetch(server.address, tmp_path, SHA256, pause=0).read_bytes() == CONTENT
    assert server.asked == [None, "bytes=300000-"]
    assert sum("does not resume" in line for line in lines) == 1


@pytest.mark.parametrize("etag", [None, 'W/"weak"'])
def test_without_a_version_a_part_is_not_continued(tmp_path: Path, server: Server, etag: str | None) -> None:
    server.failing, server.etag = 1, etag
    assert fetch(server.address, tmp_path, SHA256, pause=0).read_bytes() == CONTENT
    assert server.asked == [None, None]


def test_a_busy_server_is_retried(tmp_path: Path, server: Server) -> None:
    server.status, server.failing = 503, 3
    assert fetch(server.address, tmp_path, SHA256, pause=0).read_bytes() == CONTENT
    assert len(server.asked) == 4


@pytest.mark.parametrize(
    ("status", "requests", "message"),
    [(404, 1, "answers 404 Not Found; check the address"), (503, download.ATTEMPTS, "no progress in 6 attempts")],
)
def test_when_it_gives_up(tmp_path: Path, server: Server, status: int, requests: int, message: str) -> None:
    server.status, server.failing = status, 99
    with pytest.raises(UserError, match=message):
        fetch(server.address, tmp_path, pause=0)
    assert len(server.asked) == requests


def test_no_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with pytest.raises(UserError, match="run again to resume") as error:
        fetch("http://127.0.0.1:9/x.tgz", tmp_path, pause=0)
    assert "\n" not in str(error.value)


def test_a_wrong_digest_removes_the_download(tmp_path: Path, server: Server) -> None:
    with pytest.raises(UserError, match=f"sha256 is {SHA256}, expected 0000"):
        fetch(server.address, tmp_path, "0" * 64, pause=0)
    assert not [p for p in tmp_path.rglob("*.tgz")]


def test_a_damaged_download_without_a_digest_is_repeated(tmp_path: Path, server: Server, lines: list[str]) -> None:
    path = fetch(server.address, tmp_path, pause=0)
    assert fetch(server.address, tmp_path, pause=0) == path and len(server.asked) == 1
    path.write_bytes(b"x" + CONTENT[1:])
    assert fetch(server.address, tmp_path, pause=0).read_bytes() == CONTENT and len(server.asked) == 2
    assert any("birds_1.tgz: damaged (" in line and "downloaded again" in line for line in lines)


def test_unknown_size(tmp_path: Path, server: Server, lines: list[str]) -> None:
    server.length = False
    assert fetch(server.address, tmp_path, SHA256, pause=0).read_bytes() == CONTENT
    assert any("of unknown size" in line for line in lines)


def test_local_files(tmp_path: Path) -> None:
    path = tmp_path / "a b.tgz"
    path.write_bytes(CONTENT)
    for address in (str(path), f"file://{path}", path.as_uri()):
        assert fetch(address, tmp_path / "cache", SHA256) == path
    assert not (tmp_path / "cache").exists()
    with pytest.raises(UserError, match="a b.tgz: sha256 is"):
        fetch(str(path), tmp_path, "0" * 64)
    assert path.exists()
    for address, message in [
        (str(tmp_path / "none"), "no such file"),
        (str(tmp_path), "is a folder"),
        ("file://data/x", "three slashes"),
        ("ftp://host/x", "unknown kind of address"),
    ]:
        with pytest.raises(UserError, match=message):
            fetch(address, tmp_path)


def test_google_drives_confirmation_page(tmp_path: Path, site: Site) -> None:
    site.drive["0B-a_1"] = CONTENT
    address = f"{site.address}/uc?export=download&id=0B-a_1&resourcekey=0-key"
    path = fetch(address, tmp_path, SHA256, pause=0, name="big.tgz")
    assert path.read_bytes() == CONTENT and path.name == "big.tgz"
    assert [p.split("?")[0] for p in site.asked] == ["/uc", "/download", "/download"]
    # What the form omits is kept from the address.
    assert "resourcekey=0-key" in site.asked[-1] and "uuid=5e-%261" in site.asked[-1]


def test_a_confirmed_download_is_resumed(tmp_path: Path, site: Site) -> None:
    site.drive["a"], site.cut = CONTENT, 300_000
    assert fetch(f"{site.address}/uc?id=a", tmp_path, SHA256, pause=0).read_bytes() == CONTENT
    assert [p.split("?")[0] for p in site.asked] == ["/uc", "/download", "/download"] * 2


def test_a_page_instead_of_a_file_is_refused(tmp_path: Path, site: Site) -> None:
    with pytest.raises(UserError, match=r"a page instead of the file \(Google Drive - Quota exceeded\)") as error:
        fetch(f"{site.address}/uc?id=none", tmp_path, pause=0)
    assert "\n" not in str(error.value) and len(site.asked) == 2
    site.drive["a"] = CONTENT
    with pytest.raises(UserError, match=r"a page instead of the file \(Sign in\)"):
        fetch(f"{site.address}/uc?id=a&resourcekey=wrong", tmp_path, pause=0)
    assert not [p for p in tmp_path.rglob("*") if p.is_file() and p.suffix != ".lock"]


@pytest.mark.parametrize(
    "shared",
    [
        "https://drive.google.com/file/d/0B-a_1/view?usp=sharing&resourcekey=0-k",
        "https://drive.google.com/file/u/0/d/0B-a_1/view?resourcekey=0-k",
        "https://drive.google.com/open?id=0B-a_1&resourcekey=0-k",
        "https://docs.google.com/uc?id=0B-a_1&resourcekey=0-k&export=download",
    ],
)
def test_links_shared_by_google_drive(shared: str) -> None:
    assert direct(shared) == "https://drive.google.com/uc?export=download&id=0B-a_1&resourcekey=0-k"
    assert direct(direct(shared)) == direct(shared)
    assert direct(shared.replace("resourcekey", "other")).endswith("&id=0B-a_1")


def test_other_addresses_are_unchanged() -> None:
    others = "https://host/file/d/x/view?id=1", "https://drive.google.com/drive/folders/x", "https://host/a%20b"
    assert tuple(map(direct, others)) == others


def test_join() -> None:
    assert [join(root, "b.tgz") for root in ("https://host/a/", "a", "/")] == [
        "https://host/a/b.tgz",
        "a/b.tgz",
        "/b.tgz",
    ]
    assert all(join("../data", whole) == whole for whole in ("https://host/b.tgz", "/abs/b.tgz"))
