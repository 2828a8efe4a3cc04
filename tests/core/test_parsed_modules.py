"""What is kept of parsed modules saves time, and never changes an identity."""

import os
import sys
import time
from pathlib import Path

import pytest

from compclip.core.identity.parsed_modules import TICK, ParsedModule, ParsedModules

Parsed = list[Path]


@pytest.fixture
def module(tmp_path: Path) -> Path:
    """A module that is old enough to be indexed."""
    file = tmp_path / "module.py"
    file.write_text("X = 1\n")
    return file


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let more than a tick pass between what a test writes and what it keeps."""
    now = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: now() + 2 * TICK)


def parsed_by(index: Path, module: Path, version: bytes = b"1") -> bool:
    """Return whether a new process parses the module, and keep it."""
    calls: Parsed = []

    def parse(file: Path) -> ParsedModule:
        calls.append(file)
        return ParsedModule(file.read_text(), ["compclip.core"])

    modules = ParsedModules()
    modules.keep_in(index, version)
    assert modules.get(module, parse) == (module.read_text(), ["compclip.core"])
    modules.save()
    return bool(calls)


def test_a_module_is_parsed_once(module: Path, tmp_path: Path, later: None) -> None:
    index = tmp_path / "cache/modules.json"
    assert [parsed_by(index, module) for _ in range(3)] == [True, False, False]


def test_a_changed_module_is_parsed_again(module: Path, tmp_path: Path, later: None) -> None:
    """Also if it has the size and the modification time of before."""
    index = tmp_path / "modules.json"
    parsed_by(index, module)
    times = module.stat()
    module.write_text("X = 2\n")
    os.utime(module, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert parsed_by(index, module)


def test_a_young_module_is_not_kept(module: Path, tmp_path: Path) -> None:
    """It may change again within a tick of the clock."""
    index = tmp_path / "modules.json"
    assert [parsed_by(index, module) for _ in range(2)] == [True, True]


def test_a_flipped_bit_is_found(module: Path, tmp_path: Path, later: None) -> None:
    index = tmp_path / "modules.json"
    parsed_by(index, module)
    content = bytearray(index.read_bytes())
    content[len(content) // 2] ^= 1
    index.write_bytes(content)
    assert parsed_by(index, module)


@pytest.mark.parametrize("content", ["", "[]", "{", '{"version": "1", "modules": 3}'])
def test_a_damaged_index_is_ignored(
    module: Path, tmp_path: Path, later: None, content: str
) -> None:
    index = tmp_path / "modules.json"
    index.write_text(content)
    assert [parsed_by(index, module) for _ in range(2)] == [True, False]


def test_an_index_of_another_version_is_ignored(
    module: Path, tmp_path: Path, later: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = tmp_path / "modules.json"
    parsed_by(index, module)
    assert parsed_by(index, module, version=b"2")
    monkeypatch.setattr(sys, "version", "4.0")
    assert parsed_by(index, module, version=b"2")


def test_an_index_that_cannot_be_written_is_no_error(
    module: Path, tmp_path: Path, later: None
) -> None:
    (tmp_path / "file").write_text("")
    assert parsed_by(tmp_path / "file" / "modules.json", module)
