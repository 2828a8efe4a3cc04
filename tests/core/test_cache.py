"""The cache gives back what was put in, to several processes, and survives damage."""

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compclip.core.artifacts import disk
from compclip.core.errors import UserError
from compclip.core.identity.cache import Cache, key
from tests.core.processes import run_at_once, small_files_only

PARTS = st.lists(st.one_of(st.text(max_size=5), st.binary(max_size=5)), max_size=4)


@given(PARTS, PARTS)
def test_keys_differ_where_their_parts_do(one: list, two: list) -> None:
    raw = [[p if isinstance(p, bytes) else p.encode() for p in parts] for parts in (one, two)]
    assert (key(*one) == key(*two)) == (raw[0] == raw[1])


def _fill(path: Path, name: str) -> None:
    with Cache(path) as cache:
        for n in range(40):
            cache.put([(key(name, n), b"1"), (key("shared", n), name.encode())])


def test_put_and_get_by_two_processes_and_until_the_disk_is_full(tmp_path: Path) -> None:
    items = {key("k", n): b"%d" % n for n in range(1200)}
    with Cache(tmp_path / "c.sqlite") as cache:
        cache.put(items.items())
    with Cache(tmp_path / "c.sqlite") as cache:
        assert cache.get([*items, key("other")]) == items
        assert cache.get([]) == {}
        cache.put([(key("k", 1), b"new")])
        assert cache.get([key("k", 1)]) == {key("k", 1): b"new"}
    with Cache(tmp_path / "d.sqlite") as cache:
        cache.put([(key("a"), b"1")])
        with (
            small_files_only(100_000),
            pytest.raises(UserError, match="d.sqlite: .*free disk space"),
        ):
            cache.put((key("b", n), b"x" * 1000) for n in range(3000))
        assert cache.get([key("a"), key("b", 1)]) == {key("a"): b"1"}
        cache.put([(key("b", 1), b"2")])
        assert cache.get([key("b", 1)]) == {key("b", 1): b"2"}
    # Several times, because creating the file is the critical moment.
    for n in range(6):
        path = tmp_path / f"{n}.sqlite"
        run_at_once(_fill, [(path, name) for name in ("a", "b")])
        with Cache(path) as cache:
            assert (
                len(cache.get([key(name, n) for name in ("a", "b", "shared") for n in range(40)]))
                == 120
            )


def test_any_flipped_bit_gives_right_values_or_an_error_of_one_line(tmp_path: Path) -> None:
    """Also in SQLite's own pages: the header, the schema, the trees, the types of values."""
    path = tmp_path / "c.sqlite"
    items = {key(n): b"%d" % n * 20 for n in range(120)}
    with Cache(path) as cache:
        cache.put(items.items())
    whole = path.read_bytes()
    draw, works = random.Random(0), 0
    # All of the header's 100 bytes, and what follows it.
    for place in [*range(100), *(draw.randrange(100, len(whole)) for _ in range(400))]:
        raw = bytearray(whole)
        raw[place] ^= 1 << draw.randrange(8)
        path.write_bytes(raw)
        try:
            with Cache(path) as cache:
                cache.db.execute("PRAGMA synchronous=OFF")
                assert cache.get(list(items)).items() <= items.items(), place
                cache.put([*items.items(), (key("new"), b"1")])
                assert cache.get([key("new")]), place
                works += 1
        except UserError as error:
            assert "c.sqlite: " in str(error) and "\n" not in str(error)
            assert path.exists()
    assert works > 300
    path.write_bytes(b"this is no database" * 100)
    with pytest.raises(
        UserError, match="c.sqlite: file is not a database; .*delete it while nothing runs"
    ):
        Cache(path)


@pytest.mark.parametrize(
    ("mounted", "fault"),
    [
        ("nfs4 rw,vers=4.2,local_lock=none", ""),
        ("nfs rw,vers=3,local_lock=none", ""),
        ("nfs rw,vers=3,nolock,local_lock=all", "nfs"),
        ("cifs rw,nobrl", "cifs"),
        ("cifs rw", ""),
        ("lustre rw,flock", ""),
        ("lustre rw,localflock", "lustre"),
        ("fuse.sshfs rw", "fuse.sshfs"),
        ("ext4 rw,nolock", ""),
    ],
)
def test_a_file_system_without_common_locks_is_refused(
    mounted: str, fault: str, tmp_path: Path, monkeypatch
) -> None:
    """Two hosts that write one file at once without them would damage it."""
    folder = tmp_path / "shared disk"
    mounts = tmp_path / "mounts"
    shown = str(folder).replace(" ", "\\040")
    mounts.write_text(
        f"/dev/a / ext4 rw 0 0\nserver:/ {shown} {mounted} 0 0\nserver:/ {shown}x fuse.sshfs rw 0 "
        "0\n"
    )
    monkeypatch.setattr(disk, "MOUNTS", mounts)
    if not fault:
        Cache(folder / "cache" / "c.sqlite")
        return
    with pytest.raises(
        UserError, match=rf"disk/cache: on a file system \({fault}\) whose .*; set `cache`"
    ):
        Cache(folder / "cache" / "c.sqlite")
