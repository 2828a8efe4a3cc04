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

from compclip.core.artifacts.files import atomic

# Readable on a phone: the width in inches, and how many letters of a title and of other texts fit.
WIDTH = 3.75
TITLE_LETTERS = 36
LETTERS = 48
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
# The position of each row, by group and name; a group's heading has no name.
Positions = dict[tuple[str, str], int]
# Columns that a table of rows need not have.
ROW_DEFAULTS = {"group": "", "filled": True, "low": np.nan, "high": np.nan}


def style() -> AbstractContextManager[None]:
    """Return the style of all figures, independent of a user's matplotlibrc."""
    settings: dict[Any, Any] = {**dict(matplotlib.rcParamsDefault), **FIGURE_STYLE}
    return matplotlib.rc_context(settings)


def looks_of(names: Iterable[str]) -> Looks:
    """Return a look for each of at most ``len(SERIES_COLORS)`` names."""
    series = zip(names, SERIES_COLORS, SERIES_MARKS, strict=False)
    return {name: (name, color, mark) for name, color, mark in series}


def in_percent(
    table: pd.DataFrame, value: str, low: str = "low", high: str = "high", **columns: Any
) -> pd.DataFrame:
    """Return ``columns`` of a table, and value, low and high in percent, for ``draw_rows``."""
    percentages = {"value": value, "low": low, "high": high}
    in_percent = {name: 100 * table[column] for name, column in percentages.items()}
    return pd.DataFrame(in_percent | columns)


def draw_rows(lines: Sequence[Sequence[pd.DataFrame]], looks: Looks) -> tuple[Figure, Any]:
    """Draw rows of marks with intervals; return the figure and its panels (lines, panels per line).

    Args:
        lines: a table for each panel; the panels of a line share rows and x axis. Columns: row, its
            name; series, a key of ``looks``; value; and optionally low and high, group (a heading
            above its rows) and filled. Groups, and rows in them, are in the order in which they
            first occur.
        looks: of the series; several series of a row are drawn below each other.
    """
    lines = [[_with_defaults(table) for table in tables] for tables in lines]
    # Several series of a row are drawn below each other, so the rows must be higher.
    repeats = [table.duplicated(["group", "row"]).any() for tables in lines for table in tables]
    crowded = any(repeats)
    positions = [_row_positions(pd.concat(tables)) for tables in lines]
    row_height = max(0.2, 0.1 + 0.055 * len(looks)) if crowded else 0.2
    heights = [row_height * len(rows) for rows in positions]
    figure = Figure(figsize=(WIDTH, sum(heights)))
    panels = figure.subplots(
        len(lines),
        len(lines[0]),
        sharex="row",
        sharey="row",
        squeeze=False,
        height_ratios=heights,
    )
    step = 0.7 / len(looks) if crowded else 0.0
    for tables, rows, line_panels in zip(lines, positions, panels, strict=True):
        for table, axes in zip(tables, line_panels, strict=True):
            _draw_marks(axes, table, rows, looks, step)
            ticks = 5 // len(line_panels)
            axes.xaxis.set_major_locator(MaxNLocator(ticks, steps=[1, 2, 5, 10]))
        _name_rows(figure, line_panels[0], rows)
    return figure, panels


def _with_defaults(table: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame(ROW_DEFAULTS, table.index).assign(**table)


def _name_rows(figure: Figure, first: Axes, positions: Positions) -> None:
    """Write the names of the rows and the headings of the groups to the left of the first panel."""
    first.set_yticks(range(len(positions)), [name for _, name in positions])
    first.set_ylim(len(positions) - 0.4, -0.6)
    # A long heading extends over the next panel.
    first.set(zorder=1, facecolor="none")
    left_edge = blended_transform_factory(figure.transFigure, first.transData)
    for (group, name), y in positions.items():
        if not name:
            heading = first.text(0.01, y, _short(group), transform=left_edge, va="center")
            heading.set_fontweight("bold")
            # Otherwise the layout would make room for the heading inside the panel.
            heading.set_in_layout(False)


def _short(text: str) -> str:
    return text if len(text) <= LETTERS - 6 else f"{text[: LETTERS - 7]}…"


def _row_positions(table: pd.DataFrame) -> Positions:
    positions: Positions = {}
    for group, rows in table.groupby("group", sort=False):
        names = list(rows["row"])
        if group:
            names.insert(0, "")
        for name in names:
            positions.setdefault((str(group), name), len(positions))
    return positions


def _draw_marks(
    axes: Axes, table: pd.DataFrame, positions: Positions, looks: Looks, step: float
) -> None:
    """Draw the marks of a panel, with ``step`` between series."""
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", visible=False)
    for (_, name), y in positions.items():
        # Behind headings and, where a row has several series, behind every second row.
        if not name or (step and y % 2):
            color = "#f3f3f3" if name else "#eeeeee"
            axes.axhspan(y - 0.5, y + 0.5, color=color, zorder=0, linewidth=0)
    for number, (series, (label, color, mark)) in enumerate(looks.items()):
        offset = step * (number - (len(looks) - 1) / 2)
        values = table[table["series"] == series].dropna(subset="value")
        for filled, points in values.groupby("filled"):
            rows = zip(points["group"], points["row"], strict=True)
            heights = np.array([positions[row] for row in rows]) + offset
            axes.hlines(heights, points["low"], points["high"], color=color, linewidth=1.6)
            (marks,) = axes.plot(points["value"], heights, mark, color=color, label=label)
            marks.set(markersize=5, clip_on=False)
            marks.set_markerfacecolor(color if filled else "white")


def draw_line(axes: Axes, x: float, label: str = "") -> None:
    """Draw a vertical line at 0, or a dotted one at another value."""
    axes.axvline(x, color=GRAY, linewidth=1.2, linestyle=":" if x else "-", label=label)


def finish(figure: Figure, about: str) -> Figure:
    """Add a common legend above a figure, and a note with n and seed below it.

    The figure has the height of its panels, and grows by the height of legend and note.
    """
    labelled_marks: list[Any] = []
    for axes in figure.axes:
        labelled_marks += zip(*axes.get_legend_handles_labels(), strict=True)
    # A label's last mark counts, so that a series with filled and hollow marks is filled.
    filled = [(mark, label) for mark, label in labelled_marks if _is_filled(mark)]
    mark_by_label = {label: mark for mark, label in [*labelled_marks, *filled]}
    if mark_by_label:
        longest = max(map(len, mark_by_label))
        figure.legend(
            mark_by_label.values(),
            map(_short, mark_by_label),
            loc="outside upper left",
            ncols=max(1, LETTERS // (longest + 4)),
            handletextpad=0.2,
            columnspacing=0.6,
        )
    figure.supxlabel(textwrap.fill(about, LETTERS), color=GRAY, x=0.01, ha="left")
    # In a figure that is high enough, the layout shows how much height legend and note take.
    height = figure.get_figheight()
    figure.set_figheight(2 * height + 4)
    figure.draw_without_rendering()
    boxes = [axes.get_position() for axes in figure.axes]
    height_by_line = {round(box.y0, 4): box.height for box in boxes}
    remainder = 1 - sum(height_by_line.values())
    figure.set_figheight(round(height + remainder * figure.get_figheight(), 2))
    return figure


def _is_filled(mark: Any) -> bool:
    return mark.get_markerfacecolor() != "white"


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
        left, bottom, panel_width, panel_height = axes.get_position(original=True).bounds
        axes.set_position(
            (round(left, 4), round(bottom, 4), round(panel_width, 4), round(panel_height, 4))
        )
    # The page shows the title above the figure, and the legend's place is fixed.
    width, height = figure.get_size_inches()
    text = textwrap.fill(title, TITLE_LETTERS)
    top = height + 0.26 + 0.2 * text.count("\n")
    x = 0.05 / width
    y = (top - 0.04) / height
    figure.text(x, y, text, va="top", fontsize=11, fontweight="bold")
    for legend in figure.legends:
        legend.set_bbox_to_anchor((0, 0, 1, 1), transform=figure.transFigure)
    # A date would give equal data other bytes.
    metadata = {"Date": None, "Creator": "compclip", "Title": title}
    if description:
        metadata["Description"] = description
    area = Bbox([[0, 0], [width, top]])
    with atomic(path) as temporary:
        figure.savefig(temporary, format="svg", bbox_inches=area, metadata=metadata)
