"""The documentation names files, tests and links that exist."""

import ast
import importlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import get_type_hints

import pytest
import yaml
from packaging.version import Version

from benchmarks import picture, scores
from compclip.__main__ import COMMANDS, OF_WORKFLOW
from compclip.core.identity.code import ROOT
from workflow_scripts.workflow import reference
from workflow_scripts.workflow.config import load_config

README = ROOT / "README.md"
PAGES = [
    README,
    ROOT / "CHANGELOG.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").glob("*.md")),
]
FOLDERS = (
    "benchmarks|compclip|docs|envs|examples|lexicons|presets|profiles|rules|tests|workflow_scripts"
)
# Paths in text or code, without those that have a placeholder.
NAMED = re.compile(rf"(?<![\w./<>-])((?:{FOLDERS})/[\w./-]*[\w/])(?![\w<{{*])(?:::(test_\w+))?")
# Files that a user makes.
USERS = {"captions.md": ["lexicons/nouns/mine.yaml", "lexicons/nouns/mine.yaml"]}
# Packages that are commands.
MODULES = {"benchmarks.speed": "benchmarks.speed.__main__"} | {
    f"compclip {name}": f"compclip.{module}" for name, (module, _) in COMMANDS.items()
}
MODULES |= {f"compclip {name}": f"workflow_scripts.workflow.{name}" for name in OF_WORKFLOW}
# On GitHub, ../../actions is the page of the repository's workflows.
LINK = re.compile(r"\]\((?!\w+:|\.\./\.\./actions/)([^)\s]+)\)")


def functions(file: Path) -> set[str]:
    return {
        node.name for node in ast.parse(file.read_text()).body if isinstance(node, ast.FunctionDef)
    }


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
    command = r" -m (compclip [\w-]+|(?:benchmarks|compclip|workflow_scripts)[\w.]+)([^\n`#]*)"
    for module, rest in re.findall(command, text):
        if "--" not in rest:  # importing it is enough
            importlib.import_module(MODULES.get(module, module))
            continue
        main = importlib.import_module(MODULES.get(module, module)).main
        declared = next(iter(get_type_hints(main).values()))
        options = [
            option.split(".")[0].replace("-", "_")
            for option in re.findall(r"[ \[]--([a-z][\w.-]*)", rest)
        ]
        names = {field.alias or name for name, field in declared.model_fields.items()} | {"help"}
        assert [option for option in options if option not in names] == [], module


def test_generated_pages_are_what_would_be_generated_now() -> None:
    assert reference.page_text() == reference.PAGE.read_text(), "run `make reference`"
    page = picture.WORKFLOW_PAGE.read_text()
    assert picture.with_picture(page, picture.picture()) == page, "run `make picture`"
    page = scores.RESULTS.read_text(encoding="utf-8")
    assert scores.measure_table() in page, "run `make readme`"


def test_definitions_are_where_the_page_says_and_every_test_file_is_listed() -> None:
    text = (ROOT / "docs" / "definitions.md").read_text()
    rows = re.findall(r"^\|[^|]*\| (`compclip/.*) \|$", text, re.MULTILINE)
    assert rows
    for first, *others in (re.findall(r"`([^`]+)`", row) for row in rows):
        places = [(ROOT / first).parent, ROOT / "compclip"]
        assert [
            name for name in others if not any((place / name).exists() for place in places)
        ] == []
    listed = (ROOT / "docs" / "testing.md").read_text()
    files = (str(file.relative_to(ROOT)) for file in (ROOT / "tests").rglob("test_*.py"))
    assert [
        file
        for file in sorted(files)
        if file not in listed and str(Path(file).parent) + "`" not in listed
    ] == []


def test_the_site_builds(tmp_path: Path) -> None:
    """It has every page, and links nothing outside it (``validation`` in mkdocs.yml)."""
    pytest.importorskip("mkdocs")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "search" / "search_index.json").exists()


def test_the_readme_is_short() -> None:
    text = README.read_text()
    assert len(text.split()) < 900
    table = text.partition("<!-- scores ending")[2].partition("<!-- end")[0]
    assert 2 < len(re.findall(r"^    \w+ +[−\d.]+ ", table, re.MULTILINE)) <= 8


RELEASED = re.search(r"^## (\S+) – (\S+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)


def test_citations_name_the_newest_release() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert RELEASED and [RELEASED[1]] * 3 == [
        citation["version"],
        citation["preferred-citation"]["version"],
        re.search(r"version = \{([^}]*)\}", README.read_text())[1],
    ]
    assert citation["date-released"] == RELEASED[2]


def test_between_releases_the_version_is_that_of_the_next_one() -> None:
    """So that a message tells artifacts of a release from those that are made after it."""
    version = Version(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"])
    has_changes = "## Unreleased" in (ROOT / "CHANGELOG.md").read_text()
    assert version.is_devrelease == has_changes
    assert version > Version(RELEASED[1]) if has_changes else version == Version(RELEASED[1])


def test_shown_configs_are_valid_and_make_commands_exist() -> None:
    blocks = {
        page: re.findall(r"^```yaml\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
        for page in PAGES
    }
    assert len(blocks[README]) == 2
    for page, shown in blocks.items():
        for block in map(yaml.safe_load, shown):
            # The config of a run in `runs` is the user's.
            config = load_config({key: value for key, value in block.items() if key != "runs"})
            assert str(config.results) == str(block.get("results", "results")), page.name
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for page in (*PAGES, *(ROOT / ".github" / "workflows").glob("*.yml")):
        commands = re.findall(
            r"(?:^    |`|run: +)make ([a-z][\w-]*)", page.read_text(), re.MULTILINE
        )
        assert [name for name in commands if name not in targets] == [], page.name


@pytest.mark.slow
def test_no_page_of_the_site_loads_a_file_from_another_server(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    pages = list(tmp_path.glob("*.html"))
    assert len(pages) > 30
    for page in pages:
        loaded = re.findall(r"<(?:script|link|img|iframe)[^>]*>", page.read_text(encoding="utf-8"))
        elsewhere = [tag for tag in loaded if re.search(r'(?:src|href)="?(?:https?:)?//', tag)]
        assert not elsewhere, page.name
