"""Draw what training with long captions changed: each judge's measures for each seed, and their differences."""

import textwrap
from collections.abc import Iterator

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from compclip.core.log import log
from compclip.plot.drawing import draw_interval, name_rows, note, size
from compclip.specs.shown import JUDGES, MEASURES, is_certain, pick

COLORS = {"stretched": "#555555", "contrastive": "#0072B2", "specs": "#D55E00"}
MARKERS = {"stretched": "o", "contrastive": "s", "specs": "D"}


def _draw_intervals(
    table: pd.DataFrame, labels: dict[str, str], height: float, spacing: float, middle: int, unit: str, about: str
) -> Figure:
    """Draw a row per measure and seed, with a marker and an interval for each series of ``labels``.

    ``table`` has a column series; markers of differences are hollow if the interval contains 0.
    """
    rows = [(measure, seed) for measure in MEASURES for seed in sorted(table["seed"].unique())]
    figure = Figure(figsize=size(len(rows), height, 1.5))
    axes = figure.add_subplot()
    for y, (measure, seed) in enumerate(rows):
        for place, series in enumerate(labels):
            row = pick(table, seed=seed, measure=measure, series=series)
            if row is None:
                continue
            at = y + (place - (len(labels) - 1) / 2) * spacing
            hollow = row["against"] and not is_certain(row)
            ends, label = (row["low"], row["high"]), labels[series] if y == 0 else ""
            draw_interval(axes, at, row["value"], ends, COLORS[series], MARKERS[series], hollow=hollow, label=label)
    name_rows(axes, [f"{MEASURES[measure]}, seed {seed}" for measure, seed in rows])
    axes.axvline(middle, color="#555555", linewidth=1, linestyle=":" if middle else "-")
    axes.set_xlabel(unit)
    figure.legend(loc="outside upper left", ncols=1, handletextpad=0.3, columnspacing=1)
    low, high = table["n"].min(), table["n"].max()
    note(figure, f"{about} n = {low:,}{'' if low == high else f' to {high:,}'} captions")
    return figure


def draw_measures(table: pd.DataFrame) -> Figure:
    """Draw the judges' values; ``table`` as of ``read_intrinsic``."""
    about = (
        "Pos: added right details that raise the similarity. Neg: wrong details that the right ones beat.\n"
        "Increment rate: the mean of Pos and of wrong details that do not win.\n"
        "Line: 95 % interval; dotted: chance."
    )
    values = table[table["against"] == ""]
    return _draw_intervals(values.assign(series=values["judge"]), JUDGES, 0.42, 0.22, 50, "%", about)


def draw_gains(table: pd.DataFrame) -> Figure:
    gains = table[table["against"] != ""]
    labels = {judge: f"loss of SPECS − {name}" for judge, name in JUDGES.items() if judge in set(gains["against"])}
    about = "Paired: both judges see the same resampled images. Line: 95 % interval."
    series = gains.assign(series=gains["against"])
    return _draw_intervals(series, labels, 0.36, 0.26, 0, "percentage points", about)


def draw_growing(steps: pd.DataFrame) -> Figure:
    """Draw one caption, a row per step: how far its similarities, right and wrong, are above that of its first step.

    ``steps`` has the columns of the similarities that ``intrinsic`` returns.
    """
    judges = [judge for judge in JUDGES if judge in set(steps["judge"])]
    texts = steps[steps["judge"] == judges[0]].sort_values("step")["text"]
    added = [text[len(before) :].strip() for before, text in zip(["", *texts], texts, strict=False)]
    figure = Figure(figsize=(5.4, 0.27 * len(added) + 1.6))
    for axes, judge in zip(figure.subplots(1, len(judges), sharey=True, squeeze=False)[0], judges, strict=True):
        by_judge = steps[steps["judge"] == judge].sort_values("step")
        right, wrong = by_judge["similarity"], by_judge["negative_similarity"]
        rows, style = range(len(by_judge)), {"markersize": 5, "linewidth": 1.2}
        axes.plot(100 * (right - right.iloc[0]), rows, "-o", color=COLORS[judge], **style)
        axes.plot(100 * (wrong - right.iloc[0]), rows, "x", color="#CC79A7", markeredgewidth=1.4)
        axes.axvline(0, color="#555555", linewidth=0.8, linestyle=":")
        axes.set_title(textwrap.fill(JUDGES[judge], 11), color=COLORS[judge])
        axes.xaxis.set_major_locator(MaxNLocator(2))
        name_rows(axes, [textwrap.shorten(text, 38, placeholder=" …") for text in added])
    figure.supxlabel("cosine × 100, above that of the first row")
    note(figure, "Dots: the caption up to here. Crosses: with a wrong detail instead.")
    return figure


def _describe(table: pd.DataFrame) -> str:
    names = table["judge"] + (" − " + table["against"]).where(table["against"] != "", "")
    rows = zip(table["seed"], table["measure"], names, table["value"], strict=True)
    return "; ".join(f"seed {seed}, {MEASURES[name]}, {judge}: {100 * value:.1f}" for seed, name, judge, value in rows)


def draw_specs(table: pd.DataFrame, steps: pd.DataFrame) -> Iterator[tuple[str, Figure, str, str]]:
    """Yield the name of each figure, the figure, its title and its description: measures, gains, a growing caption.

    Args:
        table: measures and differences of each seed, of ``section.read_intrinsic``.
        steps: the similarities that ``intrinsic`` returns, of one seed.
    """
    values, gains = table[table["against"] == ""], table[table["against"] != ""]
    # The first caption, by its image's name, with several negatives.
    sizes = steps.groupby(["image", "caption_id"])["negative"].count() / steps["judge"].nunique()
    image, caption = sizes[sizes >= min(3, sizes.max())].index[0]
    growing = steps[(steps["image"] == image) & (steps["caption_id"] == caption)]
    yield "measures", draw_measures(table), "How each judge tells right details from wrong ones", _describe(values)
    yield "gains", draw_gains(table), "What the loss of SPECS gains", _describe(gains)
    yield "growing", draw_growing(growing), f"A caption of {image} that grows", ""
    log.info("%d of %d gains have an interval above 0", (gains["low"] > 0).sum(), len(gains))
