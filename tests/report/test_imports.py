"""Steps of report import only what they need."""

import pytest

from tests.clip.test_imports import loaded

LEARNING = {"torch", "open_clip", "spacy", "scipy"}


@pytest.mark.parametrize(
    ("modules", "unwanted"),
    [
        (["steps", "make_table", "join_tables"], {*LEARNING, "matplotlib", "PIL"}),
        (["make_page"], {*LEARNING, "matplotlib"}),
        (["draw_scores"], LEARNING),
    ],
)
def test_imports(modules: list[str], unwanted: set[str]) -> None:
    assert not unwanted & loaded("\n".join(f"import workflow_scripts.report.{name}" for name in modules))
