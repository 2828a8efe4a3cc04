"""The page's section on the splits of one composition: sizes, held-out pairs, ranking, audit,
swapped captions.
"""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from compclip.core.heldout import heldout_note, pair_names
from compclip.core.seeds import rng
from compclip.core.tables import (
    CAPTION_KEY,
    CAPTIONS,
    PAIRS,
    PROMPTS,
    RANKING,
    SPLIT,
    SPLITS,
    SWAPPED,
)
from compclip.io import read_json, read_table
from compclip.plot.examples import choose_rows, swapped_segments
from compclip.plot.labels import SPLIT_NAMES, pair_words, percent
from compclip.plot.page import PageSection
from workflow_scripts.layout import Layout

# Numbers of swapped captions and ranked pairs that are listed; the tables contain all.
MOST_SWAPS, MOST_PAIRS = 50, 500

SIZE_COLUMNS = ("images", "captions", "prompts", "held-out pairs", "expected interval")


def size_cell(value: int | str | None, small: str = "") -> dict[str, Any] | None:
    """Return a number as macro ``by_name`` takes it; None if there is none."""
    if value is None:
        return None
    return {
        "value": value if isinstance(value, str) else f"{value:,}",
        "interval": small,
        "bold": False,
    }


def size_lines(
    splits: pd.DataFrame, captions: pd.DataFrame, prompts: pd.DataFrame, widths: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return a line per split, with a cell for each of ``SIZE_COLUMNS``. ``widths``:
    widths.json.
    """
    of_caption = captions["image_id"].map(splits.set_index("image_id")["split"])
    lines = []
    for split in (*SPLITS, "test_swapped"):
        prompted, expected = prompts[prompts["split"] == split], widths["splits"].get(split, {})
        images = int((splits["split"] == split).sum())
        real, judged = split != "test_swapped", split != "train"
        half = expected.get("half_width")
        cells = [
            size_cell(images if real else None, f"{percent(images / max(len(splits), 1), 0)} %"),
            size_cell(int((of_caption == split).sum()) if real else None),
            size_cell(
                len(prompted) if judged else None, f"of {prompted['image_id'].nunique():,} images"
            ),
            size_cell(expected.get("pairs")),
            size_cell(None if half is None else f"± {percent(half)}"),
        ]
        lines.append({"name": SPLIT_NAMES[split], "cells": cells})
    return lines


def ranked(ranking: pd.DataFrame, heldout: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the first pairs of the ranking, and whether each is held out."""
    first = ranking.sort_values("rank").head(MOST_PAIRS)
    is_held = pair_names(first).isin(heldout["pairs"])
    lines = first[["rank", "count", "images"]].assign(
        pair=pair_names(first).map(pair_words), held=is_held
    )
    return lines.to_dict("records")


def swaps(layout: Layout, seed: int) -> list[dict[str, Any]]:
    """Return swapped captions and their originals with marked changes, spread over pairs and drawn
    by seed.
    """
    file = layout.place / "swapped.parquet"
    named = read_table(file, SWAPPED, [*CAPTION_KEY, "pair"])
    classes = dict(zip(named["image_id"], named["image_id"], strict=True))
    some = choose_rows(
        named, classes, MOST_SWAPS, rng(seed, "swaps", layout.dataset, layout.composition)
    )
    images = [row.image_id for row in some]
    rows = {
        (row.image_id, row.caption_id): row
        for row in read_table(file, SWAPPED, images=images).itertuples()
    }
    chosen = [rows[row.image_id, row.caption_id] for row in some]
    pairs = read_table(layout.read / "pairs.parquet", PAIRS, images=images)
    return [
        {
            "image_id": row.image_id,
            "pair": pair_words(row.pair),
            "captions": [
                {"label": split.removeprefix("test_"), "segments": segments}
                for split, segments in swapped_segments(row, pairs).items()
            ],
        }
        for row in chosen
    ]


def section(layout: Layout, seed: int, *, alone: bool = False) -> PageSection:
    """Return the section of one composition; ``alone``: the page has no scores, so swapped captions
    are expanded.
    """
    place = layout.place
    audit, heldout, widths = (
        read_json(place / f"{name}.json") for name in ("audit", "heldout", "widths")
    )
    ranking = read_table(place / "ranking.parquet", RANKING)
    context = {
        "sizes": size_lines(
            read_table(place / "splits.parquet", SPLIT),
            read_table(layout.data / "captions.parquet", CAPTIONS, ["image_id"]),
            read_table(place / "prompts.parquet", PROMPTS, ["image_id", "split"]),
            widths,
        ),
        "columns": SIZE_COLUMNS,
        "warnings": widths["warnings"],
        "heldout": [
            {"pair": pair_words(pair), "count": count}
            for pair, count in sorted(
                heldout["occurrences"].items(), key=lambda item: (-item[1], item[0])
            )
        ],
        "origin": heldout_note(heldout),
        "not_ranked": [pair_words(pair) for pair in heldout.get("not_ranked", ())],
        "ranking": ranked(ranking, heldout),
        "pairs": len(ranking),
        "audit": audit["counts"],
        "disagreement": audit["disagreement"],
        "pair_words": pair_words,
        "suspicions": [
            {
                **suspicion,
                "pair": pair_words(pair),
                "text": next((e["text"] for e in suspicion["examples"]), ""),
            }
            for pair, suspicion in audit["suspicions"].items()
        ],
        "swaps": swaps(layout, seed),
        "alone": alone,
    }
    return PageSection("Splits", "split_section.html.j2", context)
