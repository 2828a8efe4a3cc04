"""Imports point down: stages import shared packages and stages before them in the data flow."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from compclip.core.code import PACKAGE, ROOT

# From the bottom to the top.
SHARED = ("core", "text", "clip", "stats", "plot")
STAGES = (
    "dataset", "pairs", "divergence", "split", "judge", "generate", "score", "human", "specs", "compun", "report",
    "release",
)  # fmt: skip
LEVEL = {**{name: 1 for name in SHARED}, "core": 0, "io": 0, **{name: n for n, name in enumerate(STAGES, 2)}}
FILES = sorted((ROOT / PACKAGE).rglob("*.py"))


def imported_packages(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield each package of the library and of the workflow that a module imports from, with the statement."""
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module] if node.module != PACKAGE else [f"{PACKAGE}.{alias.name}" for alias in node.names]
        for name in names:
            if name.startswith((f"{PACKAGE}.", "workflow_scripts", "snakemake")):
                yield name.removeprefix(f"{PACKAGE}.").split(".")[0], ast.unparse(node)


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_imports_point_down(file: Path) -> None:
    package = file.relative_to(ROOT / PACKAGE).parts[0].removesuffix(".py")
    assert not [
        statement
        for other, statement in imported_packages(ast.parse(file.read_text()))
        if other not in LEVEL
        or other != package
        and LEVEL[other] >= LEVEL.get(package, len(LEVEL))
        and {other, package} - {*SHARED[1:]}
        and {other, package} - {"core", "io"}
    ]


def test_every_package_has_a_level() -> None:
    packages = {path.parent.name for path in (ROOT / PACKAGE).glob("*/__init__.py")}
    assert packages == {*LEVEL} - {"io"}
