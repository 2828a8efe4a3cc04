"""The data of the page of judged images: each with its prompt and its rank."""

import os.path
from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from compclip.generate.generator import PROMPT_KEYS
from compclip.plot.examples import GeneratedImages, Segment, marked_prompts
from compclip.plot.labels import SPLIT_NAMES, pair_words


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
    keys = prompts[PROMPT_KEYS].itertuples(index=False, name=None)
    row_by_key = {key: row for row, key in enumerate(keys)}
    # A list for each column, which is smaller in JSON than an object for each row.
    columns: dict[str, list[Any]] = {"image": prompts["image_id"].tolist()}
    columns["split"] = prompts["split"].map(SPLIT_NAMES).tolist()
    # A prompt without a pair has NaN.
    pair_names = prompts["pair"]
    columns["pair"] = [pair_words(pair) if isinstance(pair, str) else "" for pair in pair_names]
    columns["text"] = list(map(_compact, marked_prompts(prompts, swapped, pairs)))
    # One generator in memory at a time.
    generators = {images.name: _image_columns(images, row_by_key) for images in generated}
    return {"prompts": columns, "generators": generators}


def _compact(segments: Iterable[Segment]) -> list[list[str]]:
    """Return segments of which unmarked ones have no kind, which keeps the page's data small."""
    return [[words, kind] if kind else [words] for words, kind in segments]


def _image_columns(images: GeneratedImages, row_by_key: Mapping[Any, int]) -> dict[str, Any]:
    """Return a generator's columns; ``row_by_key``: the row of each prompt."""
    with_path = images.manifest.dropna(subset="path")
    rows = with_path.merge(images.scores, on=PROMPT_KEYS, validate="one_to_one")
    # Sent once rather than with each path.
    prefix = os.path.commonprefix(rows["path"].tolist())
    candidates = images.summary["candidates"]
    # Each distractor ranks higher with p_beaten, and ties are broken at random. Both are means over
    # judges, and so is the rank.
    rank = 1 + (candidates - 1) * (rows["p_beaten"] + rows["p_tied"] / 2)
    keys = rows[PROMPT_KEYS].itertuples(index=False, name=None)
    columns: dict[str, Any] = {"prompt": [row_by_key[key] for key in keys]}
    columns["path"] = rows["path"].str.slice(len(prefix)).tolist()
    columns["hits"] = rows["hits"].tolist()
    # The number of judges that choose the prompt's own adjective; -1 if there is no other.
    has_variants = rows["adjectives"] > 1
    columns["right"] = rows["right"].where(has_variants, -1).tolist()
    columns["rank"] = rank.round(1).tolist()
    columns["prefix"] = prefix
    columns["candidates"] = candidates
    return columns
