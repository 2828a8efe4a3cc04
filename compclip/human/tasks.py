"""Tasks: their kinds and their table."""

from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path

import pandas as pd

from compclip.core.artifacts.parquet import read_table
from compclip.core.tables import TESTS, Column, schema, text

# none: a task of the study. gold: its answer is known. repeat: asked before on the same page, with
# sides reversed.
CHECKS = ("none", "gold", "repeat")


@dataclass(frozen=True)
class TaskKind:
    """A kind of task: the question, the answers, their labels, and the numbers of pictures and
    texts.
    """

    question: str
    answers: tuple[str, ...]
    labels: tuple[str, ...]
    pictures: int
    texts: int


# about a scored run's images
KINDS = {
    "perceptual": TaskKind(
        "Which picture looks more real?", ("1", "2"), ("Picture 1", "Picture 2"), 2, 0
    ),
    "match": TaskKind(
        "Does the picture show what the text says?", ("yes", "no"), ("Yes", "No"), 1, 1
    ),
    "caption": TaskKind(
        "Which text fits the picture better?", ("1", "2"), ("Text 1", "Text 2"), 1, 2
    ),
}
# and about a compound noun's three images (stage compun)
ALL_KINDS = KINDS | {
    "compound": TaskKind(
        "Which picture shows it?", ("1", "2", "3"), ("Picture 1", "Picture 2", "Picture 3"), 3, 1
    ),
}

# batch and place count from 1; all tasks of a batch, or page, are of one kind. of: the task that is
# repeated. The prompt is (split, image_id, caption_id, draw), null for gold tasks; generator_1 and
# generator_2 made picture_1 and picture_2; only perceptual tasks have picture_2. Tasks about
# compounds have three pictures, the compound as image_id, and no other part of a prompt. text_1 and
# text_2 are shown. right: the correct answer, null if there is none.
TASKS = schema(
    unique=["task_id"],
    task_id=text(),
    kind=text(isin=tuple(ALL_KINDS)),
    check=text(isin=CHECKS),
    of=text(nullable=True),
    batch=Column("int64", low=1),
    place=Column("int64", low=1),
    split=text(nullable=True, isin=TESTS),
    image_id=text(nullable=True),
    caption_id=Column("Int64", nullable=True),
    draw=Column("Int64", nullable=True),
    generator_1=text(nullable=True),
    generator_2=text(nullable=True),
    picture_1=text(),
    picture_2=text(nullable=True),
    picture_3=text(nullable=True),
    text_1=text(nullable=True),
    text_2=text(nullable=True),
    right=text(nullable=True),
)
PROMPT_COLUMNS = ["split", "image_id", "caption_id", "draw"]
prompt_key = itemgetter(*PROMPT_COLUMNS)  # the prompt of a task or of a score as one key


def read_tasks(path: Path) -> pd.DataFrame:
    """Return the columns of ``TASKS``, sorted by kind, page and place, with None for missing
    values.
    """
    table = read_table(path, TASKS)
    return table.astype(object).where(table.notna(), None)


def shown_columns(kind: str) -> list[str]:
    """Return the columns of ``TASKS`` that a task of this kind shows."""
    numbers = {"picture": ALL_KINDS[kind].pictures, "text": ALL_KINDS[kind].texts}
    return [f"{name}_{n}" for name, number in numbers.items() for n in range(1, number + 1)]
