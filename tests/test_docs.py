"""The documentation names files, tests and links that exist."""

import ast
import importlib
import re
from pathlib import Path
from typing import get_type_hints

import pytest

from workflow_scripts.core.code import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FOLDERS = "benchmarks|docs|envs|lexicons|presets|profiles|rules|schemas|tests|workflow_scripts"
# Paths in text or code, without those that have a placeholder.
NAMED = re.compile(rf"(?<![\w./<>-])((?:{FOLDERS})/[\w./-]*[\w/])(?![\w<{{*])(?:::(test_\w+))?")
# Files that a user makes.
USERS = {"README.md": ["lexicons/nouns/mine.yaml", "lexicons/nouns/mine.yaml"]}
# Packages that are commands.
COMMANDS = {"benchmarks.speed": "benchmarks.speed.__main__"}
LINK = re.compile(r"\]\((?!\w+:)([^)\s]+)\)")


def functions(file: Path) -> set[str]:
    return {node.name for node in ast.parse(file.read_text()).body if isinstance(node, ast.FunctionDef)}


def headings(file: Path) -> set[str]:
    """The anchors of a page, as GitHub makes them."""
    lines = re.findall(r"^#+ (.*)$", file.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", line.lower()).replace(" ", "-") for line in lines}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_named_files_exist(page: Path) -> None:
    named = NAMED.findall(page.read_text())
    assert [path for path, _ in named if not (ROOT / path).exists()] == USERS.get(page.name, [])
    tests = [(path, test) for path, test in named if test]
    assert [f"{path}::{test}" for path, test in tests if test not in functions(ROOT / path)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_resolve(page: Path) -> None:
    for link in LINK.findall(page.read_text()):
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), link
        assert not anchor or anchor in headings(target), link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_have_the_options_that_are_shown(page: Path) -> None:
    # After ` -- ` come other programs' options.
    text = re.sub(r" -- .*", "", page.read_text().replace("\\\n", " ").replace("-m -- ", "-m "))
    for module, rest in re.findall(r" -m ((?:benchmarks|workflow_scripts)[\w.]+)([^\n`#]*)", text):
        main = importlib.import_module(COMMANDS.get(module, module)).main
        (declared,) = [kind for name, kind in get_type_hints(main).items() if name == "step"]
        options = [option.split(".")[0].replace("-", "_") for option in re.findall(r"[ \[]--([a-z][\w.-]*)", rest)]
        names = {field.alias or name for name, field in declared.model_fields.items()} | {"help"}
        assert [option for option in options if option not in names] == [], module


def test_readme_names_where_each_definition_is() -> None:
    rows = re.findall(r"^\|[^|]*\| (`workflow_scripts/.*) \|$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert rows
    for first, *others in (re.findall(r"`([^`]+)`", row) for row in rows):
        places = [(ROOT / first).parent, ROOT / "workflow_scripts"]
        assert [name for name in others if not any((place / name).exists() for place in places)] == []


def test_every_test_file_is_listed() -> None:
    text = (ROOT / "docs" / "testing.md").read_text()
    files = (str(file.relative_to(ROOT)) for file in (ROOT / "tests").rglob("test_*.py"))
    assert [file for file in sorted(files) if file not in text and str(Path(file).parent) + "`" not in text] == []
