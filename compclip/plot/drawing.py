"""Functions of all figures: style, panels of rows, and saving."""

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import Bbox, blended_transform_factory

from compclip.io import atomic

# Sizes in inches that are readable on a phone; the numbers of letters of titles and texts that fit.
WIDTH, TITLE_LETTERS, LETTERS = 3.75, 36, 48
FIGURE_STYLE: dict[str, Any] = {
    "svg.hashsalt": "compclip",
    "text.parse_math": False,
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.titlesize": 10,
    "figure.labelsize": 10,
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
GRAY = "#555555"
# Colors for series without a fixed look, from Okabe and Ito.
SERIES_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", GRAY, "#000000")
SERIES_MARKS = "oDs^vPX*"
# The label, color and mark of each series, in order; series with an empty label are not in the
# legend.
Looks = Mapping[str, tuple[str, str, str]]
# The place of each row, by group and name; a group's heading has no name.
Places = dict[tuple[str, str], int]


def style() -> AbstractContextManager[None]:
    """Return the style of all figures, independent of a user's matplotlibrc."""
    settings: dict[Any, Any] = {**dict(matplotlib.rcParamsDefault), **FIGURE_STYLE}
    return matplotlib.rc_context(settings)


def looks_of(names: Iterable[str]) -> Looks:
    """Return a look for each of at most ``len(SERIES_COLORS)`` names."""
    return {
        name: (name, color, mark)
        for name, color, mark in zip(names, SERIES_COLORS, SERIES_MARKS, strict=False)
    }


def in_percent(
    table: pd.DataFrame, value: str, low: str = "low", high: str = "high", **columns: Any
) -> pd.DataFrame:
    """Return ``columns`` of a table, and value, low and high in percent, for ``draw_rows``."""
    return pd.DataFrame(
        {"value": 100 * table[value], "low": 100 * table[low], "high": 100 * table[high], **columns}
    )


def draw_rows(lines: Sequence[Sequence[pd.DataFrame]], looks: Looks) -> tuple[Figure, Any]:
    """Draw rows of marks with intervals; return the figure and its panels (lines, panels per line).

    Args:
        lines: a table for each panel; the panels of a line share rows and x axis. Columns: row, its
            name; series, a key of ``looks``; value; and optionally low and high, group (a heading
            above its rows) and filled. Groups, and rows in them, are in the order in which they
            first occur.
        looks: of the series; several series of a row are drawn below each other.
    """
    defaults = {"group": "", "filled": True, "low": np.nan, "high": np.nan}
    lines = [
        [pd.DataFrame(defaults, table.index).assign(**table) for table in tables]
        for tables in lines
    ]
    crowded = any(table.duplicated(["group", "row"]).any() for tables in lines for table in tables)
    places = [_places(pd.concat(tables)) for tables in lines]
    heights = [max(0.2, 0.1 + 0.055 * len(looks) * crowded) * len(place) for place in places]
    figure = Figure(figsize=(WIDTH, sum(heights)))
    grid: dict[str, Any] = {
        "sharex": "row",
        "sharey": "row",
        "squeeze": False,
        "height_ratios": heights,
    }
    panels = figure.subplots(len(lines), len(lines[0]), **grid)
    for tables, place, beside in zip(lines, places, panels, strict=True):
        for table, axes in zip(tables, beside, strict=True):
            _draw_marks(axes, table, place, looks, 0.7 / len(looks) * crowded)
            axes.xaxis.set_major_locator(MaxNLocator(5 // len(beside), steps=[1, 2, 5, 10]))
        first = beside[0]
        first.set_yticks(range(len(place)), [name for _, name in place])
        first.set_ylim(len(place) - 0.4, -0.6)
        # a long heading extends over the next panel
        first.set(zorder=1, facecolor="none")
        edge = blended_transform_factory(figure.transFigure, first.transData)
        for (group, name), y in place.items():
            if not name:
                first.text(
                    0.01,
                    y,
                    _short(group),
                    transform=edge,
                    va="center",
                    fontweight="bold",
                    in_layout=False,
                )
    return figure, panels


def _short(text: str) -> str:
    return text if len(text) <= LETTERS - 6 else f"{text[: LETTERS - 7]}…"


def _places(table: pd.DataFrame) -> Places:
    rows: Places = {}
    for group, of_group in table.groupby("group", sort=False):
        for name in [""] * bool(group) + list(of_group["row"]):
            rows.setdefault((str(group), name), len(rows))
    return rows


def _draw_marks(axes: Axes, table: pd.DataFrame, place: Places, looks: Looks, step: float) -> None:
    """Draw the marks of a panel, with ``step`` between series."""
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", visible=False)
    for (_, name), y in place.items():
        if not name or (step and y % 2):
            axes.axhspan(
                y - 0.5, y + 0.5, color="#f3f3f3" if name else "#eeeeee", zorder=0, linewidth=0
            )
    for number, (series, (label, color, mark)) in enumerate(looks.items()):
        for filled, own in (
            table[table["series"] == series].dropna(subset="value").groupby("filled")
        ):
            rows = [place[row] for row in zip(own["group"], own["row"], strict=True)]
            at = np.array(rows) + step * (number - (len(looks) - 1) / 2)
            axes.hlines(at, own["low"], own["high"], color=color, linewidth=1.6)
            face = color if filled else "white"
            axes.plot(
                own["value"],
                at,
                mark,
                color=color,
                mfc=face,
                markersize=5,
                clip_on=False,
                label=label,
            )


def draw_line(axes: Axes, x: float, label: str = "") -> None:
    """Draw a vertical line at 0, or a dotted one at another value."""
    axes.axvline(x, color=GRAY, linewidth=1.2, linestyle=":" if x else "-", label=label)


def finish(figure: Figure, about: str) -> Figure:
    """Add a common legend above a figure, and a note with n and seed below it.

    The figure has the height of its panels, and grows by the height of legend and note.
    """
    marks: list[Any] = [
        mark for axes in figure.axes for mark in zip(*axes.get_legend_handles_labels(), strict=True)
    ]
    # series with both filled and hollow marks are filled in the legend
    marks += [mark for mark in marks if mark[0].get_markerfacecolor() != "white"]
    shown = {label: mark for mark, label in marks}
    if shown:
        columns = max(1, LETTERS // (max(map(len, shown)) + 4))
        look = {"ncols": columns, "handletextpad": 0.2, "columnspacing": 0.6}
        figure.legend(shown.values(), map(_short, shown), loc="outside upper left", **look)
    figure.supxlabel(textwrap.fill(about, LETTERS), color=GRAY, x=0.01, ha="left")
    height = figure.get_figheight()
    figure.set_figheight(2 * height + 4)
    figure.draw_without_rendering()
    lines = {round(box.y0, 4): box.height for box in (axes.get_position() for axes in figure.axes)}
    around = 1 - sum(lines.values())
    figure.set_figheight(round(height + around * figure.get_figheight(), 2))
    return figure


def empty(text: str) -> Figure:
    """Return a figure with only a text, which says why there is nothing to draw."""
    figure = Figure(figsize=(WIDTH, 1))
    figure.text(0.02, 0.5, text, va="center")
    return figure


def save(figure: Figure, path: Path, title: str, description: str = "") -> None:
    """Write an SVG with a title and a description of its numbers; equal data give equal bytes."""
    # The layout solver's last digits vary between runs, and names in an SVG are hashes of all
    # digits.
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for axes in figure.axes:
        left, bottom, width, height = (
            round(side, 4) for side in axes.get_position(original=True).bounds
        )
        axes.set_position((left, bottom, width, height))
    # The page shows the title above the figure, and the legend's place is fixed.
    width, height = figure.get_size_inches()
    text = textwrap.fill(title, TITLE_LETTERS)
    top = height + 0.26 + 0.2 * text.count("\n")
    figure.text(0.05 / width, (top - 0.04) / height, text, va="top", fontsize=11, fontweight="bold")
    for legend in figure.legends:
        legend.set_bbox_to_anchor((0, 0, 1, 1), transform=figure.transFigure)
    words = {"Title": title} | ({"Description": description} if description else {})
    with atomic(path) as temporary:
        figure.savefig(
            temporary,
            format="svg",
            bbox_inches=Bbox([[0, 0], [width, top]]),
            metadata={"Date": None, "Creator": "compclip", **words},
        )
