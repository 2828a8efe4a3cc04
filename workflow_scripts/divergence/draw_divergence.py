"""Draw how far the test splits of one data set and composition are from train.

Atoms and compounds of train and test side by side, as in figure 6 of Keysers et al. 2020, and, where the images were
divided by divergence, its path while the division grew. Every figure is an SVG that says its n and its seed, and whose
bytes depend on its data alone.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from workflow_scripts.core import cli
from workflow_scripts.core.cli import log
from workflow_scripts.core.io import read_json
from workflow_scripts.core.tables import DEFINITIONS, TESTS
from workflow_scripts.divergence.results import SYMBOLS, measured, random_share, read_divergences, share
from workflow_scripts.plot.drawing import WIDTH, empty, name_rows, note, save, size, style
from workflow_scripts.plot.labels import PART_NAMES, SPLIT_COLORS, SPLIT_MARKS, SPLIT_NAMES, pair_words, percent

# Characters of a name that stands beside its bars; where one is longer, all stand above theirs.
BESIDE = 20
# Characters of a name above its bars.
ABOVE = 62


def part_name(definition: str, name: str) -> str:
    """A pair or its words as people say them; a part of a parse stands as it is written."""
    return pair_words(name.partition(":")[2] or name) if definition == "pairs" else name


def weighed(definition: str, kind: str) -> bool:
    """Whether the parts are weighed by W; all others are counted."""
    return (definition, kind) == ("subgraphs", "compounds")


def cut(name: str, most: int) -> str:
    """At most ``most`` characters, the last an ellipsis where there are more."""
    return name if len(name) <= most else f"{name[: most - 1]}…"


def draw_shares(found: Mapping[str, Any], row: Mapping[str, Any], seed: int) -> Figure:
    """Bars: what share of train and of a test split each of the commonest atoms or compounds has.

    found: one of ``distributions`` of divergence.json. row: the measurement of the split's captions.
    """
    definition, kind, split = (found[key] for key in ("definition", "kind", "split"))
    names = [part_name(definition, name) for name in found["names"]]
    above = max(map(len, names)) > BESIDE
    figure = Figure(figsize=size(len(names), 0.42 if above else 0.26, 1.6))
    axes = figure.add_subplot()
    rows = np.arange(len(names), dtype=float)
    # Two bars a row; the marks tell them apart without color, and show a share of 0.
    height = 0.2 if above else 0.3
    upper = 0.05 if above else -height / 2
    for side, values, y in (("train", found["train"], rows + upper), (split, found["test"], rows + upper + height)):
        shares, color = 100 * np.array(values), SPLIT_COLORS[side]
        axes.barh(y, shares, height=height, color=color)
        axes.plot(
            shares, y, SPLIT_MARKS[side], color=color, markersize=5, linestyle="none", clip_on=False,
            label=f"{SPLIT_NAMES[side]} (n = {row['train' if side == 'train' else 'test']:,})",
        )  # fmt: skip
    if above:
        name_rows(axes, [""] * len(names))
        for y, name in zip(rows, names, strict=True):
            axes.text(0, y - 0.1, cut(name, ABOVE), fontsize=9, va="bottom")
    else:
        name_rows(axes, names)
    axes.set_xlim(left=0)
    of = PART_NAMES[definition, kind]
    axes.set_xlabel(f"share of {'the weight of ' if weighed(definition, kind) else ''}all {of}, %")
    axes.xaxis.set_major_locator(MaxNLocator(6))
    figure.legend(loc="outside upper left", ncols=2, fontsize=9, handletextpad=0.2)
    column = kind.removesuffix("s")
    first = "heaviest" if weighed(definition, kind) else "commonest"
    shown = "all" if len(names) == row[kind] else f"the {len(names)} {first} of"
    apart = f"{SYMBOLS[kind]} {share(row[f'{column}_divergence'])} (random {random_share(row, column)})"
    note(figure, f"{apart}; {shown} {row[kind]:,} {of};\nn: images, with all their captions; seed {seed}")
    return figure


def shares_description(found: Mapping[str, Any]) -> str:
    """The shares of ``draw_shares`` in words."""
    test, definition = SPLIT_NAMES[found["split"]], found["definition"]
    digits = 3 if weighed(definition, found["kind"]) else 1
    return ", ".join(
        f"{part_name(definition, name)} {percent(train, digits)} % of train and {percent(other, digits)} % of {test}"
        for name, train, other in zip(found["names"], found["train"], found["test"], strict=True)
    )


def draw_path(division: Mapping[str, Any], seed: int) -> Figure:
    """Lines: both divergences after each image that the greedy division placed; marks: after exchanges of images.

    division: the content of division.json.
    """
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
        axes.set_title(
            f"{SYMBOLS[kind]} ({PART_NAMES['pairs', kind]}): {share(reached)}, wanted: {wanted}", fontsize=10
        )
    all_axes[0].set_ylim(0, 1.02)
    # It begins at 1 and ends at some hundredths.
    all_axes[1].set_yscale("log", nonpositive="mask")
    lowest = min(value for value in (0.01, division["atom_divergence"], *path["atom"]) if value > 0)
    all_axes[1].set_ylim(bottom=0.8 * lowest)
    all_axes[1].yaxis.set_major_formatter("{x:g}")
    all_axes[1].xaxis.set_major_formatter("{x:,.0f}")
    all_axes[1].set_xlabel("images placed")
    # The atoms' has all three.
    figure.legend(*all_axes[1].get_legend_handles_labels(), loc="outside upper left", ncols=3, fontsize=9)
    note(figure, f"n = {path['images'][-1]:,} images placed; seed {seed}")
    return figure


def main(options: argparse.Namespace) -> None:
    seed = options.seed
    ours = options.results / options.dataset / options.composition
    divergences = read_divergences(ours)
    where = f"{options.dataset}, {options.composition}"
    folder = options.results / "figures"

    def write(figure: Figure, name: str, title: str, description: str = "") -> None:
        save(figure, folder / f"{options.dataset}_{options.composition}_{name}.svg", f"{title} ({where})", description)

    drawn = {(f["definition"], f["kind"], f["split"]): f for f in read_json(ours / "divergence.json")["distributions"]}
    with style():
        for definition in options.definitions:
            for kind in SYMBOLS:
                for split in TESTS:
                    found = drawn.get((definition, kind, split))
                    row = measured(divergences, definition, split, "captions")
                    figure, description = empty(f"{kind.capitalize()} of {SPLIT_NAMES[split]} were not measured."), ""
                    if found and row:
                        figure, description = draw_shares(found, row, seed), shares_description(found)
                    title = f"{kind.capitalize()} of train and {SPLIT_NAMES[split]}: {PART_NAMES[definition, kind]}"
                    write(figure, f"{split}_{definition}_{kind}", title, description)
        for file in options.division:
            write(draw_path(read_json(file), seed), "division", "Divergence while the division grew")
    log.info("%s: figures of divergence in %s", where, folder)


def arguments() -> argparse.ArgumentParser:
    result = cli.parser(__doc__)
    result.add_argument("--results", type=Path, required=True, help="the folder of the artifacts")
    result.add_argument("--dataset", required=True)
    result.add_argument("--composition", required=True)
    result.add_argument("--definitions", nargs="+", choices=DEFINITIONS, default=DEFINITIONS, help="to draw")
    result.add_argument("--division", nargs="*", type=Path, default=[], help="division.json, where there is one")
    result.add_argument("--seed", type=int, default=0, help="of the run, named in the figures")
    return result


if __name__ == "__main__":
    cli.run(main, arguments())
