"""Draw what the splits of a composition hold: their adjectives and nouns, and the swapped pairs.

The figures replace the paper's figures 8 to 23; each states its definition, its n and its seed.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import ScaledTranslation

from compclip.plot.drawing import empty, name_rows, note, size
from compclip.plot.labels import SPLIT_COLORS, SPLIT_MARKS, SPLIT_NAMES, WORD_KINDS, pair_words, swatch
from compclip.stats.balance import Cut, cut_dominant

# Rows of one figure; further ones are counted in a line.
MAX_WORDS, MAX_PAIRS = 40, 40


def occurrences_by_split(
    pairs: pd.DataFrame, ranking: pd.DataFrame, splits: pd.DataFrame, swapped: pd.DataFrame
) -> pd.DataFrame:
    """Return adjective, noun and split of each undisputed occurrence of ranked words.

    test_swapped has the occurrences of the captions that were swapped, with the new adjectives.
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
    """Return the fraction of each split's occurrences that has a word: a row per word, most frequent in train first."""
    counts = pd.crosstab(occurrences[column], occurrences["split"]).reindex(columns=list(SPLIT_NAMES), fill_value=0)
    counts = counts.sort_index().sort_values("train", ascending=False, kind="stable")
    return counts / counts.sum().where(counts.sum() > 0, 1)


def name_words(axes: Axes, words: Sequence[str]) -> None:
    """Name the rows by words; the name of a color gets a swatch of it."""
    name_rows(axes, words, 0.5)
    colors = {row: color for row, word in enumerate(words) if (color := swatch(word))}
    if colors:
        axes.tick_params(axis="y", pad=18)
    beside = axes.get_yaxis_transform() + ScaledTranslation(-9 / 72, 0, axes.figure.dpi_scale_trans)
    look: dict[str, Any] = {"markersize": 9, "markeredgecolor": "#555555", "markeredgewidth": 0.6, "clip_on": False}
    for row, color in colors.items():
        axes.plot(0, row, "s", transform=beside, color=color, **look)


def draw_words(occurrences: pd.DataFrame, kind: str, seed: int) -> Figure:
    """Draw the fraction of each word of ``kind``, adjective or noun, in each split."""
    shares = word_shares(occurrences, kind)
    shown = shares.head(MAX_WORDS)
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
    name_words(axes, list(shown.index))
    axes.set_xlim(left=0)
    axes.set_xlabel("fraction of the split's pairs, %")
    axes.xaxis.set_major_locator(MaxNLocator(6))
    figure.legend(loc="outside upper left", ncols=2, handletextpad=0.2, columnspacing=0.6)
    cut = f"; {len(shares) - len(shown)} rarer ones not shown" if len(shares) > len(shown) else ""
    note(figure, f"n: occurrences of ranked adjectives with ranked nouns{cut}; split seed {seed}")
    return figure


def draw_swapped_pairs(pairs: Sequence[str], cut: Cut, seed: int) -> Figure:
    """Draw how many prompts have each swapped pair before balancing and how many count after."""
    if not len(pairs):
        return empty("No caption was swapped.")
    before = pd.Series(pairs).value_counts().rename_axis("pair").reset_index(name="n")
    before = before.sort_values(["n", "pair"], ascending=[False, True], ignore_index=True)
    shown = before.head(MAX_PAIRS)
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
    figure.legend(loc="outside upper left", ncols=2)
    rest = before["n"][MAX_PAIRS:]
    more = f"; {len(rest)} rarer pairs ({rest.sum()} prompts) not shown" if len(rest) else ""
    note(figure, f"n = {len(pairs):,} prompts, {len(before)} pairs{more}\ncut: {cut.rule}; seed {seed}")
    return figure


def draw_splits(
    pairs: pd.DataFrame, ranking: pd.DataFrame, splits: pd.DataFrame, swapped: pd.DataFrame, prompts: pd.DataFrame, *,
    dominant: int = 1, ratio: float = 1.25, seed: int = 0,
) -> dict[str, tuple[Figure, str]]:  # fmt: skip
    """Return the figures ``adjectives``, ``nouns`` and ``swapped_pairs``, each with its title.

    Args:
        pairs, ranking, splits, swapped, prompts: as in ``tables``; dominant, ratio: as in ``cut_dominant``.
        seed: of the split, which the figures state.
    """
    occurrences = occurrences_by_split(pairs, ranking, splits, swapped)
    asked = prompts.loc[prompts["split"] == "test_swapped", "pair"].tolist()
    figure = draw_swapped_pairs(asked, cut_dominant(asked, dominant, ratio), seed)
    return {
        f"{kind}s": (draw_words(occurrences, kind, seed), f"{WORD_KINDS[kind].capitalize()} in each split")
        for kind in ("adjective", "noun")
    } | {"swapped_pairs": (figure, "How often each swapped pair is prompted, before and after balancing")}
