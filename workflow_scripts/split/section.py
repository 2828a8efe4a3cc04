"""What the page shows of the splits of one composition: their sizes, the held-out pairs, the audit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from workflow_scripts.core.io import read_json, read_table
from workflow_scripts.core.layout import Layout
from workflow_scripts.core.tables import CAPTIONS, PROMPTS, RANKING, SPLIT, SPLITS
from workflow_scripts.plot.labels import SPLIT_NAMES, pair_words, percent
from workflow_scripts.plot.page import PageSection


def sizes(splits: pd.DataFrame, captions: pd.DataFrame, prompts: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the images and captions of each split, and the prompts and images that are judged."""
    of_caption = captions["image_id"].map(splits.set_index("image_id")["split"])
    lines = []
    for split in (*SPLITS, "test_swapped"):
        prompted = prompts[prompts["split"] == split]
        real, judged = split != "test_swapped", split != "train"
        images = int((splits["split"] == split).sum())
        lines.append(
            {
                "split": SPLIT_NAMES[split],
                "images": images if real else None,
                "fraction": percent(images / max(len(splits), 1), 0) if real else None,
                "captions": int((of_caption == split).sum()) if real else None,
                "prompts": len(prompted) if judged else None,
                "judged": prompted["image_id"].nunique() if judged else None,
            }
        )
    return lines


def held_out(pairs: list[str], ranking: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the held-out pairs in words with their occurrences in all captions, most frequent first."""
    counts = dict(zip(ranking["adjective"] + "_" + ranking["noun"], ranking["count"], strict=True))
    lines = [{"pair": pair_words(pair), "count": int(counts.get(pair, 0))} for pair in pairs]
    return sorted(lines, key=lambda line: (-line["count"], line["pair"]))


def suspicions(audit: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the suspicions of audit.json by pair, each with its first caption."""
    return [
        {**suspicion, "pair": pair_words(pair), "text": next((e["text"] for e in suspicion["examples"]), "")}
        for pair, suspicion in audit["suspicions"].items()
    ]


def section(layout: Layout) -> PageSection:
    """Return the section of one composition."""
    place = layout.place
    audit = read_json(place / "audit.json")
    context = {
        "sizes": sizes(
            read_table(place / "splits.parquet", SPLIT),
            read_table(layout.data / "captions.parquet", CAPTIONS),
            read_table(place / "prompts.parquet", PROMPTS),
        ),
        "heldout": held_out(read_json(place / "heldout.json")["pairs"], read_table(place / "ranking.parquet", RANKING)),
        "audit": audit["counts"],
        "suspicions": suspicions(audit),
    }
    return PageSection("Splits", "split_section.html.j2", context)
