"""Imports point down: stages import shared packages and stages before them in the data flow."""

import ast
from collections.abc import Iterator

import pytest

from workflow_scripts.core.code import PACKAGE, ROOT

# From the bottom to the top.
SHARED = ("core", "text", "clip", "stats", "plot")
STAGES = (
    "dataset", "pairs", "divergence", "split", "judge", "generate", "score", "human", "specs", "compun", "report",
    "workflow",
)  # fmt: skip
LEVEL = {**{name: 1 for name in SHARED}, "core": 0, **{name: n for n, name in enumerate(STAGES, 2)}}
FILES = sorted((ROOT / PACKAGE).glob("*/**/*.py"))


def imported_packages(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield each package of the project that a module imports from, with the statement."""
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module] if node.module != PACKAGE else [f"{PACKAGE}.{alias.name}" for alias in node.names]
        for name in names:
            if name.startswith(f"{PACKAGE}."):
                yield name.split(".")[1], ast.unparse(node)


def upward(package: str, text: str) -> list[str]:
    """Return the imports of a module in ``package`` that do not point down."""
    return [
        statement
        for other, statement in imported_packages(ast.parse(text))
        if other != package and LEVEL[other] >= LEVEL[package] and {other, package} - {*SHARED[1:]}
    ]


def test_every_package_has_a_level() -> None:
    packages = {path.parent.name for path in (ROOT / PACKAGE).glob("*/__init__.py")}
    assert packages == set(LEVEL)


@pytest.mark.parametrize("package", LEVEL)
def test_imports_point_down(package: str) -> None:
    files = [file for file in FILES if file.relative_to(ROOT / PACKAGE).parts[0] == package]
    offending = {str(file.relative_to(ROOT)): found for file in files if (found := upward(package, file.read_text()))}
    assert not offending


@pytest.mark.parametrize(
    ("package", "line"),
    [
        ("core", "from workflow_scripts.text.lexicon import Lexicon"),
        ("split", "from workflow_scripts import judge"),
        ("judge", "def f():\n    import workflow_scripts.score.config"),
    ],
)
def test_an_import_that_points_up_is_named(package: str, line: str) -> None:
    assert upward(package, line)[0] in line
    assert not upward(package, "from workflow_scripts.core.io import atomic")
