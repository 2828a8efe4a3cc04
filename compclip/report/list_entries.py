"""The data of the page of judged images: each with its prompt and its rank."""

import os.path
from collections.abc import Iterable
from typing import Any

import pandas as pd

from compclip.generate.generator import KEYS
from compclip.plot.examples import GeneratedImages, mark, pair_spans
from compclip.plot.labels import SPLIT_NAMES, pair_words


def marked_prompts(
    prompts: pd.DataFrame, swapped: pd.DataFrame, pairs: pd.DataFrame
) -> list[list[list[str]]]:
    """Return each prompt in segments; new adjectives (swapped) and held-out pairs (unseen) are
    marked.
    """
    new = {
        (row.image_id, row.caption_id): [
            (change["new_start"], change["new_end"], "swapped") for change in row.changes
        ]
        for row in swapped.itertuples()
    }
    spans = {
        "test_swapped": new,
        "test_unseen": pair_spans(prompts[prompts["split"] == "test_unseen"], pairs),
    }
    by_prompt = (
        mark(row.text, spans.get(row.split, {}).get((row.image_id, row.caption_id), []))
        for row in prompts.itertuples()
    )
    return [
        [[words, kind] if kind else [words] for words, kind in segments] for segments in by_prompt
    ]


def list_entries(
    generated: Iterable[GeneratedImages],
    *,
    pairs: pd.DataFrame,
    prompts: pd.DataFrame,
    swapped: pd.DataFrame,
) -> dict[str, Any]:
    """Return the data of the page: the prompts, and each generator's columns with a row per judged
    image.

    Args:
        generated: images and scores, whose ranks are listed.
        pairs, prompts, swapped: as in ``core.tables``.
    """
    number = {key: row for row, key in enumerate(prompts[KEYS].itertuples(index=False, name=None))}
    generators = {}
    for name, manifest, scores, summary in generated:
        rows = manifest.dropna(subset="path").merge(scores, on=KEYS, validate="one_to_one")
        prefix = os.path.commonprefix(rows["path"].tolist())
        rank = 1 + (summary["candidates"] - 1) * (rows["p_beaten"] + rows["p_tied"] / 2)
        generators[name] = {
            "prompt": [number[key] for key in rows[KEYS].itertuples(index=False, name=None)],
            "path": rows["path"].str.slice(len(prefix)).tolist(),
            "hits": rows["hits"].tolist(),
            # The number of judges that choose the prompt's own adjective; -1 if there is no other.
            "right": rows["right"].where(rows["adjectives"] > 1, -1).tolist(),
            "rank": rank.round(1).tolist(),
            "prefix": prefix,
            "candidates": summary["candidates"],
        }
    return {
        "prompts": {
            "image": prompts["image_id"].tolist(),
            "split": [SPLIT_NAMES[split] for split in prompts["split"]],
            "pair": [pair_words(pair) if isinstance(pair, str) else "" for pair in prompts["pair"]],
            "text": marked_prompts(prompts, swapped, pairs),
        },
        "generators": generators,
    }
