"""A conda without internet: the one that conda-lock carries along, and a channel of stub packages.

A stub of python runs the interpreter of the tests, which has all packages. So the files of
environments are read, solved and linked, and each rule finds its own, but nothing is downloaded
from conda's channels.
"""

import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from benchmarks.lock import requirement_groups

CONDA_LOCK = "conda-lock==4.0.3"
# What its conda needs, beside what it declares.
CONDA_NEEDS = ("archspec", "conda-package-handling", "distro", "frozendict", "pycosat")
CONDA_NEEDS += ("platformdirs", "pluggy", "tqdm", "truststore", "zstandard")
COMMAND = """#!{python}
import sys
from conda.cli.main import main
# Its processes import this file.
if __name__ == "__main__":
    sys.exit(main())
"""
CONDARC = """
channel_priority: strict
solver: classic
channel_alias: file://{channels}
default_channels: []
add_pip_as_python_dependency: false
"""
SUBFOLDER = "linux-64"


def pinned(package: str) -> str:
    """Return the version of a package in the default run's group."""
    lines = dict(line.split("==") for line in requirement_groups()["run"])
    return lines[package]


def make_environment(folder: Path, packages: Iterable[str]) -> Path:
    """Make a virtual environment with packages; return its folder of programs. Skips without
    PyPI.
    """
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    command = [folder / "bin/pip", "install", "--quiet", *packages]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"not installed from PyPI: {', '.join(packages)}")
    return folder / "bin"


def make_conda(folder: Path, environments: Iterable[Path]) -> Path:
    """Make a conda that can make ``environments``; return the folder of its program, beside which
    is its ``condarc``.
    """
    programs = make_environment(folder / "python", [CONDA_LOCK, *CONDA_NEEDS])
    (packages,) = (folder / "python/lib").glob("python*/site-packages")
    # In its own place, it would only be a library.
    shutil.copytree(packages / "conda_lock/_vendor/conda", packages / "conda")
    for file in (packages / "conda").rglob("*.py"):
        text = file.read_text()
        if "conda_lock._vendor" in text:
            file.write_text(text.replace("conda_lock._vendor.conda", "conda"))
    _write_program(programs / "conda", COMMAND.format(python=programs / "python"))
    activate = f'eval "$({programs}/conda shell.posix activate "$1")"\n'
    (programs / "activate").write_text(activate)
    (folder / "bin").mkdir()
    os.symlink(programs / "conda", folder / "bin/conda")
    (folder / "condarc").write_text(CONDARC.format(channels=folder / "channels"))
    _make_channel(folder / "channels/conda-forge", _versions(environments))
    return folder / "bin"


def _write_program(file: Path, text: str) -> None:
    file.write_text(text)
    file.chmod(0o755)


def _versions(environments: Iterable[Path]) -> dict[str, str]:
    """Return the packages from conda that environments list, each with its version."""
    versions: dict[str, str] = {}
    for file in environments:
        for line in yaml.safe_load(file.read_text())["dependencies"]:
            match = isinstance(line, str) and re.fullmatch(r"([\w.-]+) *=* *([\w.]*)", line)
            if match:
                versions[match[1]] = match[2] or "1.0"
    # The file asks for a series.
    return versions | {"python": f"{versions['python']}.0"}


def _make_channel(channel: Path, versions: Mapping[str, str]) -> None:
    interpreter = f'#!/bin/sh\nexec {sys.executable} "$@"\n'
    pip = f'#!/bin/sh\nexec {sys.executable} -m pip "$@"\n'
    programs = {
        "python": dict.fromkeys(("bin/python", "bin/python3"), interpreter),
        "pip": {"bin/pip": pip},
    }
    packages: dict[str, Any] = {}
    for name, version in versions.items():
        files = programs.get(name, {f"share/stub/{name}": "stub\n"})
        file, description = _make_package(channel / SUBFOLDER, name, version, files)
        packages[file] = description
    for subfolder in ("noarch", SUBFOLDER):
        (channel / subfolder).mkdir(exist_ok=True)
        index = {"info": {"subdir": subfolder}, "repodata_version": 1, "packages": {}}
        if subfolder == SUBFOLDER:
            index["packages"] = packages
        (channel / subfolder / "repodata.json").write_text(json.dumps(index))


def _make_package(
    folder: Path, name: str, version: str, files: Mapping[str, str]
) -> tuple[str, dict[str, Any]]:
    """Write a package; return its name and its description in the channel's index."""
    description = {"name": name, "version": version, "build": "0", "build_number": 0}
    description |= {"depends": [], "subdir": SUBFOLDER}
    paths = []
    for path, text in files.items():
        content = text.encode()
        digest = hashlib.sha256(content).hexdigest()
        paths.append(
            {
                "_path": path,
                "path_type": "hardlink",
                "sha256": digest,
                "size_in_bytes": len(content),
            }
        )
    contents = {
        "info/index.json": json.dumps(description),
        "info/files": "".join(f"{path}\n" for path in files),
        "info/paths.json": json.dumps({"paths_version": 1, "paths": paths}),
        **files,
    }
    folder.mkdir(parents=True, exist_ok=True)
    package = folder / f"{name}-{version}-0.tar.bz2"
    with tarfile.open(package, "w:bz2") as archive:
        for path, text in contents.items():
            member = tarfile.TarInfo(path)
            member.size = len(text.encode())
            member.mode = 0o755 if path.startswith("bin/") else 0o644
            archive.addfile(member, io.BytesIO(text.encode()))
    raw = package.read_bytes()
    return package.name, description | {
        "md5": hashlib.md5(raw).hexdigest(),
        "sha256": hashlib.sha256(raw).hexdigest(),
        "size": len(raw),
    }
