"""Draw the figures of one data set and composition: words in each split, swapped pairs, scores, gaps, the judge's loss.

Every figure is an SVG that says its definition, its n and its seed, and whose bytes depend on its data alone.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from workflow_scripts.common import cli
from workflow_scripts.common.cli import log
from workflow_scripts.common.io import atomic, read_table
from workflow_scripts.common.tables import PAIRS, PROMPTS, RANKING, SPLIT, SWAPPED
from workflow_scripts.report.labels import (
    SPLIT_COLORS,
    SPLIT_MARKS,
    SPLIT_NAMES,
    against_seen,
    between_generators,
    main_rows,
    pair_words,
)
from workflow_scripts.report.make_table import ORACLE
from workflow_scripts.score.balance import Cut, cut_dominant

# Inches. As wide as a phone shows at full size: wider would shrink the words.
WIDTH = 5.4
# Rows of one figure at most; what is beyond is counted in a line.
MOST_WORDS, MOST_PAIRS = 40, 40
STYLE = {
    "svg.hashsalt": "compclip",
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


def occurrences_by_split(
    pairs: pd.DataFrame, ranking: pd.DataFrame, splits: pd.DataFrame, swapped: pd.DataFrame
) -> pd.DataFrame:
    """Each occurrence of ranked words, columns adjective, noun, split; test_swapped has those of swapped captions.

    Disputed occurrences, which are not ranked either, are left out. An adjective is the swapped one where a change
    replaces its characters.
    """
    ranked = pairs["adjective"].isin(ranking["adjective"]) & pairs["noun"].isin(ranking["noun"])
    counted = pairs[ranked & (pairs["relation"] != "disputed")]
    real = counted.merge(splits, on="image_id")
    changes = [
        {"image_id": row.image_id, "caption_id": row.caption_id, "adjective_start": c["start"], "new_adj": c["new_adj"]}
        for row in swapped.itertuples()
        for c in row.changes
    ]
    columns = ["image_id", "caption_id", "adjective_start"]
    new = pd.DataFrame(changes, columns=[*columns, "new_adj"]).drop_duplicates(columns)
    changed = counted.merge(swapped[columns[:2]], on=columns[:2]).merge(
        new.astype(counted[columns].dtypes.to_dict()), on=columns, how="left"
    )
    changed["adjective"] = changed["new_adj"].where(changed["new_adj"].notna(), changed["adjective"])
    return pd.concat([real, changed.assign(split="test_swapped")])[["adjective", "noun", "split"]]


def word_shares(occurrences: pd.DataFrame, column: str) -> pd.DataFrame:
    """The share of a split's occurrences that each word has: a row a word, most frequent in train first."""
    counts = pd.crosstab(occurrences[column], occurrences["split"]).reindex(columns=list(SPLIT_NAMES), fill_value=0)
    counts = counts.sort_index().sort_values("train", ascending=False, kind="stable")
    return counts / counts.sum().where(counts.sum() > 0, 1)


def _size(rows: int, per_row: float, rest: float) -> tuple[float, float]:
    return WIDTH, rows * per_row + rest


def _rows(axes: Axes, names: Sequence[str], margin: float = 0.6) -> None:
    """Name the rows of a plot that reads from above."""
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 1 + margin, -margin)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", visible=False)


def _note(figure: Figure, text: str) -> None:
    figure.supxlabel(text, fontsize=8, color="#555555", x=0.01, ha="left")


def _empty(text: str) -> Figure:
    """A figure that says why there is nothing to draw."""
    figure = Figure(figsize=(WIDTH, 1))
    figure.text(0.02, 0.5, text, va="center")
    return figure


def draw_words(occurrences: pd.DataFrame, column: str, seed: int) -> Figure:
    """Dots: the share of each adjective, or noun, in each split."""
    shares = word_shares(occurrences, column)
    shown = shares.head(MOST_WORDS)
    sizes = occurrences["split"].value_counts()
    figure = Figure(figsize=_size(len(shown), 0.3, 1.6))
    axes = figure.add_subplot()
    for i in range(0, len(shown), 2):
        axes.axhspan(i - 0.5, i + 0.5, color="#f3f3f3", zorder=0, linewidth=0)
    for split, offset in zip(SPLIT_NAMES, (-0.27, -0.09, 0.09, 0.27), strict=True):
        axes.plot(
            100 * shown[split], np.arange(len(shown)) + offset, SPLIT_MARKS[split], color=SPLIT_COLORS[split],
            markersize=4.5, linestyle="none", clip_on=False,
            label=f"{SPLIT_NAMES[split]} (n = {sizes.get(split, 0):,})",
        )  # fmt: skip
    _rows(axes, list(shown.index), 0.5)
    axes.set_xlim(left=0)
    axes.set_xlabel(f"share of the split's pairs that have this {column}, %")
    axes.xaxis.set_major_locator(MaxNLocator(6))
    figure.legend(loc="outside upper left", ncols=2, fontsize=9, handletextpad=0.2)
    cut = f"; {len(shares) - len(shown)} rarer ones not shown" if len(shares) > len(shown) else ""
    _note(figure, f"n: occurrences of ranked adjectives with ranked nouns{cut}; split seed {seed}")
    return figure


def draw_swapped_pairs(pairs: Sequence[str], cut: Cut, seed: int) -> Figure:
    """For each swapped pair, how many prompts have it before balancing and how many count after."""
    if not len(pairs):
        return _empty("No caption was swapped.")
    before = pd.Series(pairs).value_counts().rename_axis("pair").reset_index(name="n")
    before = before.sort_values(["n", "pair"], ascending=[False, True], ignore_index=True)
    shown = before.head(MOST_PAIRS)
    after = [cut.kept.get(pair, n) for pair, n in zip(shown["pair"], shown["n"], strict=True)]
    figure = Figure(figsize=_size(len(shown), 0.24, 1.6))
    axes = figure.add_subplot()
    y = np.arange(len(shown))
    axes.hlines(y, after, shown["n"], color="#D55E00", linewidth=1.5)
    axes.plot(shown["n"], y, "o", markersize=8, markerfacecolor="none", color="#D55E00", label="before balancing")
    axes.plot(after, y, "o", markersize=4.5, color="#222222", label="after balancing")
    _rows(axes, [pair_words(pair) for pair in shown["pair"]])
    axes.set_xlim(left=0)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.set_xlabel("swapped prompts")
    figure.legend(loc="outside upper left", ncols=2, fontsize=9)
    rest = before["n"][MOST_PAIRS:]
    more = f"; {len(rest)} rarer pairs ({rest.sum()} prompts) not shown" if len(rest) else ""
    _note(figure, f"n = {len(pairs):,} prompts, {len(before)} pairs{more}\ncut: {cut.rule}; seed {seed}")
    return figure


# A line of the score figure: split, the columns it shows, its name.
_LINES = (
    ("test_seen", "exact", "seen"),
    ("test_unseen", "exact", "unseen"),
    ("test_swapped", "exact", "swapped"),
    ("test_swapped", "balanced", "swapped, balanced"),
)


def draw_scores(table: pd.DataFrame) -> Figure:
    """Dots with 95 % intervals: exact R-precision of each generator and split, the oracle's and the blind control.

    table: the rows of one data set and composition.
    """
    rows = main_rows(table)
    trained, oracle = rows[rows["judge"] != ORACLE], rows[rows["judge"] == ORACLE]
    # A generator's name stands above its lines, as a line of its own.
    lines: list[tuple[str, tuple[str, str, str] | None]] = []
    for generator in trained["generator"].drop_duplicates():
        served = set(trained.loc[trained["generator"] == generator, "split"])
        lines += [(generator, None)] + [(generator, line) for line in _LINES if line[0] in served]
    if not lines:
        return _empty("Nothing was scored.")

    def cell(part: pd.DataFrame, generator: str, split: str) -> pd.Series | None:
        found = part[(part["generator"] == generator) & (part["split"] == split)]
        return None if found.empty else found.iloc[0]

    figure = Figure(figsize=_size(len(lines), 0.25, 1.8))
    axes = figure.add_subplot()
    labelled: set[str] = set()

    def label(name: str) -> str:
        return "" if name in labelled else (labelled.add(name) or name)

    for y, (generator, line) in enumerate(lines):
        if line is None:
            axes.axhspan(y - 0.5, y + 0.5, color="#eeeeee", zorder=0, linewidth=0)
            continue
        split, column, _ = line
        row = cell(trained, generator, split)
        color, mark = SPLIT_COLORS[split], SPLIT_MARKS[split]
        axes.hlines(y, 100 * row[f"{column}_low"], 100 * row[f"{column}_high"], color=color, linewidth=2)
        axes.plot(
            100 * row[column], y, mark, color=color, markersize=6,
            markerfacecolor="white" if column == "balanced" else color,
        )  # fmt: skip
        above = cell(oracle, generator, split)
        if above is not None:
            axes.plot(
                100 * above[column], y, "|", color="#000000", markersize=10, markeredgewidth=1.6,
                label=label("oracle (ceiling)"),
            )  # fmt: skip
        if column == "exact":
            axes.plot(
                100 * row["blind_control"], y, "x", color="#CC79A7", markersize=5, markeredgewidth=1.4,
                label=label("blind control"),
            )  # fmt: skip
    candidates = int(trained["candidates"].iloc[0])
    axes.axvline(100 / candidates, color="#555555", linewidth=1, linestyle=":", label=f"chance (1 of {candidates})")
    _rows(axes, [line[2] if line else generator for generator, line in lines])
    for name, (_, line) in zip(axes.get_yticklabels(), lines, strict=True):
        name.set_fontweight("normal" if line else "bold")
    axes.set_xlim(-2, 102)
    axes.set_xlabel("exact R-precision, % (line: 95 % interval)")
    figure.legend(loc="outside upper left", ncols=3, fontsize=9, handletextpad=0.3, columnspacing=1)
    low, high = int(trained["n"].min()), int(trained["n"].max())
    prompts = f"n = {low:,}" if low == high else f"n = {low:,} to {high:,}"
    _note(
        figure,
        f"share of images whose own caption a judge ranks above {candidates - 1} others;\n"
        f"{prompts} images a row; seed {int(trained['seed'].iloc[0])}",
    )
    return figure


def _draw_differences(axes: Axes, rows: pd.DataFrame, names: Sequence[str], colors: Sequence[str]) -> None:
    """A dot with its interval for each row, hollow where the interval holds 0."""
    for y, (row, color) in enumerate(zip(rows.itertuples(), colors, strict=True)):
        axes.hlines(y, 100 * row.low, 100 * row.high, color=color, linewidth=2)
        clear = row.low > 0 or row.high < 0
        axes.plot(
            100 * row.difference, y, "o", color=color, markersize=5.5, markerfacecolor=color if clear else "white"
        )
    axes.axvline(0, color="#333333", linewidth=1)
    _rows(axes, names)


def draw_gaps(gaps: pd.DataFrame, seed: int) -> Figure:
    """Unseen and swapped against seen, for each generator. gaps: as ``labels.against_seen`` gives them."""
    if gaps.empty:
        return _empty("No generator serves seen and another split.")
    names, colors = zip(
        *[
            (f"{row.generator}: {SPLIT_NAMES[row.split]} − seen", SPLIT_COLORS[row.split])
            for row in gaps.itertuples()
        ], strict=True,
    )  # fmt: skip
    figure = Figure(figsize=_size(len(gaps), 0.28, 1.1))
    axes = figure.add_subplot()
    _draw_differences(axes, gaps, names, colors)
    axes.set_xlabel("percentage points (line: 95 % interval)")
    _note(
        figure,
        "difference of exact R-precision; hollow: the interval holds 0; swapped − seen is paired\n"
        f"on the same captions, unseen − seen is of different images; seed {seed}",
    )
    return figure


def draw_comparisons(comparisons: pd.DataFrame, seed: int) -> Figure:
    """Generators against each other, by split. comparisons: as ``labels.between_generators`` gives them."""
    if comparisons.empty:
        return _empty("There is one generator, and nothing to compare it with.")
    groups = list(comparisons.groupby("split", sort=False))
    figure = Figure(figsize=_size(len(comparisons), 0.24, 0.5 * len(groups) + 1.0))
    all_axes = figure.subplots(
        len(groups), 1, sharex=True, squeeze=False, height_ratios=[len(part) + 0.2 for _, part in groups]
    )[:, 0]
    for axes, (split, part) in zip(all_axes, groups, strict=True):
        names = [f"{row.a} − {row.b}" for row in part.itertuples()]
        _draw_differences(axes, part, names, [SPLIT_COLORS[split]] * len(part))
        axes.set_title(SPLIT_NAMES[split])
    all_axes[-1].set_xlabel("percentage points (line: 95 % interval)")
    _note(
        figure,
        f"difference of exact R-precision; hollow: the interval holds 0;\npaired on the same images; seed {seed}",
    )
    return figure


def draw_loss(training: pd.DataFrame, seed: int) -> Figure:
    """The judge's loss in each epoch, and how often it retrieved the captions of real test images."""
    watched = [column for column in training if column.startswith("retrieval")]
    if "loss" not in training:
        return _empty("The judge was not trained: it is used as it came (epochs: 0).")
    figure = Figure(figsize=(WIDTH, 2.6 + 2.0 * bool(watched)))
    all_axes = figure.subplots(1 + bool(watched), 1, sharex=True, squeeze=False)[:, 0]
    all_axes[0].plot(training["epoch"], training["loss"], "o-", color="#555555", linewidth=1.5, markersize=3)
    all_axes[0].set_title("contrastive loss, mean of the epoch")
    all_axes[0].set_ylim(bottom=0)
    for column in watched:
        split = column.replace("retrieval", "test")
        all_axes[1].plot(
            training["epoch"], 100 * training[column], color=SPLIT_COLORS[split], marker=SPLIT_MARKS[split],
            markersize=4, label=SPLIT_NAMES[split],
        )  # fmt: skip
    if watched:
        all_axes[1].set_title("real test images whose caption is first of 100, %")
        all_axes[1].set_ylim(0, 100)
        all_axes[1].legend(fontsize=9, loc="best")
    all_axes[-1].set_xlabel("epoch")
    all_axes[-1].xaxis.set_major_locator(MaxNLocator(8, integer=True))
    _note(figure, f"n = {int(training['step'].max()):,} steps in {len(training)} epochs; seed {seed}")
    return figure


def save(figure: Figure, path: Path) -> None:
    """An SVG without date; the same data gives the same bytes."""
    # The layout's solver differs in last digits from run to run, and SVG's names are hashes of all digits.
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for axes in figure.axes:
        axes.set_position([round(side, 4) for side in axes.get_position(original=True).bounds])
    with atomic(path) as temporary:
        figure.savefig(temporary, format="svg", metadata={"Date": None, "Creator": "compclip"})


def main(options: argparse.Namespace) -> None:
    seed = options.seed
    place = options.results / options.dataset
    ours = place / options.composition
    swapped = read_table(ours / "swapped.parquet", SWAPPED)
    occurrences = occurrences_by_split(
        read_table(place / "pairs.parquet", PAIRS),
        read_table(ours / "ranking.parquet", RANKING),
        read_table(ours / "splits.parquet", SPLIT),
        swapped,
    )
    prompts = read_table(ours / "prompts.parquet", PROMPTS)
    drawn = prompts.loc[prompts["split"] == "test_swapped", "pair"].tolist()

    def rows(file: str) -> pd.DataFrame:
        table = pd.read_csv(options.results / file)
        return table[(table["dataset"] == options.dataset) & (table["composition"] == options.composition)]

    with matplotlib.rc_context({**matplotlib.rcParamsDefault, **STYLE}):
        figures = {
            "adjectives": draw_words(occurrences, "adjective", seed),
            "nouns": draw_words(occurrences, "noun", seed),
            "swapped_pairs": draw_swapped_pairs(drawn, cut_dominant(drawn, options.dominant, options.ratio), seed),
            "scores": draw_scores(rows("table.csv")),
            "gaps": draw_gaps(against_seen(rows("comparisons.csv")), seed),
            "comparisons": draw_comparisons(between_generators(rows("comparisons.csv")), seed),
            "loss": draw_loss(pd.read_csv(ours / "judge" / "log.csv"), seed),
        }
        folder = options.results / "figures"
        for name, figure in figures.items():
            save(figure, folder / f"{options.dataset}_{options.composition}_{name}.svg")
    log.info("%s/%s: %d figures in %s", options.dataset, options.composition, len(figures), folder)


def arguments() -> argparse.ArgumentParser:
    result = cli.parser(__doc__)
    result.add_argument("--results", type=Path, required=True, help="the folder of the artifacts")
    result.add_argument("--dataset", required=True)
    result.add_argument("--composition", required=True)
    result.add_argument("--dominant", type=int, default=1, help="score.balance.dominant (default: %(default)s)")
    result.add_argument("--ratio", type=float, default=1.25, help="score.balance.ratio (default: %(default)s)")
    result.add_argument("--seed", type=int, default=0, help="of the run, named in the figures")
    return result


if __name__ == "__main__":
    cli.run(main, arguments())
