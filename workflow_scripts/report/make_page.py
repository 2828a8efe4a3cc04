"""Write report.html: scores, gaps, judge, splits, figures, examples and what was left out, in one file.

Pictures are data URIs, the style stands in the page, nothing is fetched and no script runs. Every word of the
data is escaped.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd

from workflow_scripts.common import cli
from workflow_scripts.common.cli import log
from workflow_scripts.common.io import read_json, read_table, write_text
from workflow_scripts.common.seeds import rng
from workflow_scripts.common.tables import (
    CAPTIONS,
    IMAGES,
    MANIFEST,
    PAIRS,
    PROMPTS,
    RANKING,
    SCORES,
    SPLIT,
    SPLITS,
    SWAPPED,
    TESTS,
)
from workflow_scripts.report.examples import Example, data_uri, read_made, swapped_examples, unseen_examples
from workflow_scripts.report.labels import SPLIT_NAMES, interval, main_rows, pair_words, percent

TEMPLATES = Path(__file__).parent / "templates"
# Names of things left out that are shown; the summaries hold more of them.
NAMES = 5
# Of three examples, this many are unseen captions, the rest swapped ones.
UNSEEN_OF_THREE = 1

FIGURES = {
    "scores": "Exact R-precision of each generator on each split.",
    "comparisons": "Paired differences between generators, and between splits.",
    "loss": "The judge's training.",
    "swapped_pairs": "How often each swapped pair is prompted, before and after balancing.",
    "adjectives": "Adjectives in each split.",
    "nouns": "Nouns in each split.",
}
# The four numbers of a generator: title, split, column.
SCORE_COLUMNS = (
    ("seen", "test_seen", "exact"),
    ("unseen", "test_unseen", "exact"),
    ("swapped", "test_swapped", "exact"),
    ("swapped, balanced", "test_swapped", "balanced"),
)


def score_lines(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """One line a generator: its score and interval in each of ``SCORE_COLUMNS``, as people read them.

    rows: those of the table that stand for a split, for one judge.
    """
    lines = []
    for generator in rows["generator"].drop_duplicates():
        own = rows[rows["generator"] == generator].set_index("split")
        cells = []
        for _, split, column in SCORE_COLUMNS:
            if split not in own.index or pd.isna(own.at[split, column]):
                cells.append(None)
                continue
            row = own.loc[split]
            low, high = row[f"{column}_low"], row[f"{column}_high"]
            cells.append({"score": percent(row[column]), "interval": interval(low, high)})
        lines.append({"generator": generator, "cells": cells})
    return lines


def blind_range(rows: pd.DataFrame) -> str:
    """The blind control's least and greatest value, in per cent."""
    low, high = percent(rows["blind_control"].min()), percent(rows["blind_control"].max())
    return low if low == high else f"{low} to {high}"


def full_table(table: pd.DataFrame, constant: Sequence[str]) -> dict[str, Any]:
    """Every row and column that varies, shares in per cent; the columns that do not, as one line."""
    same = {c: table[c].iloc[0] for c in constant if len(table) and table[c].nunique(dropna=False) == 1}
    columns = [c for c in table.columns if c not in same]
    shares = ("exact", "sampled", "balanced", "blind", "difference", "low", "high")

    def shown(column: str, value: Any) -> str:
        if pd.isna(value):
            return "–"
        if column.startswith(shares):
            return percent(value)
        if column in ("split", "a", "b"):
            return SPLIT_NAMES.get(value, str(value))
        return f"{value:,}" if isinstance(value, int) else str(value)

    return {
        "columns": [c.replace("_", " ") for c in columns],
        "rows": [[shown(c, v) for c, v in zip(columns, row, strict=True)] for row in table[columns].itertuples(False)],
        "same": {c.replace("_", " "): shown(c, v) for c, v in same.items()},
    }


def comparison_lines(comparisons: pd.DataFrame) -> list[dict[str, Any]]:
    """Each difference with its interval and whether that holds 0."""
    return [
        {
            "split": SPLIT_NAMES.get(row.split, row.split),
            "a": SPLIT_NAMES.get(row.a, row.a),
            "b": SPLIT_NAMES.get(row.b, row.b),
            "difference": percent(row.difference),
            "interval": interval(row.low, row.high),
            "clear": row.low > 0 or row.high < 0,
            "n": row.n,
        }
        for row in comparisons.itertuples()
    ]


def split_sizes(splits: pd.DataFrame, captions: pd.DataFrame, prompts: pd.DataFrame) -> list[dict[str, Any]]:
    """Images and captions of each split, and the prompts and images that are judged."""
    of_caption = captions["image_id"].map(splits.set_index("image_id")["split"])
    lines = []
    for split in (*SPLITS, "test_swapped"):
        drawn = prompts[prompts["split"] == split]
        real = split != "test_swapped"
        images = int((splits["split"] == split).sum())
        lines.append(
            {
                "split": SPLIT_NAMES[split],
                "images": images if real else None,
                "share": percent(images / max(len(splits), 1), 0) if real else None,
                "captions": int((of_caption == split).sum()) if real else None,
                "prompts": None if split == "train" else len(drawn),
                "judged": None if split == "train" else drawn["image_id"].nunique(),
            }
        )
    return lines


def held_out(heldout: Mapping[str, Any], ranking: pd.DataFrame) -> list[dict[str, Any]]:
    """The held-out pairs in words, with their occurrences in all captions, most frequent first."""
    counts = {f"{r.adjective}_{r.noun}": int(r.count) for r in ranking.rename(columns={"count": "n"}).itertuples()}
    found = [{"pair": pair_words(p), "count": counts.get(p, 0)} for p in heldout["pairs"]]
    return sorted(found, key=lambda pair: (-pair["count"], pair["pair"]))
