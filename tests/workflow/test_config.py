"""A wrong config is one line that names the key, the value and what is allowed."""

from __future__ import annotations

from typing import Any

import pytest

from workflow_scripts.core.errors import UserError
from workflow_scripts.workflow.config import load_config


@pytest.mark.parametrize(
    ("values", "parts"),
    [
        ({"sed": 1}, ["sed", "unknown key", "allowed", "seed"]),
        ({"split": {"heldout": {"fracton": 0.1}}}, ["split.heldout.fracton", "unknown key", "fraction", "window"]),
        ({"dataset": {"source": "nope"}}, ["dataset.source", "'nope'", "cub", "sketch", "table"]),
        ({"dataset": {"source": "table"}}, ["dataset", "dataset.table"]),
        ({"dataset": {"cub": {"root": "x", "image": "y"}}}, ["dataset.cub.image", "unknown key", "images"]),
        ({"dataset": {"limit": 0}}, ["dataset.limit", "0"]),
        ({"dataset": {"name": "../x"}}, ["dataset.name", "'../x'"]),
        ({"dataset": {"cub": {"root": "x", "images_sha256": "12"}}}, ["dataset.cub.images_sha256", "'12'"]),
        ({"generate": {"generators": ["nope"]}}, ["generators.0", "'nope'", "photographs", "folder"]),
        ({"generate": {"generators": ["shuffled", "shuffled"]}}, ["duplicate generator 'shuffled'"]),
        ({"generate": {"generators": [{"name": "x", "kind": "folder"}]}}, ["'x'", "path", "required"]),
        ({"generate": {"generators": [{"name": "x", "kind": "folder", "path": "p", "a": 1}]}}, ["'x'", " a: "]),
        ({"generate": {"generators": [{"name": "../x", "kind": "shuffled"}]}}, ["generators.0.name"]),
        ({"compositions": ["colour"]}, ["compositions", "colour", "color"]),
        ({"threads": 0}, ["threads", "0"]),
        ({"seed": "x"}, ["seed", "'x'"]),
    ],
)
def test_mistakes(values: dict[str, Any], parts: list[str]) -> None:
    with pytest.raises(UserError) as error:
        load_config(values, "my.yaml")
    message = str(error.value)
    assert message.startswith("my.yaml: ") and "\n" not in message
    for part in parts:
        assert part in message, message


def test_a_generator_is_a_word_or_more() -> None:
    mine = {"name": "mine", "kind": "folder", "path": "x"}
    generators = load_config({"generate": {"generators": ["shuffled", mine]}}).generate.generators
    assert [(g.name, g.kind, g.options) for g in generators] == [
        ("shuffled", "shuffled", {}),
        ("mine", "folder", {"path": "x"}),
    ]
