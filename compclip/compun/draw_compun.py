"""Draw accuracy, the effect of example captions and wrong answers by kind, next to the paper's
figures.
"""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from compclip.compun.analyze_choices import RIGHT, WRONG
from compclip.compun.compun_view import prompt_words, row_name, rows_of
from compclip.compun.prompts import captions_of
from compclip.compun.published_results import CHANCE, PAPER_COMPOUNDS, TABLE_1, TABLE_2
from compclip.core.tables import NOUNS_SEEN
from compclip.plot.drawing import (
    GRAY,
    WIDTH,
    Looks,
    draw_line,
    draw_rows,
    empty,
    finish,
    in_percent,
    looks_of,
)
from compclip.plot.labels import percent

# Of prompts, and of the paper's figures.
PROMPT_LOOKS: Looks = {
    "template": ("", GRAY, "o"),
    "reversed": ("", "#CC79A7", "v"),
    "descriptions": ("", "#0072B2", "s"),
    "examples": ("", "#D55E00", "D"),
}
PAPER_COLOR = "#777777"
# The nouns that a compound's picture shows.
KIND_NAMES = {"either": "either noun", "both": "both nouns", "none": "neither noun"}


def _in_rows(rows: pd.DataFrame, group: Any, row: Any, **columns: Any) -> pd.DataFrame:
    """Return the rows in percent for ``draw_rows``, with a look for each prompt."""
    series = [_look(prompt) for prompt in rows["prompt"]]
    return in_percent(rows, "value", group=group, row=row, series=series, **columns)


def _look(prompt: str) -> str:
    """Return the key of a prompt in PROMPT_LOOKS; people, who have no prompt, look as the
    template.
    """
    if captions_of(prompt) is not None:
        return "examples"
    return prompt or "template"


def draw_accuracy(analysis: pd.DataFrame) -> Figure:
    """Draw the accuracy of our models, a row for each prompt, then the paper's table 1 in hollow
    marks.
    """
    right = rows_of(analysis, RIGHT)
    prompts = [prompt_words(prompt) if prompt else "all" for prompt in right["prompt"]]
    ours = _in_rows(right, right["model"], prompts, filled=True)
    paper = pd.DataFrame(TABLE_1, columns=["model", "prompt", "value"])
    paper = paper.assign(low=np.nan, high=np.nan)
    names = [row_name(row.model, row.prompt) for row in paper.itertuples()]
    # Hollow and under a heading of their own: of other compounds than ours.
    theirs = _in_rows(paper, f"the paper, {PAPER_COMPOUNDS} compounds", names, filled=False)
    figure, ((axes,),) = draw_rows([[pd.concat([ours, theirs])]], PROMPT_LOOKS)
    draw_line(axes, 100 * CHANCE)
    axes.set(xlim=(0, 102), xlabel="%")  # 102, so that a mark at 100 is not cut off
    count = f"n = {int(right['n'].max()):,} compounds here"
    hollow = "hollow: the paper's values, without intervals"
    return finish(figure, f"line: 95 % interval; dotted: chance; {count}; {hollow}")


def draw_examples(analysis: pd.DataFrame) -> Figure:
    """Draw accuracy by number of example captions, with the template's as a dotted line, and the
    paper's table 2.
    """
    right = rows_of(analysis, RIGHT, usual=False).query("prompt != ''")
    right = right.assign(captions=[captions_of(prompt) for prompt in right["prompt"]])
    if right["captions"].isna().all():
        return empty("No model was asked with example captions.")
    figure = Figure(figsize=(WIDTH, 2.2))
    axes = figure.add_subplot()
    looks = looks_of(right["model"].unique())
    for number, (model, (name, color, mark)) in enumerate(looks.items()):
        rows = right[right["model"] == model]
        counted = rows.dropna(subset="captions")
        # shifted, so that the intervals of different models do not cover each other
        x = counted["captions"] + 0.08 * number
        axes.vlines(x, 100 * counted["low"], 100 * counted["high"], color=color, linewidth=1.6)
        axes.plot(x, 100 * counted["value"], f"{mark}-", color=color, markersize=5, label=name)
        # at most one value, without which the model has no line
        for value in rows.loc[rows["prompt"] == "template", "value"]:
            axes.axhline(100 * value, color=color, linewidth=1.2, linestyle=":")
    axes.plot(
        list(TABLE_2),
        [100 * value for value in TABLE_2.values()],
        "--D",
        color=PAPER_COLOR,
        markerfacecolor="white",
        markersize=5,
        linewidth=1,
        label="CLIP ViT-L/14, in the paper",
    )
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set(xlabel="example captions", ylabel="compound's image chosen, %")
    published = f"the paper's table 2 is of {PAPER_COMPOUNDS} compounds"
    return finish(figure, f"line: 95 % interval; dotted: the model's template; {published}")


def draw_kinds(analysis: pd.DataFrame) -> Figure:
    """Draw the fraction of wrong answers by the nouns that a compound's picture shows."""
    tables = []
    for kind in NOUNS_SEEN:
        rows_of_kind = rows_of(analysis, f"{WRONG}{kind}")
        tables.append(rows_of_kind.assign(name=KIND_NAMES[kind]))
    wrong = pd.concat(tables)
    if wrong.empty:
        return empty("The list of compounds has no kinds.")
    groups = [row_name(row.model, row.prompt) for row in wrong.itertuples()]
    kinds = [f"{row.name}, n = {int(row.n):,}" for row in wrong.itertuples()]
    table = _in_rows(wrong, groups, kinds)
    figure, ((axes,),) = draw_rows([[table]], PROMPT_LOOKS)
    axes.set(xlim=(-2, 102), xlabel="wrong answers, %")
    return finish(figure, "line: 95 % interval. As the paper's figure 3, which has no numbers")


def _accuracies(rows: pd.DataFrame) -> str:
    values = [
        f"{row_name(row.model, row.prompt)}: {percent(row.value)}" for row in rows.itertuples()
    ]
    return "; ".join(values)


def draw_compun(analysis: pd.DataFrame) -> dict[str, tuple[Figure, str, str]]:
    """Return the figures accuracy, examples and kinds, each with title and caption."""
    right = rows_of(analysis, RIGHT, usual=False)
    with_captions = right[[captions_of(prompt) is not None for prompt in right["prompt"]]]
    wrong = analysis[analysis["measure"].str.startswith(WRONG)]
    # The measure has the kind, which the names of rows lack.
    wrong = wrong.assign(model=wrong["measure"] + ": " + wrong["model"])
    return {
        "accuracy": (
            draw_accuracy(analysis),
            "How often the compound’s image is chosen",
            _accuracies(rows_of(analysis, RIGHT)),
        ),
        "examples": (
            draw_examples(analysis),
            "Accuracy by the number of example captions",
            _accuracies(with_captions),
        ),
        "kinds": (
            draw_kinds(analysis),
            "Wrong answers by what the picture shows",
            _accuracies(wrong),
        ),
    }
