"""A step's identity changes with the code that decides its result, and with nothing else; imports
point down.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from compclip.core.identity import code
from compclip.core.identity.code import PACKAGE, ROOT

STEP = '''"""A step."""
import json
from compclip.core.log import log
from compclip.core.errors import UserError
from compclip.core.artifacts.files import write
from compclip.stage import part

LIMIT = 3


def main(step: int) -> None:
    """Do it."""
    if LIMIT > 4:
        raise UserError(f"{step}: too much")
    log.info("done: %s", step)
    write(part.passed_on(part.double(LIMIT)))
'''
WRITER = "core/artifacts/files.py"
FILES = {
    "__init__.py": "",
    "stage/__init__.py": "",
    "stage/step.py": STEP,
    "stage/deep.py": "def passed_on(x):\n    return x + 1\n",
    "stage/part.py": "from compclip.stage.deep import passed_on\nFACTOR = 2\n"
    "def double(x):\n    return FACTOR * x\ndef other(x):\n    return x\n",
    "stage/unused.py": "X = 1\n",
    "core/__init__.py": "",
    "core/settings/cli.py": "import logging\nlog = logging.getLogger('x')\n",
    "core/errors.py": "class UserError(Exception):\n    pass\n",
    WRITER: "import os\ndef write(x):\n    return os.fspath(x)\ndef read(x):\n    return x\n",
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for name, text in FILES.items():
        path = tmp_path / "compclip" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(code, "ROOT", tmp_path)
    forget()
    yield tmp_path / "compclip"
    forget()


def forget() -> None:
    for cached in (code.code_hash, code.reached, code._parse):
        cached.cache_clear()


def identity(within: tuple[str, ...] = code.OURS) -> str:
    forget()
    return code.code_hash("compclip.stage.step", within=within)


def edit(project: Path, name: str, old: str, new: str) -> None:
    path = project / name
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


DECISIVE = [
    ("stage/step.py", "LIMIT = 3", "LIMIT = 2"),
    ("stage/step.py", "LIMIT > 4", "LIMIT > 5"),
    ("stage/step.py", "part.double", "part.other"),
    ("stage/part.py", "FACTOR = 2", "FACTOR = 3"),
    ("stage/part.py", "def double(x)", "def double(x, y=1)"),
    ("stage/part.py", "FACTOR = 2", "FACTOR = 2\nprint('loose')"),
    ("stage/deep.py", "x + 1", "x + 2"),
    ("stage/part.py", "return x", "return -x"),
    (WRITER, "import os", "import posixpath as os"),
]
UNDECISIVE = [
    ("stage/step.py", "LIMIT = 3", "LIMIT = 3  # a comment"),
    ("stage/step.py", '"""Do it."""', '"""Do that."""'),
    ("stage/step.py", '    """Do it."""\n', ""),
    ("stage/step.py", "done: %s", "ready: %s"),
    ("stage/step.py", "too much", "more than four; use less"),
    ("stage/part.py", "return FACTOR * x", "return (FACTOR\n            * x)"),
    ("stage/unused.py", "X = 1", "X = 2"),
    ("core/settings/cli.py", "getLogger('x')", "getLogger('y')"),
    ("core/errors.py", "pass", "text = ''"),
]


@pytest.mark.parametrize(
    ("change", "counts"),
    [*((change, True) for change in DECISIVE), *((change, False) for change in UNDECISIVE)],
)
def test_only_what_decides_the_result_counts(
    project: Path, change: tuple[str, str, str], counts: bool
) -> None:
    before = identity()
    edit(project, *change)
    assert (identity() != before) == counts


def test_an_identity_may_be_within_packages(project: Path) -> None:
    assert code.reached("compclip.stage.step") == {
        "compclip.core.artifacts.files",
        "compclip.stage",
        "compclip.stage.deep",
        "compclip.stage.part",
        "compclip.stage.step",
    }
    before = identity(("compclip.stage",))
    for name, old, new, counts in (
        (WRITER, "return x", "return -x", False),
        ("stage/deep.py", "x + 1", "x", True),
    ):
        edit(project, name, old, new)
        assert (identity(("compclip.stage",)) != before) == counts


def test_a_step_has_the_same_identity_in_an_installed_package(project: Path) -> None:
    workflow = project.parent / "workflow_scripts"
    (workflow / "stage").mkdir(parents=True)
    (workflow / "stage/step.py").write_text("from compclip.stage.part import FACTOR\n")
    forget()
    in_checkout = code.code_hash("workflow_scripts.stage.step")
    (project / "_workflow").mkdir()
    workflow.rename(project / "_workflow" / workflow.name)
    forget()
    assert code.code_hash("workflow_scripts.stage.step") == in_checkout


RULE = re.compile(
    r"^ *(?:use rule (?P<base>\w+) as|rule) (?P<name>\w+)(?: with)?:$"
    r'|^ +"\.\./workflow_scripts/(?P<stage>\w+)/(?P<script>\w+)\.py"$',
    re.MULTILINE,
)


def scripts_of_rules() -> dict[str, tuple[str, str]]:
    """Return the stage and the name of each rule's script."""
    scripts: dict[str, tuple[str, str]] = {}
    for file in [*sorted((ROOT / "rules").glob("*.smk")), ROOT / "presets/published.smk"]:
        rule = ""
        for match in RULE.finditer(file.read_text()):
            if match["script"]:
                scripts[rule] = (match["stage"], match["script"])
                continue
            rule = match["name"]
            # A rule that is based on another one has its script.
            if match["base"]:
                scripts[rule] = scripts[match["base"]]
    return scripts


SCRIPTS = scripts_of_rules()


@pytest.mark.parametrize("rule", SCRIPTS)
def test_a_rule_has_the_name_of_its_script_or_begins_with_it(rule: str) -> None:
    _, script = SCRIPTS[rule]
    assert rule == script or rule.startswith(f"{script}_")


@pytest.mark.parametrize(("stage", "script"), sorted(set(SCRIPTS.values())))
def test_the_library_has_a_function_of_each_scripts_name(stage: str, script: str) -> None:
    files = (ROOT / PACKAGE / stage).rglob("*.py")
    function = re.compile(rf"^def {script}\(", re.MULTILINE)
    assert any(function.search(file.read_text()) for file in files)


def test_each_script_is_that_of_a_rule() -> None:
    files = (ROOT / "workflow_scripts").glob("*/*.py")
    scripts = {
        (file.parent.name, file.stem) for file in files if "run_script(main)" in file.read_text()
    }
    assert scripts == set(SCRIPTS.values())


# From the bottom to the top.
SHARED = ("core", "text", "clip", "stats", "plot")
STAGES = (
    "dataset",
    "pairs",
    "divergence",
    "split",
    "judge",
    "generate",
    "score",
    "human",
    "specs",
    "compun",
    "report",
    "release",
)
LEVEL = {
    **{name: 1 for name in SHARED},
    "core": 0,
    **{name: n for n, name in enumerate(STAGES, 2)},
}
MODULES = sorted((ROOT / PACKAGE).rglob("*.py"))
CORE = ROOT / PACKAGE / "core"
MODULES_OF_CORE = sorted(CORE.rglob("*.py"))


def imports_of(file: Path) -> set[str]:
    """Return the project's modules that a module imports."""
    names = code._imported_names(ast.parse(file.read_text()))
    return {name for name in names if code.module_file(name)}


@pytest.mark.parametrize("file", MODULES, ids=lambda file: str(file.relative_to(ROOT)))
def test_imports_point_down(file: Path) -> None:
    package = file.relative_to(ROOT / PACKAGE).parts[0].removesuffix(".py")
    imported = imports_of(file) - {PACKAGE}
    assert not re.search(r"^ *(import|from) snakemake", file.read_text(), re.MULTILINE)
    assert not [
        name
        for name in imported
        if (other := name.removeprefix(f"{PACKAGE}.").split(".")[0]) not in LEVEL
        or other != package
        and LEVEL[other] >= LEVEL.get(package, len(LEVEL))
        and {other, package} - {*SHARED[1:]}
    ]


def test_every_package_has_a_level() -> None:
    packages = {path.parent.name for path in (ROOT / PACKAGE).glob("*/__init__.py")}
    assert packages == {*LEVEL}


# Of core, from the bottom to the top; below them are the modules of core itself.
ROOMS = ("reading", "artifacts", "identity", "settings")


@pytest.mark.parametrize("file", MODULES_OF_CORE, ids=lambda file: str(file.relative_to(CORE)))
def test_imports_inside_core_point_down(file: Path) -> None:
    room = file.parent.name
    lower = ROOMS[: ROOMS.index(room) + 1] if room in ROOMS else ()
    imported = imports_of(file) - {PACKAGE, f"{PACKAGE}.core"}
    rooms = {name.split(".")[2] for name in imported} & {*ROOMS}
    assert rooms <= {*lower}


def test_every_room_of_core_has_a_level() -> None:
    assert {path.parent.name for path in CORE.glob("*/__init__.py")} == {*ROOMS}
