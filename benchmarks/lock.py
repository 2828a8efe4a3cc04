"""Write lock.txt: a version and the hashes of its files for each package that a group of
pyproject.toml needs.

The hashes are of the files that pip may choose on Linux x86-64 with Python 3.11, 3.12 or 3.13;
torch is not in it.
"""

import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from compclip.core.artifacts.files import write_text
from compclip.core.identity.code import ROOT
from compclip.core.settings import cli
from compclip.core.settings.cli import Command

LOCK = ROOT / "lock.txt"
PYTHONS = ("3.11", "3.12", "3.13")
APART = ("torch", "torchvision")
LOCK_HEAD = (
    "# Made by `make lock`: versions and hashes for Linux x86-64, Python 3.11 to 3.13; above each "
    "package, its groups."
    " torch is apart.\n"
)


class Lock(Command):
    """Write lock.txt from the groups of pyproject.toml."""


def requirement_groups() -> dict[str, list[str]]:
    """Return the requirements of each group of pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["dependency-groups"]


def resolve(
    python: str, groups: Iterable[str], versions: dict[str, str]
) -> Iterator[dict[str, Any]]:
    """Yield the packages that ``groups`` need with a version of Python, of these ``versions`` where
    they fit.
    """
    with tempfile.TemporaryDirectory() as folder:
        known, result = Path(folder, "known.txt"), Path(folder, "pylock.toml")
        options = [
            word for name in groups for word in ("--group", f"{ROOT / 'pyproject.toml'}:{name}")
        ]
        options += [word for name in APART for word in ("--no-emit-package", name)]
        options += [
            "--python-version",
            python,
            "--python-platform",
            "x86_64-manylinux_2_28",
            "--no-python-downloads",
        ]
        command = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", *options]
        # uv prefers the versions of an output that exists.
        known.write_text("".join(f"{name}=={version}\n" for name, version in versions.items()))
        subprocess.run([*command, "--output-file", known], check=True, stdout=subprocess.DEVNULL)
        options = [
            "--constraints",
            str(known),
            "--format",
            "pylock.toml",
            "--output-file",
            str(result),
        ]
        subprocess.run([*command, *options], check=True, stdout=subprocess.DEVNULL)
        packages = tomllib.loads(result.read_text(encoding="utf-8"))["packages"]
        # The others are what torch's build for CUDA needs.
        yield from (
            package
            for package in packages
            if not package["name"].startswith(("nvidia-", "cuda-", "triton"))
        )


def main(_: Lock) -> None:
    # What is locked already stays, unless a group asks for something else.
    versions = dict(
        re.findall(r"^([\w.-]+)==(\S+)", LOCK.read_text(encoding="utf-8"), re.MULTILINE)
    )
    hashes: dict[str, set[str]] = {}
    for python in PYTHONS:
        for package in resolve(python, requirement_groups(), versions):
            name = package["name"]
            versions[name] = package["version"]
            files = package.get("wheels") or [package["sdist"]]
            hashes.setdefault(name, set()).update(file["hashes"]["sha256"] for file in files)
    # torch is installed after group run, which has what it needs.
    needs = {
        group: {
            package["name"] for python in PYTHONS for package in resolve(python, [group], versions)
        }
        for group in requirement_groups()
        if group != "torch"
    }
    write_text(lock_text(versions, hashes, needs), LOCK)


def lock_text(
    versions: Mapping[str, str], hashes: Mapping[str, Iterable[str]], needs: Mapping[str, set[str]]
) -> str:
    """Return the content of lock.txt; ``needs``: the packages of each group."""
    entries = []
    for name in sorted(hashes):
        groups = ", ".join(group for group, names in needs.items() if name in names)
        digests = "".join(f" \\\n  --hash=sha256:{digest}" for digest in sorted(hashes[name]))
        entries.append(f"# {groups}\n{name}=={versions[name]}{digests}\n")
    return LOCK_HEAD + "".join(entries)


if __name__ == "__main__":
    cli.run(main)
