"""The scores and the differences on the page."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from workflow_scripts.core.io import read_json
from workflow_scripts.core.layout import ORACLE, Layout
from workflow_scripts.divergence.results import COLUMNS as DIVERGENCE_COLUMNS
from workflow_scripts.plot.labels import MEASURE_NAMES, SPLIT_NAMES, interval, p_value, pair_words, percent
from workflow_scripts.report import verdicts
from workflow_scripts.report.comparisons import HELDOUT
from workflow_scripts.report.rows import against_seen, between_generators, beyond_reference, main_rows, of_measure
from workflow_scripts.report.table import MEASURES, SOURCES
from workflow_scripts.score.fid import Fids, distance, fid_note, read_fids

# The scores of a generator: title, split, column.
SCORE_COLUMNS = (
    ("seen", "test_seen", "exact"),
    ("unseen", "test_unseen", "exact"),
    ("swapped", "test_swapped", "exact"),
    ("swapped, balanced", "test_swapped", "balanced"),
)
# The same for adjective accuracy.
ADJECTIVE_COLUMNS = tuple((title, split, "adjective") for title, split, column in SCORE_COLUMNS if column == "exact")
EXACT_COLUMNS = SCORE_COLUMNS[:3]
# Columns of table.csv that the whole table does not repeat in each row if they are constant.
CONSTANT = ("dataset", "composition", "candidates", "class_rule", "judge_hash", "seed")
# Columns that tell the rows of table.csv apart.
WHICH = ("generator", "judge", "judge_seed", "split", "prompts", "distractors")
# What the sources of error are, and what reduces them.
ERROR_SOURCES = {
    "pairs": "held-out pairs: hold out more (split.heldout.fraction)",
    "images": "images: make more",
    "judges": "judges: train more (judge.seeds)",
    "residual": "single captions: ask for more (split.per_image)",
}
# Columns that contain fractions, by how their names begin.
FRACTIONS = ("exact", "adjective_", "sampled", "balanced", "blind", "hubness", "difference", "low", "high")
Line = dict[str, Any]


def number(row: Mapping[str, Any], column: str, low: str, high: str, *, bold: bool = False) -> Line:
    """Return a value with its interval, as macro ``points`` takes it."""
    return {"value": percent(row[column]), "interval": interval(row[low], row[high]), "bold": bold}


def difference(row: Mapping[str, Any]) -> Line:
    """Return a difference with its interval, bold if the interval excludes 0."""
    return number(row, "difference", "low", "high", bold=bool(row["low"] > 0 or row["high"] < 0))


def score_lines(
    rows: pd.DataFrame, columns: Sequence[tuple[str, str, str]] = SCORE_COLUMNS, kind: str = ""
) -> list[Line]:
    """Return a line a generator: its score in each of ``columns``, None if it has none. rows: by one judge.

    ``kind`` is ``_fixed`` for the intervals for these pairs and judges.
    """
    lines = []
    for generator in rows["generator"].drop_duplicates():
        own = rows[rows["generator"] == generator].set_index("split")
        cells = [
            number(own.loc[split], column, f"{column}{kind}_low", f"{column}{kind}_high")
            if split in own.index and pd.notna(own.at[split, column])
            else None
            for _, split, column in columns
        ]
        lines.append({"name": generator, "cells": cells})
    return lines


def fid_lines(fids: Fids) -> list[Line]:
    """Return a line a generator: its Fréchet distance in each of ``SCORE_COLUMNS``, None if it has none."""
    lines = []
    for generator in fids:
        values = [distance(fids, generator, split, balanced=kind == "balanced") for _, split, kind in SCORE_COLUMNS]
        cells = [{"value": value, "interval": "", "bold": False} if value else None for value in values]
        lines.append({"name": generator, "cells": cells})
    return lines


def percent_range(values: Iterable[float | None]) -> str:
    """Return the least and the greatest value in percent; a dash if there is none."""
    known = [value for value in values if value is not None and pd.notna(value)]
    if not known:
        return "–"
    low, high = percent(min(known)), percent(max(known))
    return low if low == high else f"{low} to {high}"


def balance_line(summaries: Sequence[Mapping[str, Any]]) -> str:
    """Return how the swapped scores are balanced. summaries: ``scores/G/summary.json``, of which the first has it."""
    balances = [score["balance"] for summary in summaries for score in summary["scores"] if "balance" in score]
    if not balances:
        return ""
    rule, pairs = balances[0]["rule"], balances[0]["cut"]
    if not pairs:
        return f"Swapped is not balanced ({rule})."
    reduced = [f"{pair_words(p)} from {n['of']:,} to {n['kept']:,}" for p, n in pairs.items() if n["kept"] < n["of"]]
    return f"Balancing reduces {rule} ({', '.join(reduced) or 'no pair exceeds it'})."


def protocol_line(summary: Mapping[str, Any]) -> str:
    """Return where the protocol is the published one and differs from the definitions. summary: of one generator."""
    lines = []
    if summary["ties"] == "own_first":
        lines.append("Ties count as hits: the exact score is the mean of (1 − g)ᴺ⁻¹.")
    if summary["chunking"] == "published":
        lines.append("The sampled score uses equal chunks, without the remainder.")
    return " ".join(["As published:", *lines]) if lines else ""


def balances(table: pd.DataFrame) -> bool:
    """Return whether balancing changes a score; a column of balanced scores would else repeat the plain ones."""
    return bool((table["balanced"].notna() & (table["balanced"] != table["exact"])).any())


def full_table(table: pd.DataFrame) -> dict[str, Any]:
    """Return all rows of table.csv as texts; constant columns once (``same``)."""
    table = table.drop(columns=list(DIVERGENCE_COLUMNS))
    same = {c: table[c].iloc[0] for c in CONSTANT if len(table) and table[c].nunique(dropna=False) == 1}
    named = [*WHICH, *(c for c in table.columns if c not in WHICH)]
    columns = [c for c in named if c not in same and (balances(table) or not c.startswith("balanced"))]

    def text(column: str, value: Any) -> str:
        if pd.isna(value):
            return "–"
        if column != "adjective_n" and f"{column}_".startswith(FRACTIONS):
            return percent(value)
        if column == "split":
            return SPLIT_NAMES.get(value, str(value))
        return f"{value:,}" if isinstance(value, int) else str(value)

    return {
        "columns": [c.replace("_", " ") for c in columns],
        "rows": [[text(c, v) for c, v in zip(columns, row, strict=True)] for row in table[columns].itertuples(False)],
        "same": {c.replace("_", " "): text(c, v) for c, v in same.items()},
    }


def comparison_lines(comparisons: pd.DataFrame) -> list[Line]:
    """Return each difference between generators, and between their falls and that of the reference."""
    falls = beyond_reference(comparisons)
    rows = pd.concat([falls, between_generators(comparisons)]).to_dict("records")
    return [
        {
            "score": MEASURE_NAMES[r["measure"]],
            "split": SPLIT_NAMES[r["split"]],
            "names": f"{r['a']} − {r['b']}" + (", falls" if r["kind"] == "beyond" else ""),
            "family": r["family"] if r["family"] == "exploratory" else p_value(r["p_holm"]),
            "n": r["n"],
            **difference(r),
        }
        for r in rows
    ]


def gap_lines(rows: pd.DataFrame, name: str) -> list[Line]:
    """Return a line a generator, which column ``name`` names: its difference on unseen and on swapped, or None."""
    by_split = rows.set_index([name, "split"])
    return [
        {
            "name": generator,
            "cells": [
                difference(by_split.loc[generator, split]) if (generator, split) in by_split.index else None
                for split in HELDOUT
            ],
        }
        for generator in rows[name].drop_duplicates()
    ]


def component_lines(rows: pd.DataFrame) -> list[Line]:
    """Return a line a score: the standard error of each measure from each source, in points; a dash if unknown."""
    columns = [(measure, source) for measure in MEASURES for source in SOURCES]
    return [
        {
            "name": row["generator"],
            "split": SPLIT_NAMES[row["split"]],
            "sizes": [f"{row[name]:,}" for name in ("pairs", "images", "judges")],
            "cells": [percent(row[f"{measure}_se_{source}"]) for measure, source in columns],
        }
        for row in rows.to_dict("records")
    ]


def component_advice(rows: pd.DataFrame) -> str:
    """Return what contributes most to the error of the scores, and what to add; empty without scores."""
    variances = {source: float((rows[f"exact_se_{source}"] ** 2).sum()) for source in SOURCES}
    total = sum(variances.values())
    if not total:
        return ""
    largest = max(variances, key=variances.__getitem__)
    share = round(100 * variances[largest] / total)
    line = f"Over these scores, {share} % of the variance of R-precision is from {ERROR_SOURCES[largest]}."
    return line if rows["judges"].max() > 1 else f"{line} One judge cannot show what judges add; list judge.seeds."


def read_rows(file: Any, layout: Layout) -> pd.DataFrame:
    """Return the rows of table.csv or comparisons.csv of one composition."""
    table = pd.read_csv(file, dtype={"judge_seed": "Int64"})
    return table[(table["dataset"] == layout.dataset) & (table["composition"] == layout.composition)]


def scores_context(
    layout: Layout,
    summaries: Sequence[Mapping[str, Any]],
    oracle: Sequence[str],
    fid: Sequence[str],
    reference: str | None,
    healthy: bool | None,
) -> dict[str, Any]:
    """Return what the page shows of one composition; ``oracle`` and ``fid`` are the generators with these scores."""
    table = read_rows(layout.results / "table.csv", layout)
    comparisons = read_rows(layout.results / "comparisons.csv", layout)
    main = main_rows(table)
    trained = main[main["judge"] != ORACLE]
    fids = read_fids(layout, fid)
    columns = SCORE_COLUMNS if balances(main) else EXACT_COLUMNS
    by_oracle = [read_json(layout.scores(name, ORACLE) / "summary.json") for name in oracle]
    return {
        "verdicts": verdicts.verdicts(table, comparisons, reference, healthy),
        "few_pairs": list(verdicts.few_pairs(table)),
        "deciding": MEASURE_NAMES[verdicts.deciding_measure(comparisons)],
        "reference": reference,
        "columns": [title for title, _, _ in columns],
        "lines": score_lines(trained, columns),
        "adjective_lines": score_lines(trained, ADJECTIVE_COLUMNS),
        "fixed": [
            (MEASURE_NAMES[columns[0][2]], score_lines(trained, columns, "_fixed"))
            for columns in (EXACT_COLUMNS, ADJECTIVE_COLUMNS)
        ],
        "adjective_chance": percent_range(trained["adjective_chance"].tolist()),
        "oracle_lines": score_lines(main[main["judge"] == ORACLE], columns),
        "oracle_adjective_lines": score_lines(main[main["judge"] == ORACLE], ADJECTIVE_COLUMNS),
        "true_distractors": percent_range(s["true_distractors"] for summary in by_oracle for s in summary["scores"]),
        "fid_lines": fid_lines(fids),
        "fid_note": fid_note(fids),
        "blind": percent_range(trained["blind_control"].tolist()),
        "over": "images, pairs and judges" if trained["judges"].max() > 1 else "images and pairs, for one judge",
        "balance": balance_line(summaries),
        "protocol": protocol_line(summaries[0]),
        "candidates": int(trained["candidates"].iloc[0]) if len(trained) else None,
        "components": component_lines(trained[trained["n"] > 0]),
        "component_advice": component_advice(trained),
        "table": full_table(table),
        "gaps": [
            (
                MEASURE_NAMES[measure],
                gap_lines(against_seen(of_measure(comparisons, measure)), "generator"),
                gap_lines(beyond_reference(of_measure(comparisons, measure)), "a"),
                score_lines(
                    trained, [(title, split, f"{measure}_normalized") for title, split, _ in ADJECTIVE_COLUMNS]
                ),
            )
            for measure in MEASURES
        ],
        "comparisons": comparison_lines(comparisons),
    }
