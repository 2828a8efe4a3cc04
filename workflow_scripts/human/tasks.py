"""What a task is: the words that the pages, the site's files, the server and the analysis share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pandera.pandas as pa

from workflow_scripts.core.io import read_table
from workflow_scripts.core.tables import TESTS

# none: a task of the study. gold: its answer is known. repeat: asked on the same page before, sides changed.
CHECKS = ("none", "gold", "repeat")


@dataclass(frozen=True)
class Kind:
    """question: what people read. answers: what may be answered. labels: what stands on their buttons."""

    question: str
    answers: tuple[str, ...]
    labels: tuple[str, ...]


# Of a scored run's images.
KINDS = {
    "perceptual": Kind("Which picture looks more real?", ("1", "2"), ("Picture 1", "Picture 2")),
    "match": Kind("Does the picture show what the text says?", ("yes", "no"), ("Yes", "No")),
    "caption": Kind("Which text fits the picture better?", ("1", "2"), ("Text 1", "Text 2")),
}
# Of a compound noun's three images (stage compun).
COMPOUND_KINDS = {
    "compound": Kind("Which picture shows it?", ("1", "2", "3"), ("Picture 1", "Picture 2", "Picture 3")),
    "confusing": Kind("Is it hard to say which picture shows which?", ("yes", "no"), ("Yes, hard", "No, easy")),
}
ALL_KINDS = KINDS | COMPOUND_KINDS


def _text(*, nullable: bool = True, isin: Sequence[str] | None = None) -> pa.Column:
    return pa.Column(str, checks=pa.Check.isin(isin) if isin else None, nullable=nullable)


# batch and place count from 1; a batch is a page, and all of its tasks are of one kind. of: the task that is
# repeated. The prompt is image_id, caption_id, draw of split, null for gold; generator_1 and generator_2 made
# picture_1 and picture_2, of which the second is there in perceptual tasks alone. Tasks of compounds have three
# pictures, the compound for image_id, and nothing else of a prompt. text_1 and text_2: what stands on the page.
# right: the answer that the prompt calls for, null where the task is a matter of opinion.
TASKS = pa.DataFrameSchema(
    {
        "task_id": _text(nullable=False),
        "kind": _text(nullable=False, isin=tuple(ALL_KINDS)),
        "check": _text(nullable=False, isin=CHECKS),
        "of": _text(),
        "batch": pa.Column("int64", checks=pa.Check.ge(1)),
        "place": pa.Column("int64", checks=pa.Check.ge(1)),
        "split": _text(isin=TESTS),
        "image_id": _text(),
        "caption_id": pa.Column("Int64", nullable=True),
        "draw": pa.Column("Int64", nullable=True),
        "generator_1": _text(),
        "generator_2": _text(),
        "picture_1": _text(nullable=False),
        "picture_2": _text(),
        "picture_3": _text(),
        "text_1": _text(),
        "text_2": _text(),
        "right": _text(),
    },
    strict=True,
    unique=["task_id"],
)
PROMPT = ["split", "image_id", "caption_id", "draw"]


def read_tasks(path: Path) -> pd.DataFrame:
    """Columns of ``TASKS``, a row a task, in the order of kinds, pages and places; None where there is no value."""
    table = read_table(path, TASKS)
    return table.astype(object).where(table.notna(), None)


def page_name(kind: str, batch: int) -> str:
    return f"{kind}_{batch:02d}"
