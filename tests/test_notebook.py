"""The notebook runs from a results folder to a figure."""

from pathlib import Path

import pytest

from compclip.core.code import ROOT


def test_notebook_draws_a_figure(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    monkeypatch.setenv("COMPCLIP_RESULTS", str(results))
    notebook = nbformat.read(ROOT / "examples" / "own_figure.ipynb", as_version=4)
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    assert (results / "own_figure.svg").stat().st_size > 0
    assert "memorizer" in str(notebook.cells[-1].outputs)
