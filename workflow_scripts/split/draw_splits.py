"""Draw what the splits of one data set and composition hold: their adjectives and nouns, and the swapped pairs.

The distribution of words in each split is that of the paper's figures 8 to 23, as bars. Every figure is an SVG that
says its definition, its n and its seed, and whose bytes depend on its data alone.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import ScaledTranslation

from workflow_scripts.core import cli
from workflow_scripts.core.cli import log
from workflow_scripts.core.io import read_table
from workflow_scripts.core.tables import PAIRS, PROMPTS, RANKING, SPLIT, SWAPPED
from workflow_scripts.plot.drawing import empty, name_rows, note, save, size, style
from workflow_scripts.plot.labels import (
    SPLIT_COLORS,
    SPLIT_MARKS,
    SPLIT_NAMES,
    WORD_KINDS,
    pair_words,
    percent,
    swatch,
)
from workflow_scripts.stats.balance import Cut, cut_dominant

# Rows of one figure at most; what is beyond is counted in a line.
MOST_WORDS, MOST_PAIRS = 40, 40


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


def name_words(axes: Axes, words: Sequence[str], margin: float) -> None:
    """Name the rows by words; one that names a color has a swatch of it before its row."""
    name_rows(axes, words, margin)
    colors = [swatch(word) for word in words]
    if not any(colors):
        return
    axes.tick_params(axis="y", pad=18)
    beside = axes.get_yaxis_transform() + ScaledTranslation(-9 / 72, 0, axes.figure.dpi_scale_trans)
    for row, color in enumerate(colors):
        if color:
            axes.plot(
                0, row, "s", transform=beside, color=color, markersize=9, markeredgecolor="#555555",
                markeredgewidth=0.6, clip_on=False,
            )  # fmt: skip


def draw_words(occurrences: pd.DataFrame, kind: str, seed: int) -> Figure:
    """Dots: the share of each word of ``kind``, adjective or noun, in each split."""
    shares = word_shares(occurrences, kind)
    shown = shares.head(MOST_WORDS)
    sizes = occurrences["split"].value_counts()
    figure = Figure(figsize=size(len(shown), 0.3, 1.6))
    axes = figure.add_subplot()
    for i in range(0, len(shown), 2):
        axes.axhspan(i - 0.5, i + 0.5, color="#f3f3f3", zorder=0, linewidth=0)
    for split, offset in zip(SPLIT_NAMES, (-0.27, -0.09, 0.09, 0.27), strict=True):
        axes.plot(
            100 * shown[split], np.arange(len(shown)) + offset, SPLIT_MARKS[split], color=SPLIT_COLORS[split],
            markersize=4.5, linestyle="none", clip_on=False,
            label=f"{SPLIT_NAMES[split]} (n = {sizes.get(split, 0):,})",
        )  # fmt: skip
    name_words(axes, list(shown.index), 0.5)
    axes.set_xlim(left=0)
    axes.set_xlabel(f"share of the split's pairs that have this {kind}, %")
    axes.xaxis.set_major_locator(MaxNLocator(6))
    figure.legend(loc="outside upper left", ncols=2, fontsize=9, handletextpad=0.2)
    cut = f"; {len(shares) - len(shown)} rarer ones not shown" if len(shares) > len(shown) else ""
    note(figure, f"n: occurrences of ranked adjectives with ranked nouns{cut}; split seed {seed}")
    return figure


def distribution(words: pd.Series) -> pd.DataFrame:
    """The words of one split, most frequent first: columns word, n, share; past MOST_WORDS they make one last row."""
    counts = words.value_counts().rename_axis("word").reset_index(name="n")
    counts = counts.sort_values(["n", "word"], ascending=[False, True], ignore_index=True)
    rest = counts[MOST_WORDS:]
    if len(rest):
        last = pd.DataFrame({"word": [f"{len(rest)} others"], "n": [rest["n"].sum()]})
        counts = pd.concat([counts[:MOST_WORDS], last], ignore_index=True)
    return counts.assign(share=counts["n"] / max(counts["n"].sum(), 1))


def draw_distribution(shares: pd.DataFrame, kind: str, split: str, seed: int) -> Figure:
    """Bars: the share of each word of ``kind`` in ``split``. shares: as ``distribution`` gives them."""
    if shares.empty:
        return empty(f"No pair of ranked words in {SPLIT_NAMES[split]}.")
    figure = Figure(figsize=size(len(shares), 0.22, 1.1))
    axes = figure.add_subplot()
    rows = np.arange(len(shares))
    axes.barh(rows, 100 * shares["share"], height=0.62, color=SPLIT_COLORS[split])
    for row, share in zip(rows, shares["share"], strict=True):
        axes.annotate(percent(share), (100 * share, row), (4, 0), textcoords="offset points", va="center", fontsize=9)
    name_words(axes, list(shares["word"]), 0.6)
    axes.margins(x=0.1)
    axes.set_xlim(left=0)
    axes.set_xlabel(f"{WORD_KINDS[kind]} in {SPLIT_NAMES[split]}: share of its pairs, %")
    axes.xaxis.set_major_locator(MaxNLocator(6))
    note(figure, f"n = {shares['n'].sum():,} occurrences of ranked adjectives with ranked nouns; split seed {seed}")
    return figure


def draw_swapped_pairs(pairs: Sequence[str], cut: Cut, seed: int) -> Figure:
    """For each swapped pair, how many prompts have it before balancing and how many count after."""
    if not len(pairs):
        return empty("No caption was swapped.")
    before = pd.Series(pairs).value_counts().rename_axis("pair").reset_index(name="n")
    before = before.sort_values(["n", "pair"], ascending=[False, True], ignore_index=True)
    shown = before.head(MOST_PAIRS)
    after = [cut.kept.get(pair, n) for pair, n in zip(shown["pair"], shown["n"], strict=True)]
    figure = Figure(figsize=size(len(shown), 0.24, 1.6))
    axes = figure.add_subplot()
    y = np.arange(len(shown))
    axes.hlines(y, after, shown["n"], color="#D55E00", linewidth=1.5)
    axes.plot(shown["n"], y, "o", markersize=8, markerfacecolor="none", color="#D55E00", label="before balancing")
    axes.plot(after, y, "o", markersize=4.5, color="#222222", label="after balancing")
    name_rows(axes, [pair_words(pair) for pair in shown["pair"]])
    axes.set_xlim(left=0)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.set_xlabel("swapped prompts")
    figure.legend(loc="outside upper left", ncols=2, fontsize=9)
    rest = before["n"][MOST_PAIRS:]
    more = f"; {len(rest)} rarer pairs ({rest.sum()} prompts) not shown" if len(rest) else ""
    note(figure, f"n = {len(pairs):,} prompts, {len(before)} pairs{more}\ncut: {cut.rule}; seed {seed}")
    return figure


def main(options: argparse.Namespace) -> None:
    seed = options.seed
    place = options.results / options.dataset
    ours = place / options.composition
    occurrences = occurrences_by_split(
        read_table(place / "pairs.parquet", PAIRS),
        read_table(ours / "ranking.parquet", RANKING),
        read_table(ours / "splits.parquet", SPLIT),
        read_table(ours / "swapped.parquet", SWAPPED),
    )
    prompts = read_table(ours / "prompts.parquet", PROMPTS)
    drawn = prompts.loc[prompts["split"] == "test_swapped", "pair"].tolist()
    where = f"{options.dataset}, {options.composition}"

    def write(figure: Figure, name: str, title: str, description: str = "") -> None:
        path = options.results / "figures" / f"{options.dataset}_{options.composition}_{name}.svg"
        save(figure, path, f"{title} ({where})", description)

    with style():
        cut = cut_dominant(drawn, options.dominant, options.ratio)
        title = "How often each swapped pair is prompted, before and after balancing"
        write(draw_swapped_pairs(drawn, cut, seed), "swapped_pairs", title)
        for kind, words in WORD_KINDS.items():
            write(draw_words(occurrences, kind, seed), words, f"{words.capitalize()} in each split")
            for split, name in SPLIT_NAMES.items():
                shares = distribution(occurrences.loc[occurrences["split"] == split, kind])
                said = ", ".join(f"{row.word} {percent(row.share)} %" for row in shares.itertuples())
                figure = draw_distribution(shares, kind, split, seed)
                write(figure, f"{split}_{words}", f"{words.capitalize()} in {name}", said)
    log.info("%s: figures of words and swapped pairs in %s", where, options.results / "figures")


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
