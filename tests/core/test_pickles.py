"""The reader of pickles returns plain data, and refuses everything else in one line and in a short time."""

import collections
import gzip
import os
import pickle
import struct
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from workflow_scripts.core.errors import UserError
from workflow_scripts.core.pickles import as_text, read_pickle

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)
ONE_FILE = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
KEYS = st.one_of(st.text(), st.integers(-(2**60), 2**60), st.binary(), st.tuples(st.text(), st.integers(0, 9)))
VALUES = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(), st.binary(), st.sets(KEYS),
        st.frozensets(KEYS),
    ),
    lambda inner: st.one_of(st.lists(inner), st.tuples(inner), st.tuples(inner, inner), st.dictionaries(KEYS, inner)),
    max_leaves=30,
)  # fmt: skip


def read(folder: Path, raw: bytes) -> Any:
    (folder / "x.pkl").write_bytes(raw)
    return read_pickle(folder / "x.pkl")


def refused(folder: Path, raw: bytes) -> str:
    """The error, which is one line that names the file, and comes soon."""
    begun = time.perf_counter()
    with pytest.raises(UserError) as caught:
        read(folder, raw)
    assert time.perf_counter() - begun < 10
    message = str(caught.value)
    assert message.startswith(str(folder / "x.pkl")) and "\n" not in message and len(message) < 400 + len(str(folder))
    return message


@ONE_FILE
@given(value=VALUES, protocol=st.sampled_from(PROTOCOLS))
def test_plain_data_comes_back(tmp_path: Path, value: Any, protocol: int) -> None:
    assert read(tmp_path, pickle.dumps(value, protocol)) == value


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_numpy_and_ordered_dicts_come_back_plain(tmp_path: Path, protocol: int) -> None:
    grid = np.arange(6, dtype=">i4").reshape(2, 3)
    value = {
        "numbers": [np.int64(-3), np.float32(2.5), np.bool_(True), np.uint8(233), np.str_("é")],
        "arrays": [grid, np.asfortranarray(grid), np.array(["a", "bé"]), np.zeros((0, 3)), np.array([0.5, 1])],
        "number": np.array(7),
        "objects": np.array([["a", 1], ["b", None]], dtype=object),
        "ordered": collections.OrderedDict(b=1, a=2),
        "default": collections.defaultdict(dict, {"a": {0: 1}}),
        "raw": bytearray(b"\xff"),
    }
    found = read(tmp_path, pickle.dumps(value, protocol))
    assert found == {
        "numbers": [-3, 2.5, True, 233, "é"],
        "arrays": [[[0, 1, 2], [3, 4, 5]], [[0, 1, 2], [3, 4, 5]], ["a", "bé"], [], [0.5, 1.0]],
        "number": [7],
        "objects": [["a", 1], ["b", None]],
        "ordered": {"b": 1, "a": 2},
        "default": {"a": {0: 1}},
        "raw": b"\xff",
    }
    assert [type(v) for v in found["numbers"]] == [int, float, bool, int, str]


def test_python_2(tmp_path: Path) -> None:
    """What Python 2's cPickle writes for {'text': 'caf\\xe9', u'é': [1L]}, and its protocol 0."""
    old = b"\x80\x02}q\x01(U\x04textq\x02U\x04caf\xe9q\x03X\x02\x00\x00\x00\xc3\xa9q\x04]q\x05\x8a\x01\x01au."
    assert read(tmp_path, old) == {b"text": b"caf\xe9", "é": [1]}
    assert read(tmp_path, b"(dp1\nS'text'\np2\nS'caf\\xe9\\n'\np3\nsV\\u00e9\np4\n(lp5\nL1L\nas.") == {
        b"text": b"caf\xe9\n", "é": [1],
    }  # fmt: skip
    # numpy.int64(7) of Python 2.
    assert read(
        tmp_path,
        b"\x80\x02cnumpy.core.multiarray\nscalar\nq\x01cnumpy\ndtype\nq\x02U\x02i8q\x03K\x00K\x01\x87q\x04Rq\x05(K\x03"
        b"U\x01<q\x06NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tq\x07bU\x08\x07\x00\x00\x00\x00\x00\x00\x00q\x08\x86q"
        b"\x09Rq\x0a.",
    ) == 7  # fmt: skip
    assert [as_text(b"caf\xe9"), as_text("caf\u00e9".encode()), as_text("x"), as_text(1), as_text("\ud800")] == [
        "café", "café", "x", None, None,
    ]  # fmt: skip


class Runs:
    """Touches a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_nothing_in_a_pickle_runs(tmp_path: Path, protocol: int) -> None:
    raw = pickle.dumps({"image": {0: {"text": Runs(tmp_path / "ran")}}}, protocol)
    assert "would build posix.mkdir" in refused(tmp_path, raw)
    assert not (tmp_path / "ran").exists()
    pickle.loads(raw)
    assert (tmp_path / "ran").exists(), "the test's own pickle must run where it is let"


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (Decimal("1"), "decimal.Decimal"), (os.system, "posix.system"), (Path("x"), "pathlib"), (len, "builtin"),
        (range(3), "builtin"), (1j, "builtin"), pytest.param(object(), "", id="object"),
        (np.dtype("M8[s]"), "numpy type"),
        (np.array(["2020"], "M8[D]"), "numpy type"), (np.zeros(1, "i4,f4"), "numpy type"),
        (collections.Counter("a"), "Counter"),
    ],
    ids=str,
)  # fmt: skip
def test_other_objects_are_named(tmp_path: Path, value: Any, wanted: str, protocol: int) -> None:
    message = refused(tmp_path, pickle.dumps([value], protocol))
    assert "refused, because it would build" in message and wanted in message


@pytest.mark.parametrize(
    ("raw", "wanted"),
    [
        (b"(S'id'\nios\nsystem\n.", "os.system"),
        (b"(cos\nsystem\nS'id'\no.", "os.system"),
        (b"\x80\x02cbuiltins\ngetattr\n.", "builtins.getattr"),
        (b"\x80\x02c__builtin__\neval\nU\x011\x85R.", "__builtin__.eval"),
        (b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x02id\x85R.", "os.system"),
        (b"\x80\x04\x8c\x05numpy\x8c\x10core.os.system\x00x\x93.", "numpy.core.os.system"),
        (b"\x80\x02cnumpy.core.multiarray\n_reconstruct.__globals__\n.", "__globals__"),
        (b"\x80\x02cbuiltins\nset\n)\x81.", "NEWOBJ"),
        (b"\x80\x02cbuiltins\nset\n}U\x01aK\x01sb.", "attributes of"),
        (b"\x80\x02K\x05)R.", "a call of 5"),
        (b"Pid\n.", "PERSID"),
        (b"\x80\x02\x82\x01.", "EXT1"),
        (b"\x80\x05\x97.", "NEXT_BUFFER"),
        (b"\x80\x02c_codecs\nencode\nX\x01\x00\x00\x00aX\x05\x00\x00\x00rot13\x86R.", "rot13"),
    ],
)
def test_every_way_to_an_object_is_closed(tmp_path: Path, raw: bytes, wanted: str) -> None:
    message = refused(tmp_path, raw)
    assert "refused" in message and wanted in message


def doubled(times: int, of: bytes) -> bytes:
    """Tuples of two of the same tuple, as deep as ``times``: as large as 2 ** times for who walks it."""
    return of + b"2\x86" * times


BOMBS = {
    "memo": b"\x80\x02]r\xff\xff\xff\x7f.",
    "memo_text": b"]p99999999999\n.",
    "bytes": b"\x80\x04\x8e" + struct.pack("<Q", 2**62) + b"x.",
    "text": b"\x80\x04\x8d" + struct.pack("<Q", 2**40) + b"x.",
    "bytearray": b"\x80\x05\x96" + struct.pack("<Q", 2**50) + b"x.",
    "zeros": b"\x80\x02c__builtin__\nbytearray\n\x8a\x08" + struct.pack("<q", 2**40) + b"\x85R.",
    "array": b"\x80\x02cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R(K\x01\x8a\x06"
    + struct.pack("<q", 2**40)[:6]
    + b"K\x00\x86cnumpy\ndtype\nU\x02i8\x85R\x89U\x00tb.",
    "hash": b"\x80\x02}" + doubled(60, b"K\x01") + b"K\x01s.",
    "hash_many": b"\x80\x02}(" + doubled(60, b"K\x01") + b"K\x01u.",
    "hash_dict": b"\x80\x02(" + doubled(60, b"K\x01") + b"K\x01d.",
    "hash_set": b"\x80\x04\x8f(" + doubled(60, b"K\x01") + b"\x90.",
    "hash_frozenset": b"\x80\x04(" + doubled(60, b"K\x01") + b"\x91.",
    "copies": b"\x80\x02](" + b"K\x01" * 5_000 + b"e0](c__builtin__\nset\nq\x01](" + b"K\x01" * 5_000 + b"eq\x02\x85R"
    + b"h\x01h\x02\x85R" * 5_000 + b"e.",
    "digits": b"I" + b"9" * 10**6 + b"\n.",
    "marks": b"(" * 10**5,
}  # fmt: skip


@pytest.mark.parametrize("name", BOMBS)
def test_bombs(tmp_path: Path, name: str) -> None:
    if name in ("memo", "memo_text", "array"):
        # A huge place in the memo costs nothing here, nor do a trillion rows of nothing.
        assert read(tmp_path, BOMBS[name]) == []
    else:
        refused(tmp_path, BOMBS[name])


def test_shared_values_stay_shared(tmp_path: Path) -> None:
    found = read(tmp_path, b"\x80\x02" + doubled(60, b"K\x01") + b".")
    assert isinstance(found, tuple) and found[0] is found[1]


SAMPLE = [("182.Yellow/Yellow_0026", 3, "out/x_3_s-1_0.png", np.int64(0)), {"text": "é", "set": {1, 2}}]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_truncated_anywhere(tmp_path: Path, protocol: int) -> None:
    raw = pickle.dumps(SAMPLE, protocol)
    for end in range(len(raw)):
        assert "truncated" in refused(tmp_path, raw[:end])
    assert "3 bytes follow" in refused(tmp_path, raw + b"abc")


@settings(ONE_FILE, max_examples=400)
@given(st.data())
def test_any_bytes_are_read_or_refused_in_one_line(tmp_path: Path, data: st.DataObject) -> None:
    """A changed or random file is read or refused in a line; nothing else comes out."""
    raw = bytearray(pickle.dumps(SAMPLE, data.draw(st.sampled_from(PROTOCOLS))))
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    for content in (bytes(raw), data.draw(st.binary(max_size=40))):
        try:
            read(tmp_path, content)
        except UserError as error:
            assert "\n" not in str(error)


def test_files_that_are_not_pickles(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        read_pickle(tmp_path / "none.pkl")
    with pytest.raises(UserError, match="is a folder"):
        read_pickle(tmp_path)
    (tmp_path / "x.pkl.gz").write_bytes(gzip.compress(pickle.dumps([])))
    with pytest.raises(UserError, match="compressed by gzip; unpack it first"):
        read_pickle(tmp_path / "x.pkl.gz")
    for raw in (b"", b"image_id,caption\n1,a bird\n", b"PK\x03\x04zip", b"\x80\x63."):
        assert "not a pickle" in refused(tmp_path, raw) or "refused" in refused(tmp_path, raw)
