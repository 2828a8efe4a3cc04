"""Draw what training with long captions changed: each judge's measures for each seed, and their differences."""

import textwrap
from collections.abc import Iterator

import pandas as pd
from matplotlib.figure import Figure

from compclip.core.log import log
from compclip.plot.drawing import draw_line, draw_rows, finish, in_percent, long
from compclip.specs.config import INTRINSIC_MEASURES
from compclip.specs.shown import JUDGE_NAMES

JUDGE_LOOKS = {"stretched": ("#555555", "o"), "contrastive": ("#0072B2", "s"), "specs": ("#D55E00", "D")}


def _draw_series(table: pd.DataFrame, series: str, labels: dict[str, str], line: int, unit: str, about: str) -> Figure:
    """Draw a row for each measure and seed, with an interval for each judge of column ``series``."""
    places = table["measure"].map(list(INTRINSIC_MEASURES).index)
    table = table.assign(place=places).sort_values(["place", "seed"], kind="stable")
    row = [
        f"{INTRINSIC_MEASURES[measure]}, seed {seed}"
        for measure, seed in zip(table["measure"], table["seed"], strict=True)
    ]
    filled = (table["against"] == "") | (table["low"] > 0) | (table["high"] < 0)
    looks = {judge: (label, *JUDGE_LOOKS[judge]) for judge, label in labels.items()}
    figure, ((axes,),) = draw_rows([[in_percent(table, "value", row=row, series=table[series], filled=filled)]], looks)
    draw_line(axes, line)
    axes.set_xlabel(unit)
    counts = " to ".join(dict.fromkeys(f"{n:,}" for n in (table["n"].min(), table["n"].max())))
    return finish(figure, f"{about} n = {counts} captions")


def draw_measures(table: pd.DataFrame) -> Figure:
    """Draw the judges' values; ``table`` as of ``read_intrinsic``."""
    about = (
        "Pos: added right details that raise the similarity. Neg: wrong details that the right ones beat. "
        "Increment rate: the mean of Pos and of wrong details that do not win. "
        "Line: 95 % interval; dotted: chance."
    )
    return _draw_series(table[table["against"] == ""], "judge", JUDGE_NAMES, 50, "%", about)


def draw_gains(table: pd.DataFrame) -> Figure:
    gains = table[table["against"] != ""]
    labels = {judge: f"loss of SPECS − {name}" for judge, name in JUDGE_NAMES.items() if judge in set(gains["against"])}
    about = "Paired: both judges see the same resampled images. Hollow: the 95 % interval, a line, holds 0."
    return _draw_series(gains, "against", labels, 0, "percentage points", about)


def draw_growing(steps: pd.DataFrame) -> Figure:
    """Draw one caption, a row per step: how far its similarities, right and wrong, are above that of its first step.

    ``steps`` has the columns of the similarities that ``intrinsic`` returns.
    """
    panels = {}
    for judge in (judge for judge in JUDGE_NAMES if judge in set(steps["judge"])):
        of_judge = steps[steps["judge"] == judge].sort_values("step")
        texts = list(of_judge["text"])
        added = [text[len(before) :].strip() for before, text in zip(["", *texts], texts, strict=False)]
        names = [f"{n}. {textwrap.shorten(text, 36, placeholder=' …')}" for n, text in enumerate(added, 1)]
        above = 100 * (of_judge[["similarity", "negative_similarity"]] - of_judge["similarity"].iloc[0])
        panels[judge] = long(above.set_axis(names))
    looks = {
        "similarity": ("the caption up to here", "#0072B2", "o"),
        "negative_similarity": ("with a wrong detail instead", "#D55E00", "X"),
    }
    figure, (line,) = draw_rows([list(panels.values())], looks)
    figure.set_figwidth(5.4)
    for axes, judge in zip(line, panels, strict=True):
        draw_line(axes, 0)
        axes.set_title(textwrap.fill(JUDGE_NAMES[judge], 11))
    return finish(figure, "Cosine × 100, above that of the first row.")


def _values_of(table: pd.DataFrame) -> str:
    names = table["judge"] + (" − " + table["against"]).where(table["against"] != "", "")
    rows = zip(table["seed"], table["measure"], names, table["value"], strict=True)
    return "; ".join(
        f"seed {seed}, {INTRINSIC_MEASURES[name]}, {judge}: {100 * value:.1f}" for seed, name, judge, value in rows
    )


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
    yield "measures", draw_measures(table), "How each judge tells right details from wrong ones", _values_of(values)
    yield "gains", draw_gains(table), "What the loss of SPECS gains", _values_of(gains)
    yield "growing", draw_growing(growing), f"A caption of {image} that grows", ""
    log.info("%d of %d gains have an interval above 0", (gains["low"] > 0).sum(), len(gains))
