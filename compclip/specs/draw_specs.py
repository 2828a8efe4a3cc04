"""Draw what training with long captions changed: each judge's measures for each seed, and their differences."""

from collections.abc import Iterator

import pandas as pd
from matplotlib.figure import Figure

from compclip.core.log import log
from compclip.plot.drawing import draw_line, draw_rows, finish, in_percent
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


def _values_of(table: pd.DataFrame) -> str:
    names = table["judge"] + (" − " + table["against"]).where(table["against"] != "", "")
    rows = zip(table["seed"], table["measure"], names, table["value"], strict=True)
    return "; ".join(
        f"seed {seed}, {INTRINSIC_MEASURES[name]}, {judge}: {100 * value:.1f}" for seed, name, judge, value in rows
    )


def draw_specs(table: pd.DataFrame) -> Iterator[tuple[str, Figure, str, str]]:
    """Yield the name of each figure, the figure, its title and its description; ``table`` as of ``read_intrinsic``."""
    values, gains = table[table["against"] == ""], table[table["against"] != ""]
    yield "measures", draw_measures(table), "How each judge tells right details from wrong ones", _values_of(values)
    yield "gains", draw_gains(table), "What the loss of SPECS gains", _values_of(gains)
    log.info("%d of %d gains have an interval above 0", (gains["low"] > 0).sum(), len(gains))
