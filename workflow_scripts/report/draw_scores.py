"""Draw the scores, the differences and the judge's training of one data set and composition.

Every figure is an SVG that states its definition, its n and its seed; its bytes depend on its data alone.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from workflow_scripts.core import cli
from workflow_scripts.core.cli import log
from workflow_scripts.core.io import read_json
from workflow_scripts.core.layout import ORACLE
from workflow_scripts.core.tables import TESTS
from workflow_scripts.divergence.results import COLUMNS
from workflow_scripts.plot.drawing import WIDTH, draw_interval, empty, legend, name_rows, note, save, size, style
from workflow_scripts.plot.labels import MEASURE_NAMES, PART_NAMES, SPLIT_COLORS, SPLIT_MARKS, SPLIT_NAMES
from workflow_scripts.report.draw_pairs import draw_pairs
from workflow_scripts.report.rows import against_seen, between_generators, beyond_reference, main_rows, of_measure
from workflow_scripts.report.steps import DrawScores
from workflow_scripts.report.verdicts import MARGIN, deciding_measure

# With more generators, a matrix has a cell for each difference instead of a line.
MOST_LISTED = 8
Place = tuple[str, str]  # generator and split
# The pairs of which judge health is measured, with the split that they are drawn as.
HEALTH_SIDES = {"seen": "test_seen", "held_out": "test_unseen"}


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
    look: dict[str, Any] = {"clip_on": False, "label": SPLIT_NAMES[split]}
    ends = values[0], values[2]
    draw_interval(axes, y, values[1], ends, SPLIT_COLORS[split], SPLIT_MARKS[split], hollow=hollow, **look)


def _explain(figure: Figure, axes: Axes, text: str) -> None:
    """Draw the legend of ``axes`` above a figure, and a note below."""
    legend(figure, [axes], ncols=3, columnspacing=1)
    note(figure, text)


def draw_scores(table: pd.DataFrame, reference: str | None) -> Figure:
    """Draw both scores of each generator and split with 95 % intervals, the reference's beside them, and chance."""
    rows = main_rows(table)
    rows = rows[rows["judge"] != ORACLE].drop_duplicates(["generator", "split"])
    measures = [name for name in MEASURE_NAMES if rows[name].notna().any()]
    if not measures:
        return empty("Nothing was scored.")
    served = [
        (name, split)
        for name, own in rows.groupby("generator", sort=False)
        for split in TESTS if split in set(own["split"])
    ]  # fmt: skip
    scores = rows.set_index(["generator", "split"])
    candidates = int(rows["candidates"].iloc[0])
    chances = {"exact": 1 / candidates, "adjective": rows["adjective_chance"].mean()}
    figure = Figure(figsize=size(len(served) + rows["generator"].nunique(), 0.17, 2.2))
    panels = figure.subplots(1, len(measures), squeeze=False)[0]
    places = _name_generators(panels, served)
    for axes, measure in zip(panels, measures, strict=True):
        for (generator, split), y in places.items():
            _mark(axes, y, split, [scores.at[(generator, split), f"{measure}{end}"] for end in ("_low", "", "_high")])
        for (generator, split), y in places.items():
            if generator != reference and (reference, split) in places:
                axes.plot(
                    100 * scores.at[(reference, split), measure], y, "|", color="#000000", markersize=10.5,
                    markeredgewidth=1.3, clip_on=False, label=f"reference: {reference}",
                )  # fmt: skip
        axes.axvline(100 * chances[measure], color="#555555", linewidth=1.3, linestyle=":", label="chance")
        axes.set_title(f"{MEASURE_NAMES[measure]}, %")
        axes.set_xlim(0, 102)
        axes.set_xticks([0, 50, 100])
    low, high = int(rows["n"].min()), int(rows["n"].max())
    counts = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    text = (
        "How often a judge ranks an image's caption first:\n"
        f"R-precision: among {candidates} captions; adjective accuracy:\n"
        "among its copies with other adjectives. Lines: 95 %\n"
        f"intervals; n = {counts} images a row; seed {int(rows['seed'].iloc[0])}."
    )
    _explain(figure, panels[0], text)
    return figure


def draw_gaps(falls: pd.DataFrame, beyond: pd.DataFrame, measure: str, seed: int) -> Figure:
    """Draw unseen and swapped against seen, for each generator, and the same beyond the reference's.

    ``falls`` and ``beyond`` are as ``against_seen`` and ``beyond_reference`` return them, of one ``measure``.
    """
    if falls.empty:
        return empty("No generator serves seen and another split.")
    parts = [("minus seen, points", falls.set_index(["generator", "split"]))]
    if len(beyond):
        parts.append((f"and minus {beyond['b'].iloc[0]}", beyond.set_index(["a", "split"])))
    figure = Figure(figsize=size(len(falls) + falls["generator"].nunique(), 0.17, 2.3))
    panels = figure.subplots(1, len(parts), sharex=True, squeeze=False)[0]
    places = _name_generators(panels, list(zip(falls["generator"], falls["split"], strict=True)))
    for axes, (title, rows) in zip(panels, parts, strict=True):
        for (generator, split), y in places.items():
            if (generator, split) in rows.index:
                low, middle, high = rows.loc[(generator, split), ["low", "difference", "high"]]
                _mark(axes, y, split, (low, middle, high), not (low > 0 or high < 0))
        axes.axvline(0, color="#333333", linewidth=1)
        axes.set_title(title)
        axes.xaxis.set_major_locator(MaxNLocator(3))
    panels[-1].axvline(-100 * MARGIN, color="#555555", linewidth=1.3, linestyle=":")
    text = (
        f"{MEASURE_NAMES[measure]} minus that on seen captions,\n"
        "and, at the right, minus the same of the reference.\n"
        "Lines: 95 % intervals; hollow: the interval holds 0;\n"
        f"dotted: {100 * MARGIN:.0f} points below the reference; seed {seed}."
    )
    _explain(figure, panels[0], text)
    return figure


def draw_health(healths: Sequence[Mapping[str, Any]]) -> Figure:
    """Draw how often each judge chooses the right adjective where images show it. healths: each judge's."""
    kinds = [kind for kind, of in healths[0]["images"].items() if all(of[side]["n"] for side in HEALTH_SIDES)]
    if not kinds:
        return empty("No judged held-out pair has another ranked adjective.")
    figure = Figure(figsize=size(len(kinds) * len(HEALTH_SIDES), 0.32, 2.2))
    axes = figure.add_subplot()
    names: list[str] = []
    for kind in kinds:
        for side, split in HEALTH_SIDES.items():
            sides = [health["images"][kind][side] for health in healths]
            for number, of in enumerate(sides):
                y = len(names) + 0.7 * ((number + 0.5) / len(sides) - 0.5)
                values = [of["accuracy"] if of[end] is None else of[end] for end in ("low", "accuracy", "high")]
                _mark(axes, y, split, values)
            names.append(f"{kind} images")
    chance = np.mean([healths[0]["images"][kind][side]["chance"] for kind in kinds for side in HEALTH_SIDES])
    axes.axvline(100 * chance, color="#555555", linewidth=1.3, linestyle=":", label="chance")
    name_rows(axes, names)
    axes.set_xlim(0, 102)
    axes.set_title("adjective accuracy, %")
    ratios = [of["ratio"] for of in healths if of["ratio"] is not None]
    health = f"; health {min(ratios):.2f} to {max(ratios):.2f}" if ratios else ""
    text = (
        "How often a judge chooses the caption, whose pair\n"
        "the image shows, among copies with other adjectives.\n"
        f"{len(healths)} judges, 95 % intervals{health}."
    )
    _explain(figure, axes, text)
    return figure


def draw_drops(table: pd.DataFrame, gaps: pd.DataFrame, seed: int) -> Figure:
    """Draw each generator's unseen and swapped against its seen, by the divergence of each split's prompts from train.

    Seen itself is at 0 and its own divergence, because the difference of two divergences has no meaning. No line is
    fitted through so few splits. ``gaps`` are as ``labels.against_seen`` returns them.
    """
    rows = main_rows(table).drop_duplicates("split").set_index("split")
    columns = {
        name: f"D_C of {PART_NAMES[COLUMNS[name][0], 'compounds']}"
        for name in ("compound_divergence", "subgraph_divergence")
        if rows[name].notna().any()
    }
    generators = list(gaps["generator"].drop_duplicates())
    if not generators or not columns:
        return empty("No score of unseen or swapped has a measured divergence.")
    measured = int(rows[list(columns)].notna().any(axis=1).sum())
    figure = Figure(figsize=size(len(generators), 1.2, 1.3))
    grid = figure.subplots(len(generators), len(columns), sharex="col", sharey=True, squeeze=False)
    for generator, line in zip(generators, grid, strict=True):
        own = gaps[gaps["generator"] == generator].set_index("split")
        for axes, column in zip(line, columns, strict=True):
            apart = rows[column].dropna()
            axes.axhline(0, color="#333333", linewidth=0.8)
            for split in (s for s in TESTS if s in apart.index and (s == "test_seen" or s in own.index)):
                color, low, middle, high = SPLIT_COLORS[split], 0.0, 0.0, 0.0
                if split != "test_seen":
                    low, middle, high = (100 * own.at[split, name] for name in ("low", "difference", "high"))
                axes.vlines(apart[split], low, high, color=color, linewidth=1.6)
                axes.plot(apart[split], middle, SPLIT_MARKS[split], color=color, markersize=5, label=SPLIT_NAMES[split])
            axes.set_xlim(-0.06 * apart.max(), 1.12 * apart.max())
            axes.margins(y=0.12)
            axes.xaxis.set_major_locator(MaxNLocator(4))
            axes.yaxis.set_major_locator(MaxNLocator(4))
        line[0].set_title(generator, fontweight="bold")
    for axes, words in zip(grid[-1], columns.values(), strict=True):
        axes.set_xlabel(words)
    figure.supylabel("points from seen")
    legend(figure, grid[:, 0], ncols=3)
    note(
        figure,
        "difference of exact R-precision in percentage points, with its 95 % interval where that is longer\n"
        "than the mark; D_C: compound divergence of train from what is prompted for, 0 (alike) to 1\n"
        f"(nothing in common); n = {measured} splits, too few to draw a line through; seed {seed}",
    )
    return figure


def _draw_matrices(groups: Sequence[tuple[str, pd.DataFrame]], seed: int) -> Figure:
    """Draw the differences of many generators: a matrix for each split, the best generator first."""
    limit = 100 * max(part["difference"].abs().max() for _, part in groups) or 1
    matrices = []
    for split, part in groups:
        names = list(dict.fromkeys(part[["a", "b"]].to_numpy().ravel()))
        place = {name: number for number, name in enumerate(names)}
        a, b = part["a"].map(place).to_numpy(), part["b"].map(place).to_numpy()
        whole, clear = np.zeros((2, len(names), len(names)))
        whole[a, b], whole[b, a] = 100 * part["difference"], -100 * part["difference"]
        clear[a, b] = clear[b, a] = (part["low"] > 0) | (part["high"] < 0)
        order = np.argsort(-whole.sum(axis=1), kind="stable")
        shown = np.where(clear, whole, 0)[np.ix_(order, order)]
        matrices.append((SPLIT_NAMES[split], [names[number] for number in order], shown))
    rows = sum(len(names) for _, names, _ in matrices)
    figure = Figure(figsize=size(rows, 0.19, 0.5 * len(matrices) + 1.2))
    *all_axes, legend = figure.subplots(
        len(matrices) + 1, 1, height_ratios=[*(len(names) for _, names, _ in matrices), 1]
    )
    for axes, (title, names, shown) in zip(all_axes, matrices, strict=True):
        # Violet and orange can be told apart with any color vision.
        drawn = axes.imshow(shown, cmap="PuOr", vmin=-limit, vmax=limit, interpolation="none", aspect="auto")
        name_rows(axes, names, 0.5)
        axes.set_xticks([])
        axes.grid(visible=False)
        axes.set_title(title)
    figure.colorbar(drawn, cax=legend, orientation="horizontal", label="percentage points")
    note(
        figure,
        "difference of exact R-precision, row minus column; columns are in the order of the rows;\n"
        f"palest: its 95 % interval holds 0; paired on the same images; seed {seed}",
    )
    return figure


def draw_comparisons(comparisons: pd.DataFrame, seed: int) -> Figure:
    """Draw generators against each other, by split. comparisons: as ``labels.between_generators`` returns them."""
    if comparisons.empty:
        return empty("There is one generator, and nothing to compare it with.")
    groups = list(comparisons.groupby("split", sort=False))
    if any(part[["a", "b"]].stack().nunique() > MOST_LISTED for _, part in groups):
        return _draw_matrices(groups, seed)
    figure = Figure(figsize=size(len(comparisons), 0.24, 0.5 * len(groups) + 1.0))
    all_axes = figure.subplots(
        len(groups), 1, sharex=True, squeeze=False, height_ratios=[len(part) + 0.2 for _, part in groups]
    )[:, 0]
    for axes, (split, part) in zip(all_axes, groups, strict=True):
        for y, row in enumerate(part.itertuples()):
            hollow = not (row.low > 0 or row.high < 0)
            draw_interval(axes, y, row.difference, (row.low, row.high), SPLIT_COLORS[split], "o", hollow=hollow)
        axes.axvline(0, color="#333333", linewidth=1)
        name_rows(axes, [f"{row.a} − {row.b}" for row in part.itertuples()])
        axes.set_title(SPLIT_NAMES[split])
    all_axes[-1].set_xlabel("percentage points")
    note(
        figure,
        "difference of exact R-precision; line: 95 % interval; hollow: it holds 0;\n"
        f"paired on the same images; seed {seed}",
    )
    return figure


def draw_judges(table: pd.DataFrame) -> Figure:
    """Draw each score by each of several judges, and their mean."""
    rows = table[(table["judge"] != ORACLE) & (table["distractors"] == "original")]
    rows = rows[(rows["split"] != "test_seen") | (rows["prompts"] != "swapped")]
    if rows.empty:
        return empty("There are no scores.")
    means, parts = rows[rows["judges"] > 1], rows[rows["judges"] == 1]
    figure = Figure(figsize=size(len(means), 0.25, 1.4))
    panels = figure.subplots(1, 2, sharey=True)
    for axes, column, title in zip(panels, ("exact", "adjective"), ("R-precision", "adjective\naccuracy"), strict=True):
        for y, mean in enumerate(means.itertuples()):
            own = parts[(parts["generator"] == mean.generator) & (parts["split"] == mean.split)]
            color = SPLIT_COLORS[mean.split]
            axes.plot(100 * own[column], [y] * len(own), SPLIT_MARKS[mean.split], color=color, alpha=0.6, markersize=5)
            axes.plot(100 * getattr(mean, column), y, "|", color="#000000", markersize=10, markeredgewidth=1.6)
        axes.set_title(title)
        axes.set_xlabel("%")
    name_rows(panels[0], [f"{row.generator}, {SPLIT_NAMES[row.split]}" for row in means.itertuples()])
    judges = int(rows["judges"].max())
    note(figure, f"each mark: one of {judges} judges, which differ in their seed; line: their mean")
    return figure


def draw_loss(trainings: Sequence[pd.DataFrame], seed: int) -> Figure:
    """Draw each judge's loss in each epoch, and how often it retrieves the captions of real test images."""
    training = trainings[0]
    watched = [column for column in training if column.startswith("retrieval")]
    if "loss" not in training:
        return empty("The judge was not trained: it is used as it came (epochs: 0).")
    figure = Figure(figsize=(WIDTH, 2.6 + 2.0 * bool(watched)))
    all_axes = figure.subplots(1 + bool(watched), 1, sharex=True, squeeze=False)[:, 0]
    for one in trainings:
        all_axes[0].plot(one["epoch"], one["loss"], "o-", color="#555555", linewidth=1.5, markersize=3)
    all_axes[0].set_title("contrastive loss, mean of the epoch")
    all_axes[0].set_ylim(bottom=0)
    for column in watched:
        split = column.replace("retrieval", "test")
        for number, one in enumerate(trainings):
            all_axes[1].plot(
                one["epoch"], 100 * one[column], color=SPLIT_COLORS[split], marker=SPLIT_MARKS[split],
                markersize=4, label=None if number else SPLIT_NAMES[split],
            )  # fmt: skip
    if watched:
        all_axes[1].set_title("test images whose caption is first of 100, %")
        all_axes[1].set_ylim(0, 100)
        all_axes[1].legend(loc="best")
    all_axes[-1].set_xlabel("epoch")
    all_axes[-1].xaxis.set_major_locator(MaxNLocator(6, integer=True))
    note(
        figure,
        f"n = {int(training['step'].max()):,} steps in {len(training)} epochs; {len(trainings)} judges; seed {seed}",
    )
    return figure


def main(step: DrawScores) -> None:
    table, differences, pairs = (
        rows[(rows["dataset"] == step.dataset) & (rows["composition"] == step.composition)]
        for rows in map(pd.read_csv, (step.table, step.differences, step.by_pair))
    )
    beyond, measure, seed = beyond_reference(differences), deciding_measure(differences), step.seed
    falls, reference = against_seen(differences), next(iter(beyond["b"]), None)
    between, gaps = (of_measure(rows, "exact") for rows in (between_generators(differences), falls))
    by_divergence = "How far each generator falls from seen, by how far the split is from train"
    with style():
        drawn_gaps = draw_gaps(of_measure(falls, measure), of_measure(beyond, measure), measure, seed)
        figures = [
            (step.scores, "Both scores of each generator on each split", draw_scores(table, reference)),
            (step.gaps, "How far each generator falls from seen, also beyond the reference", drawn_gaps),
            (step.drops, by_divergence, draw_drops(table, gaps, seed)),
            (step.comparisons, "Generators against each other, on each split", draw_comparisons(between, seed)),
            (step.pairs, "How far each generator falls from seen, by held-out pair", draw_pairs(pairs, seed)),
            (step.health, "Judge health", draw_health([read_json(file) for file in step.healths])),
            (step.loss, "The judges' training", draw_loss([pd.read_csv(j / "log.csv") for j in step.judges], seed)),
        ]
        if step.by_judge:
            figures.append((step.by_judge, "Each judge's scores", draw_judges(table)))
        for path, title, figure in figures:
            save(figure, path, f"{title} ({step.dataset}, {step.composition})")
    log.info("%s, %s: %d figures", step.dataset, step.composition, len(figures))


if __name__ == "__main__":
    cli.run(main)
