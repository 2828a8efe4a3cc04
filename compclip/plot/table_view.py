"""Tables for readers: cells, lines, and Markdown; macro ``by_name`` writes a table on a page."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pandas as pd

NONE = "–"


@dataclass(frozen=True)
class TableCell:
    """A value with its interval; bold if it differs from 0 after correction for all comparisons of
    its family.
    """

    value: str
    interval: str = ""
    bold: bool = False

    def __str__(self) -> str:
        return f"{self.value} {self.interval}".strip()


class Line(NamedTuple):
    name: str
    cells: Sequence[TableCell | None]


@dataclass(frozen=True)
class View:
    """A table for readers; ``csv`` is the file with its numbers."""

    title: str
    head: str
    columns: Sequence[str]
    lines: Sequence[Line]
    note: str = ""
    csv: str = "scores.csv"

    @property
    def markdown(self) -> str:
        table = pd.DataFrame(map(_texts, self.lines), columns=[self.head, *self.columns])
        alignment = ["left"] + ["right"] * len(self.columns)
        # Numbers are formatted already.
        return table.to_markdown(index=False, colalign=alignment, disable_numparse=True)


def _texts(line: Line) -> list[str]:
    return [line.name, *(str(cell or NONE) for cell in line.cells)]
