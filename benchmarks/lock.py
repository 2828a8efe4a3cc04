"""Write lock.txt: a version and the hashes of its files for each package that a group of pyproject.toml needs.

The hashes are of the files that pip may choose on Linux x86-64 with Python 3.11, 3.12 or 3.13; torch is not in it.
"""

import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from compclip.core import cli
from compclip.core.cli import Command
from compclip.core.code import ROOT
from compclip.io import write_text

LOCK = ROOT / "lock.txt"
PYTHONS = ("3.11", "3.12", "3.13")
APART = ("torch", "torchvision")
LOCK_HEAD = "# Made by `make lock`: versions and hashes for Linux x86-64, Python 3.11 to 3.13. torch is apart.\n"


class Lock(Command):
    """Write lock.txt from the groups of pyproject.toml."""


def requirement_groups() -> dict[str, list[str]]:
    """Return the requirements of each group of pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["dependency-groups"]


def resolve(python: str, versions: dict[str, str]) -> Iterator[dict[str, Any]]:
    """Yield the packages that all groups need with a version of Python, of these ``versions`` where they fit."""
    with tempfile.TemporaryDirectory() as folder:
        known, result = Path(folder, "known.txt"), Path(folder, "pylock.toml")
        options = [word for name in requirement_groups() for word in ("--group", f"{ROOT / 'pyproject.toml'}:{name}")]
        options += [word for name in APART for word in ("--no-emit-package", name)]
        options += ["--python-version", python, "--python-platform", "x86_64-manylinux_2_28", "--no-python-downloads"]
        command = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", *options]
        # uv prefers the versions of an output that exists.
        known.write_text("".join(f"{name}=={version}\n" for name, version in versions.items()))
        subprocess.run([*command, "--output-file", known], check=True, stdout=subprocess.DEVNULL)
        options = ["--constraints", str(known), "--format", "pylock.toml", "--output-file", str(result)]
        subprocess.run([*command, *options], check=True, stdout=subprocess.DEVNULL)
        yield from tomllib.loads(result.read_text(encoding="utf-8"))["packages"]


def main(_: Lock) -> None:
    # What is locked already stays, unless a group asks for something else.
    versions = dict(re.findall(r"^([\w.-]+)==(\S+)", LOCK.read_text(encoding="utf-8"), re.MULTILINE))
    hashes: dict[str, set[str]] = {}
    for python in PYTHONS:
        for package in resolve(python, versions):
            name = package["name"]
            if name.startswith(("nvidia-", "cuda-", "triton")):  # what torch's build for CUDA needs
                continue
            versions[name] = package["version"]
            files = package.get("wheels") or [package["sdist"]]
            hashes.setdefault(name, set()).update(file["hashes"]["sha256"] for file in files)
    lines = (
        f"{name}=={versions[name]}" + "".join(f" \\\n  --hash=sha256:{digest}" for digest in sorted(hashes[name]))
        for name in sorted(hashes)
    )
    write_text(LOCK_HEAD + "\n".join(lines) + "\n", LOCK)


if __name__ == "__main__":
    cli.run(main)
