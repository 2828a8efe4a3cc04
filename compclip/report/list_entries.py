"""The data of the page of judged images: each with its prompt and its rank."""

import os.path
from collections.abc import Iterable
from typing import Any

import pandas as pd

from compclip.plot.examples import GeneratedImages, mark, pair_spans
from compclip.plot.labels import SPLIT_NAMES, pair_words
from compclip.score.entries import ENTRY


def marked_prompts(prompts: pd.DataFrame, swapped: pd.DataFrame, pairs: pd.DataFrame) -> list[list[list[str]]]:
    """Return each prompt in segments; new adjectives (swapped) and held-out pairs (unseen) are marked."""
    new = {
        (row.image_id, row.caption_id): [(change["new_start"], change["new_end"], "swapped") for change in row.changes]
        for row in swapped.itertuples()
    }
    spans = {"test_swapped": new, "test_unseen": pair_spans(prompts[prompts["split"] == "test_unseen"], pairs)}
    by_prompt = (
        mark(row.text, spans.get(row.split, {}).get((row.image_id, row.caption_id), [])) for row in prompts.itertuples()
    )
    return [[[words, kind] if kind else [words] for words, kind in segments] for segments in by_prompt]


def list_entries(
    generated: Iterable[GeneratedImages], *, pairs: pd.DataFrame, prompts: pd.DataFrame, swapped: pd.DataFrame
) -> dict[str, Any]:
    """Return the data of the page: the prompts, and each generator's columns with a row per judged image.

    Args:
        generated: images and scores, whose ranks are listed.
        pairs, prompts, swapped: as in ``core.tables``.
    """
    number = {key: row for row, key in enumerate(prompts[["split", *ENTRY]].itertuples(index=False, name=None))}
    generators = {}
    for name, manifest, scores, summary in generated:
        columns: dict[str, list[Any]] = {key: [] for key in ("prompt", "path", "hits", "right", "rank")}
        for split, drawn in manifest.dropna(subset="path").groupby("split", sort=False):
            rows = drawn[[*ENTRY, "path"]].merge(scores[split], on=ENTRY, validate="one_to_one")
            columns["prompt"] += [number[split, *key] for key in rows[ENTRY].itertuples(index=False)]
            columns["path"] += list(rows["path"])
            columns["hits"] += rows["hits"].tolist()
            # The number of judges that choose the prompt's own adjective; -1 if there is no other.
            columns["right"] += rows["right"].where(rows["adjectives"] > 1, -1).tolist()
            rank = 1 + (summary["candidates"] - 1) * (rows["p_beaten"] + rows["p_tied"] / 2)
            columns["rank"] += rank.round(1).tolist()
        prefix = os.path.commonprefix(columns["path"])
        paths = [path[len(prefix) :] for path in columns["path"]]
        generators[name] = columns | {"prefix": prefix, "path": paths, "candidates": summary["candidates"]}
    return {
        "prompts": {
            "image": prompts["image_id"].tolist(),
            "split": [SPLIT_NAMES[split] for split in prompts["split"]],
            "pair": [pair_words(pair) if isinstance(pair, str) else "" for pair in prompts["pair"]],
            "text": marked_prompts(prompts, swapped, pairs),
        },
        "generators": generators,
    }
