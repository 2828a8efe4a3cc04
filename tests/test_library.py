"""The library as users import it: its names, what they need, the page that shows them, and the
notebook.
"""

import ast
import contextlib
import functools
import importlib
import io
import json
import os
import re
import resource
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import compclip
from compclip.clip.config import ModelConfig
from compclip.clip.model import build, save_judge
from compclip.core.identity.code import PACKAGE, ROOT
from compclip.core.seeds import rng
from compclip.core.settings.arguments import as_captions
from compclip.dataset.sketch.draw import draw_pose, paint_scene, png
from compclip.dataset.sketch.world import Dice, draw_wild_scene
from tests.process_state import changes, process_state
from tests.workflow.test_envs import imported, normal, with_brought

PAGE = (ROOT / "docs" / "library.md").read_text()
# The table has six.
SIX_DIGITS = """
both = scores.r_precision, scores.adjective_accuracy
ends = [(score.value, score.new_pairs_low, score.new_pairs_high) for score in both]
print([round(end, 6) for three in ends for end in three])
"""
# The names that need an extra.
CLIP = ("choose_compound", "load_judge", "score_with_judge", "specs_loss", "specs_score")
EXTRAS = {"extract_pairs": "text", **dict.fromkeys(CLIP, "clip")}
# tqdm draws a bar on a terminal, where it is installed.
OPTIONAL = {"tqdm"}
# What each block changed in the process.
CHANGED: dict[int, dict[str, Any]] = {}
BLOCKS = re.findall(r"^```python\n(.*?)^```\n```text\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def draw_images(prompts: pd.DataFrame, pairs: pd.DataFrame, folder: Path) -> None:
    """Draw a bird for each prompt, with the pairs of its caption."""
    for row in prompts.itertuples():
        dice = Dice(rng(0, row.file_name))
        stated = pairs[pairs["image_id"] == row.image_id]
        scene = draw_wild_scene(dice) | {
            f"{p.noun}:color": p.adjective for p in stated.itertuples()
        }
        (folder / row.file_name).parent.mkdir(parents=True, exist_ok=True)
        (folder / row.file_name).write_bytes(png(paint_scene(scene, draw_pose(dice), 64)))


@functools.cache
def run_block(number: int, folder: Path) -> tuple[dict[str, Any], str]:
    """Execute a block in ``folder`` after those before it; return the names that there are, and
    what it prints.
    """
    names = {} if number == 0 else dict(run_block(number - 1, folder)[0])
    code, _ = BLOCKS[number]
    if "load_judge" in code:
        draw_images(names["prompts"], names["pairs"], folder / "images")
    with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()) as printed:
        before = process_state()
        exec(code, names)
        CHANGED[number] = changes(before, process_state())
    return names, printed.getvalue()


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a judge; other libraries change the process when they are imported, here before
    the blocks.
    """
    for name in ("numba", "scipy.stats", "spacy"):
        importlib.import_module(name)
    folder = tmp_path_factory.mktemp("library")
    (folder / "judge").mkdir()
    save_judge(
        build(ModelConfig(model="sketch"), ["a red bird"] * 2, 0), "sketch", None, folder / "judge"
    )
    return folder


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_a_block_of_the_page_prints_what_it_shows(number: int, place: Path) -> None:
    code, shown = BLOCKS[number]
    assert len(code.splitlines()) <= 15
    _, printed = run_block(number, place)
    if "load_judge" in code:  # the page's judge is trained
        printed, shown = (re.sub(r"\d", "0", text) for text in (printed, shown))
    assert printed == shown


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_a_block_of_the_page_changes_nothing_in_the_process(number: int, place: Path) -> None:
    run_block(number, place)
    code, _ = BLOCKS[number]
    expected = {"torch's random stream"} if "torch.randn" in code else set()
    assert CHANGED[number].keys() == expected


def test_names_are_described_and_captions_of_any_form_have_keys() -> None:
    assert all(
        name in dir(compclip) and getattr(compclip, name).__doc__ for name in compclip.__all__
    )
    assert PAGE.count("```python") == len(BLOCKS) == 10
    assert as_captions(["a", "b"]).to_dict("list") == {
        "image_id": ["0", "1"],
        "text": ["a", "b"],
        "caption_id": [0, 0],
    }
    table = as_captions(pd.DataFrame({"image_id": [7, 7, 8], "text": list("abc")}))
    assert table["image_id"].tolist() == ["7", "7", "8"] and table["caption_id"].tolist() == [
        0,
        1,
        0,
    ]
    numbered = table.assign(caption_id=[5, 6, 7])
    assert as_captions(numbered).equals(numbered)
    with pytest.raises(AttributeError, match="has no attribute 'scores'"):
        _ = compclip.scores


def test_the_import_loads_nothing_and_code_imports_modules() -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    loaded = subprocess.run(
        [sys.executable, "-c", "import sys, compclip; print(*sys.modules)"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert not {"numpy", "pandas", "torch", "spacy", "snakemake", "pydantic"} & set(loaded)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 0.3
    folders = PACKAGE, "workflow_scripts", "benchmarks"
    for file in [file for folder in folders for file in (ROOT / folder).rglob("*.py")]:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module == PACKAGE:
                assert not {alias.name for alias in node.names} & {*compclip.__all__}, file
            elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == PACKAGE:
                assert node.attr not in compclip.__all__, file


def test_type_checkers_see_the_names_that_load_on_first_use() -> None:
    tree = ast.parse((ROOT / PACKAGE / "__init__.py").read_text())
    (branch,) = [
        node
        for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    seen = {
        alias.asname: node.module.removeprefix(f"{PACKAGE}.")
        for node in branch.body
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }
    assert seen == compclip._MODULES
    # Without this file, type checkers ignore the annotations of an installed package (PEP 561).
    assert (ROOT / PACKAGE / "py.typed").is_file()


@pytest.mark.parametrize("name", compclip.__all__)
def test_an_extra_has_what_its_functions_import(name: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    listed = project["dependencies"] + project["optional-dependencies"].get(EXTRAS.get(name), [])
    there = with_brought([normal(re.split("[<>=]", line)[0]) for line in listed])
    assert imported(f"{PACKAGE}.{compclip._MODULES[name]}") <= there | OPTIONAL


def test_a_script_elsewhere_has_the_figures_of_the_table(results: Path, tmp_path: Path) -> None:
    script = (ROOT / "examples" / "score_images.py").read_text()
    table = pd.read_csv(results / "scores.csv").query(
        "generator == 'faithful' and prompts == 'pairs'"
    )
    table = table[
        (table["judge"] != "oracle") & table["measure"].isin(["r_precision", "adjective_accuracy"])
    ]
    assert len(table) == 4
    for _, rows in table.groupby("split"):
        row = rows.iloc[0]
        (judge,) = (results / row.dataset / "judges").glob("[0-9]*")
        arguments = (
            results / row.dataset / row.composition,
            row.generator,
            row.split,
            judge.name,
            row.candidates,
        )
        done = subprocess.run(
            [sys.executable, "-c", script + SIX_DIGITS, *map(str, arguments)],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        )
        shown = (
            rows.sort_values("measure", ascending=False)[
                ["value", "new_pairs_low", "new_pairs_high"]
            ]
            .to_numpy()
            .ravel()
            .tolist()
        )
        assert json.loads(done.stdout.splitlines()[-1]) == shown


def test_notebook_draws_a_figure(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    monkeypatch.setenv("COMPCLIP_RESULTS", str(results))
    notebook = nbformat.read(ROOT / "examples" / "own_figure.ipynb", as_version=4)
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    assert (results / "own_figure.svg").stat().st_size > 0
    assert "memorizer" in str(notebook.cells[-1].outputs)
