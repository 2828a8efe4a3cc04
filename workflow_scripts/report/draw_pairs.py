"""Draw how far each generator falls from seen on each held-out pair."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from workflow_scripts.plot.drawing import empty, legend, name_rows, note, size
from workflow_scripts.plot.labels import MEASURE_NAMES, SPLIT_NAMES, pair_words
from workflow_scripts.report.by_pair import ranked_pairs
from workflow_scripts.report.comparisons import HELDOUT

# Colors of Okabe and Ito with a mark each; more generators are in pairs.csv alone.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#555555", "#000000")
MARKS = "oDs^vPX*"


def _draw(axes: Axes, rows: pd.DataFrame, names: list[str], pairs: list[str], measure: str) -> None:
    """Draw a dot with its interval for each pair and generator, the generators of a pair below each other."""
    place = {pair: number for number, pair in enumerate(pairs)}
    for number, (name, color, mark) in enumerate(zip(names, COLORS, MARKS, strict=False)):
        own = rows[(rows["generator"] == name) & rows["pair"].isin(place) & rows[f"{measure}_fall"].notna()]
        y = np.array([place[pair] for pair in own["pair"]], float) + 0.7 * ((number + 0.5) / len(names) - 0.5)
        low, middle, high = (100 * own[f"{measure}_fall{end}"] for end in ("_low", "", "_high"))
        axes.hlines(y, low, high, color=color, linewidth=0.9, alpha=0.6)
        axes.plot(middle, y, mark, color=color, markersize=4, label=name)
    axes.axvline(0, color="#333333", linewidth=1)


def draw_pairs(table: pd.DataFrame, seed: int) -> Figure:
    """Draw the falls: a row a pair, a column a score, a panel a split. table: rows of ``pairs.csv``."""
    measures = [name for name in MEASURE_NAMES if table[f"{name}_fall"].notna().any()]
    pairs = {split: ranked_pairs(table, split, measures[-1]) for split in HELDOUT} if measures else {}
    splits = [split for split, names in pairs.items() if names]
    if not splits:
        return empty("No generator serves seen and a held-out pair.")
    generators = list(table["generator"].drop_duplicates())
    names = generators[: len(COLORS)]
    heights = [len(pairs[split]) + 0.4 for split in splits]
    figure = Figure(
        figsize=size(sum(len(pairs[split]) for split in splits), 0.1 + 0.055 * len(names), 1.6 + len(splits) / 2)
    )
    grid = figure.subplots(len(splits), len(measures), sharex="col", squeeze=False, height_ratios=heights)
    for split, line in zip(splits, grid, strict=True):
        rows = table[table["split"] == split]
        n = rows.groupby("pair")["n"].max()
        for axes, measure in zip(line, measures, strict=True):
            _draw(axes, rows, names, pairs[split], measure)
            name_rows(axes, [f"{pair_words(pair)} ({n[pair]})" for pair in pairs[split]])
            if axes is not line[0]:
                axes.tick_params(labelleft=False)
        line[0].set_title(f"{SPLIT_NAMES[split]} − seen")
    for axes, measure in zip(grid[-1], measures, strict=True):
        axes.set_xlabel(f"{MEASURE_NAMES[measure]}, points".replace(" ", "\n"))
    legend(figure, [grid[0][0]], ncols=2)
    more = f"; {len(generators) - len(names)} more generators are in pairs.csv" if len(generators) > len(names) else ""
    note(
        figure,
        "a pair's score minus that on seen (swapped: of the same captions; unseen: of all of seen);\n"
        "in brackets: images made; lines: 95 % intervals over the pair's images and the judges;\n"
        f"seed {seed}{more}",
    )
    return figure
