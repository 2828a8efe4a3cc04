"""Draw how far the test splits of one data set and composition are from train."""

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from workflow_scripts.core import cli
from workflow_scripts.core.cli import log
from workflow_scripts.core.io import read_json, read_table
from workflow_scripts.core.tables import DIVERGENCE, TESTS
from workflow_scripts.divergence.results import SYMBOLS, measured, random_share, share
from workflow_scripts.divergence.steps import DrawDivergence
from workflow_scripts.plot.drawing import WIDTH, empty, name_rows, note, save, size, style
from workflow_scripts.plot.labels import PART_NAMES, SPLIT_COLORS, SPLIT_MARKS, SPLIT_NAMES, pair_words, percent

# Longest name, in characters, beside its bars; if one is longer, all are above their bars.
BESIDE = 20
# Longest name above its bars; longer ones are truncated.
ABOVE = 42


def part_name(definition: str, name: str) -> str:
    """Return a pair or its words as people write them; a part of a parse is unchanged."""
    return pair_words(name.partition(":")[2] or name) if definition == "pairs" else name


def weighed(definition: str, kind: str) -> bool:
    """Return whether the parts are weighed by W; others are counted."""
    return (definition, kind) == ("subgraphs", "compounds")


def draw_shares(distribution: Mapping[str, Any], row: Mapping[str, Any], seed: int) -> Figure:
    """Draw the fractions of train and test that the most frequent parts have; ``row``: the split's measurement."""
    definition, kind, split = (distribution[key] for key in ("definition", "kind", "split"))
    names = [part_name(definition, name) for name in distribution["names"]]
    above = max(map(len, names)) > BESIDE
    figure = Figure(figsize=size(len(names), 0.42 if above else 0.26, 1.6))
    axes = figure.add_subplot()
    rows = np.arange(len(names), dtype=float)
    # Two bars per row; the marks tell them apart without color and show fractions of 0.
    height = 0.2 if above else 0.3
    upper = 0.05 if above else -height / 2
    for side, key, y in (("train", "train", rows + upper), (split, "test", rows + upper + height)):
        shares, color = 100 * np.array(distribution[key]), SPLIT_COLORS[side]
        axes.barh(y, shares, height=height, color=color)
        axes.plot(
            shares, y, SPLIT_MARKS[side], color=color, markersize=5, linestyle="none", clip_on=False,
            label=f"{SPLIT_NAMES[side]} (n = {row[key]:,})",
        )  # fmt: skip
    if above:
        name_rows(axes, [""] * len(names))
        for place, name in zip(rows, names, strict=True):
            text = name if len(name) <= ABOVE else f"{name[: ABOVE - 1]}…"
            axes.text(0, place - 0.1, text, va="bottom")
    else:
        name_rows(axes, names)
    axes.set_xlim(left=0)
    of = PART_NAMES[definition, kind]
    axes.set_xlabel(f"fraction of {'the weight of ' if weighed(definition, kind) else ''}all {of}, %")
    axes.xaxis.set_major_locator(MaxNLocator(5))
    figure.legend(loc="outside upper left", ncols=2, handletextpad=0.2)
    column = kind.removesuffix("s")
    first = "heaviest" if weighed(definition, kind) else "most frequent"
    shown = "all" if len(names) == row[kind] else f"the {len(names)} {first} of"
    apart = f"{SYMBOLS[kind]} {share(row[f'{column}_divergence'])} (random {random_share(row, column)})"
    note(figure, f"{apart}; {shown} {row[kind]:,} {of};\nn: images, with all their captions; seed {seed}")
    return figure


def shares_description(distribution: Mapping[str, Any]) -> str:
    test, definition = SPLIT_NAMES[distribution["split"]], distribution["definition"]
    digits = 3 if weighed(definition, distribution["kind"]) else 1
    return ", ".join(
        f"{part_name(definition, name)} {percent(train, digits)} % of train and {percent(other, digits)} % of {test}"
        for name, train, other in zip(*(distribution[key] for key in ("names", "train", "test")), strict=True)
    )


def draw_path(division: Mapping[str, Any], seed: int) -> Figure:
    """Draw both divergences after each image of the greedy division, and marks for those after exchanges."""
    path = division["path"]
    figure = Figure(figsize=(WIDTH, 4.9))
    all_axes = figure.subplots(2, 1, sharex=True)
    for axes, column, color in zip(all_axes, ("compound", "atom"), ("#0072B2", "#555555"), strict=True):
        target, reached = division["wanted"][column], division[f"{column}_divergence"]
        axes.plot(path["images"], path[column], color=color, linewidth=1.5, label="while it grew")
        axes.plot(
            path["images"][-1], reached, "D", color=color, markersize=6, linestyle="none", clip_on=False,
            label="after exchanges",
        )  # fmt: skip
        wanted = "the largest" if target == "max" else f"{target:g}"
        if column == "atom" and division["wanted"]["compound"] == "max":
            wanted = f"at most {wanted}"
        if target != "max":
            axes.axhline(target, color="#D55E00", linewidth=1.2, linestyle="--", label="wanted")
        kind = f"{column}s"
        axes.set_title(f"{SYMBOLS[kind]} ({PART_NAMES['pairs', kind]}): {share(reached)}, wanted: {wanted}")
    all_axes[0].set_ylim(0, 1.02)
    # It starts at 1 and ends at a few hundredths.
    all_axes[1].set_yscale("log", nonpositive="mask")
    lowest = min(value for value in (0.01, division["atom_divergence"], *path["atom"]) if value > 0)
    all_axes[1].set_ylim(bottom=0.8 * lowest)
    all_axes[1].yaxis.set_major_formatter("{x:g}")
    all_axes[1].xaxis.set_major_formatter("{x:,.0f}")
    all_axes[1].set_xlabel("images placed")
    # The lower plot has all three entries.
    figure.legend(*all_axes[1].get_legend_handles_labels(), loc="outside upper left", ncols=3)
    note(figure, f"n = {path['images'][-1]:,} images placed; seed {seed}")
    return figure


def main(step: DrawDivergence) -> None:
    layout = step.layout
    divergences = read_table(step.divergence, DIVERGENCE)
    where = f"{step.dataset}, {step.composition}"

    def write(figure: Figure, name: str, title: str, description: str = "") -> None:
        save(figure, layout.figure(name), f"{title} ({where})", description)

    distributions = {(d["definition"], d["kind"], d["split"]): d for d in read_json(step.summary)["distributions"]}
    with style():
        for definition, kind, split in product(step.definitions, SYMBOLS, TESTS):
            distribution = distributions.get((definition, kind, split))
            row = measured(divergences, definition, split, "captions")
            figure, description = empty(f"{kind.capitalize()} of {SPLIT_NAMES[split]} were not measured."), ""
            if distribution and row:
                figure = draw_shares(distribution, row, step.seed)
                description = shares_description(distribution)
            title = f"{kind.capitalize()} of train and {SPLIT_NAMES[split]}: {PART_NAMES[definition, kind]}"
            write(figure, f"{split}_{definition}_{kind}", title, description)
        if step.division:
            write(draw_path(read_json(step.division), step.seed), "division", "Divergence while the division grew")
    log.info("%s: figures of divergence in %s", where, layout.figure("division").parent)


if __name__ == "__main__":
    cli.run(main)
