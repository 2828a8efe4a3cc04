"""The figure of what people answered."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from compclip.core.tables import TESTS
from compclip.human.correlation import RUN_SCORES
from compclip.human.opinions import ALL
from compclip.human.tasks import KINDS
from compclip.plot.drawing import WIDTH, legend, name_rows, note
from compclip.plot.labels import SPLIT_COLORS, SPLIT_MARKS, SPLIT_NAMES

ALL_COLOR = "#222222"
PANEL_TITLES = {
    "perceptual": "preferred to other generators' image",
    "match": "image said to match its caption",
    "caption": "own caption chosen of two",
}


def _draw_split(
    axes: Axes, rows: pd.DataFrame, y: np.ndarray, split: str, label: str, value: str, scale: int = 1
) -> None:
    color, mark = SPLIT_COLORS.get(split, ALL_COLOR), SPLIT_MARKS.get(split, "o")
    axes.hlines(y, scale * rows["low"], scale * rows["high"], color=color, linewidth=1.6)
    axes.plot(scale * rows[value], y, mark, color=color, markersize=4.5, linestyle="none", label=label)


def _draw_preferences(axes: Axes, kind: str, rows: pd.DataFrame) -> None:
    generators = list(rows["generator"].drop_duplicates())
    for split, offset in zip(TESTS, (-0.22, 0.0, 0.22), strict=True):
        of_split = rows[rows["split"] == split]
        y = np.array([generators.index(name) for name in of_split["generator"]]) + offset
        _draw_split(axes, of_split, y, split, SPLIT_NAMES[split], "share", 100)
    if kind != "match":
        axes.axvline(50, color="#555555", linewidth=1, linestyle=":")
    axes.set_xlim(-2, 102)
    axes.set_title(f"{PANEL_TITLES[kind]}, %")
    name_rows(axes, generators)


def _draw_correlations(axes: Axes, rows: pd.DataFrame, lines: Sequence[tuple[str, str]]) -> None:
    for split, offset in zip([ALL, *TESTS], (-0.27, -0.09, 0.09, 0.27), strict=True):
        of_split = rows[rows["split"] == split]
        y = np.array([lines.index(line) for line in zip(of_split["kind"], of_split["score"], strict=True)]) + offset
        _draw_split(axes, of_split, y, split, "all splits" if split == ALL else "_", "value")
    axes.axvline(0, color="#333333", linewidth=1)
    axes.set_title("score and answers: Kendall's tau-b")
    name_rows(axes, [f"{kind}: {RUN_SCORES.get(score, score)}" for kind, score in lines])


def draw_people(preferences: pd.DataFrame, correlations: pd.DataFrame, about: str) -> Figure:
    """Draw a panel of preferences for each kind, and below them the correlations with the scores."""
    kinds = [kind for kind in KINDS if (preferences["kind"] == kind).any()]
    to_all = preferences[preferences["against"].isin([np.nan, None, ALL])]
    panels = [to_all[to_all["kind"] == kind] for kind in kinds]
    is_tau = (correlations["statistic"] == "kendall") & (correlations["level"] == "image")
    tau = correlations[is_tau & correlations["value"].notna() & correlations["low"].notna()]
    lines = list(tau[["kind", "score"]].drop_duplicates().itertuples(index=False, name=None))
    heights = [rows["generator"].nunique() + 0.8 for rows in panels] + ([len(lines) + 0.8] if lines else [])
    figure = Figure(figsize=(WIDTH, 0.42 * sum(heights) + 1.6))
    axes_of = figure.subplots(len(heights), 1, squeeze=False, height_ratios=heights)[:, 0]
    for axes, kind, rows in zip(axes_of, kinds, panels, strict=False):
        _draw_preferences(axes, kind, rows)
    if lines:
        _draw_correlations(axes_of[-1], tau, lines)
    legend(figure, axes_of, ncols=2)
    note(figure, about)
    return figure
