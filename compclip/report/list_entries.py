"""Every judged image with its prompt, its rank, and the wrong caption that the judge finds nearest."""

import os.path
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from compclip.clip.embed import Embedder, items_of
from compclip.plot.examples import GeneratedImages, mark, pair_spans
from compclip.plot.labels import SPLIT_NAMES, pair_words
from compclip.score.choices import Embed
from compclip.score.entries import ENTRY, EntrySet, entry_sets
from compclip.score.score_images import embed_once
from compclip.split.pools import class_names

# Rows whose similarities are held at once.
ROWS_AT_ONCE = 1024


def nearest_wrong(entry_set: EntrySet, classes: pd.Series, embed_texts: Embed, images: np.ndarray) -> list[str]:
    """Return for each entry the caption of another class, with another text, that is nearest to its image.

    ``classes`` are by image_id, ``images`` (n, d) embeddings of the entries' images.
    """
    names = {name: number for number, name in enumerate(classes.unique())}
    holders = entry_set.pool["image_id"].map(classes).map(names).groupby(entry_set.pool["text"], sort=False)
    # A caption that images of several classes have is of another class for every entry.
    of_text = holders.first().where(holders.nunique() == 1, -1)
    captions, of_pool = of_text.index.tolist(), of_text.to_numpy()
    texts = embed_texts(captions)
    of_entries = entry_set.entries["image_id"].map(classes).map(names).to_numpy()
    place = {text: number for number, text in enumerate(captions)}
    own = entry_set.entries["text"].map(place).fillna(-1).to_numpy(int)
    of_class = pd.Series(of_pool).groupby(of_pool).indices
    nearest: list[int] = []
    for start in range(0, len(images), ROWS_AT_ONCE):
        rows = slice(start, start + ROWS_AT_ONCE)
        cosines = images[rows] @ texts.T
        for number in np.unique(of_entries[rows]):
            cosines[np.ix_(of_entries[rows] == number, of_class.get(number, []))] = -np.inf
        known = own[rows] >= 0
        cosines[np.flatnonzero(known), own[rows][known]] = -np.inf
        nearest += cosines.argmax(axis=1).tolist()
    return [captions[number] for number in nearest]


def marked_prompts(prompts: pd.DataFrame, swapped: pd.DataFrame, pairs: pd.DataFrame) -> list[list[list[str]]]:
    """Return each prompt in segments: a swapped one's new adjectives are marked, an unseen one's held-out pair."""
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
    generated: Iterable[GeneratedImages], embedder: Embedder, *, root: Path, judged: pd.DataFrame,
    captions: pd.DataFrame, images: pd.DataFrame, pairs: pd.DataFrame, prompts: pd.DataFrame, swapped: pd.DataFrame,
) -> dict[str, Any]:  # fmt: skip
    """Return the data of the page: the prompts, and of each generator columns with a row per judged image.

    Args:
        generated: images and scores, whose ranks are listed.
        embedder: of the judge that scored; its embeddings give the nearest captions.
        root: folder to which paths of images are relative.
        judged: the judged images (``split.judged.judged_images``); the other tables are those of ``core.tables``.
    """
    tables = {"prompts": prompts, "captions": captions, "judged": judged, "swapped": swapped}
    number = {key: row for row, key in enumerate(prompts[["split", *ENTRY]].itertuples(index=False, name=None))}
    classes, texts = class_names(captions), dict[str, int]()
    embed_texts = embed_once(embedder, list(captions.loc[captions["image_id"].isin(judged["image_id"]), "text"]))
    generators = {}
    for name, manifest, scores, summary in generated:
        columns: dict[str, list[Any]] = {key: [] for key in ("prompt", "path", "hits", "right", "rank", "nearest")}
        served = list(dict.fromkeys(manifest["split"]))
        for entry_set in entry_sets(served, ["original"], manifest=manifest, **tables):
            if scores[entry_set.name].empty:
                continue
            rows = entry_set.entries[[*ENTRY, "path"]].merge(scores[entry_set.name], on=ENTRY, validate="one_to_one")
            embedded = embedder.images(items_of(entry_set.entries["path"].tolist(), images, root))
            columns["prompt"] += [number[entry_set.split, *key] for key in rows[ENTRY].itertuples(index=False)]
            columns["path"] += list(rows["path"])
            columns["hits"] += rows["hits"].tolist()
            # How many judges choose the prompt's own adjective; -1 if there is no other to choose.
            columns["right"] += rows["right"].where(rows["adjectives"] > 1, -1).tolist()
            rank = 1 + (summary["candidates"] - 1) * (rows["p_beaten"] + rows["p_tied"] / 2)
            columns["rank"] += rank.round(1).tolist()
            nearest = nearest_wrong(entry_set, classes, embed_texts, embedded)
            columns["nearest"] += [texts.setdefault(text, len(texts)) for text in nearest]
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
        "texts": list(texts),
    }
