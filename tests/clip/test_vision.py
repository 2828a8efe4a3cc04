"""The definitions of torchvision's operators are used only where they are missing."""

from __future__ import annotations

import builtins
import sys
import types

import pytest

from workflow_scripts.clip import vision

torch = pytest.importorskip("torch")


def patched_import(monkeypatch: pytest.MonkeyPatch, outcomes: list[BaseException | None]) -> list[str]:
    """Let ``import torchvision`` raise or pass by ``outcomes``, one a call; return the list of calls."""
    real = builtins.__import__
    calls: list[str] = []

    def fake(name: str, *rest: object, **more: object) -> object:
        if name != "torchvision":
            return real(name, *rest, **more)
        calls.append(name)
        outcome = outcomes.pop(0)
        if outcome is not None:
            raise outcome
        return types.ModuleType("torchvision")

    monkeypatch.setattr(builtins, "__import__", fake)
    return calls


@pytest.fixture
def libraries(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, list[str]]]:
    """Return the operator libraries that are made, in place of real ones."""
    made: list[tuple[str, str, list[str]]] = []

    class Library:
        def __init__(self, name: str, kind: str) -> None:
            self.defined: list[str] = []
            made.append((name, kind, self.defined))

        def define(self, schema: str) -> None:
            self.defined.append(schema.split("(")[0])

    monkeypatch.setattr(torch.library, "Library", Library)
    monkeypatch.setattr(vision, "_libraries", [])
    return made


def test_nothing_happens_where_it_imports(monkeypatch: pytest.MonkeyPatch, libraries: list) -> None:
    calls = patched_import(monkeypatch, [None])
    vision.import_torchvision()
    assert len(calls) == 1 and libraries == []


def test_the_two_operators_are_defined_where_they_are_missing(monkeypatch: pytest.MonkeyPatch, libraries: list) -> None:
    monkeypatch.setitem(sys.modules, "torchvision.half_imported", types.ModuleType("torchvision.half_imported"))
    calls = patched_import(monkeypatch, [RuntimeError("operator torchvision::nms does not exist"), None])
    vision.import_torchvision()
    assert len(calls) == 2
    assert libraries == [("torchvision", "FRAGMENT", ["nms", "qnms"])]
    assert "torchvision.half_imported" not in sys.modules
    assert len(vision._libraries) == 1


@pytest.mark.parametrize("error", [RuntimeError("another fault"), ModuleNotFoundError("No module named 'torchvision'")])
def test_other_errors_are_not_hidden(monkeypatch: pytest.MonkeyPatch, libraries: list, error: Exception) -> None:
    patched_import(monkeypatch, [error])
    with pytest.raises(type(error)):
        vision.import_torchvision()
    assert libraries == []


def test_torchvision_can_be_imported_here() -> None:
    vision.import_torchvision()
    vision.import_torchvision()
    import torchvision.transforms

    assert torchvision.transforms.Resize
