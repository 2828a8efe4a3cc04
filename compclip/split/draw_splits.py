"""Draw what the splits of a composition hold: their adjectives and nouns, and the swapped pairs.

The figures replace the paper's figures 8 to 23; each states its definition, its n and its seed.
"""

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import ScaledTranslation

from compclip.divergence.pair_samples import swapped_occurrences
from compclip.plot.drawing import GRAY, Looks, draw_rows, empty, finish, long, looks_of_splits
from compclip.plot.labels import SPLIT_NAMES, WORD_KINDS, pair_words, swatch
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
    changed, _ = swapped_occurrences(counted, swapped)
    split_of = [counted.merge(splits, on="image_id"), changed.assign(split="test_swapped")]
    return pd.concat(split_of)[["adjective", "noun", "split"]]


def word_shares(occurrences: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return the fraction of each split's occurrences that has a word: a row per word, most frequent in train first."""
    counts = pd.crosstab(occurrences[column], occurrences["split"]).reindex(columns=list(SPLIT_NAMES), fill_value=0)
    counts = counts.sort_index().sort_values("train", ascending=False, kind="stable")
    return counts / counts.sum().where(counts.sum() > 0, 1)


def _add_swatches(axes: Axes, words: Sequence[str]) -> None:
    """Draw a swatch beside the name of each row that names a color."""
    colors = {row: color for row, word in enumerate(words) if (color := swatch(word))}
    if colors:
        axes.tick_params(axis="y", pad=18)
    beside = axes.get_yaxis_transform() + ScaledTranslation(-9 / 72, 0, axes.figure.dpi_scale_trans)
    for row, color in colors.items():
        axes.plot(0, row, "s", transform=beside, color=color, markersize=9, markeredgecolor=GRAY, clip_on=False)


def draw_words(occurrences: pd.DataFrame, kind: str, seed: int) -> Figure:
    """Draw the fraction of each word of ``kind``, adjective or noun, in each split."""
    shares = word_shares(occurrences, kind)
    sizes = occurrences["split"].value_counts()
    looks = looks_of_splits({split: sizes.get(split, 0) for split in SPLIT_NAMES})
    figure, ((axes,),) = draw_rows([[long(100 * shares.head(MAX_WORDS))]], looks)
    _add_swatches(axes, shares.index[:MAX_WORDS])
    axes.set_xlim(left=0)
    axes.set_xlabel("fraction of the split's pairs, %")
    rarer = f"; {len(shares) - MAX_WORDS} rarer ones not shown" if len(shares) > MAX_WORDS else ""
    return finish(figure, f"n: occurrences of ranked adjectives with ranked nouns{rarer}; split seed {seed}")


def draw_swapped_pairs(cut: Cut, seed: int) -> Figure:
    """Draw how many prompts have each swapped pair before balancing and how many count after."""
    if not cut.counts:
        return empty("No caption was swapped.")
    before = pd.Series(cut.counts)
    counts = pd.DataFrame({"before": before, "after": pd.Series(cut.counts | cut.kept)}).loc[before.index]
    looks: Looks = {"before": ("before balancing", "#D55E00", "o"), "after": ("after balancing", "#222222", "o")}
    table = long(counts.head(MAX_PAIRS).rename(pair_words))
    figure, ((axes,),) = draw_rows([[table.assign(low=0, high=table["value"])]], looks)
    axes.set_xlim(left=0)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.set_xlabel("swapped prompts")
    rest = before[MAX_PAIRS:]
    more = f"; {len(rest)} rarer pairs ({rest.sum()} prompts) not shown" if len(rest) else ""
    return finish(figure, f"n = {before.sum():,} prompts, {len(before)} pairs{more}; cut: {cut.rule}; seed {seed}")


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
    cut = cut_dominant(prompts.loc[prompts["split"] == "test_swapped", "pair"].tolist(), dominant, ratio)
    words = {
        f"{kind}s": (draw_words(occurrences, kind, seed), f"{WORD_KINDS[kind].capitalize()} in each split")
        for kind in ("adjective", "noun")
    }
    title = "How often each swapped pair is prompted, before and after balancing"
    return words | {"swapped_pairs": (draw_swapped_pairs(cut, seed), title)}
