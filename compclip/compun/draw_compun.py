"""Draw accuracy, the effect of example captions and wrong answers by kind, next to the paper's figures."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import blended_transform_factory

from compclip.compun.analyze_choices import RIGHT, WRONG
from compclip.compun.prompts import captions_of
from compclip.compun.published import CHANCE, COMPOUNDS, TABLE_1, TABLE_2
from compclip.compun.shown import prompt_words, row_name, rows_of
from compclip.core.tables import NOUNS_SEEN
from compclip.plot.drawing import WIDTH, draw_interval, empty, legend, name_rows, note, size
from compclip.plot.labels import percent

# Of prompts; marks differ, too, for readers who do not see colors.
COLORS = {"template": "#555555", "reversed": "#CC79A7", "descriptions": "#0072B2", "examples": "#D55E00"}
MARKS = {"template": "o", "reversed": "v", "descriptions": "s", "examples": "D"}
# Of models, in their order.
MODEL_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MODEL_MARKS = "os^Dv*"
PAPER_COLOR = "#777777"
MAX_NAME = 26  # characters of a row's name; longer ones are truncated
# Which of its nouns a compound's picture shows.
KIND_NAMES = {"either": "either noun", "both": "both nouns", "none": "none of them"}


def _base(prompt: str | None) -> str:
    return "template" if prompt is None else "examples" if captions_of(prompt) is not None else prompt


def _short(name: str) -> str:
    return name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 1]}…"


def _draw_rows(axes: Axes, groups: dict[str, pd.DataFrame], paper: str = "") -> None:
    """Draw a row for each value, below a heading for each group; ``paper`` is the heading of the paper's group."""
    names, y = [], -1
    from_edge = blended_transform_factory(axes.figure.transFigure, axes.transData)
    for heading, rows in groups.items():
        y += 1
        names.append("")
        axes.axhspan(y - 0.5, y + 0.5, color="#eeeeee", zorder=2.5, linewidth=0)
        axes.text(
            0.01, y, _short(heading), transform=from_edge, fontweight="bold", va="center", zorder=3, in_layout=False
        )
        for row in rows.itertuples():
            y += 1
            names.append(row.name)
            color = PAPER_COLOR if heading == paper else COLORS[_base(row.prompt)]
            ends = (row.low, row.high) if pd.notna(row.low) else None
            draw_interval(axes, y, row.value, ends, color, MARKS[_base(row.prompt)], hollow=heading == paper)
    name_rows(axes, names)


def draw_accuracy(analysis: pd.DataFrame) -> Figure:
    """Draw our models, a row a prompt, then the paper's table 1 in gray."""
    right = rows_of(analysis, RIGHT)
    right = right.assign(name=[prompt_words(prompt) if prompt else "all" for prompt in right["prompt"]])
    paper = pd.DataFrame(TABLE_1, columns=["model", "prompt", "value"]).assign(low=None, high=None)
    paper = paper.assign(prompt=paper["prompt"].astype(object).where(paper["prompt"].notna(), None))
    paper["name"] = [row_name(row.model, row.prompt) for row in paper.itertuples()]
    heading = f"the paper, {COMPOUNDS} compounds"
    groups = {str(model): rows for model, rows in right.groupby("model", sort=False)} | {heading: paper}
    figure = Figure(figsize=size(len(groups) + len(right) + len(paper), 0.24, 1.6))
    axes = figure.add_subplot()
    axes.axvline(100 * CHANCE, color="#555555", linewidth=1, linestyle=":")
    _draw_rows(axes, groups, heading)
    axes.set_xlim(0, 102)
    axes.set_xlabel("%")
    about = f"line: 95 % interval; dotted: chance; n = {int(right['n'].max()):,} compounds here;\n"
    note(figure, f"{about}hollow and grey: as the paper prints it, without intervals")
    return figure


def draw_examples(analysis: pd.DataFrame) -> Figure:
    """Draw accuracy by the number of example captions, the template's as a dotted line, and the paper's table 2."""
    right = rows_of(analysis, RIGHT, usual=False).dropna(subset="prompt")
    right = right.assign(captions=[captions_of(prompt) for prompt in right["prompt"]])
    if right["captions"].isna().all():
        return empty("No model was asked with example captions.")
    figure = Figure(figsize=(WIDTH, 3.6))
    axes = figure.add_subplot()
    for place, (model, rows) in enumerate(right.groupby("model", sort=False)):
        counted, color = rows.dropna(subset="captions"), MODEL_COLORS[place % len(MODEL_COLORS)]
        x = counted["captions"] + 0.08 * place
        axes.vlines(x, 100 * counted["low"], 100 * counted["high"], color=color, linewidth=1.6)
        mark = "-" + MODEL_MARKS[place % len(MODEL_MARKS)]
        axes.plot(x, 100 * counted["value"], mark, color=color, markersize=5, label=_short(str(model)))
        for value in rows.loc[rows["prompt"] == "template", "value"]:
            axes.axhline(100 * value, color=color, linewidth=1.2, linestyle=":")
    axes.plot(
        list(TABLE_2), [100 * value for value in TABLE_2.values()], "--D", color=PAPER_COLOR, markerfacecolor="white",
        markersize=5, linewidth=1, label="CLIP ViT-L/14, in the paper",
    )  # fmt: skip
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("example captions")
    axes.set_ylabel("compound's image chosen, %")
    legend(figure, [axes])
    note(figure, f"line: 95 % interval; dotted: the model's template; the paper's table 2 is of {COMPOUNDS} compounds")
    return figure


def draw_kinds(analysis: pd.DataFrame) -> Figure:
    """Draw the fraction of wrong answers by what a compound's picture shows of its nouns."""
    wrong = pd.concat([rows_of(analysis, f"{WRONG}{kind}").assign(name=KIND_NAMES[kind]) for kind in NOUNS_SEEN])
    if wrong.empty:
        return empty("The list does not say what the compounds' pictures show of their nouns.")
    wrong["name"] += [f", n = {int(n):,}" for n in wrong["n"]]
    groups = {row_name(*of): rows for of, rows in wrong.groupby(["model", "prompt"], sort=False)}
    figure = Figure(figsize=size(len(groups) + len(wrong), 0.24, 1.6))
    axes = figure.add_subplot()
    _draw_rows(axes, groups)
    axes.set_xlim(-2, 102)
    axes.set_xlabel("wrong answers, %")
    note(figure, "line: 95 % interval. As the paper's figure 3, which has no numbers")
    return figure


def _describe(rows: pd.DataFrame) -> str:
    return "; ".join(f"{row_name(row.model, row.prompt)}: {percent(row.value)}" for row in rows.itertuples())


def draw_compun(analysis: pd.DataFrame) -> dict[str, tuple[Figure, str, str]]:
    """Return the figures accuracy, examples and kinds, each with title and description."""
    every, usual = rows_of(analysis, RIGHT, usual=False), rows_of(analysis, RIGHT)
    counted = every[[prompt is not None and captions_of(prompt) is not None for prompt in every["prompt"]]]
    wrong = analysis[analysis["measure"].str.startswith(WRONG)]
    wrong = wrong.assign(model=wrong["measure"] + ": " + wrong["model"])
    return {
        "accuracy": (draw_accuracy(analysis), "How often the compound’s image is chosen", _describe(usual)),
        "examples": (draw_examples(analysis), "Accuracy by the number of example captions", _describe(counted)),
        "kinds": (draw_kinds(analysis), "Wrong answers by what the picture shows", _describe(wrong)),
    }
