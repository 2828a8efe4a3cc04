"""The identity of a step changes with the code that decides its result, and with nothing else."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from workflow_scripts.core import code

STEP = '''"""A step."""
import json
from workflow_scripts.core.cli import log
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import write
from workflow_scripts.stage import part
from workflow_scripts.stage.steps import Step

LIMIT = 3


def main(step: Step) -> None:
    """Do it."""
    if LIMIT > 4:
        raise UserError(f"{step}: too much")
    log.info("done: %s", step)
    write(part.double(LIMIT))
'''
FILES = {
    "__init__.py": "",
    "stage/__init__.py": "",
    "stage/step.py": STEP,
    "stage/steps.py": "class Step:\n    pass\n",
    "stage/part.py": "FACTOR = 2\ndef double(x):\n    return FACTOR * x\ndef other(x):\n    return x\n",
    "stage/unused.py": "X = 1\n",
    "core/__init__.py": "",
    "core/cli.py": "import logging\nlog = logging.getLogger('x')\n",
    "core/errors.py": "class UserError(Exception):\n    pass\n",
    "core/io.py": "import os\ndef write(x):\n    return os.fspath(x)\ndef read(x):\n    return x\n",
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for name, text in FILES.items():
        path = tmp_path / "workflow_scripts" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(code, "ROOT", tmp_path)
    forget()
    yield tmp_path / "workflow_scripts"
    forget()


def forget() -> None:
    for cached in (code.code_hash, code.reached, code._definition, code._parse):
        cached.cache_clear()


def identity(target: str = "workflow_scripts.stage.step") -> str:
    forget()
    return code.code_hash(target)


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
    ("core/io.py", "import os", "import posixpath as os"),
]
UNDECISIVE = [
    ("stage/step.py", "LIMIT = 3", "LIMIT = 3  # a comment"),
    ("stage/step.py", '"""Do it."""', '"""Do that."""'),
    ("stage/step.py", '    """Do it."""\n', ""),
    ("stage/step.py", "done: %s", "ready: %s"),
    ("stage/step.py", "too much", "more than four; use less"),
    ("stage/step.py", "main(step: Step) -> None", "main(step)"),
    ("stage/steps.py", "pass", "x = 1"),
    ("stage/part.py", "return x", "return -x"),
    ("stage/part.py", "return FACTOR * x", "return (FACTOR\n            * x)"),
    ("stage/unused.py", "X = 1", "X = 2"),
    ("core/io.py", "def read(x):", "def read(x, y):"),
    ("core/cli.py", "getLogger('x')", "getLogger('y')"),
    ("core/errors.py", "pass", "text = ''"),
]


@pytest.mark.parametrize(
    ("change", "counts"), [*((change, True) for change in DECISIVE), *((change, False) for change in UNDECISIVE)]
)
def test_only_what_decides_the_result_counts(project: Path, change: tuple[str, str, str], counts: bool) -> None:
    before = identity()
    edit(project, *change)
    assert (identity() != before) == counts


def test_a_definition_has_its_own_identity(project: Path) -> None:
    before = identity("workflow_scripts.stage.part:other")
    edit(project, "stage/part.py", "FACTOR * x", "FACTOR * x * x")
    assert identity("workflow_scripts.stage.part:other") == before
    assert set(code.modules_of("workflow_scripts.stage.step")) == {
        f"workflow_scripts.{name}" for name in ("core.io", "stage.part", "stage.step")
    }


def test_an_import_that_is_passed_on_counts(project: Path) -> None:
    (project / "stage/part.py").write_text("from workflow_scripts.stage.deep import double, other\n")
    (project / "stage/deep.py").write_text("def double(x):\n    return 2 * x\nother = 1\n")
    before = identity()
    edit(project, "stage/deep.py", "2 * x", "3 * x")
    assert identity() != before


def test_unknown_targets_are_refused(project: Path) -> None:
    with pytest.raises(ModuleNotFoundError, match="workflow_scripts.nope"):
        code.code_hash("workflow_scripts.nope")
    with pytest.raises(AttributeError, match="does not define nothing"):
        code.code_hash("workflow_scripts.stage.part:nothing")
