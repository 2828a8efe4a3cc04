"""What figures, tables and the page show of compound nouns: which image each model chose, by prompt."""

from pathlib import Path
from typing import Any

import pandas as pd

from compclip.compun import published
from compclip.compun.analyze_choices import FIRST, MINUS, RIGHT
from compclip.compun.prompts import captions_of, usual_prompts
from compclip.core.seeds import rng
from compclip.core.tables import ROLES
from compclip.io import spreadsheet_texts
from compclip.plot.labels import interval, number, p_value, percent

FIGURES = ("accuracy", "examples", "kinds")  # in the order of the page
EXAMPLES = 12  # compounds on the page, half of them wrong if there are enough
ALPHA = 0.05  # corrected p-values below this are bold
WORDS = {"template": "template", "reversed": "nouns reversed", "descriptions": "descriptions"}


def row_name(model: str, prompt: str | None) -> str:
    """Return the name of a row of results; people have no prompt."""
    return f"{model}, {prompt_words(prompt)}" if isinstance(prompt, str) else model


def prompt_words(prompt: str) -> str:
    count = captions_of(prompt)
    return WORDS[prompt] if count is None else f"{count} example caption{'s' * (count != 1)}"


def read_analysis(file: Path) -> pd.DataFrame:
    """Return ``analyze_choices.COLUMNS``; prompt is None for people."""
    table = spreadsheet_texts(pd.read_csv(file, na_values=[""], keep_default_na=False))
    return table.assign(prompt=table["prompt"].astype(object).where(table["prompt"].notna(), None))


def rows_of(analysis: pd.DataFrame, measure: str, *, usual: bool = True) -> pd.DataFrame:
    """Return the rows of a measure, by default under the usual prompts alone."""
    rows = analysis[analysis["measure"] == measure]
    prompts = usual_prompts([name for name in rows["prompt"].unique() if name])
    return rows[rows["prompt"].isin([*prompts, None])] if usual else rows


def cell(row: Any, *, bold: bool = False) -> dict[str, Any]:
    """Return a row's number in percent with its interval, as macro ``points`` expects it."""
    return {"value": percent(row.value), "interval": interval(row.low, row.high), "bold": bold}


def words(text: str) -> dict[str, Any]:
    return {"value": text, "interval": "", "bold": False}


def accuracy_lines(analysis: pd.DataFrame) -> list[dict[str, Any]]:
    """Return a line for each model and prompt, and for each of the paper's: right, first among all, compounds."""
    first = {(row.model, row.prompt): cell(row) for row in rows_of(analysis, FIRST, usual=False).itertuples()}
    lines = [
        {
            "name": row_name(row.model, row.prompt),
            "cells": [cell(row, bold=True), first.get((row.model, row.prompt)), words(f"{int(row.n):,}")],
        }
        for row in rows_of(analysis, RIGHT, usual=False).itertuples()
    ]
    for model, prompt, value in published.TABLE_1:
        ranked = words(percent(published.FIRST)) if (model, prompt) == ("CLIP", "template") else None
        name = f"the paper: {row_name(model, prompt)}"
        lines.append({"name": name, "cells": [words(percent(value, 2)), ranked, words(f"{published.COMPOUNDS}")]})
    return lines


def difference_lines(analysis: pd.DataFrame) -> list[dict[str, Any]]:
    """Return a line for each difference of prompts or models: points, p and compounds."""
    rows = analysis[analysis["measure"].str.startswith(MINUS)]
    return [
        {
            "name": f"{row_name(row.model, row.prompt)} − {row.measure.removeprefix(MINUS)}",
            "cells": [cell(row, bold=row.p < ALPHA), words(p_value(row.p)), words(f"{int(row.n):,}")],
        }
        for row in rows.itertuples()
    ]


def shown_compounds(
    choices: pd.DataFrame, images: pd.DataFrame, compounds: pd.DataFrame, folder: str
) -> dict[str, Any]:
    """Return random compounds of the first model and prompt, with their three images and which one was chosen."""
    model, prompt = choices.loc[choices.index[0], ["model", "prompt"]]
    answers = choices[(choices["model"] == model) & (choices["prompt"] == prompt)]
    mixed = answers.iloc[rng(0, "compun page").permutation(len(answers))]
    wrong = mixed[~mixed["right"]].head(max(EXAMPLES // 2, EXAMPLES - int(mixed["right"].sum())))
    paths = images.set_index(["compound", "role"])["path"]
    about = compounds.set_index("compound")
    shown = []
    for row in pd.concat([wrong, mixed[mixed["right"]].head(EXAMPLES - len(wrong))]).itertuples():
        nouns = {role: row.compound if role == "compound" else about.at[row.compound, role] for role in ROLES}
        pictures = [
            {
                "path": f"{folder}/{paths[row.compound, role]}", "title": noun if isinstance(noun, str) else role,
                "chosen": row.answer == role, "verdict": number(getattr(row, f"similarity_{role}"), 3),
                "right": role == "compound",
            }
            for role, noun in nouns.items()
        ]  # fmt: skip
        shown.append({"compound": row.compound, "right": row.right, "pictures": pictures})
    return {"model": model, "prompt": prompt_words(prompt), "compounds": shown}


def text_table(analysis: pd.DataFrame) -> str:
    """Return accuracies under the usual prompts as a Markdown table."""
    rows = [["model", "prompt", "right, %", "compounds"], ["---"] * 4]
    for row in rows_of(analysis, RIGHT).itertuples():
        value = f"{percent(row.value)} {interval(row.low, row.high)}".strip()
        rows.append([row.model, prompt_words(row.prompt) if row.prompt else "–", value, f"{int(row.n):,}"])
    table = "\n".join(f"| {' | '.join(text.replace('|', '&#124;') for text in cells)} |" for cells in rows)
    return (
        f"{table}\n\nRight: of three images the compound’s own is the nearest to the prompt; a tie is not right. By "
        "chance a third. In brackets 95 % intervals: bootstrap over compounds; Clopper and Pearson’s where all or none "
        "are right.\n"
    )
