"""What all figures share: style, named rows, and how they are saved."""

import textwrap
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from compclip.io import atomic

# Points: the size of titles, and the width of their letters.
TITLE, LETTER = 11, 7.4
# Inches: what a phone shows at full size, with words that can be read.
WIDTH = 3.75
STYLE: dict[str, Any] = {
    "svg.hashsalt": "compclip", "text.parse_math": False, "font.family": "DejaVu Sans", "font.size": 10,
    "axes.titlesize": 10, "figure.labelsize": 10, "axes.titlelocation": "left",
    "axes.spines.top": False, "axes.spines.right": False,
    "axes.grid": True, "axes.axisbelow": True, "grid.color": "#dddddd", "grid.linewidth": 0.7,
    "legend.frameon": False, "figure.constrained_layout.use": True,
}  # fmt: skip


def style(**more: Any) -> AbstractContextManager[None]:
    """Return the style of all figures, independent of a user's matplotlibrc; ``more`` are settings of matplotlib."""
    settings: dict[Any, Any] = {**dict(matplotlib.rcParamsDefault), **STYLE, **more}
    return matplotlib.rc_context(settings)


def size(rows: int, per_row: float, rest: float) -> tuple[float, float]:
    return WIDTH, rows * per_row + rest


def name_rows(axes: Axes, names: Sequence[str], margin: float = 0.6) -> None:
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 1 + margin, -margin)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", visible=False)


def draw_interval(
    axes: Axes, y: float, value: float, ends: tuple[float, float] | None, color: str, mark: str, *,
    hollow: bool = False, **look: Any,
) -> None:  # fmt: skip
    """Draw a fraction in percent, and its interval as a line."""
    if ends:
        axes.hlines(y, 100 * ends[0], 100 * ends[1], color=color, linewidth=1.8)
    face = "white" if hollow else color
    axes.plot(100 * value, y, mark, color=color, markersize=5.5, markerfacecolor=face, **look)


def legend(figure: Figure, panels: Iterable[Axes], **look: Any) -> None:
    """Draw one legend above a figure, with each label of its panels once."""
    known = {label: mark for axes in panels for mark, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(known.values(), known, loc="outside upper left", handletextpad=0.2, **look)


def note(figure: Figure, text: str) -> None:
    """Write a note below the figure, with its n and seed; the figure grows if the note needs more lines."""
    width, height = figure.get_size_inches()
    lines = textwrap.wrap(" ".join(text.split()), int(width * 72 / 5.6))
    figure.set_size_inches(width, height + max(0, len(lines) - text.count("\n") - 1) / 6)
    figure.supxlabel("\n".join(lines), color="#555555", x=0.01, ha="left")


def empty(text: str) -> Figure:
    """Return a figure that says why there is nothing to draw."""
    figure = Figure(figsize=(WIDTH, 1))
    figure.text(0.02, 0.5, text, va="center")
    return figure


def _entitle(figure: Figure, title: str) -> Bbox:
    """Write a title above a figure that is laid out already; return the box of both, in inches."""
    width, height = figure.get_size_inches()
    lines = textwrap.wrap(title, int(width * 72 / LETTER))
    top = height + 0.2 * len(lines) + 0.06
    figure.text(
        0.05 / width, (top - 0.04) / height, "\n".join(lines), va="top", fontsize=TITLE, fontweight="bold",
    )  # fmt: skip
    for legend in figure.legends:  # else they would move to the top of the box
        legend.set_bbox_to_anchor((0, 0, 1, 1), transform=figure.transFigure)
    return Bbox([[0, 0], [width, top]])


def save(figure: Figure, path: Path, title: str, description: str = "") -> None:
    """Write an SVG with a title and a description, its numbers; the same data gives the same bytes."""
    # The layout solver differs in the last digits from run to run, and names in an SVG are hashes of all digits.
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for axes in figure.axes:
        left, bottom, width, height = (round(side, 4) for side in axes.get_position(original=True).bounds)
        axes.set_position((left, bottom, width, height))
    whole = _entitle(figure, title)
    words = {"Title": title} | ({"Description": description} if description else {})
    with atomic(path) as temporary:
        figure.savefig(
            temporary, format="svg", bbox_inches=whole, metadata={"Date": None, "Creator": "compclip", **words}
        )
