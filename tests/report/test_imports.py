"""Steps of report import only what they need."""

import subprocess
import sys

import pytest

LEARNING = {"torch", "open_clip", "spacy", "scipy"}


@pytest.mark.parametrize(
    ("modules", "unwanted"),
    [
        (["steps", "make_table", "join_tables"], {*LEARNING, "matplotlib", "PIL", "jinja2"}),
        (["make_page"], {*LEARNING, "matplotlib"}),
        (["draw_scores", "draw_examples"], LEARNING),
    ],
)
def test_imports(modules: list[str], unwanted: set[str]) -> None:
    lines = [f"import workflow_scripts.report.{name}" for name in modules]
    code = "; ".join(["import sys", *lines, "print(*sys.modules)"])
    imported = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert not unwanted & set(imported)
