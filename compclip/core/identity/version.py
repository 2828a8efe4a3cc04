"""The version of a compclip: of a checkout, or of an installed package."""

import tomllib
from importlib.metadata import distributions
from pathlib import Path


def version_in(folder: Path) -> str:
    """Return the version of the package compclip in ``folder``, or "unknown"."""
    # An installed compclip has metadata, but no project file beside it.
    project = folder / "pyproject.toml"
    if project.is_file():
        return str(tomllib.loads(project.read_text(encoding="utf-8"))["project"]["version"])
    installed = distributions(name="compclip", path=[str(folder)])
    return next((package.version for package in installed), "unknown")
