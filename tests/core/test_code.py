"""The hash of a step changes with the step and with whatever it imports, and with nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from workflow_scripts.core import code

FILES = {
    "__init__.py": "",
    "stage/__init__.py": "",
    "stage/step.py": "import os\nfrom workflow_scripts.common import io\nfrom workflow_scripts.stage.part import f\n",
    "stage/part.py": "def f():\n    import workflow_scripts.stage.late\n",
    "stage/late.py": "from workflow_scripts.stage import step\n",
    "stage/other.py": "",
    "common/__init__.py": '"""Shared."""\n',
    "common/io.py": "x = 1\n",
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        path = tmp_path / "workflow_scripts" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(code, "ROOT", tmp_path)
    forget()
    yield tmp_path / "workflow_scripts"
    forget()


def forget() -> None:
    code.code_hash.cache_clear()
    code._imports.cache_clear()


def hash_now() -> str:
    forget()
    return code.code_hash("workflow_scripts.stage.step")


def test_modules_and_files(project: Path) -> None:
    names = ["common", "common.io", "stage.late", "stage.part", "stage.step"]
    assert set(code.modules_of("workflow_scripts.stage.step")) == {
        "workflow_scripts.stage",
        *(f"workflow_scripts.{name}" for name in names),
    }
    # Empty files hold no code.
    assert code.files_of("workflow_scripts.stage.step") == [
        f"workflow_scripts/{name}"
        for name in ("common/__init__.py", "common/io.py", "stage/late.py", "stage/part.py", "stage/step.py")
    ]


@pytest.mark.parametrize("name", ["stage/step.py", "stage/part.py", "stage/late.py", "common/io.py"])
def test_an_edit_of_what_is_imported_changes_it(project: Path, name: str) -> None:
    before = hash_now()
    (project / name).write_text((project / name).read_text() + "# edited\n")
    assert hash_now() != before


def test_nothing_else_does(project: Path) -> None:
    before = hash_now()
    (project / "stage/other.py").write_text("x = 2\n")
    (project / "stage/step.py").touch()
    assert hash_now() == before


def test_a_new_import_counts(project: Path) -> None:
    before = hash_now()
    (project / "common/io.py").write_text("x = 1\nfrom workflow_scripts.stage import other\n")
    assert hash_now() != before
    assert "workflow_scripts.stage.other" in code.modules_of("workflow_scripts.stage.step")


def test_unknown_modules_are_refused(project: Path) -> None:
    with pytest.raises(ModuleNotFoundError, match="workflow_scripts.nope"):
        code.code_hash("workflow_scripts.nope")


def test_a_source_of_this_project_is_known_by_its_parts() -> None:
    files = code.files_of("workflow_scripts.dataset.sources.cub")
    assert "workflow_scripts/dataset/archive.py" in files and "workflow_scripts/core/io.py" in files
    assert not [f for f in files if f.startswith(("workflow_scripts/judge", "workflow_scripts/score"))]
