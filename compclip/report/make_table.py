"""Make the table of all scores, their differences, the scores by pair, and the table for papers."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from compclip.core.artifacts.rounding import DECIMALS
from compclip.core.tables import MEASUREMENTS, TESTS
from compclip.divergence import results as divergences
from compclip.report import by_pair, comparisons
from compclip.report.composed import Anchors, Estimates, estimate_all, rows_of
from compclip.report.measures import COMPARED, MEASURES
from compclip.report.rows import Row, main_rows, pivot, select_measure
from compclip.report.scored import Scored
from compclip.report.values import balanced_r_precision, mean_columns, values_of
from compclip.stats.r_precision import sampled


@dataclass(frozen=True)
class CompositionResults:
    """What the rows of one composition are computed from.

    Attributes:
        scores: of all generators, by all judges together, each judge and the oracle.
        divergence: ``tables.DIVERGENCE``.
        fids: Fréchet distances by generator (``splits`` of ``fid/G.json``).
        variants: counts of variants by split (``splits`` of ``variants.json``).
    """

    scores: Sequence[Scored]
    divergence: pd.DataFrame
    fids: Mapping[str, Mapping[str, Any]]
    variants: Mapping[str, Mapping[str, Any]]


class Tables(NamedTuple):
    """The rows of ``scores.parquet``, ``comparisons.csv`` and ``pairs.csv``."""

    scores: pd.DataFrame
    comparisons: pd.DataFrame
    pairs: pd.DataFrame


def make_table(
    compositions: Iterable[CompositionResults],
    *,
    anchors: Anchors,
    controls: Sequence[str],
    chunks: int,
) -> Tables:
    """Return the rows of ``scores.parquet``, ``comparisons.csv`` and ``pairs.csv``, numbers with
    six decimals.

    Args:
        compositions: the results of each.
        anchors, controls: as of ``estimate_all``.
        chunks: number of parts over which sampled R-precision is averaged; an argument, because
            summaries of submissions lack it.
    """
    rows = list[Row]()
    comparison_rows = list[Row]()
    pair_rows = list[Row]()
    for composition in compositions:
        # Scores and pairs have rows of the same estimates.
        estimates = estimate_all(composition.scores, anchors, controls)
        rows += rows_of_composition(composition, estimates, chunks)
        comparison_rows += comparisons.comparisons(composition.scores)
        pair_rows += by_pair.pair_rows(composition.scores, estimates)
    return Tables(
        scores_of_rows(rows), differences_of_rows(comparison_rows), pairs_of_rows(pair_rows)
    )


def scores_of_rows(rows: Iterable[Row]) -> pd.DataFrame:
    """Return the table of rows of ``scores.parquet``."""
    columns = MEASUREMENTS.columns
    types = {name: column.dtype for name, column in columns.items() if column.dtype != "str"}
    # Rows have only the columns that say something; all others become missing values.
    scores = pd.DataFrame(rows, columns=[*columns]).astype(types)
    # Without any note, pandas does not take their column for texts.
    return with_decimals(scores).astype({"note": "str"})


def differences_of_rows(rows: Iterable[Row]) -> pd.DataFrame:
    """Return the table of rows of ``comparisons.csv``."""
    return with_decimals(pd.DataFrame(rows, columns=comparisons.COMPARISON_COLUMNS))


def pairs_of_rows(rows: Iterable[Row]) -> pd.DataFrame:
    """Return the table of rows of ``pairs.csv``."""
    return with_decimals(pd.DataFrame(rows, columns=by_pair.PAIR_COLUMNS))


def rows_of_composition(
    composition: CompositionResults, estimates: Estimates | None, chunks: int
) -> Iterator[Row]:
    """Yield the rows of ``scores.parquet`` of one composition, by generator, split and measure."""
    # By judge and, if there are several, also as their mean.
    for score in composition.scores:
        yield from _score_rows(score, chunks)
    if estimates:
        yield from _estimate_rows(composition.scores, estimates)
    row_head = {name: composition.scores[0].summary[name] for name in ("dataset", "composition")}
    # These depend on no judge, and the last two on no generator, so their columns stay empty.
    without_judge = chain(
        _fid_rows(composition.fids),
        _ceiling_rows(composition.variants),
        _divergence_rows(composition.divergence),
    )
    for row in without_judge:
        yield row_head | row


class _ScoreValues:
    """A score with the values from which its rows are computed."""

    def __init__(self, score: Scored, chunks: int) -> None:
        self.score = score
        self.values = {
            name: values_of(score, name) for name, measure in MEASURES.items() if measure.column
        }
        summary = score.summary
        # ``published`` drops the remainder of equal chunks, ``even`` does not.
        chunking = summary["chunking"]
        self.chunk_means = list[float]()
        self.chunk_deviations = list[float]()
        for table in score.by_judge:
            statistics = sampled(table["hit"], chunks, summary["seed"], chunking)
            # None if there are too few entries.
            if statistics is not None:
                mean, deviation = statistics
                self.chunk_means.append(mean)
                self.chunk_deviations.append(deviation)

    def mean(self, measure: str) -> Row | None:
        values = self.values[measure]
        return mean_columns(values) if len(values) else None

    def balanced(self) -> Row | None:
        if self.score.split != "test_swapped" or self.score.entries.empty:
            return None
        return balanced_r_precision(self.score)

    def from_summary(self, key: str) -> Row | None:
        """Return a value that the summary of the score has, such as the blind control."""
        return _value(self.score.set_summary.get(key))

    def sampled_mean(self) -> Row | None:
        """Return sampled R-precision, averaged over judges."""
        return _value(_mean_or_none(self.chunk_means))

    def sampled_deviation(self) -> Row | None:
        """Return its standard deviation over chunks, averaged over judges."""
        return _value(_mean_or_none(self.chunk_deviations))

    # 0 is chance, and 1 is always right.
    def corrected(self) -> Row | None:
        accuracy = self.score.set_summary.get("adjective")
        chance = self.score.set_summary.get("adjective_chance")
        if accuracy is None or chance is None:
            return None
        # Chance is at most 1 / 2, since there are two adjectives or more.
        return _value((accuracy - chance) / (1 - chance))


def _mean_or_none(numbers: Sequence[float]) -> float | None:
    return float(np.mean(numbers)) if numbers else None


def _value(value: float | None) -> Row | None:
    """Return the columns of a value without intervals, None without a value."""
    return None if value is None else {"value": value}


@dataclass(frozen=True)
class RowKind:
    """A kind of rows of a score.

    Attributes:
        measure: its name in ``measures.MEASURES``.
        counted: the measure whose entries the row counts.
        columns: returns its value and intervals; None if the score has no such row.
    """

    measure: str
    counted: str
    columns: Callable[[_ScoreValues], Row | None]


# The rows of each score, in their order in the table. The two main scores have a row even if
# nothing was scored, so that it says so: 0 entries, and no value.
SCORE_ROWS = (
    RowKind("r_precision", "r_precision", lambda measured: measured.mean("r_precision") or {}),
    RowKind(
        "adjective_accuracy",
        "adjective_accuracy",
        lambda measured: measured.mean("adjective_accuracy") or {},
    ),
    RowKind(
        "adjective_accuracy_adjusted",
        "adjective_accuracy_adjusted",
        lambda measured: measured.mean("adjective_accuracy_adjusted"),
    ),
    RowKind("r_precision_balanced", "r_precision", lambda measured: measured.balanced()),
    RowKind(
        "r_precision_chance",
        "r_precision",
        lambda measured: _value(1 / measured.score.summary["candidates"]),
    ),
    RowKind(
        "blind_control", "r_precision", lambda measured: measured.from_summary("blind_control")
    ),
    RowKind("hubness", "r_precision", lambda measured: measured.from_summary("hubness")),
    RowKind("r_precision_sampled", "r_precision", lambda measured: measured.sampled_mean()),
    RowKind("r_precision_sampled_sd", "r_precision", lambda measured: measured.sampled_deviation()),
    RowKind(
        "adjective_accuracy_chance",
        "adjective_accuracy",
        lambda measured: measured.from_summary("adjective_chance"),
    ),
    RowKind(
        "adjective_accuracy_corrected", "adjective_accuracy", lambda measured: measured.corrected()
    ),
)


def _score_rows(score: Scored, chunks: int) -> Iterator[Row]:
    """Yield the rows of a score."""
    measured = _ScoreValues(score, chunks)
    row_head = _row_head(score, score.set_summary)
    for kind in SCORE_ROWS:
        columns = kind.columns(measured)
        if columns is None:
            continue
        entries = measured.values[kind.counted].entries
        counts = {
            "n": len(entries),
            "images": entries["image_id"].nunique(),
            "pairs": entries["pair"].nunique(),
        }
        yield row_head | {"measure": kind.measure} | counts | columns


def _row_head(score: Scored, set_summary: Mapping[str, Any]) -> Row:
    """Return the columns that all rows of a score share."""
    values = {**score.summary, **set_summary}
    values |= {"judges": len(score.by_judge), "judge_seed": score.judge_seed}
    return {column: values[column] for column in MEASUREMENTS.columns if column in values}


def _estimate_rows(scores: Sequence[Scored], estimates: Estimates) -> Iterator[Row]:
    """Yield the rows of what each generator draws of seen and of held-out pairs, and composes."""
    # Reversed, so that a generator's first split wins: it states the config's split.prompts, and
    # test_swapped does not.
    main_scores = {score.generator: score for score in reversed(scores) if score.is_main}
    oracle_scores = {score.generator: score for score in reversed(scores) if score.by_oracle}
    for skills_by_generator, suffix, score_by_generator in (
        (estimates.skills, "", main_scores),
        (estimates.simultaneous, "_together", main_scores),
        # What was drawn is the oracle's value of the same measures.
        (estimates.drawn, "", oracle_scores),
    ):
        for generator, skills in skills_by_generator.items():
            score = score_by_generator[generator]
            prompts = main_scores[generator].set_summary["prompts"]
            row_head = _row_head(score, {"distractors": "original", "prompts": prompts})
            for split, measure, columns in rows_of(skills, suffix):
                yield row_head | {"split": split, "measure": measure} | columns


def _fid_rows(fids: Mapping[str, Mapping[str, Any]]) -> Iterator[Row]:
    """Yield the Fréchet distances of each generator, plain and balanced."""
    for generator, splits in fids.items():
        for split, distances in splits.items():
            row_head = {"generator": generator, "split": split}
            columns = {"value": distances["fid"], "n": distances["generated"]}
            yield row_head | {"measure": "fid"} | columns
            # Only swapped images are balanced; how many are left is not recorded.
            if "balanced" in distances:
                columns = {"value": distances["balanced"]}
                yield row_head | {"measure": "fid_balanced"} | columns


def _ceiling_rows(variants: Mapping[str, Mapping[str, Any]]) -> Iterator[Row]:
    """Yield the accuracy of a choice among the adjectives that captions of an image state."""
    for split, counts in variants.items():
        ceiling = counts["ceiling"]
        # None if no prompt has a variant, neither one that was kept nor one that captions state.
        if ceiling is not None:
            columns = {"measure": "adjective_accuracy_ceiling", "value": ceiling}
            yield {"split": split} | columns


def _divergence_rows(divergence: pd.DataFrame) -> Iterator[Row]:
    """Yield the divergences of train from the prompts of each split."""
    for split in TESTS:
        for measure, (definition, column) in divergences.COLUMNS.items():
            row = divergences.find_row(divergence, definition, split, "prompts")
            # Subgraphs are measured only if the config asks for them.
            if row:
                # n: the samples of the split.
                columns = {"value": row[column], "n": row["test"]}
                yield {"split": split, "measure": measure} | columns


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
    for names, composition in scores.groupby(["dataset", "composition"], sort=False):
        for generator, values in pivot(main_rows(composition)).items():
            row: Row = dict(zip(("dataset", "composition"), names, strict=True))
            row["generator"] = generator
            # A split that the generator does not serve has empty cells.
            for split, measure in product(TESTS, COMPARED):
                column = f"{split.removeprefix('test_')}_{measure}"
                score = values.get((split, measure), {})
                row[column] = score.get("value")
                for end in ("new_pairs_low", "new_pairs_high"):
                    row[f"{column}_{end}"] = score.get(end)
            rows.append(row)
    return pd.DataFrame(rows)


def dvc_metrics(scores: pd.DataFrame) -> dict[str, dict[str, float]]:
    """Return ``metrics.json``, which ``dvc metrics diff`` compares: the main R-precision by
    generator and split, in percent with two decimals.
    """
    metrics_by_generator: dict[str, dict[str, float]] = {}
    rows = select_measure(main_rows(scores), "r_precision")
    for row in rows.dropna(subset="value").itertuples():
        split = row.split.removeprefix("test_")
        percentages = metrics_by_generator.setdefault(row.generator, {})
        percentages[split] = round(100 * row.value, 2)
    return metrics_by_generator


def as_csv(table: pd.DataFrame) -> str:
    """Return a table as CSV: floats with six decimals, None as an empty cell."""
    return table.to_csv(index=False, float_format=f"%.{DECIMALS}f", lineterminator="\n")
