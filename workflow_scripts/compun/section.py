"""The section of compound nouns on pages: which image each model chose, by prompt, next to the paper's results."""

import textwrap
from pathlib import Path
from typing import Any

import pandas as pd

from workflow_scripts.compun import published
from workflow_scripts.compun.prompt_names import in_order, read_prompt, usual_prompts
from workflow_scripts.compun.published import OURS, PAPER
from workflow_scripts.core.io import read_json, read_table, spreadsheet_texts
from workflow_scripts.core.layout import Layout
from workflow_scripts.core.seeds import rng
from workflow_scripts.core.tables import CHOICES, COMPOUND_IMAGES, COMPOUNDS, NOUNS_SEEN, ROLES
from workflow_scripts.plot.labels import interval, number, p_value, percent
from workflow_scripts.plot.page import PageSection, show_figures

WHOSE = {PAPER: "the paper", OURS: "here"}
# Which of its nouns a compound's picture shows.
KIND_NAMES = {"either": "either noun", "both": "both nouns", "none": "none of them"}
# In the order of the page.
FIGURES = ("accuracy", "examples", "gains", "kinds")
EXAMPLES = 12  # compounds on the page, half of them wrong if there are enough
MAX_REASON = 100  # characters of the reason why a model was not loaded, in the Markdown table
ALPHA = 0.05  # corrected p-values below this are bold


def prompt_words(name: str) -> str:
    base, count, ensemble = read_prompt(name)
    words = {
        "template": "template",
        "reversed": "nouns reversed",
        "descriptions": "descriptions",
        "examples": f"{count} example caption{'s' * (count != 1)}",
    }[base]
    return words + ", ensemble" * ensemble


def row_name(model: str, prompt: str | None) -> str:
    """Return the name of a row of results; people and chance have no prompt."""
    return model if prompt is None or pd.isna(prompt) else f"{model}, {prompt_words(prompt)}"


def read_analysis(folder: Path) -> tuple[dict[str, pd.DataFrame], dict[str, Any]]:
    names = ("accuracy", "comparisons", "kinds", "retrieval", "beside")
    tables = {name: pd.read_csv(folder / f"{name}.csv", na_values=[""], keep_default_na=False) for name in names}
    return {name: spreadsheet_texts(table) for name, table in tables.items()}, read_json(folder / "summary.json")


def cell(
    value: float | None, low: float | None = None, high: float | None = None, *, bold: bool = False, digits: int = 1
) -> dict[str, Any]:
    """Return a number in percent with its interval, as macro ``points`` expects it."""
    return {"value": percent(value, digits), "interval": interval(low, high), "bold": bold}


def words(text: str) -> dict[str, Any]:
    return {"value": text, "interval": "", "bold": False}


def count(n: float) -> dict[str, Any]:
    return words("–" if pd.isna(n) else f"{int(n):,}")


def beside_lines(beside: pd.DataFrame, table: str) -> list[dict[str, Any]]:
    """Return the lines of one of the paper's tables, the paper's first: accuracy, its source, number of compounds."""
    lines = []
    for row in beside[beside["table"].astype(str) == table].itertuples():
        name = row_name(row.model, row.prompt)
        # The reason why a model was not loaded follows below the table.
        note = "" if pd.isna(row.note) else row.note.partition(":")[0]
        ours = row.whose == OURS
        # The paper's own digits.
        value = cell(row.value, row.low, row.high, bold=ours, digits=1 if ours else 2)
        cells = [value, words(WHOSE[row.whose]), count(row.n)]
        lines.append({"name": name + (f" ({note})" if note else ""), "cells": cells})
    return lines


def comparison_lines(comparisons: pd.DataFrame) -> list[tuple[str, list[dict[str, Any]]]]:
    """Return a table for each family of tests: of two prompts, for each model; of two models, under all prompts.

    A line has the difference, the number of compounds, how many only one of the two has right, and p-values.
    """

    def line(row: Any, name: str) -> dict[str, Any]:
        cells = [
            cell(row.difference, row.low, row.high, bold=row.p_holm < ALPHA),
            {**words(f"{row.a_only}\u202f:\u202f{row.b_only}"), "interval": f"of {row.n:,}"},
            {**words(p_value(row.p_exact)), "interval": f"χ²\u00a0{p_value(row.p_chi_square)}"},
            words(p_value(row.p_holm)),
        ]
        return {"name": name, "cells": cells}

    of_prompts = comparisons[comparisons["between"] == "prompt"].groupby("model", sort=False)
    groups = [
        (model, [line(row, f"{prompt_words(row.a)} − {prompt_words(row.b)}") for row in part.itertuples()])
        for model, part in of_prompts
    ]
    of_models = comparisons[comparisons["between"] == "model"]
    lines = [line(row, f"{row.a} − {row.b}: {prompt_words(row.prompt)}") for row in of_models.itertuples()]
    return groups + ([("models, under each prompt", lines)] if lines else [])


def kind_lines(kinds: pd.DataFrame) -> list[dict[str, Any]]:
    """Return a line for each model, usual prompt and kind: wrong answers, their fraction, similarity of right ones."""
    usual = usual_prompts(list(kinds["prompt"].drop_duplicates()))
    return [
        {
            "name": f"{row.model}, {prompt_words(row.prompt)}: {KIND_NAMES[row.kind]}",
            "cells": [
                words(f"{row.wrong} of {row.n}"),
                cell(row.wrong_share, row.wrong_low, row.wrong_high),
                cell(row.similarity, row.similarity_low, row.similarity_high),
            ],
        }
        for row in kinds[kinds["prompt"].isin(usual)].itertuples()
    ]


def shown_compounds(
    choices: pd.DataFrame, images: pd.DataFrame, compounds: pd.DataFrame, folder: str, seed: int
) -> dict[str, Any]:
    """Return random compounds of the first model and prompt, with their three images and which one was chosen."""
    choices = in_order(choices)
    first = choices.iloc[0]
    own = choices[(choices["model"] == first["model"]) & (choices["prompt"] == first["prompt"])]
    mixed = own.iloc[rng(seed, "compun page").permutation(len(own))]
    wrong = mixed[~mixed["right"]].head(max(EXAMPLES // 2, EXAMPLES - int(own["right"].sum())))
    picked = pd.concat([wrong, mixed[mixed["right"]].head(EXAMPLES - len(wrong))])
    paths = images.set_index(["compound", "role"])["path"]
    about = compounds.set_index("compound")
    shown = []
    for row in picked.itertuples():
        nouns = {"compound": row.compound, **{role: about.at[row.compound, role] for role in ("n1", "n2")}}
        pictures = []
        for role in ROLES:
            chosen = row.answer == role and (row.right or role != "compound")
            title = nouns[role] if isinstance(nouns[role], str) else role
            pictures.append({
                "path": f"{folder}/{paths[row.compound, role]}", "title": title, "chosen": chosen,
                "verdict": number(getattr(row, f"similarity_{role}"), 3), "right": role == "compound",
            })  # fmt: skip
        kind = about.at[row.compound, "kind"]
        kind = KIND_NAMES[kind] if isinstance(kind, str) else None
        shown.append({"compound": row.compound, "kind": kind, "right": row.right, "pictures": pictures})
    return {"model": first["model"], "prompt": prompt_words(first["prompt"]), "compounds": shown}


def text_table(accuracy: pd.DataFrame, failed: dict[str, str]) -> str:
    """Return accuracies under the usual prompts as a Markdown table, with models that were not loaded, and why."""
    rows = [["model", "prompt", "right, %", "compounds"], ["---"] * 4]
    for row in accuracy[accuracy["prompt"].isin(usual_prompts(list(accuracy["prompt"].unique())))].itertuples():
        value = f"{percent(row.accuracy)} {interval(row.low, row.high)}".strip()
        rows.append([row.model, prompt_words(row.prompt), value, f"{row.n:,}"])
    for model, reason in failed.items():
        rows.append([model, "–", f"not loaded: {textwrap.shorten(reason, MAX_REASON, placeholder=' …')}", "–"])
    table = "\n".join(f"| {' | '.join(text.replace('|', '&#124;') for text in cells)} |" for cells in rows)
    return (
        f"{table}\n\nRight: of three images the compound’s own is the nearest to the prompt; a tie is not right. By "
        "chance a third. In brackets 95 % intervals: bootstrap over compounds; Clopper and Pearson’s where all or none "
        "are right.\n"
    )


def section(layout: Layout) -> PageSection:
    place = layout.data / "compun"
    tables, summary = read_analysis(place / "analysis")
    beside = tables["beside"]
    drawing = place / "drawn" / "drawn.json"
    # Accuracies of four digits that are no fractions of the paper's compounds.
    uneven = [
        line for line in published.TABLE_1 if line.prompt and round(line.accuracy * 1e4) * published.COMPOUNDS % 10_000
    ]
    context = {
        "summary": summary,
        "drawn": read_json(drawing) if drawing.is_file() else None,
        "table_1": beside_lines(beside, "1"),
        "table_2": beside_lines(beside, "2"),
        "retrieval": beside_lines(beside, "retrieval"),
        "candidates": None if tables["retrieval"].empty else int(tables["retrieval"]["images"].max()),
        "kinds": kind_lines(tables["kinds"]) if any(summary["kinds"].values()) else [],
        "kind_names": {KIND_NAMES[kind]: summary["kinds"][kind] for kind in NOUNS_SEEN},
        "paper": {
            "compounds": published.COMPOUNDS,
            "images": published.IMAGES,
            "kinds": {KIND_NAMES[kind]: n for kind, n in published.KINDS.items()},
            "uneven": [f"{line.model} {percent(line.accuracy, 2)}" for line in uneven],
        },
        "tests": comparison_lines(tables["comparisons"]),
        "alpha": ALPHA,
        "shown": shown_compounds(
            read_table(place / "choices" / "choices.parquet", CHOICES),
            read_table(place / "images.parquet", COMPOUND_IMAGES),
            read_table(place / "compounds.parquet", COMPOUNDS), f"{layout.dataset}/compun/images", summary["seed"],
        ),
        "figures": {name: show_figures([layout.figure(f"compun_{name}")])[0] for name in FIGURES},
    }  # fmt: skip
    return PageSection("Compound nouns", "compun_section.html.j2", context)
