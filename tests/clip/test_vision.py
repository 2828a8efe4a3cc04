"""The definitions of torchvision's operators are used only where they are missing."""

import builtins
import sys
import types

import pytest
import torch

from workflow_scripts.clip import vision

MISSING = RuntimeError("operator torchvision::nms does not exist")


@pytest.fixture
def libraries(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Return the operators that each new library defines, in place of real ones."""
    made: list[list[str]] = []

    class Library:
        def __init__(self, name: str, kind: str) -> None:
            assert (name, kind) == ("torchvision", "FRAGMENT")
            made.append([])

        def define(self, schema: str) -> None:
            made[-1].append(schema.split("(")[0])

    monkeypatch.setattr(torch.library, "Library", Library)
    monkeypatch.setattr(vision, "_libraries", [])
    monkeypatch.setitem(sys.modules, "torchvision.half_imported", types.ModuleType("torchvision.half_imported"))
    return made


def let_import(monkeypatch: pytest.MonkeyPatch, *outcomes: Exception | None) -> list[Exception | None]:
    """Let ``import torchvision`` raise or pass by ``outcomes``, one a call; return those that are left."""
    real, left = builtins.__import__, list(outcomes)

    def fake(name: str, *rest: object, **more: object) -> object:
        if name != "torchvision":
            return real(name, *rest, **more)
        if outcome := left.pop(0):
            raise outcome
        return types.ModuleType("torchvision")

    monkeypatch.setattr(builtins, "__import__", fake)
    return left


def test_missing_operators_are_defined(monkeypatch: pytest.MonkeyPatch, libraries: list) -> None:
    left = let_import(monkeypatch, MISSING, None)
    vision.import_torchvision()
    assert not left and libraries == [["nms", "qnms"]] and len(vision._libraries) == 1
    assert "torchvision.half_imported" not in sys.modules


@pytest.mark.parametrize("error", [RuntimeError("another fault"), ModuleNotFoundError("No module named 'torchvision'")])
def test_other_errors_are_not_hidden(monkeypatch: pytest.MonkeyPatch, libraries: list, error: Exception) -> None:
    let_import(monkeypatch, error)
    with pytest.raises(type(error)):
        vision.import_torchvision()
    assert not libraries
