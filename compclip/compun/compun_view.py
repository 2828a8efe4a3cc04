"""Results on compound nouns for figures, tables and the page: which image each model chose, by
prompt.
"""

from pathlib import Path
from typing import Any

import pandas as pd

from compclip.compun import published_results
from compclip.compun.analyze_choices import MINUS, RANKED_FIRST, RIGHT
from compclip.compun.prompts import captions_of, usual_prompts
from compclip.core.seeds import rng
from compclip.core.tables import ROLES
from compclip.plot.labels import ALPHA, interval, number, p_value, percent
from compclip.plot.table_view import Line, TableCell, View

COMPUN_FIGURES = ("accuracy", "examples", "kinds")  # in the order of the page
COMPOUNDS_SHOWN = 12  # compounds on the page, half of them wrong if there are enough
PROMPT_WORDS = {
    "template": "template",
    "reversed": "nouns reversed",
    "descriptions": "descriptions",
}
# Below the Markdown table.
TABLE_NOTE = (
    "Right: of three images, the compound’s own is the most similar to the prompt; a tie is not "
    "right. Chance: a third. In brackets 95 % intervals: bootstrap over compounds; Clopper and "
    "Pearson’s if all or none are right."
)


def row_name(model: str, prompt: str) -> str:
    """Return the label of a row of results; people have no prompt."""
    return f"{model}, {prompt_words(prompt)}" if prompt else model


def prompt_words(prompt: str) -> str:
    count = captions_of(prompt)
    if count is None:
        return PROMPT_WORDS[prompt]
    return "1 example caption" if count == 1 else f"{count} example captions"


def read_analysis(file: Path) -> pd.DataFrame:
    """Return ``ANALYSIS_COLUMNS``; prompt is "" for people."""
    return pd.read_csv(file, na_values=[""], keep_default_na=False).fillna({"prompt": ""})


def rows_of(analysis: pd.DataFrame, measure: str, *, usual: bool = True) -> pd.DataFrame:
    """Return the rows of a measure, by default only for the usual prompts."""
    rows = analysis[analysis["measure"] == measure]
    if not usual:
        return rows
    prompts = usual_prompts(rows["prompt"].unique().tolist())
    return rows[rows["prompt"].isin(prompts)]


def fraction_cell(row: Any, *, bold: bool = False) -> TableCell:
    """Return a row's fraction in percent, with its interval."""
    return TableCell(percent(row.value), interval(row.low, row.high), bold)


def count_cell(row: Any) -> TableCell:
    """Return a row's number of compounds."""
    return TableCell(f"{int(row.n):,}")


def accuracy_lines(analysis: pd.DataFrame) -> list[Line]:
    """Return a line for each model and prompt, ours and the paper's: right, first among all,
    compounds.
    """
    ranked_first = rows_of(analysis, RANKED_FIRST, usual=False)
    first = {(row.model, row.prompt): fraction_cell(row) for row in ranked_first.itertuples()}
    lines = []
    for row in rows_of(analysis, RIGHT, usual=False).itertuples():
        right = fraction_cell(row, bold=True)
        cells = [right, first.get((row.model, row.prompt)), count_cell(row)]
        lines.append(Line(row_name(row.model, row.prompt), cells))
    for model, prompt, value in published_results.TABLE_1:
        ranked = None
        if (model, prompt) == ("CLIP", "template"):  # the only one that the paper ranks
            ranked = TableCell(percent(published_results.PAPER_FIRST))
        # The paper has two decimals.
        cells = [
            TableCell(percent(value, 2)),
            ranked,
            TableCell(f"{published_results.PAPER_COMPOUNDS}"),
        ]
        lines.append(Line(f"the paper: {row_name(model, prompt)}", cells))
    return lines


def difference_lines(analysis: pd.DataFrame) -> list[Line]:
    """Return a line for each difference of prompts or models: points, p and compounds."""
    lines = []
    for row in analysis[analysis["measure"].str.startswith(MINUS)].itertuples():
        subtrahend = row.measure.removeprefix(MINUS)
        label = f"{row_name(row.model, row.prompt)} − {subtrahend}"
        difference = fraction_cell(row, bold=row.p < ALPHA)
        lines.append(Line(label, [difference, TableCell(p_value(row.p)), count_cell(row)]))
    return lines


def shown_compounds(
    choices: pd.DataFrame, images: pd.DataFrame, compounds: pd.DataFrame, folder: str
) -> dict[str, Any]:
    """Return random compounds with their three images and the choice of the first model and
    prompt.
    """
    model, prompt = choices.loc[choices.index[0], ["model", "prompt"]]
    answers = choices[(choices["model"] == model) & (choices["prompt"] == prompt)]
    shuffled = answers.iloc[rng(0, "compun page").permutation(len(answers))]
    right = shuffled[shuffled["right"]]
    # More wrong ones if the right ones do not fill their half.
    wrong_count = max(COMPOUNDS_SHOWN // 2, COMPOUNDS_SHOWN - len(right))
    wrong = shuffled[~shuffled["right"]].head(wrong_count)
    right = right.head(COMPOUNDS_SHOWN - len(wrong))
    paths = images.set_index(["compound", "role"])["path"]
    nouns = compounds.set_index("compound")
    entries = []
    for row in pd.concat([wrong, right]).itertuples():
        pictures = []
        for role in ROLES:
            title = row.compound if role == "compound" else nouns.at[row.compound, role]
            picture = {
                "path": f"{folder}/{paths[row.compound, role]}",
                # The list may not have the noun that a distractor shows.
                "title": title if isinstance(title, str) else role,
                "chosen": row.answer == role,
                "verdict": number(getattr(row, f"similarity_{role}"), 3),
                "right": role == "compound",
            }
            pictures.append(picture)
        entries.append({"compound": row.compound, "right": row.right, "pictures": pictures})
    return {"model": model, "prompt": prompt_words(prompt), "compounds": entries}


def text_table(analysis: pd.DataFrame) -> str:
    """Return the accuracies for the usual prompts as a Markdown table."""
    lines = []
    for row in rows_of(analysis, RIGHT).itertuples():
        # A bar would end the cell.
        label = row_name(row.model, row.prompt).replace("|", "&#124;")
        lines.append(Line(label, [fraction_cell(row), count_cell(row)]))
    table = View("accuracy", "model, prompt", ["right, %", "compounds"], lines)
    return f"{table.markdown}\n\n{TABLE_NOTE}\n"
