"""Draw the results of compound nouns: accuracy, the effect of example captions, gains over the template, kinds."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import blended_transform_factory

from workflow_scripts.compun.prompt_names import read_prompt, usual_prompts
from workflow_scripts.compun.published import CHANCE, CHANCE_NAME, OURS, PAPER, PEOPLE
from workflow_scripts.compun.section import ALPHA, KIND_NAMES, prompt_words, read_analysis, row_name, text_table
from workflow_scripts.compun.steps import DrawCompun
from workflow_scripts.core import cli
from workflow_scripts.core.cli import log
from workflow_scripts.core.io import write_text
from workflow_scripts.core.tables import NOUNS_SEEN
from workflow_scripts.plot.drawing import WIDTH, draw_interval, empty, name_rows, note, save, size, style
from workflow_scripts.plot.labels import percent

# By the base of a prompt; marks differ, too, for readers who do not see colors.
COLORS = {"template": "#555555", "reversed": "#CC79A7", "descriptions": "#0072B2", "examples": "#D55E00"}
MARKS = {"template": "o", "reversed": "v", "descriptions": "s", "examples": "D"}
# Of models, in their order.
MODEL_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MODEL_MARKS = "os^Dv*"
PAPER_COLOR = "#777777"
MAX_NAME = 26  # characters of a row's name; longer ones are truncated

# A row of a figure: its name and its values; None for a heading.
Line = tuple[str, dict | None]


def _dot(axes: Axes, y: float, row: dict, color: str, mark: str, *, hollow: bool) -> None:
    """Draw a value in percent with its interval, if it has one; ``row`` has value, low and high."""
    ends = (row["low"], row["high"]) if pd.notna(row["low"]) else None
    draw_interval(axes, y, row["value"], ends, color, mark, hollow=hollow)


def _name_groups(axes: Axes, lines: list[Line], *, heads: bool = True, thick: float = 1) -> None:
    """Name the rows; rows without values are headings on gray, from the figure's edge because they may be long."""
    short = [name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 1]}…" for name, _ in lines]
    name_rows(axes, ["" if row is None else name for name, (_, row) in zip(short, lines, strict=True)])
    from_edge = blended_transform_factory(axes.figure.transFigure, axes.transData)
    for y, (name, row) in enumerate(lines):
        if row is None:
            axes.axhspan(y - thick / 2, y + thick / 2, color="#eeeeee", zorder=2.5, linewidth=0)
        if row is None and heads:
            axes.text(
                0.01, y, name, transform=from_edge, fontweight="bold", va="center", zorder=3,
                in_layout=False,
            )  # fmt: skip


def draw_accuracy(beside: pd.DataFrame) -> Figure:
    """Draw our models, a row a prompt, then the paper's table 1 in gray; columns are ``analyze_choices.BESIDE``."""
    table = beside[(beside["table"].astype(str) == "1") & beside["value"].notna() & (beside["model"] != CHANCE_NAME)]
    lines: list[Line] = []
    ours, paper = table[table["whose"] == OURS], table[table["whose"] == PAPER]
    for model, part in ours.groupby("model", sort=False):
        rows = part.to_dict("records")
        if len(rows) > 1:
            lines += [(model, None), *((prompt_words(row["prompt"]), row) for row in rows)]
        else:
            name = f"{model} (here)" if model == PEOPLE else row_name(rows[0]["model"], rows[0]["prompt"])
            lines.append((name, rows[0]))
    lines.append((f"the paper, {int(paper['n'].max())} compounds", None))
    lines += [(row_name(row["model"], row["prompt"]), row) for row in paper.to_dict("records")]
    figure = Figure(figsize=size(len(lines), 0.24, 1.6))
    axes = figure.add_subplot()
    for y, (_, row) in enumerate(lines):
        if row is None:
            continue
        base = "template" if pd.isna(row["prompt"]) else read_prompt(row["prompt"]).base
        is_paper = row["whose"] == PAPER
        _dot(axes, y, row, PAPER_COLOR if is_paper else COLORS[base], MARKS[base], hollow=is_paper)
    axes.axvline(100 * CHANCE, color="#555555", linewidth=1, linestyle=":")
    _name_groups(axes, lines)
    axes.set_xlim(0, 102)
    axes.set_xlabel("%")
    note(
        figure,
        f"line: 95 % interval; dotted: chance; {_count(ours['n'])} here;\nhollow and grey: as the paper prints it, "
        "without intervals",
    )
    return figure


def draw_examples(beside: pd.DataFrame, accuracy: pd.DataFrame) -> Figure:
    """Draw accuracy by the number of example captions, the template's as a dotted line, and the paper's table 2."""
    table = beside[beside["table"].astype(str) == "2"]
    table = table[[not read_prompt(name).ensemble for name in table["prompt"]]]
    table = table.assign(captions=[read_prompt(name).captions for name in table["prompt"]])
    ours, paper = table[table["whose"] == OURS], table[table["whose"] == PAPER]
    if ours.empty:
        return empty("No model was asked with example captions.")
    figure = Figure(figsize=(WIDTH, 3.6))
    axes = figure.add_subplot()
    models = list(ours["model"].drop_duplicates())
    for number, model in enumerate(models):
        own = ours[ours["model"] == model].sort_values("captions")
        color = MODEL_COLORS[number % len(MODEL_COLORS)]
        aside = (number - (len(models) - 1) / 2) * 0.08
        x = own["captions"] + aside
        axes.vlines(x, 100 * own["low"], 100 * own["high"], color=color, linewidth=1.6)
        mark = "-" + MODEL_MARKS[number % len(MODEL_MARKS)]
        axes.plot(x, 100 * own["value"], mark, color=color, markersize=5, label=model)
        base = accuracy[(accuracy["model"] == model) & (accuracy["prompt"] == "template")]
        if len(base):
            axes.axhline(100 * base["accuracy"].iloc[0], color=color, linewidth=1.2, linestyle=":")
    axes.plot(
        paper["captions"], 100 * paper["value"], "--D", color=PAPER_COLOR, markerfacecolor="white", markersize=5,
        linewidth=1, label="CLIP ViT-L/14, in the paper",
    )  # fmt: skip
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("example captions")
    axes.set_ylabel("compound's image chosen, %")
    figure.legend(loc="outside upper left", ncols=2, handletextpad=0.4, columnspacing=1)
    note(
        figure,
        "line: 95 % interval; dotted: the model's template;\n"
        f"{_count(ours['n'])} here; the paper's table 2 is of {int(paper['n'].max())}",
    )
    return figure


def draw_gains(comparisons: pd.DataFrame) -> Figure:
    """Draw the gain of each prompt over the template, by model; then differences between models."""
    lines: list[Line] = []
    gains = comparisons[(comparisons["between"] == "prompt") & (comparisons["b"] == "template")]
    for model, part in gains.groupby("model", sort=False):
        rows = part.to_dict("records")
        lines += [(f"{model}: − template", None), *((prompt_words(row["a"]), row) for row in rows)]
    models = comparisons[(comparisons["between"] == "model") & (comparisons["prompt"] == "template")]
    if len(models):
        rows = models.to_dict("records")
        lines += [("template", None), *((f"{row['a']} − {row['b']}", row) for row in rows)]
    if not lines:
        return empty("There is one prompt and one model, and nothing to compare them with.")
    figure = Figure(figsize=size(len(lines), 0.25, 1.3))
    axes = figure.add_subplot()
    for y, (_, row) in enumerate(lines):
        if row is None:
            continue
        base = read_prompt(row["a"]).base if row["between"] == "prompt" else "template"
        values = {"value": row["difference"], "low": row["low"], "high": row["high"]}
        _dot(axes, y, values, COLORS[base], MARKS[base], hollow=row["p_holm"] >= ALPHA)
    axes.axvline(0, color="#333333", linewidth=1)
    _name_groups(axes, lines)
    axes.set_xlabel("percentage points")
    note(
        figure,
        f"line: 95 % interval, paired; {_count(comparisons['n'])} that both were asked;\n"
        f"filled: McNemar's exact test, with Holm's correction, is below {ALPHA:g}",
    )
    return figure


def draw_kinds(kinds: pd.DataFrame) -> Figure:
    """Draw the fraction of wrong answers and the mean similarity of right ones by kind: the paper's figures 3 and 4."""
    if kinds.empty:
        return empty("The list does not say what the compounds' pictures show of their nouns.")
    usual = [name for name in usual_prompts(list(kinds["prompt"].unique())) if not read_prompt(name).ensemble]
    prompts = usual or list(kinds["prompt"].unique())
    lines: list[tuple[str, str | None, str]] = []
    for model, part in kinds.groupby("model", sort=False):
        lines.append((model, None, ""))
        sizes = part[part["prompt"].isin(prompts)].groupby("kind")["n"].agg(["min", "max"])
        kinds_seen = [kind for kind in NOUNS_SEEN if kind in sizes.index]
        lines += [(model, kind, f"{KIND_NAMES[kind]}, n = {_range(*sizes.loc[kind])}") for kind in kinds_seen]
    figure = Figure(figsize=size(len(lines), 0.62, 1.6))
    panels = figure.subplots(1, 2, sharey=True)
    for axes, column in zip(panels, ("wrong", "similarity"), strict=True):
        value = "wrong_share" if column == "wrong" else column
        for y, (model, kind, _) in enumerate(lines):
            for place, prompt in enumerate(prompts):
                own = kinds[(kinds["model"] == model) & (kinds["kind"] == kind) & (kinds["prompt"] == prompt)]
                if own.empty or pd.isna(own[value].iloc[0]):
                    continue
                row = own.iloc[0]
                values = {"value": row[value], "low": row[f"{column}_low"], "high": row[f"{column}_high"]}
                base = read_prompt(prompt).base
                at = y + (place - (len(prompts) - 1) / 2) * 0.22
                alone = column == "similarity" and row["right"] == 1
                _dot(axes, at, values, COLORS[base], MARKS[base], hollow=alone)
                if column == "similarity":
                    axes.text(
                        1.03, at, f"{row['right']}", transform=axes.get_yaxis_transform(), color=COLORS[base],
                        va="center",
                    )  # fmt: skip
        named: list[Line] = [(words if kind else model, {} if kind else None) for model, kind, words in lines]
        _name_groups(axes, named, heads=column == "wrong", thick=0.5)
        axes.xaxis.set_major_locator(MaxNLocator(3))
    # A model's name may extend over both panels.
    panels[0].set_zorder(panels[1].get_zorder() + 1)
    for prompt in prompts:
        base = read_prompt(prompt).base
        panels[0].plot([], [], MARKS[base], color=COLORS[base], markersize=5.5, label=prompt_words(prompt))
    panels[0].set_xlim(left=0)
    panels[0].set_xlabel("wrong\nanswers, %")
    panels[1].set_xlabel("cosine × 100\nof right ones")
    figure.legend(loc="outside upper left", ncols=2, handletextpad=0.3, columnspacing=1)
    note(
        figure,
        "line: 95 % interval; at the right: how many answers are right (hollow: one alone). Which of\n"
        "its nouns a compound's picture shows: as the paper's figures 3 and 4, which have no numbers",
    )
    return figure


def _count(n: pd.Series) -> str:
    return f"n = {_range(int(n.min()), int(n.max()))} compounds"


def _range(low: int, high: int) -> str:
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _tell(table: pd.DataFrame, value: str) -> str:
    rows = zip(table["model"], table["prompt"], table[value], strict=True)
    return "; ".join(f"{row_name(model, prompt)}: {percent(number)}" for model, prompt, number in rows)


def main(step: DrawCompun) -> None:
    tables, summary = read_analysis(step.analysis)
    accuracy, kinds, between = tables["accuracy"], tables["kinds"], tables["comparisons"]
    gains = between[(between["between"] == "prompt") & (between["b"] == "template")]
    with style():
        figures = [
            (step.accuracy, draw_accuracy(tables["beside"]), "How often the compound’s image is chosen",
             _tell(accuracy, "accuracy")),
            (step.examples, draw_examples(tables["beside"], accuracy), "Accuracy by the number of example captions",
             _tell(accuracy[accuracy["prompt"].str.startswith("examples")], "accuracy")),
            (step.gains, draw_gains(between), "What each prompt gains on the template",
             _tell(gains.assign(prompt=gains["a"]), "difference")),
            (step.kinds, draw_kinds(kinds),
             "Wrong answers, and the similarity of right ones, by what the picture shows",
             _tell(kinds.assign(model=kinds["kind"].map(KIND_NAMES) + ", " + kinds["model"]), "wrong_share")),
        ]  # fmt: skip
        for file, figure, title, description in figures:
            save(figure, file, title, description)
    write_text(text_table(accuracy, summary["not_loaded"]), step.text)
    log.info("%s: %d figures of %d compounds", step.analysis, len(figures), summary["judged"])


if __name__ == "__main__":
    cli.run(main)
