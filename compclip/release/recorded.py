"""Judges of a release that it does not have itself: their recorded answers, and what follows from
them.

A release has its CLIP judges, which score any model again. Of other judges, such as a served model
or another tool, it has what they answered about the control generators (``C/choices/J.parquet``),
their certificates (``C/certificates/J.json``) and the figures (``C/judges.csv``).
"""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pandas as pd

from compclip.core.artifacts.files import read_json
from compclip.core.artifacts.parquet import read_table
from compclip.core.errors import require
from compclip.core.settings.section import NAME
from compclip.core.tables import TEXT_CHOICES
from compclip.release.check import equal, fitting
from compclip.release.file_models import DOWNLOAD
from compclip.report.judges import compare_judges, judges_of, leading_judge, passing

if TYPE_CHECKING:
    from compclip.release.open_release import ReleasedTables

FIGURES = "judges.csv"
# The columns that name a figure.
KEY = ["judge", "generator", "split", "measure"]
NUMBERS = ["value", "same_pairs_low", "same_pairs_high", "new_pairs_low", "new_pairs_high", "n"]


def read_figures(composition: "ReleasedTables") -> pd.DataFrame | None:
    """Return the figures by all judges; None for a release with one judge."""
    file = composition.folder / FIGURES
    if not file.is_file():
        return None
    # Only empty cells are missing values: a generator may be named NA.
    figures = pd.read_csv(file, keep_default_na=False, na_values=[""])
    names = figures["judge"].astype(str).unique() if "judge" in figures else []
    # A stranger may have written the table, and names are parts of paths.
    is_named = len(names) > 1 and all(re.fullmatch(NAME, name) for name in names)
    require(is_named, file, "expected a column judge with at least two names", DOWNLOAD)
    return figures


def compute_figures(composition: "ReleasedTables", figures: pd.DataFrame) -> pd.DataFrame:
    """Return the figures that follow from the scores of the release and the recorded answers."""
    kinds = dict(zip(figures["judge"], figures["kind"], strict=True))
    # In the order of the table: the leading judge is the first.
    names = list(kinds)
    certificates = {}
    for file in sorted((composition.folder / "certificates").glob("*.json")):
        certificates[file.stem] = read_json(file)
    passes = passing(certificates)
    choices = {}
    for name in names[1:]:
        file = composition.folder / "choices" / f"{name}.parquet"
        choices[name] = read_table(file, TEXT_CHOICES)
    scores = [score for score in composition.controls if score.by_all_judges]
    # As in the run: the leading judge's verdicts are those of the table.
    may_judge = composition.bias_check.passes is not False
    leading = leading_judge(names[0], scores, composition.contents.anchors, may_judge)
    # Control generators were trained on nothing else than the split.
    return compare_judges(judges_of(leading, choices, kinds, passes), {})


def unequal_recorded(composition: "ReleasedTables") -> Iterator[str]:
    """Yield a line for each figure by several judges that does not follow from their answers."""
    figures = read_figures(composition)
    if figures is None:
        return
    with fitting(composition.release):
        computed = compute_figures(composition, figures)
    if len(figures) != len(computed):
        yield f"{FIGURES}: {len(figures)} rows, {len(computed)} follow from the answers"
        return
    with fitting(composition.release):
        yield from _unequal_rows(composition.name, figures, computed)


def _unequal_rows(composition: str, figures: pd.DataFrame, computed: pd.DataFrame) -> Iterator[str]:
    """Yield a line for each cell that differs."""
    for told, expected in zip(_records(figures), _records(computed), strict=True):
        location = ", ".join(str(expected[name]) for name in KEY if expected[name] is not None)
        for name in (*KEY, *NUMBERS, "verdict"):
            if not equal(told[name], expected[name]):
                fault = f"{name} is {told[name]!r}, {expected[name]!r} follows from the answers"
                yield f"{composition}: {FIGURES}: {location}: {fault}"


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table as JSON values."""
    values = table.astype(object)
    return values.where(values.notna(), None).to_dict("records")


def recorded_note(composition: "ReleasedTables") -> str:
    """Return a line that says which figures rest on recorded answers; "" for one judge."""
    figures = read_figures(composition)
    if figures is None:
        return ""
    _, *further = dict.fromkeys(figures["judge"])
    listed = ", ".join(further)
    return (
        f"{composition.name}: the figures of {listed} in {FIGURES} follow from recorded answers, "
        "which were not asked again"
    )
