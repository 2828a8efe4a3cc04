"""Lexicons with which captions are read."""

from pathlib import Path

from workflow_scripts.pairs.reading import lexicons_of


def test_own_and_shared_lexicons(tmp_path: Path) -> None:
    lexicons = {"color": "red: []", "shape": "small: [tiny]", "size": "big: [tiny]", "age": "old:"}
    for name, text in lexicons.items():
        (tmp_path / f"{name}.yaml").write_text(text)
    assert lexicons_of("color", tmp_path) == lexicons_of("shape", tmp_path) == ["color", "shape"]
    assert lexicons_of("age", tmp_path) == ["color", "shape", "age"]
    assert lexicons_of("size", tmp_path) == ["color", "size"]
