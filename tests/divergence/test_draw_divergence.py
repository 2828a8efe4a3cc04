"""The figures of divergence: what was measured, the path of a division, the same bytes for the same data."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from compclip.divergence.draw_divergence import draw_path, draw_shares
from compclip.divergence.results import FIGURES
from compclip.io import read_json, write_json
from compclip.plot.drawing import save, style
from compclip.plot.page import title_and_description
from tests.project import COMPOSITION, DATASET
from tests.scripts import job
from workflow_scripts.divergence import draw_divergence

ROW = {
    "train": 1200, "test": 300, "atoms": 2, "compounds": 100, "atom_divergence": 0.0123,
    "compound_divergence": 0.4567, "random_atom_mean": 0.0001, "random_atom_std": 0.0, "random_compound_mean": 0.0321,
    "random_compound_std": 0.0042,
}  # fmt: skip


def draw(results: Path, divided: bool = False) -> dict[str, bytes]:
    place = results / DATASET / COMPOSITION
    figures = {name: results / f"{name}.svg" for name in (*FIGURES, *["division"] * divided)}
    inputs = {"divergence": place / "divergence.parquet", "summary": place / "divergence.json"}
    draw_divergence.main(job(
        input=inputs | ({"division": division(results)} if divided else {}), output={"figures": [*figures.values()]},
        wildcards={"composition": COMPOSITION}, dataset=DATASET, seed=0,
    ))  # fmt: skip
    return {name: file.read_bytes() for name, file in figures.items()}


@pytest.fixture
def copied(results: Path, tmp_path: Path) -> Path:
    """The small run's divergences without its figures, and the path of a made-up division."""
    place = Path(DATASET, COMPOSITION)
    (tmp_path / place).mkdir(parents=True)
    for name in ("divergence.parquet", "divergence.json"):
        shutil.copy(results / place / name, tmp_path / place)
    steps = list(range(1, 49))
    path = {"images": steps, "atom": [1 / n for n in steps], "compound": [1 / n**0.2 for n in steps]}
    wanted = {"atom": 0.02, "compound": "max"}
    reached = {"atom_divergence": 0.0123, "compound_divergence": 0.4567}
    write_json({"wanted": wanted, **reached, "path": path}, division(tmp_path))
    return tmp_path


def division(results: Path) -> Path:
    return results / DATASET / COMPOSITION / "division.json"


def test_same_data_same_bytes_with_the_numbers(copied: Path) -> None:
    figures = draw(copied, divided=True)
    assert set(figures) == {*FIGURES, "division"}
    assert draw(copied, divided=True) == figures
    # A figure has its numbers.
    title, numbers = title_and_description(figures["test_unseen_compounds_in_train"])
    assert title == f"Pairs of train and unseen ({DATASET}, {COMPOSITION})"
    shown = read_json(copied / DATASET / COMPOSITION / "divergence.json")["distributions"]
    of_unseen = ("pairs", "test_unseen", "compounds")
    (of,) = [each for each in shown if (each["definition"], each["split"], each["kind"]) == of_unseen]
    first = f"{of['names'][0].replace('_', ' ')} {100 * of['train'][0]:.1f} % of train and {100 * of['test'][0]:.1f} %"
    assert numbers.startswith(f"{first} of unseen, ") and numbers.count(" % of unseen") == len(of["names"])


@pytest.mark.parametrize(
    ("kind", "names", "shown", "text"),
    [
        ("compounds", "red_wing blue_bill", ["red wing", "blue bill"], "D_C 0.457 (random 0.032 ± 0.004); the 2 most"),
        ("atoms", "adjective:red noun:wing", ["red", "wing"], "D_A 0.012 (random < 0.001); all 2 adj"),
        ("atoms", "adjective:red noun:red", ["red", "red (noun)"], "D_A 0.012"),
    ],
)
def test_train_and_test_are_below_each_other(kind: str, names: str, shown: list[str], text: str) -> None:
    shares = {"kind": kind, "split": "test_unseen", "names": names.split(), "train": [0.5, 0.1], "test": [0.2, 0.0]}
    figure = draw_shares(shares, ROW, 3)
    axes = figure.axes[0]
    train, test = axes.lines
    assert (train.get_marker(), test.get_marker()) == ("o", "^")
    # A fraction of 0 has its mark.
    assert train.get_xdata() == pytest.approx([50, 10]) and test.get_xdata() == pytest.approx([20, 0])
    lines = [line.tolist() for bars in axes.collections for line in bars.get_segments()]
    assert lines == [[[0, y], [x, y]] for marks in (train, test) for x, y in marks.get_xydata()]
    for row, upper, lower in zip((0, 1), train.get_ydata(), test.get_ydata(), strict=True):
        assert row - 0.5 < upper < lower < row + 0.5
    assert [t.get_text() for t in axes.get_yticklabels()] == shown
    note = " ".join(figure.get_supxlabel().split())
    assert text in note and "seed 3" in note
    assert [t.get_text() for t in figure.legends[0].get_texts()] == ["train (n = 1,200)", "unseen (n = 300)"]


def test_what_was_not_measured_is_named(copied: Path) -> None:
    file = copied / DATASET / COMPOSITION / "divergence.json"
    content = read_json(file)
    content["distributions"] = [shown for shown in content["distributions"] if shown["split"] != "test_swapped"]
    file.write_text(json.dumps(content))
    for name, figure in draw(copied).items():
        assert (b"not measured" in figure) == ("swapped" in name)


def test_path_and_targets(copied: Path, tmp_path: Path) -> None:
    content = read_json(division(copied))
    for target, dashed, reached in ("max", 1, 0.0123), (0.3, 2, 0.001):
        content["wanted"]["compound"] = target
        content["atom_divergence"] = reached
        with style():
            figure = draw_path(content, 0)
            save(figure, tmp_path / "path.svg", "path")
        compound, atom = figure.axes
        assert np.array_equal(compound.lines[0].get_ydata(), content["path"]["compound"])
        assert np.array_equal(atom.lines[0].get_xdata(), content["path"]["images"])
        marked = [axes.lines[1].get_xydata().tolist() for axes in figure.axes]
        assert marked == [[[48, content[f"{kind}_divergence"]]] for kind in ("compound", "atom")]
        assert [t.get_text() for t in figure.legends[0].get_texts()] == ["while it grew", "after exchanges", "wanted"]
        lines = [line for axes in figure.axes for line in axes.lines if line.get_linestyle() == "--"]
        assert len(lines) == dashed and lines[-1].get_ydata() == [0.02, 0.02]
        assert atom.get_ylim()[0] < min(0.01, content["atom_divergence"])
        titles = [axes.get_title("left") for axes in figure.axes]
        assert titles == [
            f"D_C (pairs): 0.457,\nwanted: {'the largest' if target == 'max' else target}",
            f"D_A (adjectives and nouns): {reached:.3f},\nwanted: {'at most ' if target == 'max' else ''}0.02",
        ]
