"""What all figures share: their style, rows that read from above, and how they are saved."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from workflow_scripts.core.io import atomic

# Inches. As wide as a phone shows at full size: wider would shrink the words.
WIDTH = 5.4
STYLE = {
    "svg.hashsalt": "compclip",
    "text.parse_math": False,
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.7,
    "legend.frameon": False,
    "figure.constrained_layout.use": True,
}


def style(**more: object) -> AbstractContextManager[None]:
    """The style of every figure, whatever a user's own settings are; ``more`` of matplotlib's settings."""
    return matplotlib.rc_context({**matplotlib.rcParamsDefault, **STYLE, **more})


def size(rows: int, per_row: float, rest: float) -> tuple[float, float]:
    """Width and height, inches, of a figure of ``rows``."""
    return WIDTH, rows * per_row + rest


def name_rows(axes: Axes, names: Sequence[str], margin: float = 0.6) -> None:
    """Name the rows of a plot that reads from above."""
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 1 + margin, -margin)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", visible=False)


def note(figure: Figure, text: str) -> None:
    """A line below the figure: its n, its seed."""
    figure.supxlabel(text, fontsize=8, color="#555555", x=0.01, ha="left")


def empty(text: str) -> Figure:
    """A figure that says why there is nothing to draw."""
    figure = Figure(figsize=(WIDTH, 1))
    figure.text(0.02, 0.5, text, va="center")
    return figure


def save(figure: Figure, path: Path, title: str, description: str = "") -> None:
    """An SVG without date; the same data gives the same bytes. title: what it shows; description: its numbers."""
    # The layout's solver differs in last digits from run to run, and SVG's names are hashes of all digits.
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for axes in figure.axes:
        axes.set_position([round(side, 4) for side in axes.get_position(original=True).bounds])
    words = {"Title": title} | ({"Description": description} if description else {})
    with atomic(path) as temporary:
        figure.savefig(temporary, format="svg", metadata={"Date": None, "Creator": "compclip", **words})
