"""Tables for readers: cells, lines, and Markdown; macro ``by_name`` writes a table on a page."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

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
    """A line of a table; ``mark`` is a caution that stands beside the name."""

    name: str
    cells: Sequence[TableCell | None]
    mark: str = ""


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
        alignment = ["left"] + ["right"] * len(self.columns)
        return self._text(colalign=alignment)

    @property
    def screen(self) -> str:
        """The table for a terminal."""
        return self._text(tablefmt="simple")

    def _text(self, **layout: Any) -> str:
        table = pd.DataFrame(map(_texts, self.lines), columns=[self.head, *self.columns])
        # Numbers are formatted already.
        return table.to_markdown(index=False, disable_numparse=True, **layout)


def _texts(line: Line) -> list[str]:
    name = f"{line.name} ({line.mark})" if line.mark else line.name
    return [name, *(str(cell or NONE) for cell in line.cells)]
