"""Draw the effect of training with long captions: each judge's measures for each seed."""

import pandas as pd
from matplotlib.figure import Figure

from compclip.core.log import log
from compclip.plot.drawing import draw_line, draw_rows, finish, in_percent
from compclip.specs.config import INTRINSIC_MEASURES
from compclip.specs.specs_view import JUDGE_NAMES

# color and mark
JUDGE_LOOKS = {
    "stretched": ("#555555", "o"),
    "contrastive": ("#0072B2", "s"),
    "specs": ("#D55E00", "D"),
}


def draw_specs(table: pd.DataFrame) -> tuple[Figure, str]:
    """Draw a row for each measure and seed, with an interval for each judge; ``table``: as in
    ``read_intrinsic``.

    Returns:
        The figure, and its values as text.
    """
    gains = table[table["against"] != ""]
    log.info("%d of %d gains have an interval above 0", (gains["low"] > 0).sum(), len(gains))
    values = table[table["against"] == ""]
    measure_order = values["measure"].map(list(INTRINSIC_MEASURES).index)
    values = values.assign(order=measure_order).sort_values(["order", "seed"], kind="stable")
    row = values["measure"].map(INTRINSIC_MEASURES) + ", seed " + values["seed"].astype("str")
    looks = {judge: (name, *JUDGE_LOOKS[judge]) for judge, name in JUDGE_NAMES.items()}
    series = in_percent(values, "value", row=row, series=values["judge"])
    figure, ((axes,),) = draw_rows([[series]], looks)
    draw_line(axes, 50)  # chance
    axes.set_xlabel("%")
    smallest = f"{values['n'].min():,}"
    largest = f"{values['n'].max():,}"
    counts = smallest if smallest == largest else f"{smallest} to {largest}"
    caption = (
        "Pos: added right details that raise the similarity. Neg: wrong details that the right "
        "ones beat. Increment rate: the mean of Pos and of wrong details that do not win. "
        f"Line: 95 % interval; dotted: chance. n = {counts} captions"
    )
    percentages = zip(row, values["judge"], 100 * values["value"], strict=True)
    texts = [f"{name}, {judge}: {value:.1f}" for name, judge, value in percentages]
    return finish(figure, caption), "; ".join(texts)
