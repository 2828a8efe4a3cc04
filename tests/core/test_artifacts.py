"""Artifacts are whole or absent, the same content gives the same bytes, and too little memory is
named.
"""

import multiprocessing
import os
import platform
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import safetensors.torch
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from compclip.core import tables
from compclip.core.artifacts import parquet
from compclip.core.artifacts.files import (
    atomic,
    atomic_folder,
    read_json,
    safe_id,
    write_json,
    write_text,
)
from compclip.core.artifacts.parquet import (
    empty_table,
    image_ids,
    read_table,
    write_frame,
    write_table,
)
from compclip.core.artifacts.sealed import sealed
from compclip.core.errors import UserError
from compclip.core.reading.records import check_expansion
from compclip.generate.write_manifest import write_manifest
from tests.core.processes import small_files_only

SPLITS = pd.DataFrame(
    {"image_id": [f"image {n * 7919 % 5000}" for n in range(5000)], "split": "train"}
)


@given(st.text(max_size=30))
def test_a_safe_id_stays_in_its_folder(image_id: str) -> None:
    try:
        safe_id(image_id)
    except UserError as error:
        assert "\n" not in str(error)
        return
    folder = Path("/a/b")
    path = Path(str(folder / image_id))
    assert folder in path.parents and ".." not in path.parts and "\0" not in image_id
    # Nothing is changed on the way: different ids are different files.
    assert path.relative_to(folder).as_posix() == image_id


@pytest.mark.parametrize(
    "bad", ["", ".", "..", "../x", "a/../b", "/x", "a//b", "a/", "a\\b", "C:/x", "a\0", "a\nb"]
)
def test_ids_that_climb_are_refused(bad: str) -> None:
    with pytest.raises(UserError, match="image_id"):
        safe_id(bad)
    for good in ("7", "007", "182.Yellow_Warbler/Yellow_Warbler_0026_176337", "...", "é", "a b"):
        assert safe_id(good) == good


def test_a_pipe_or_a_folder_is_not_replaced_by_a_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    for path, fault in [
        ("pipe", "not a regular file"),
        ("link", "not a regular file"),
        (".", "is a folder"),
    ]:
        with pytest.raises(UserError, match=fault):
            write_text("a", tmp_path / path)
    with pytest.raises(UserError, match="not a folder"), atomic_folder(tmp_path / "pipe"):
        pass
    assert (tmp_path / "pipe").is_fifo() and (tmp_path / "link").is_symlink()
    assert {path.name for path in tmp_path.iterdir()} == {"pipe", "link"}


def test_a_file_is_not_a_folder_to_write_to(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="file: not a folder"):
        write_text("a", tmp_path / "file" / "deep" / "a.txt")
    with pytest.raises(UserError, match="file: not a folder"):
        write_manifest(
            tmp_path / "file", pd.DataFrame({"file_name": ["a.png"], "text": ["a red bill"]})
        )


def test_a_failed_write_leaves_the_old_file_or_folder(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_json({"a": 1}, path)
    with pytest.raises(ValueError), atomic(path) as temporary:
        temporary.write_text("half")
        raise ValueError
    assert read_json(path) == {"a": 1}
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(ValueError):
        write_json({"a": float("nan")}, path)
    assert read_json(path) == {"a": 1}
    path.unlink()
    path = tmp_path / "images"
    with atomic_folder(path) as folder:
        (folder / "old").write_text("")
    with pytest.raises(ValueError), atomic_folder(path) as folder:
        (folder / "new").write_text("")
        raise ValueError
    assert [p.name for p in path.iterdir()] == ["old"]
    with atomic_folder(path) as folder:
        (folder / "new").write_text("")
    assert [p.name for p in path.iterdir()] == ["new"]
    assert list(tmp_path.iterdir()) == [path]


def _write_and_wait(folder: Path) -> None:
    with atomic_folder(folder / "images") as images, atomic(folder / "a.json") as temporary:
        (images / "1.png").touch()
        temporary.touch()
        time.sleep(60)


@pytest.mark.parametrize("path", ["/", "", "..", "x/.."])
def test_an_output_without_a_name_is_refused(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="give the path of a file"):
        write_text("x", path)
    assert not list(tmp_path.iterdir())


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    writer = multiprocessing.get_context("spawn").Process(target=_write_and_wait, args=(tmp_path,))
    writer.start()
    while len(list(tmp_path.iterdir())) < 2:
        time.sleep(0.01)
    # While it lives, what it writes is its own.
    write_json(1, tmp_path / "a.json")
    assert len(list(tmp_path.iterdir())) == 3
    writer.kill()
    writer.join()
    elsewhere = [
        tmp_path / f".a.json.not{platform.node()}-{writer.pid}.tmp",
        tmp_path / ".b.json.1-1.tmp",
    ]
    for path in elsewhere:
        path.touch()
    write_json(2, tmp_path / "a.json")
    with atomic_folder(tmp_path / "images") as images:
        (images / "2.png").touch()
    assert set(tmp_path.iterdir()) == {tmp_path / "a.json", tmp_path / "images", *elsewhere}
    assert [path.name for path in (tmp_path / "images").iterdir()] == ["2.png"]


def _write_checkpoint(path: Path) -> None:
    with sealed(path) as file:
        torch.save({"a": torch.zeros(5000)}, file)


def _write_weights(path: Path) -> None:
    with atomic(path) as temporary:
        safetensors.torch.save_file({"a": torch.zeros(5000)}, temporary)


def _write_splits(path: Path) -> None:
    write_table(SPLITS, path, tables.SPLIT)


@pytest.mark.parametrize("write", [_write_splits, _write_checkpoint, _write_weights])
def test_a_disk_that_fills_leaves_nothing(tmp_path: Path, write) -> None:
    path = tmp_path / "artifact"
    with (
        small_files_only(),
        pytest.raises(UserError, match="artifact: not written .*free some disk space") as error,
    ):
        write(path)
    assert "\n" not in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_tables_are_checked_when_written_and_when_read(tmp_path: Path) -> None:
    path = tmp_path / "splits.parquet"
    with pytest.raises(
        UserError,
        match="splits.parquet: column split: row 0: expected one of train, .*, got 'test'",
    ):
        write_table(pd.DataFrame({"image_id": ["a"], "split": ["test"]}), path, tables.SPLIT)
    assert not path.exists()
    twice = pd.DataFrame({"image_id": ["a", "a"], "split": ["train", "train"]})
    with pytest.raises(UserError, match="image_id"):
        write_table(twice, path, tables.SPLIT)
    write_frame(twice, path)
    with pytest.raises(UserError, match="image_id"):
        read_table(path, tables.SPLIT)
    path.write_bytes(b"PAR1 no")
    with pytest.raises(UserError, match="not a readable Parquet file"):
        read_table(path, tables.SPLIT)
    with pytest.raises(FileNotFoundError):
        read_table(tmp_path / "none.parquet", tables.SPLIT)
    write_table(SPLITS, tmp_path / "a", tables.SPLIT)
    write_table(
        SPLITS[["split", "image_id"]].set_index(SPLITS.index + 3), tmp_path / "b", tables.SPLIT
    )
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_table_of_an_earlier_version_names_its_maker(tmp_path: Path) -> None:
    scores = empty_table(tables.MEASUREMENTS)
    write_table(scores, path := tmp_path / "scores.parquet", tables.MEASUREMENTS)
    assert read_table(path, tables.MEASUREMENTS).empty
    version = tables.MEASUREMENTS.version
    for found, maker in ((version - 1, "an earlier"), (version + 1, "a later")):
        scores.attrs["schema_version"] = found
        write_frame(scores, path)
        with pytest.raises(UserError) as error:
            read_table(path, tables.MEASUREMENTS)
        assert str(error.value) == (
            f"{path}: made by {maker} compclip: version {found} of the schema of a table, expected "
            f"{version}; make it again, or use the compclip that wrote it"
        )


@given(st.lists(st.integers(0, 5), max_size=12), st.integers(1, 6))
def test_parts_of_a_table_give_the_bytes_of_the_whole(
    sizes: list[int], rows_per_group: int
) -> None:
    number = sum(sizes)
    change = dict.fromkeys(("noun", "original_adj", "new_adj"), "red") | dict.fromkeys(
        ("start", "end"), 1
    )
    table = pd.DataFrame(
        {"image_id": [f"{row:02d}" for row in range(number)], "caption_id": 0, "pair": "tan_bill"}
    )
    table["exclusive"] = True
    table = table.assign(text="a", swapped_text="b", changes=[[change]] * number)[
        list(tables.SWAPPED.columns)
    ]
    table = table if number else empty_table(tables.SWAPPED)
    ends = [sum(sizes[:place]) for place in range(len(sizes) + 1)]
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet, "ROWS_PER_GROUP", rows_per_group)
        whole, parts = Path(name, "whole"), Path(name, "parts")
        write_table(table, whole, tables.SWAPPED)
        write_table((table[begin:end] for begin, end in pairwise(ends)), parts, tables.SWAPPED)
        assert whole.read_bytes() == parts.read_bytes()
        if number:
            between = read_table(parts, tables.SWAPPED, ["image_id"], ("01", "04"))["image_id"]
            assert [*between] == [row for row in table["image_id"] if "01" <= row <= "04"]
            ids, rows = image_ids(parts)
            assert (ids.to_pylist(), rows) == ([*table["image_id"]], number)


def test_a_strangers_table_with_lists_in_several_groups_of_rows_is_read(tmp_path: Path) -> None:
    """Arrow cannot read dictionaries in lists across groups."""
    words, places = ("noun", "original_adj", "new_adj"), ("start", "end", "new_start", "new_end")
    change = dict.fromkeys(words, "red") | dict.fromkeys(places, 1)
    ids = [f"{number:03d}" for number in range(50)]
    table = pd.DataFrame(
        {"split": "test_seen", "image_id": ids, "caption_id": 0, "adjective": "red", "text": "a"}
    )
    table = table.assign(changes=[[change]] * len(table))[list(tables.VARIANTS.columns)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet, "ROWS_PER_GROUP", 20)
        write_table(table, tmp_path / "variants.parquet", tables.VARIANTS)
    assert pq.read_metadata(tmp_path / "variants.parquet").num_row_groups == 3
    check_expansion(tmp_path / "variants.parquet")
    read = read_table(tmp_path / "variants.parquet", tables.VARIANTS)
    assert [dict(row[0]) for row in read["changes"]] == [change] * len(table)


# Each reads a file whose content takes more than the bytes that remain.
READERS = {
    "table.parquet": "from compclip.core.artifacts.parquet import read_frame as read; "
    "import pyarrow.parquet",
    "own.parquet": "from compclip.core.reading.records import read_records as r; "
    "read = lambda f: r(f, ['image_id', 'text'])",
    "image.png": "from compclip.core.reading.pictures import read_rgb as read",
    "other.png": "from compclip.core.reading.pictures import image_size as read",
    "weights.safetensors": "from compclip.clip.weights import read_weights as read",
}
LIMITED = """
import resource
from itertools import pairwise
from pathlib import Path
from compclip.core.settings.cli import one_line_errors, start_logging
{reader}
start_logging()
used = resource.getpagesize() * int(Path("/proc/self/statm").read_text().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (used + {left}, used + {left}))
with one_line_errors():
    read({file!r})
"""


@pytest.mark.skipif(sys.platform != "linux", reason="sizes of processes are read from /proc")
@pytest.mark.parametrize("name", READERS)
def test_too_little_memory_is_named(name: str, tmp_path: Path) -> None:
    file = tmp_path / name
    draw = np.random.default_rng(0)
    if file.suffix == ".parquet":
        texts = draw.integers(0, 1 << 62, (200_000, 2)).astype(str)
        write_frame(pd.DataFrame(texts, columns=["image_id", "text"]).astype("str"), file)
    elif file.suffix == ".png":
        Image.fromarray(draw.integers(0, 255, (2000, 2000, 3), dtype=np.uint8)).save(
            file, compress_level=1
        )
    else:
        safetensors.torch.save_file({"a": torch.zeros(10_000_000)}, file)
    script = LIMITED.format(reader=READERS[name], left=2_000_000, file=str(file))
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    assert (
        done.stderr
        == f"error: {file}: not enough memory to read it; close other programs and run again\n"
    )
