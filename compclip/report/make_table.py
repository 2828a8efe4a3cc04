"""Make the table of all scores, their differences, the scores by pair, and the table for papers."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from compclip.core.rounding import DECIMALS
from compclip.core.tables import MEASUREMENTS, TESTS
from compclip.divergence import results as divergences
from compclip.report import by_pair, comparisons
from compclip.report.composed import Anchors, Estimates, estimate_all, rows_of
from compclip.report.measures import COMPARED
from compclip.report.rows import Row, main_rows, of_measure, pivot
from compclip.report.table import Scored
from compclip.report.values import balanced_r_precision, mean_columns, values_of
from compclip.stats.r_precision import sampled

# All scores, ``tables.DIVERGENCE``, Fréchet distances by generator (``splits`` of ``fid/G.json``),
# and counts of variants by split (``splits`` of ``variants.json``).
Composition = tuple[
    Sequence[Scored], pd.DataFrame, Mapping[str, Mapping[str, Any]], Mapping[str, Mapping[str, Any]]
]


def make_table(
    compositions: Iterable[Composition], anchors: Anchors, controls: Sequence[str], chunks: int
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Return the rows of ``scores.parquet``, ``comparisons.csv`` and ``pairs.csv``, numbers with
    six decimals.

    Args:
        compositions: the measurements of each.
        anchors, controls: as of ``estimate_all``.
        chunks: number of parts over which sampled R-precision is averaged.
    """
    rows, differences, pairs = list[Row](), list[Row](), list[Row]()
    for of in compositions:
        estimates = estimate_all(of[0], anchors, controls)
        rows += measurements(*of, estimates, chunks)
        differences += comparisons.comparisons(of[0])
        pairs += by_pair.pair_rows(of[0], estimates)
    types = {
        name: column.dtype for name, column in MEASUREMENTS.columns.items() if column.dtype != "str"
    }
    scores = pd.DataFrame(rows, columns=[*MEASUREMENTS.columns]).astype(types)
    compared = pd.DataFrame(differences, columns=comparisons.COMPARISON_COLUMNS)
    of_pairs = pd.DataFrame(pairs, columns=by_pair.PAIR_COLUMNS)
    # without notes, their column has no texts
    return (
        with_decimals(scores).astype({"note": "str"}),
        with_decimals(compared),
        with_decimals(of_pairs),
    )


def measurements(
    scores: Sequence[Scored],
    divergence: pd.DataFrame,
    fids: Mapping[str, Mapping[str, Any]],
    variants: Mapping[str, Mapping[str, Any]],
    estimates: Estimates | None,
    chunks: int,
) -> Iterator[Row]:
    """Yield the rows of one composition, by generator, split and measure."""
    for score in scores:
        yield from _of_score(score, chunks)
    if estimates:
        yield from _of_estimates(scores, estimates)
    head = {name: scores[0].summary[name] for name in ("dataset", "composition")}
    for generator, splits in fids.items():
        for split, found in splits.items():
            for measure, key in (("fid", "fid"), ("fid_balanced", "balanced")):
                if key in found:
                    about = {
                        "generator": generator,
                        "split": split,
                        "measure": measure,
                        "value": found[key],
                    }
                    yield head | about | ({"n": found["generated"]} if key == "fid" else {})
    for split, counts in variants.items():
        if counts["ceiling"] is not None:
            yield head | {
                "split": split,
                "measure": "adjective_accuracy_ceiling",
                "value": counts["ceiling"],
            }
    for split in TESTS:
        for measure, (definition, column) in divergences.COLUMNS.items():
            if found := divergences.measured(divergence, definition, split, "prompts"):
                yield head | {
                    "split": split,
                    "measure": measure,
                    "value": found[column],
                    "n": found["test"],
                }


def _of_estimates(scores: Sequence[Scored], estimates: Estimates) -> Iterator[Row]:
    """Yield the rows of what each generator draws of seen and of held-out pairs, and composes."""
    first = {score.generator: score for score in reversed(scores) if score.main}
    for end, by_generator in (("", estimates.skills), ("_together", estimates.together)):
        for name, skills in by_generator.items():
            score = first[name]
            head = {**score.summary, "distractors": "original", "prompts": score.about["prompts"]}
            head |= {"judges": len(score.by_judge), "judge_seed": score.judge_seed}
            head = {column: head[column] for column in MEASUREMENTS.columns if column in head}
            for split, measure, columns in rows_of(skills, end):
                yield head | {"split": split, "measure": measure} | columns


def _of_score(score: Scored, chunks: int) -> Iterator[Row]:
    """Yield the rows of a score."""
    about, summary, entries = score.about, score.summary, score.entries
    head = {**summary, **about, "judges": len(score.by_judge), "judge_seed": score.judge_seed}
    head = {name: head[name] for name in MEASUREMENTS.columns if name in head}

    def row(measure: str, of: pd.DataFrame, columns: Row) -> Row:
        counts = {"n": len(of), "images": of["image_id"].nunique(), "pairs": of["pair"].nunique()}
        return head | {"measure": measure} | counts | columns

    values = {name: values_of(score, name) for name in COMPARED}
    for name, own in values.items():
        yield row(name, own.entries, mean_columns(own) if len(own) else {})
    if len(adjusted := values_of(score, "adjective_accuracy_adjusted")):
        yield row("adjective_accuracy_adjusted", adjusted.entries, mean_columns(adjusted))
    if score.split == "test_swapped" and len(entries):
        yield row("r_precision_balanced", entries, balanced_r_precision(score))
    chance, accuracy = about.get("adjective_chance"), about.get("adjective")
    corrected = None if accuracy is None or chance is None else (accuracy - chance) / (1 - chance)
    by_judge = [
        sampled(table["hit"], chunks, summary["seed"], summary.get("chunking", "even"))
        for table in score.by_judge
    ]
    known = [means for means in by_judge if means]
    for name, value in {
        "r_precision_chance": 1 / summary["candidates"],
        "blind_control": about.get("blind_control"),
        "hubness": about.get("hubness"),
        "r_precision_sampled": float(np.mean([mean for mean, _ in known])) if known else None,
        "r_precision_sampled_sd": float(np.mean([deviation for _, deviation in known]))
        if known
        else None,
        "adjective_accuracy_chance": chance,
        "adjective_accuracy_corrected": corrected,
    }.items():
        if value is not None:
            of = values[
                "adjective_accuracy" if name.startswith("adjective") else "r_precision"
            ].entries
            yield row(name, of, {"value": value})


def with_decimals(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with floats rounded to six decimals."""
    # Adding 0 turns -0.0 into 0.0.
    rounded = table.select_dtypes("float").round(DECIMALS) + 0.0
    return table.assign(**rounded.to_dict("series"))


def paper_table(scores: pd.DataFrame) -> pd.DataFrame:
    """Return ``table.csv``: a row per generator, with both scores of each split and their
    intervals.
    """
    rows = []
    for (dataset, composition), of in scores.groupby(["dataset", "composition"], sort=False):
        for generator, values in pivot(main_rows(of)).items():
            row = {"dataset": dataset, "composition": composition, "generator": generator}
            for split, measure in product(TESTS, COMPARED):
                column = f"{split.removeprefix('test_')}_{measure}"
                score = values.get((split, measure), {})
                row[column] = score.get("value")
                row |= {
                    f"{column}_{end}": score.get(end) for end in ("new_pairs_low", "new_pairs_high")
                }
            rows.append(row)
    return pd.DataFrame(rows)


def metrics(scores: pd.DataFrame) -> dict[str, dict[str, float]]:
    """Return the main R-precision by generator and split, in percent with two decimals."""
    values: dict[str, dict[str, float]] = {}
    for row in of_measure(main_rows(scores), "r_precision").dropna(subset="value").itertuples():
        values.setdefault(row.generator, {})[row.split.removeprefix("test_")] = round(
            100 * row.value, 2
        )
    return values


def as_csv(table: pd.DataFrame) -> str:
    """Return a table as CSV: floats with six decimals, None as an empty cell."""
    return table.to_csv(index=False, float_format=f"%.{DECIMALS}f", lineterminator="\n")
