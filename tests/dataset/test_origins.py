"""A file from any of its places is the expected one."""

import hashlib
from pathlib import Path

import pytest

from tests.dataset.conftest import Site
from workflow_scripts.core.errors import UserError
from workflow_scripts.dataset.origins import Obtained, Published, candidates, obtain, unchecked
from workflow_scripts.workflow.config import load_config

CONTENT, OTHER = b"the archive", b"another archive"
SUM, OTHER_SUM = (hashlib.sha256(c).hexdigest() for c in (CONTENT, OTHER))


def get(names: str | list[str], cache: Path, sha256: str | None = None, **more: object) -> Obtained:
    return obtain(candidates(names, more.get("root"), sha256, more.get("published", {})), cache, pause=0)


def test_a_mirror_is_tried_when_the_first_address_fails(tmp_path: Path, site: Site) -> None:
    site.files["/b/x.tgz"] = CONTENT
    names = [f"{site.address}/{place}/x.tgz" for place in "abc"]
    found = get(names, tmp_path)
    assert found.path.read_bytes() == CONTENT and (found.sha256, found.checked) == (SUM, "recorded")
    assert site.asked == ["/a/x.tgz", "/b/x.tgz"]
    # An earlier download is not requested again, and comes before the first address.
    site.files["/a/x.tgz"] = OTHER
    assert get(names, tmp_path).path == found.path and len(site.asked) == 2


def test_all_addresses_fail(tmp_path: Path, site: Site) -> None:
    with pytest.raises(UserError, match=r"/a: .*404 .*; .*/b: .*404 .*; .*none: no such file;") as error:
        get([f"{site.address}/a", f"{site.address}/b", str(tmp_path / "none")], tmp_path)
    assert "\n" not in str(error.value)


def test_a_local_file_comes_before_a_download(tmp_path: Path, site: Site) -> None:
    (tmp_path / "x.tgz").write_bytes(CONTENT)
    found = get([f"{site.address}/x.tgz", (tmp_path / "x.tgz").as_uri()], tmp_path / "cache")
    assert (found.path, found.checked) == (tmp_path / "x.tgz", "unchecked") and site.asked == []
    found.read_well()
    assert not (tmp_path / "cache").exists()


def test_the_first_downloads_digest_is_required_later(tmp_path: Path, site: Site) -> None:
    site.files["/x.tgz"] = site.files["/mirror.tgz"] = CONTENT
    names = [f"{site.address}/x.tgz", f"{site.address}/mirror.tgz"]
    found = get(names, tmp_path)
    assert not list(tmp_path.rglob("*.sha256"))
    found.read_well()
    (record,) = tmp_path.rglob("*.sha256")
    assert record.read_text() == f"{SUM}  x.tgz\n" and record.parent == found.path.parent
    # The download is lost, and the server has another file by now: the mirror still has the first one.
    found.path.unlink()
    site.files["/x.tgz"] = OTHER
    again = get(names, tmp_path)
    assert again.path.name == "mirror.tgz" and (again.sha256, again.checked) == (SUM, "recorded")
    again.read_well()
    assert [*tmp_path.rglob("*.sha256")] == [record]
    # No mirror has it.
    again.path.unlink()
    site.files["/mirror.tgz"] = OTHER
    message = f"x.tgz: sha256 is {OTHER_SUM}, expected {SUM}: .*remove .*{record.name}, which"
    with pytest.raises(UserError, match=message):
        get(names, tmp_path)
    assert not [p for p in tmp_path.rglob("*.tgz")]
    # The user accepts the new one.
    record.unlink()
    taken = get(names, tmp_path)
    taken.read_well()
    assert taken.sha256 == OTHER_SUM and OTHER_SUM in record.read_text()


def test_a_cached_file_that_was_altered(tmp_path: Path, site: Site) -> None:
    site.files["/x.tgz"] = CONTENT
    found = get(f"{site.address}/x.tgz", tmp_path)
    found.read_well()
    found.path.write_bytes(OTHER)
    with pytest.raises(UserError, match=f"sha256 is {OTHER_SUM}, expected {SUM}.*the download was removed"):
        get(f"{site.address}/x.tgz", tmp_path)
    assert get(f"{site.address}/x.tgz", tmp_path).sha256 == SUM


def test_a_record_without_a_digest(tmp_path: Path, site: Site) -> None:
    site.files["/x.tgz"] = CONTENT
    get(f"{site.address}/x.tgz", tmp_path).read_well()
    (record,) = tmp_path.rglob("*.sha256")
    record.write_text("")
    with pytest.raises(UserError, match="contains no sha256; remove it"):
        get(f"{site.address}/x.tgz", tmp_path)


def test_the_published_digest(tmp_path: Path, site: Site) -> None:
    site.files |= {"/wrong/x.tgz": OTHER, "/right/x.tgz": CONTENT}
    known = {"x.tgz": Published((f"{site.address}/wrong/x.tgz", f"{site.address}/right/x.tgz"), SUM)}
    found = get("x.tgz", tmp_path, published=known)
    assert found.path.name == "x.tgz" and found.summary == {"sha256": SUM, "sum": "published"}
    found.read_well()
    assert not list(tmp_path.rglob("*.sha256"))
    # The config's digest overrides it.
    given = get("x.tgz", tmp_path / "2", OTHER_SUM.upper(), published=known)
    assert given.summary == {"sha256": OTHER_SUM, "sum": "given"}
    only = {"x.tgz": Published((f"{site.address}/wrong/x.tgz",), SUM)}
    with pytest.raises(UserError, match=f"sha256 is {OTHER_SUM}, expected {SUM}: .*set this sha256 in the config"):
        get("x.tgz", tmp_path / "3", published=only)


def test_names_and_addresses(tmp_path: Path) -> None:
    known = {"x.tgz": Published(("https://one/1", "https://two/2"), SUM)}

    def places(*names: str, root: str | None = None) -> list[tuple[str, str]]:
        return [(c.address, c.checked) for c in candidates(list(names), root, None, known)]

    assert places("x.tgz") == [("https://one/1", "published"), ("https://two/2", "published")]
    assert places("x.tgz", "y.tgz", root="data") == [("data/x.tgz", "unchecked"), ("data/y.tgz", "unchecked")]
    assert places("x.tgz", root="https://three/") == [("https://three/x.tgz", "recorded")]
    assert places("y.tgz", "/abs/x.tgz") == [("y.tgz", "unchecked"), ("/abs/x.tgz", "unchecked")]


@pytest.mark.parametrize("value", ["", [], [""], 5, ["a", 5], {"a": "b"}])
def test_names_of_a_wrong_type(value: object) -> None:
    with pytest.raises(UserError, match=r"dataset.cub.images: expected a name or an address, or a list of them"):
        load_config({"dataset": {"cub": {"images": value}}})
    with pytest.raises(UserError, match=r"dataset.flowers.labels: expected a name"):
        load_config({"dataset": {"flowers": {"labels": value}}})


def test_a_file_address_of_another_machine(tmp_path: Path) -> None:
    places = candidates("file://data/x.tgz", None, None, {})
    assert unchecked(places) == [None]
    with pytest.raises(UserError, match="three slashes"):
        obtain(places, tmp_path)


def test_local_files_without_a_digest_are_the_users() -> None:
    assert unchecked(candidates("x.tgz", None, None, {})) == [Path("x.tgz")]
    assert unchecked([*candidates("x.tgz", None, SUM, {}), *candidates("https://host/x", None, None, {})]) == []
