"""The reader of pickles returns plain data, and refuses everything else in one line."""

import collections
import os
import pickle
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compclip.core.errors import UserError
from compclip.core.reading.pickles import read_pickle
from tests.specs import evaluated

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)
KEYS = st.one_of(
    st.text(), st.integers(-(2**60), 2**60), st.binary(), st.tuples(st.text(), st.integers(0, 9))
)
VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False),
        st.text(),
        st.binary(),
        st.sets(KEYS),
        st.frozensets(KEYS),
    ),
    lambda inner: st.one_of(
        st.lists(inner), st.tuples(inner), st.tuples(inner, inner), st.dictionaries(KEYS, inner)
    ),
    max_leaves=30,
)


def read(folder: Path, raw: bytes) -> Any:
    (folder / "x.pkl").write_bytes(raw)
    return read_pickle(folder / "x.pkl")


def refused(folder: Path, raw: bytes) -> str:
    """The error, which names the file."""
    message = evaluated.refused(lambda: read(folder, raw))
    assert message.startswith(str(folder / "x.pkl"))
    return message


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=VALUES, protocol=st.sampled_from(PROTOCOLS))
def test_plain_data_comes_back(tmp_path: Path, value: Any, protocol: int) -> None:
    assert read(tmp_path, pickle.dumps(value, protocol)) == value


class Runs:
    """Makes a folder when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_numpy_comes_back_plain_nothing_runs_and_truncated_pickles_are_refused(
    tmp_path: Path, protocol: int
) -> None:
    grid = np.arange(6, dtype=">i4").reshape(2, 3)
    value = {
        "numbers": [np.int64(-3), np.float32(2.5), np.bool_(True), np.uint8(233), np.str_("é")],
        "arrays": [
            grid,
            np.asfortranarray(grid),
            np.array(["a", "bé"]),
            np.zeros((0, 3)),
            np.array([0.5, 1]),
        ],
        "number": np.array(7),
        "objects": np.array([["a", 1], ["b", None]], dtype=object),
        "ordered": collections.OrderedDict(b=1, a=2),
        "default": collections.defaultdict(dict, {"a": {0: 1}}),
    }
    plain = read(tmp_path, pickle.dumps(value, protocol))
    assert plain == {
        "numbers": [-3, 2.5, True, 233, "é"],
        "arrays": [[[0, 1, 2], [3, 4, 5]], [[0, 1, 2], [3, 4, 5]], ["a", "bé"], [], [0.5, 1.0]],
        "number": [7],
        "objects": [["a", 1], ["b", None]],
        "ordered": {"b": 1, "a": 2},
        "default": {"a": {0: 1}},
    }
    assert read(tmp_path, pickle.dumps(np.int32(1), 2).replace(b"<", b">")) == 2**24, (
        "of a big-endian machine"
    )
    assert [type(v) for v in plain["numbers"]] == [int, float, bool, int, str]
    raw = pickle.dumps({"image": {0: {"text": Runs(tmp_path / "ran")}}}, protocol)
    assert "would build posix.mkdir" in refused(tmp_path, raw)
    assert not (tmp_path / "ran").exists()
    pickle.loads(raw)
    assert (tmp_path / "ran").exists(), "the test's own pickle must run where it is let"
    raw = pickle.dumps([("Yellow_0026", 3, np.int64(0)), {"text": "é", "set": {1, 2}}], protocol)
    assert all(refused(tmp_path, raw[:end]) for end in range(len(raw)))


def test_python_2_and_paths(tmp_path: Path) -> None:
    """What Python 2's cPickle writes for {'text': 'caf\\xe9', u'é': [1L]}, its protocol 0, and
    numpy.int64(7).
    """
    old = b"\x80\x02}q\x01(U\x04textq\x02U\x04caf\xe9q\x03X\x02\x00\x00\x00\xc3\xa9q\x04]q\x05\x8a\x01\x01au."  # noqa: E501
    assert read(tmp_path, old) == {b"text": b"caf\xe9", "é": [1]}
    oldest = b"(dp1\nS'text'\np2\nS'caf\\xe9\\n'\np3\nsV\\u00e9\np4\n(lp5\nL1L\nas."
    assert read(tmp_path, oldest) == {b"text": b"caf\xe9\n", "é": [1]}
    assert (
        read(
            tmp_path,
            b"\x80\x02cnumpy.core.multiarray\nscalar\nq\x01cnumpy\ndtype\nq\x02U\x02i8q\x03K\x00K\x01\x87q\x04Rq\x05(K\x03"
            b"U\x01<q\x06NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tq\x07bU\x08\x07\x00\x00\x00\x00\x00\x00\x00q\x08\x86q"
            b"\x09Rq\x0a.",
        )
        == 7
    )
    with pytest.raises(UserError, match="no such file"):
        read_pickle(tmp_path / "none.pkl")
    with pytest.raises(UserError, match="is a folder"):
        read_pickle(tmp_path)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (Decimal("1"), "decimal.Decimal"),
        (os.system, "posix.system"),
        (Path("x"), "pathlib"),
        (len, "builtin"),
        (range(3), "builtin"),
        (1j, "builtin"),
        pytest.param(object(), "", id="object"),
        (np.dtype("M8[s]"), "numpy type"),
        (np.dtype("i4,f4"), "numpy type"),
        (np.zeros(1, "i4,f4"), "numpy type"),
        (collections.Counter("a"), "Counter"),
    ],
    ids=str,
)
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
        (b"\x80\x02K\x05)R.", "not callable"),
        (b"Pid\n.", "persistent"),
        (b"\x80\x02\x82\x01.", "unregistered extension"),
        (b"", "not a pickle"),
        (b"image_id,caption\n1,a bird\n", "not a pickle"),
    ],
)
def test_every_way_to_an_object_is_closed(tmp_path: Path, raw: bytes, wanted: str) -> None:
    assert wanted in refused(tmp_path, raw)
