"""YAML and JSON that would be read in two ways is refused; a wrong path names the closest one."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from compclip.core.artifacts.files import read_json
from compclip.core.errors import UserError
from compclip.core.reading.documents import decode, nearest, no_such, parse_json, parse_yaml
from compclip.core.reading.records import read_records
from compclip.divergence.samples import read_lines

# Aliases of aliases, which are not followed again and again.
BOMB = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 40))


read_records_of = partial(read_records, required=["text"])


@pytest.mark.parametrize(
    ("parse", "text", "message"),
    [
        (parse_yaml, "a: 1\nb: {c: 1, c: 2}\n", "line 2: duplicate key 'c'; remove one"),
        (parse_yaml, "a: 1\nb: 2\n'a': 3\n", "line 3: duplicate key 'a'; remove one"),
        (parse_yaml, "- x: 1\n  x: 1\n", "duplicate key 'x'"),
        (parse_yaml, "a: [", "expected the node content"),
        (parse_yaml, "a: 2026-13-45", "month must be in 1..12"),
        (parse_yaml, "[" * 999, "nested too deeply"),
        (parse_yaml, "seed: !!bool maybe", "a value does not fit its tag .'maybe'"),
        (parse_yaml, BOMB, "values, with those of aliases, more than the limit of 100,000"),
        (parse_yaml, "a: " + "1" * 5000, "Exceeds the limit .4300 digits"),
        (parse_json, '{"a": {"b": 1, "b": 1}}', "duplicate key 'b'; remove one"),
        (parse_json, "[" * 100_000, "nested too deeply"),
        (parse_json, "[" + "9" * 5000 + "]", "Exceeds the limit .4300 digits"),
        (parse_json, "{", "line 1 column 2"),
    ],
)
def test_ambiguous_or_invalid(parse: Callable[[str], Any], text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as error:
        parse(text)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("read", [decode, read_json, read_records_of, read_lines])
def test_a_pipe_or_device_is_refused_before_it_is_opened(
    read: Callable[[Path], Any], tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "link.jsonl").symlink_to("/dev/zero")
    for name in ("pipe.jsonl", "link.jsonl"):
        with pytest.raises(UserError, match=f"{name}: not a regular file; give the path of a file"):
            read(tmp_path / name)


def test_merged_keys_and_wrong_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (
        "base: &base {in: &inner {<<: {x: 1}, x: 2}, y: 1}\ntop: {<<: *base, y: 3}\nlast: {<<: "
        "*inner, x: 4}\n"
    )
    assert parse_yaml(text) == {
        "base": {"in": {"x": 2}, "y": 1},
        "top": {"in": {"x": 2}, "y": 3},
        "last": {"x": 4},
    }
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "captions.csv").touch()
    assert no_such("data/caption.csv") == (
        f"data/caption.csv: no such file in {tmp_path}; did you mean data/captions.csv?"
    )
    assert no_such("dat/captions.csv").endswith("did you mean data?")
    assert (
        no_such("x/y.csv")
        == f"x/y.csv: no such file in {tmp_path}; x does not exist either; correct the path"
    )
    assert no_such("data") == "data: is a folder; give the path of a file"
    assert no_such("data/captions.csv", "folder").startswith("data/captions.csv: no such folder")


def test_a_name_is_never_suggested_for_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("images").symlink_to("moved")
    assert no_such("images") == (
        "images: is a link to moved, which does not exist; correct the link"
    )
    assert no_such("images/a.png").endswith("images does not exist either; correct the path")
    assert nearest("seed", ["seed"]) == ""
    assert nearest("seed", ["seed", "seeds"]) == "did you mean seeds? "
