"""The answers of any other tool or model, from a table: a judge without code.

``options.jsonl`` of a run asks: each line has an id, an image and the texts among which to choose.
The table answers, a row or more for each id, with one of these sets of columns: ``id, text`` (the
chosen text), ``id, number`` (its place in the line, from 1), or ``id, text, score`` (a row for each
text; the highest score is chosen). An empty choice is no usable answer, and counts as wrong.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field

from compclip.core.errors import require
from compclip.core.identity.fingerprint import fingerprint as fingerprint_of
from compclip.core.settings.section import Section
from compclip.judge.chooser import Chooser, Context, JudgedImage, chances_of_scores

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

ABOUT = "answers of another tool, from a table"
CERTIFIED = False  # it has answers to the run's prompts alone
AGAIN = "answer the run's options.jsonl again"


class Settings(Section):
    """The table."""

    file: str = Field(
        min_length=1,
        description="CSV, TSV, JSON lines or Parquet with columns id and text, id and number, or "
        "id, text and score; {composition} in it is replaced",
    )


def fingerprint(settings: Settings, cache: Path | None = None) -> str:
    return fingerprint_of(settings.file, cache=cache)


class TableChooser:
    """A judge whose answers are the rows of a table.

    Args:
        file: named in errors.
        rows: columns where (the place in the file), id, and text, number or text and score, as
            texts.
        digest: of the file.
    """

    def __init__(self, file: str, rows: pd.DataFrame, digest: str) -> None:
        self.name = file
        self.hash = digest
        rows = rows.fillna("").map(str.strip)
        self.has_scores = "score" in rows
        column = "text" if "text" in rows else "number"
        # An empty choice is an answer, but not one of several texts with scores.
        required = ["id", "text", "score"] if self.has_scores else ["id"]
        is_empty = rows[required].eq("").any(axis=1)
        self._refuse(rows, is_empty, f"no {' or '.join(required)}", "complete the row")
        # With scores, each text of an id has a row.
        key = ["id", column] if self.has_scores else ["id"]
        self._refuse(rows, rows.duplicated(key), "duplicate answer", "remove one")
        if self.has_scores:
            rows = rows.assign(score=self._numbers(rows))
        self.column = column
        self.rows_by_id = dict(iter(rows.groupby("id", sort=False)))

    def _refuse(self, rows: pd.DataFrame, is_bad: pd.Series, fault: str, remedy: str) -> None:
        """Raise UserError for the first of some rows."""
        first = rows.loc[is_bad].head(1).drop(columns="where").to_dict("records")
        counts = f"{fault}: {is_bad.sum()} of {len(rows)} rows, the first {first}"
        require(not first, self.name, counts, remedy)

    def _numbers(self, rows: pd.DataFrame) -> pd.Series:
        """Return the scores as numbers; UserError if one is NaN, infinite or not a number."""
        import numpy as np
        import pandas as pd

        # What is not a number becomes NaN, and is refused with infinities.
        scores = pd.to_numeric(rows["score"], errors="coerce")
        is_bad = ~np.isfinite(scores)
        self._refuse(rows, is_bad, "score is not a finite number", AGAIN)
        return scores

    def prepare(self, images: Sequence[JudgedImage], options: Sequence[Sequence[str]]) -> None:
        """Raise UserError unless the table has answers to these images, and to no others."""
        ids = [image.id.strip() for image in images]
        # Before the first choice, so that a run does not stop at its last image.
        asked = set(ids)
        missing = [name for name in ids if name not in self.rows_by_id]
        fault = f"no answer to {len(missing)} of {len(asked)} ids, the first {missing[:1]}"
        require(not missing, self.name, fault, AGAIN)
        # Answers to other questions are a sign of an older list of options.
        foreign = [name for name in self.rows_by_id if name not in asked]
        fault = f"{len(foreign)} ids that the run does not ask, the first {foreign[:1]}"
        require(not foreign, self.name, fault, "remove them, or " + AGAIN)

    def choose(
        self, images: Sequence[JudgedImage], options: Sequence[Sequence[str]]
    ) -> list[np.ndarray]:
        return [
            self._chances(image.id.strip(), [text.strip() for text in texts])
            for image, texts in zip(images, options, strict=True)
        ]

    def _chances(self, name: str, texts: list[str]) -> np.ndarray:
        """Return the chances of the texts of one id."""
        import numpy as np

        require(name in self.rows_by_id, self.name, f"no answer to {name}", AGAIN)
        rows = self.rows_by_id[name]
        if self.has_scores:
            score_by_text = dict(zip(rows["text"], rows["score"], strict=True))
            fault = f"{name}: scores of {sorted(score_by_text)}, expected {sorted(texts)}"
            require(score_by_text.keys() == set(texts), self.name, fault, AGAIN)
            return chances_of_scores(np.array([score_by_text[text] for text in texts]))
        answer = rows[self.column].iloc[0]
        # Empty: the tool has refused or could not read the image.
        if not answer:
            return np.zeros(len(texts))
        allowed = texts if self.column == "text" else [str(n + 1) for n in range(len(texts))]
        fault = f"{name}: {self.column} {answer!r}, expected one of {allowed}"
        require(answer in allowed, self.name, fault, AGAIN)
        chances = np.zeros(len(texts))
        chances[allowed.index(answer)] = 1
        return chances


def open_chooser(settings: Settings, context: Context) -> Chooser:
    from compclip.core.identity.digests import sha256
    from compclip.core.reading.records import read_records

    path = Path(settings.file)
    # A method of Path fails if a name is too long.
    require(
        os.path.isfile(path), path, "no such table of answers", "answer the run's options.jsonl"
    )
    rows, bad = read_records(path, ["id"], ["text", "number", "score"])
    require(not bad, path, f"rows that cannot be read: {bad[:1]}", "correct them")
    require(len(rows), path, "no rows", AGAIN)
    has_scores = "text" in rows and "score" in rows
    # Of a text and a number, it is unclear which one counts.
    has_choices = ("text" in rows) != ("number" in rows) and "score" not in rows
    remedy = "expected id and text, id and number, or id, text and score"
    columns = [name for name in rows if name != "where"]
    require(has_scores or has_choices, path, f"columns {', '.join(columns)}", remedy)
    return TableChooser(settings.file, rows, sha256(path)[:16])
