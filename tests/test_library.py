"""The library as users import it: the names of ``compclip``, what they need, and the page that shows them."""

import ast
import contextlib
import io
import os
import re
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import compclip
from compclip.clip.config import ModelConfig
from compclip.clip.model import build, save_judge
from compclip.core.code import PACKAGE, ROOT
from compclip.core.seeds import rng
from compclip.dataset.sketch.draw import draw_pose, paint, png
from compclip.dataset.sketch.world import Dice, draw_wild_scene

PAGE = (ROOT / "docs" / "library.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```\n```text\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def draw_images(prompts: pd.DataFrame, pairs: pd.DataFrame, folder: Path) -> None:
    """Draw a bird for each prompt, with the pairs of its caption."""
    for row in prompts.itertuples():
        dice = Dice(rng(0, row.file_name))
        stated = pairs[pairs["image_id"] == row.image_id]
        scene = draw_wild_scene(dice) | {f"{p.noun}:color": p.adjective for p in stated.itertuples()}
        (folder / row.file_name).parent.mkdir(parents=True, exist_ok=True)
        (folder / row.file_name).write_bytes(png(paint(scene, draw_pose(dice), 64)))


def run_blocks(count: int, folder: Path) -> str:
    """Execute the first blocks in ``folder``; return what the last one prints."""
    names: dict[str, Any] = {}
    for code, _ in BLOCKS[:count]:
        if "load_judge" in code:
            draw_images(names["prompts"], names["pairs"], folder / "images")
        with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(code, names)
    return printed.getvalue()


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a judge."""
    folder = tmp_path_factory.mktemp("library")
    (folder / "judge").mkdir()
    save_judge(build(ModelConfig(model="sketch"), ["a red bird"] * 2, 0), "sketch", None, folder / "judge")
    return folder


@pytest.mark.parametrize("number", range(1, len(BLOCKS) + 1))
def test_a_block_of_the_page_prints_what_it_shows(number: int, place: Path) -> None:
    code, shown = BLOCKS[number - 1]
    assert len(code.splitlines()) <= 15
    printed = run_blocks(number, place)
    if "load_judge" in code:  # the page's judge is trained
        printed, shown = (re.sub(r"\d", "0", text) for text in (printed, shown))
    assert printed == shown


def test_the_page_has_no_other_code() -> None:
    assert PAGE.count("```python") == len(BLOCKS) == 10


@pytest.mark.parametrize("name", compclip.__all__)
def test_a_name_is_described(name: str) -> None:
    assert name in dir(compclip) and getattr(compclip, name).__doc__


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'scores'"):
        _ = compclip.scores


def test_the_import_is_quick_and_loads_nothing() -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    loaded = subprocess.run(
        [sys.executable, "-c", "import sys, compclip; print(*sys.modules)"], cwd=ROOT, capture_output=True, text=True,
        check=True,
    ).stdout.split()  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert not {"numpy", "pandas", "torch", "spacy", "snakemake", "pydantic"} & set(loaded)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 0.3


def test_code_imports_modules_so_that_its_identity_can_be_read() -> None:
    for file in [
        path for folder in (PACKAGE, "workflow_scripts", "benchmarks") for path in (ROOT / folder).rglob("*.py")
    ]:
        nodes = list(ast.walk(ast.parse(file.read_text())))
        names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
        names += [
            f"{PACKAGE}.{alias.name}"
            for node in nodes
            if isinstance(node, ast.ImportFrom) and node.module == PACKAGE
            for alias in node.names
        ]
        assert PACKAGE not in names and not {f"{PACKAGE}.{name}" for name in compclip.__all__} & set(names), file


def test_a_script_elsewhere_has_the_figures_of_the_table(results: Path, tmp_path: Path) -> None:
    example = ROOT / "examples" / "score_images.py"
    assert len(example.read_text().splitlines()) <= 20
    table = pd.read_csv(results / "table.csv")
    rows = table[(table["generator"] == "faithful") & (table["prompts"] == "pairs") & (table["judge"] != "oracle")]
    assert len(rows) == 2
    for row in rows.itertuples():
        (judge,) = (results / row.dataset / row.composition / "judges").glob("[0-9]*")
        done = subprocess.run(
            [sys.executable, example, results / row.dataset / row.composition, row.generator, row.split, judge.name],
            cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True,
        )  # fmt: skip
        figures = [float(number) for number in done.stdout.split()]
        shown = [getattr(row, f"{name}{end}") for name in ("exact", "adjective") for end in ("", "_low", "_high")]
        assert figures == shown
