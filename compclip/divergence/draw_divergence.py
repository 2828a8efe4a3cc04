"""Draw how far the test splits of one data set and composition are from train."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from compclip.divergence.results import FIGURES, SYMBOLS, measured, random_share, three_decimals
from compclip.plot.drawing import GRAY, WIDTH, draw_rows, empty, finish, long, looks_of_splits
from compclip.plot.labels import PART_NAMES, SPLIT_NAMES, pair_words, percent


def part_name(name: str) -> str:
    """Return a pair or one of its words as people write them."""
    return pair_words(name.partition(":")[2] or name)


def draw_shares(distribution: Mapping[str, Any], row: Mapping[str, Any], seed: int) -> Figure:
    """Draw the fractions of train and test that the most frequent parts have; ``row``: the split's measurement."""
    kind, split, parts = distribution["kind"], distribution["split"], distribution["names"]
    # A word may be both an adjective and a noun.
    twins = {f"noun:{name.removeprefix('adjective:')}" for name in parts}
    names = [f"{part_name(name)}{' (noun)' * (name in twins)}" for name in parts]
    shares = long(100 * pd.DataFrame({"train": distribution["train"], split: distribution["test"]}, names))
    looks = looks_of_splits({"train": row["train"], split: row["test"]})
    figure, ((axes,),) = draw_rows([[shares.assign(low=0, high=shares["value"])]], looks)
    axes.set_xlim(left=0)
    axes.set_xlabel(f"fraction of all {PART_NAMES['pairs', kind]}, %")
    column, most = kind.removesuffix("s"), "all" if len(parts) == row[kind] else f"the {len(parts)} most frequent of"
    apart = f"{SYMBOLS[kind]} {three_decimals(row[f'{column}_divergence'])} (random {random_share(row, column)})"
    of = f"{most} {row[kind]:,} {PART_NAMES['pairs', kind]}"
    return finish(figure, f"{apart}; {of}; n: images, with all their captions; seed {seed}")


def shares_description(distribution: Mapping[str, Any]) -> str:
    test = SPLIT_NAMES[distribution["split"]]
    return ", ".join(
        f"{part_name(name)} {percent(train)} % of train and {percent(other)} % of {test}"
        for name, train, other in zip(*(distribution[key] for key in ("names", "train", "test")), strict=True)
    )


def draw_path(division: Mapping[str, Any], seed: int) -> Figure:
    """Draw both divergences after each image of the greedy division, and marks for those after exchanges."""
    path = division["path"]
    figure = Figure(figsize=(WIDTH, 3))
    all_axes = figure.subplots(2, 1, sharex=True)
    for axes, column, color in zip(all_axes, ("compound", "atom"), ("#0072B2", GRAY), strict=True):
        target, reached = division["wanted"][column], division[f"{column}_divergence"]
        axes.plot(path["images"], path[column], color=color, linewidth=1.5, label="while it grew")
        axes.plot(path["images"][-1], reached, "D", color=color, clip_on=False, label="after exchanges")
        wanted = "the largest" if target == "max" else f"{target:g}"
        if column == "atom" and division["wanted"]["compound"] == "max":
            wanted = f"at most {wanted}"
        if target != "max":
            axes.axhline(target, color="#D55E00", linewidth=1.2, linestyle="--", label="wanted")
        kind = f"{column}s"
        axes.set_title(f"{SYMBOLS[kind]} ({PART_NAMES['pairs', kind]}): {three_decimals(reached)},\nwanted: {wanted}")
    all_axes[0].set_ylim(0, 1.02)
    # It starts at 1 and ends at a few hundredths.
    all_axes[1].set_yscale("log", nonpositive="mask")
    lowest = min(value for value in (0.01, division["atom_divergence"], *path["atom"]) if value > 0)
    all_axes[1].set_ylim(bottom=0.8 * lowest)
    all_axes[1].yaxis.set_major_formatter("{x:g}")
    all_axes[1].xaxis.set_major_formatter("{x:,.0f}")
    all_axes[1].set_xlabel("images placed")
    return finish(figure, f"n = {path['images'][-1]:,} images placed; seed {seed}")


def draw_divergence(
    divergences: pd.DataFrame, distributions: Sequence[Mapping[str, Any]], seed: int
) -> Iterator[tuple[Figure, str, str]]:
    """Yield each of ``FIGURES`` with its title and description: parts of train and test side by side.

    They show adjectives and nouns, and their pairs, as in figure 6 of Keysers et al. 2020. ``divergences`` and
    ``distributions`` are what ``measure_splits`` returns.
    """
    shown = {(d["split"], d["kind"]): d for d in distributions if d["definition"] == "pairs"}
    for split, kind in FIGURES.values():
        figure, description = empty(f"{kind.capitalize()} of {SPLIT_NAMES[split]} were not measured."), ""
        if distribution := shown.get((split, kind)):
            figure = draw_shares(distribution, measured(divergences, "pairs", split, "captions"), seed)
            description = shares_description(distribution)
        yield figure, f"{PART_NAMES['pairs', kind].capitalize()} of train and {SPLIT_NAMES[split]}", description
