"""The figures of scores, falls from seen, also by pair, and the judges' training; each states its n and its seed."""

from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from compclip.core.tables import TESTS
from compclip.plot.drawing import WIDTH, draw_interval, empty, legend, name_rows, note, size
from compclip.plot.labels import SPLIT_COLORS, SPLIT_MARKS, SPLIT_NAMES, pair_words
from compclip.report.by_pair import ranked_pairs
from compclip.report.comparisons import HELDOUT
from compclip.report.measures import COMPARED
from compclip.report.rows import main_rows, of_measure
from compclip.report.verdicts import MARGIN

Place = tuple[str, str]  # generator and split
# Colors of Okabe and Ito with a mark each; more generators are in pairs.csv alone.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#555555", "#000000")
MARKS = "oDs^vPX*"


def _name_generators(panels: Sequence[Axes], served: Sequence[Place]) -> dict[Place, int]:
    """Give each generator a line with its name, and below it one for each of its splits; return these lines."""
    lines: list[Place] = []
    for generator, split in served:
        lines += [(generator, "")] * ((generator, "") not in lines) + [(generator, split)]
    for axes in panels:
        name_rows(axes, [""] * len(lines))
    for y, (generator, split) in enumerate(lines):
        if not split:
            for axes in panels:
                axes.axhspan(y - 0.5, y + 0.5, color="#eeeeee", zorder=0, linewidth=0)
            place = panels[0].get_yaxis_transform()
            panels[0].text(0.01, y, generator, transform=place, va="center", fontweight="bold")
    # A long name continues over the second panel.
    panels[0].set_zorder(1)
    panels[0].patch.set_visible(False)
    return {line: y for y, line in enumerate(lines) if line[1]}


def _mark(axes: Axes, y: float, split: str, values: Sequence[float], hollow: bool = False) -> None:
    """Draw the mark of a split with its interval; values: low, middle and high, fractions."""
    look: dict[str, Any] = {"clip_on": False, "label": SPLIT_NAMES[split], "hollow": hollow}
    draw_interval(axes, y, values[1], (values[0], values[2]), SPLIT_COLORS[split], SPLIT_MARKS[split], **look)


def draw_scores(scores: pd.DataFrame, reference: str | None, seed: int) -> Figure:
    """Draw both scores of each generator and split with 95 % intervals, the reference's beside them, and chance."""
    main = main_rows(scores)
    rows = of_measure(main, "r_precision")
    measures = [measure for name, measure in COMPARED.items() if of_measure(main, name)["value"].notna().any()]
    if not measures:
        return empty("Nothing was scored.")
    served = [
        (name, split)
        for name, own in rows.groupby("generator", sort=False)
        for split in TESTS if split in set(own["split"])
    ]  # fmt: skip
    candidates = int(rows["candidates"].iloc[0])
    figure = Figure(figsize=size(len(served) + rows["generator"].nunique(), 0.17, 2.2))
    panels = figure.subplots(1, len(measures), squeeze=False)[0]
    places = _name_generators(panels, served)
    for axes, measure in zip(panels, measures, strict=True):
        of = of_measure(main, measure.name).set_index(["generator", "split"])
        for place, y in places.items():
            _mark(axes, y, place[1], of.loc[place, ["low", "value", "high"]].tolist())
        for (generator, split), y in places.items():
            if generator != reference and (reference, split) in places:
                axes.plot(
                    100 * of.at[(reference, split), "value"], y, "|", color="#000000", markersize=10.5,
                    markeredgewidth=1.3, clip_on=False, label=f"reference: {reference}",
                )  # fmt: skip
        chance = of_measure(main, f"{measure.name}_chance")["value"].mean()
        axes.axvline(100 * chance, color="#555555", linewidth=1.3, linestyle=":", label="chance")
        axes.set_title(f"{measure.title}, %")
        axes.set_xlim(0, 102)
        axes.set_xticks([0, 50, 100])
    legend(figure, [panels[0]], ncols=3, columnspacing=1)
    counts = " to ".join(dict.fromkeys(f"{n:,}" for n in (rows["n"].min(), rows["n"].max())))
    text = (
        "How often a judge ranks an image's caption first:\n"
        f"R-precision: among {candidates} captions; adjective accuracy:\n"
        "among its copies with other adjectives. Lines: 95 %\n"
        f"intervals; n = {counts} images a row; seed {seed}."
    )
    note(figure, text)
    return figure


def draw_gaps(falls: pd.DataFrame, beyond: pd.DataFrame, measure: str, seed: int) -> Figure:
    """Draw unseen and swapped against seen, for each generator, and the same beyond the reference's.

    ``falls`` and ``beyond`` are as ``against_seen`` and ``of_kind`` return them, of one ``measure``.
    """
    if falls.empty:
        return empty("No generator serves seen and another split.")
    shown = [("minus seen, points", falls.set_index(["generator", "split"]))]
    if len(beyond):
        shown.append((f"and minus {beyond['b'].iloc[0]}", beyond.set_index(["a", "split"])))
    figure = Figure(figsize=size(len(falls) + falls["generator"].nunique(), 0.17, 2.3))
    panels = figure.subplots(1, len(shown), sharex=True, squeeze=False)[0]
    places = _name_generators(panels, list(zip(falls["generator"], falls["split"], strict=True)))
    for axes, (title, rows) in zip(panels, shown, strict=True):
        for (generator, split), y in places.items():
            if (generator, split) in rows.index:
                low, middle, high = rows.loc[(generator, split), ["low", "difference", "high"]]
                _mark(axes, y, split, (low, middle, high), not (low > 0 or high < 0))
        axes.axvline(0, color="#333333", linewidth=1)
        axes.set_title(title)
        axes.xaxis.set_major_locator(MaxNLocator(3))
    panels[-1].axvline(-100 * MARGIN, color="#555555", linewidth=1.3, linestyle=":")
    legend(figure, [panels[0]], ncols=3, columnspacing=1)
    text = (
        f"{COMPARED[measure].title} minus that on seen captions,\n"
        "and, at the right, minus the same of the reference.\n"
        "Lines: 95 % intervals; hollow: the interval holds 0;\n"
        f"dotted: {100 * MARGIN:.0f} points below the reference; seed {seed}."
    )
    note(figure, text)
    return figure


def draw_pairs(table: pd.DataFrame, seed: int) -> Figure:
    """Draw the falls: a row a pair, a column a score, a panel a split. table: rows of ``pairs.csv``."""
    measures = [measure for name, measure in COMPARED.items() if table[f"{name}_fall"].notna().any()]
    pairs = {split: ranked_pairs(table, split, measures[-1].name) for split in HELDOUT} if measures else {}
    pairs = {split: names for split, names in pairs.items() if names}
    if not pairs:
        return empty("No generator serves seen and a held-out pair.")
    generators = list(table["generator"].drop_duplicates())
    names, more = generators[: len(COLORS)], len(generators) - len(COLORS)
    heights = [len(of_split) + 0.4 for of_split in pairs.values()]
    figure = Figure(figsize=size(sum(map(len, pairs.values())), 0.1 + 0.055 * len(names), 1.6 + len(pairs) / 2))
    grid = figure.subplots(len(pairs), len(measures), sharex="col", squeeze=False, height_ratios=heights)
    for (split, of_split), line in zip(pairs.items(), grid, strict=True):
        rows = table[(table["split"] == split) & table["pair"].isin(of_split)]
        n = rows.groupby("pair")["n"].max()
        for axes, measure in zip(line, measures, strict=True):
            for number, (name, color, mark) in enumerate(zip(names, COLORS, MARKS, strict=False)):
                own = rows[(rows["generator"] == name) & rows[f"{measure.name}_fall"].notna()]
                # The generators of a pair are below each other.
                y = own["pair"].map(of_split.index).to_numpy(float) + 0.7 * ((number + 0.5) / len(names) - 0.5)
                low, middle, high = (100 * own[f"{measure.name}_fall{end}"] for end in ("_low", "", "_high"))
                axes.hlines(y, low, high, color=color, linewidth=0.9, alpha=0.6)
                axes.plot(middle, y, mark, color=color, markersize=4, label=name)
            axes.axvline(0, color="#333333", linewidth=1)
            name_rows(axes, [f"{pair_words(pair)} ({n[pair]})" for pair in of_split])
            axes.tick_params(labelleft=axes is line[0])
        line[0].set_title(f"{SPLIT_NAMES[split]} − seen")
    for axes, measure in zip(grid[-1], measures, strict=True):
        axes.set_xlabel(f"{measure.title}, points".replace(" ", "\n"))
    legend(figure, [grid[0][0]], ncols=2)
    note(
        figure,
        "a pair's score minus that on seen (swapped: of the same captions; unseen: of all of seen);\n"
        "in brackets: images made; lines: 95 % intervals over the pair's images and the judges;\n"
        f"seed {seed}{f'; {more} more generators are in pairs.csv' if more > 0 else ''}",
    )
    return figure


def draw_loss(trainings: Sequence[pd.DataFrame], seed: int) -> Figure:
    """Draw each judge's loss in each epoch, and how often it retrieves the captions of real test images."""
    training = trainings[0]
    watched = [column for column in training if column.startswith("retrieval")]
    if "loss" not in training:
        return empty("The judge was not trained: it is used as it came (epochs: 0).")
    figure = Figure(figsize=(WIDTH, 2.6 + 2.0 * bool(watched)))
    panels = figure.subplots(1 + bool(watched), 1, sharex=True, squeeze=False)[:, 0]
    for number, one in enumerate(trainings):
        panels[0].plot(one["epoch"], one["loss"], "o-", color="#555555", linewidth=1.5, markersize=3)
        for split in (column.replace("retrieval", "test") for column in watched):
            look = {"color": SPLIT_COLORS[split], "marker": SPLIT_MARKS[split], "markersize": 4}
            label = None if number else SPLIT_NAMES[split]
            panels[1].plot(one["epoch"], 100 * one[split.replace("test", "retrieval")], label=label, **look)
    panels[0].set_title("contrastive loss, mean of the epoch")
    panels[0].set_ylim(bottom=0)
    if watched:
        panels[1].set_title("test images whose caption is first of 100, %")
        panels[1].set_ylim(0, 100)
        panels[1].legend(loc="best")
    panels[-1].set_xlabel("epoch")
    panels[-1].xaxis.set_major_locator(MaxNLocator(6, integer=True))
    steps = f"{int(training['step'].max()):,} steps in {len(training)} epochs"
    note(figure, f"n = {steps}; {len(trainings)} judges; seed {seed}")
    return figure
