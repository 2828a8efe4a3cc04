"""The rows of ``comparisons.csv``: differences a minus b by the trained judges, with original
distractors.

``kind`` tells which n entries of a split are compared:

- ``generators``: the scores of two generators on a split. A missing image counts as wrong.
- ``both_have_images``: the same on entries for which both have an image, if one of them lacks some.

``measure`` is a score of ``measures.COMPARED``. ``same_pairs_low`` and ``same_pairs_high`` cover
images, for the same pairs and judges; ``new_pairs_low`` and ``new_pairs_high`` cover images, pairs
and judges. ``p`` tests a difference against 0. For each score, the family of ``primary``
comparisons is ``generators`` on unseen and swapped: ``p_holm`` is adjusted within it by Holm's
method. All other comparisons are ``exploratory``.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from compclip.core.tables import HELD_OUT_SPLITS, TESTS
from compclip.report.measures import COMPARED
from compclip.report.rows import Row
from compclip.report.scored import Scored
from compclip.report.values import Values, values_of
from compclip.stats.estimates import INTERVAL_COLUMNS, compare_scores
from compclip.stats.paired import holm

COMPARISON_COLUMNS = [
    "dataset",
    "composition",
    "measure",
    "kind",
    "a",
    "b",
    "split",
    "difference",
    *INTERVAL_COLUMNS,
    "p",
    "family",
    "p_holm",
    "n",
]
Key = tuple[str, str]  # generator and split


def compare_values(difference: Values) -> Row:
    """Return the mean difference with its intervals, or only ``n`` if there are no entries.

    The interval over pairs is missing if there are too few pairs.
    """
    if not len(difference):
        return {"n": 0}
    differences = difference.by_judge
    estimate = compare_scores(
        differences,
        np.zeros_like(differences),
        difference.clusters,
        difference.pairs,
        # A single pair can differ by -1 to 1, whatever the mean is.
        ends=(-1.0, 1.0),
    )
    row: Row = {name: getattr(estimate, name) for name in (*INTERVAL_COLUMNS, "p")}
    row["difference"] = estimate.value
    row["n"] = len(difference)
    return row


@dataclass(frozen=True)
class _MeasureValues:
    """The values of one measure by generator and split."""

    every: Mapping[Key, Values]  # a missing image counts as wrong
    with_image: Mapping[Key, Values]  # only of entries with an image

    def lacks_images(self, key: Key) -> bool:
        return len(self.with_image[key]) < len(self.every[key])

    def rows(self) -> Iterator[Row]:
        """Yield the differences of all pairs of generators, by split."""
        # In the config's order, without repeats.
        generators = list(dict.fromkeys(generator for generator, _ in self.every))
        for split in TESTS:
            served = [name for name in generators if (name, split) in self.every]
            for a, b in combinations(served, 2):
                yield from self._differences(a, b, split)

    def _differences(self, a: str, b: str, split: str) -> Iterator[Row]:
        """Yield the differences of two generators on a split."""
        row_head = {"a": a, "b": b, "split": split}
        first, second = (a, split), (b, split)
        difference = self.every[first] - self.every[second]
        family = "primary" if split in HELD_OUT_SPLITS else "exploratory"
        yield row_head | {"kind": "generators", "family": family} | compare_values(difference)
        if self.lacks_images(first) or self.lacks_images(second):
            # Otherwise, it would repeat the difference above.
            difference = self.with_image[first] - self.with_image[second]
            kind = {"kind": "both_have_images", "family": "exploratory"}
            yield row_head | kind | compare_values(difference)


def adjust_primary(rows: Sequence[Row]) -> None:
    """Set ``p_holm`` of the primary comparisons of one measure, which are one family."""
    family = [row for row in rows if row["family"] == "primary" and row["p"] is not None]
    p_values = [row["p"] for row in family]
    adjusted = holm(p_values).tolist()
    for row, p_value in zip(family, adjusted, strict=True):
        row["p_holm"] = p_value


def comparisons(scores: Sequence[Scored]) -> list[Row]:
    """Return all comparisons of one composition, by measure and split."""
    main_scores = {(score.generator, score.split): score for score in scores if score.is_main}
    row_head: Row = dict.fromkeys(COMPARISON_COLUMNS)
    row_head |= {name: scores[0].summary[name] for name in ("dataset", "composition")}
    rows: list[Row] = []
    for measure in COMPARED:
        values = _MeasureValues(
            every={key: values_of(score, measure) for key, score in main_scores.items()},
            with_image={
                key: values_of(score, measure, with_image=True)
                for key, score in main_scores.items()
            },
        )
        measure_rows = [row_head | {"measure": measure} | row for row in values.rows()]
        adjust_primary(measure_rows)
        rows += measure_rows
    return rows
