"""How a compclip is installed: its version, and the folder of the files that come with it."""

import tomllib
from importlib.metadata import distributions
from pathlib import Path

# The folder inside an installed package that has what a checkout has beside the package.
INSTALLED_AS = "_workflow"


def shipped_folder(package: Path) -> Path:
    """Return the folder of the Snakefile, the scripts and the lexicons that come with ``package``,
    the folder of the package compclip.
    """
    inside = package / INSTALLED_AS
    return inside if inside.is_dir() else package.parent


def version_in(folder: Path) -> str:
    """Return the version of the package compclip in ``folder``, or "unknown"."""
    # An installed compclip has metadata, but no project file beside it.
    project = folder / "pyproject.toml"
    if project.is_file():
        return str(tomllib.loads(project.read_text(encoding="utf-8"))["project"]["version"])
    installed = distributions(name="compclip", path=[str(folder)])
    return next((package.version for package in installed), "unknown")
