"""The figure of what people answered."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from compclip.core.tables import TESTS
from compclip.human.correlation import RUN_SCORES
from compclip.human.opinions import ALL
from compclip.human.tasks import KINDS
from compclip.plot.drawing import Looks, draw_line, draw_rows, finish, in_percent
from compclip.plot.labels import SPLIT_LOOKS

PANEL_TITLES = {
    "perceptual": "preferred to other generators' image",
    "match": "image said to match its caption",
    "caption": "own caption chosen of two",
}
PEOPLE_LOOKS: Looks = {ALL: ("all splits", "#222222", "o"), **{split: SPLIT_LOOKS[split] for split in TESTS}}


def draw_people(preferences: pd.DataFrame, correlations: pd.DataFrame, about: str) -> Figure:
    """Draw a panel of preferences for each kind, and below them the correlations with the scores."""
    kinds = [kind for kind in KINDS if (preferences["kind"] == kind).any()]
    to_all = preferences[preferences["against"].isin([np.nan, None, ALL]) & preferences["split"].isin(TESTS)]
    of_kinds = [to_all[to_all["kind"] == kind] for kind in kinds]
    lines = [[in_percent(rows, "share", row=rows["generator"], series=rows["split"])] for rows in of_kinds]
    is_tau = (correlations["statistic"] == "kendall") & (correlations["level"] == "image")
    tau = correlations[is_tau & correlations["value"].notna() & correlations["low"].notna()]
    if len(tau):
        columns = {"row": tau["kind"] + ": " + tau["score"].replace(RUN_SCORES), "series": tau["split"]}
        lines.append([pd.DataFrame({name: tau[name] for name in ("value", "low", "high")} | columns)])
    figure, panels = draw_rows(lines, PEOPLE_LOOKS)
    for axes, kind in zip(panels[:, 0], kinds, strict=False):
        if kind != "match":
            draw_line(axes, 50)
        axes.set_xlim(-2, 102)
        axes.set_title(f"{PANEL_TITLES[kind]}, %", loc="right")
    if len(tau):
        draw_line(panels[-1, 0], 0)
        panels[-1, 0].set_title("score and answers: Kendall's tau-b", loc="right")
    return finish(figure, about)
