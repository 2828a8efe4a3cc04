"""The page's section on the splits of one composition: sizes, held-out pairs, ranking, audit,
swapped captions.
"""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from compclip.core.artifacts.files import read_json
from compclip.core.artifacts.heldout import heldout_note, pair_names
from compclip.core.artifacts.parquet import read_table
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
from compclip.plot.examples import choose_rows, swapped_segments
from compclip.plot.labels import SPLIT_NAMES, pair_words, percent
from compclip.plot.page import PageSection
from compclip.plot.table_view import Line, TableCell
from workflow_scripts.layout import Layout

# Numbers of swapped captions and ranked pairs that are listed; the tables contain all.
MOST_SWAPS, MOST_PAIRS = 50, 500

# The headings of the cells of ``size_lines``.
SIZE_COLUMNS = ("images", "captions", "prompts", "held-out pairs", "expected interval")


def size_cell(value: int | str | None, small: str = "") -> TableCell | None:
    """Return a number as a cell; None if there is none."""
    if value is None:
        return None
    text = value if isinstance(value, str) else f"{value:,}"
    return TableCell(text, small)


def size_lines(
    splits: pd.DataFrame, captions: pd.DataFrame, prompts: pd.DataFrame, widths: Mapping[str, Any]
) -> list[Line]:
    """Return a line per split, with a cell for each of ``SIZE_COLUMNS``. ``widths``:
    widths.json.
    """
    split_by_image = splits.set_index("image_id")["split"]
    caption_splits = captions["image_id"].map(split_by_image)
    image_counts = splits["split"].value_counts()
    caption_counts = caption_splits.value_counts()
    lines = []
    for split in (*SPLITS, "test_swapped"):
        cells: list[TableCell | None] = []
        # test_swapped has no images or captions of its own: it changes captions of test_seen.
        if split == "test_swapped":
            cells += [None, None]
        else:
            images = int(image_counts.get(split, 0))
            fraction = percent(images / max(len(splits), 1), 0)
            cells.append(size_cell(images, f"{fraction} %"))
            cells.append(size_cell(int(caption_counts.get(split, 0))))
        # Nothing is generated or scored for train.
        if split == "train":
            cells.append(None)
        else:
            split_prompts = prompts[prompts["split"] == split]
            images = split_prompts["image_id"].nunique()
            cells.append(size_cell(len(split_prompts), f"of {images:,} images"))
        # Train has no scores, and so no expected interval.
        expected = widths["splits"].get(split, {})
        half_width = expected.get("half_width")
        cells.append(size_cell(expected.get("pairs")))
        cells.append(None if half_width is None else size_cell(f"± {percent(half_width)}"))
        lines.append(Line(SPLIT_NAMES[split], cells))
    return lines


def ranking_lines(ranking: pd.DataFrame, heldout: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the first pairs of the ranking, and whether each is held out."""
    first = ranking.sort_values("rank").head(MOST_PAIRS)
    names = pair_names(first)
    lines = first[["rank", "count", "images"]].copy()
    lines["pair"] = names.map(pair_words)
    lines["held"] = names.isin(heldout["pairs"])
    return lines.to_dict("records")


def heldout_lines(occurrences: Mapping[str, int]) -> list[dict[str, Any]]:
    """Return the held-out pairs with their numbers of occurrences, the most frequent first."""
    # Equal counts by name, so that the order is always the same.
    by_count = sorted(occurrences.items(), key=lambda item: (-item[1], item[0]))
    return [{"pair": pair_words(pair), "count": count} for pair, count in by_count]


def suspicion_lines(suspicions: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the audit's suspicions, each with the text of its first example."""
    lines = []
    for pair, suspicion in suspicions.items():
        examples = suspicion["examples"]
        text = examples[0]["text"] if examples else ""
        line = {**suspicion, "pair": pair_words(pair), "text": text}
        lines.append(line)
    return lines


def swap_line(swap: Any, pairs: pd.DataFrame) -> dict[str, Any]:
    """Return a swapped caption and its original with marked changes. ``swap``: a row of
    ``SWAPPED``.
    """
    captions = [
        {"label": split.removeprefix("test_"), "segments": segments}
        for split, segments in swapped_segments(swap, pairs).items()
    ]
    return {"image_id": swap.image_id, "pair": pair_words(swap.pair), "captions": captions}


def swap_lines(layout: Layout, seed: int) -> list[dict[str, Any]]:
    """Return swapped captions and their originals with marked changes, spread over pairs and drawn
    by seed.
    """
    file = layout.folder / "swapped.parquet"
    # Of all rows, only the columns to choose by are read; then the rows of the chosen images.
    keys = read_table(file, SWAPPED, [*CAPTION_KEY, "pair"])
    stream = rng(seed, "swaps", layout.dataset, layout.composition)
    chosen = choose_rows(keys, "pair", MOST_SWAPS, stream)
    images = chosen["image_id"].tolist()
    swaps = {}
    for row in read_table(file, SWAPPED, images=images).itertuples():
        swaps[row.image_id, row.caption_id] = row
    pairs = read_table(layout.read / "pairs.parquet", PAIRS, images=images)
    chosen_keys = chosen[CAPTION_KEY].itertuples(index=False, name=None)
    return [swap_line(swaps[key], pairs) for key in chosen_keys]


def section(layout: Layout, seed: int, *, alone: bool = False) -> PageSection:
    """Return the section of one composition; ``alone``: the page has no scores, so swapped captions
    are expanded.
    """
    folder = layout.folder
    audit = read_json(folder / "audit.json")
    heldout = read_json(folder / "heldout.json")
    widths = read_json(folder / "widths.json")
    ranking = read_table(folder / "ranking.parquet", RANKING)
    splits = read_table(folder / "splits.parquet", SPLIT)
    # Of large tables, only the columns that are counted are read.
    captions = read_table(layout.data / "captions.parquet", CAPTIONS, ["image_id"])
    prompts = read_table(folder / "prompts.parquet", PROMPTS, ["image_id", "split"])
    sizes = size_lines(splits, captions, prompts, widths)
    # Only listed and published pairs may be missing from the ranking.
    not_ranked = [pair_words(pair) for pair in heldout.get("not_ranked", ())]
    context = {
        "sizes": sizes,
        "columns": SIZE_COLUMNS,
        "warnings": widths["warnings"],
        "heldout": heldout_lines(heldout["occurrences"]),
        "origin": heldout_note(heldout),
        "not_ranked": not_ranked,
        "ranking": ranking_lines(ranking, heldout),
        "pairs": len(ranking),
        "audit": audit["counts"],
        "disagreement": audit["disagreement"],
        "pair_words": pair_words,
        "suspicions": suspicion_lines(audit["suspicions"]),
        "swaps": swap_lines(layout, seed),
        "alone": alone,
    }
    return PageSection("Splits", "split_section.html.j2", context)
