"""Write entries.html: every judged image with its prompt, its rank, and the wrong caption that the judge finds nearest.

The page reads a file of data for each composition when it is chosen: a script, because a page on disk may read no JSON.
The ranks are those of the scores of the first judge; its embeddings, from the cache, give the nearest captions.
"""

import json
import os.path
from typing import Any

import numpy as np
import pandas as pd

from compclip.clip.embed import items_of, open_embedder
from compclip.core import cli
from compclip.core.layout import Layout
from compclip.core.log import log
from compclip.core.tables import CAPTIONS, IMAGES, MANIFEST, PAIRS, PROMPTS, SCORES, SPLIT, SWAPPED, TESTS
from compclip.io import atomic_folder, read_json, read_table
from compclip.plot.examples import mark, pair_spans
from compclip.plot.labels import SPLIT_NAMES, pair_words
from compclip.plot.page import write_page
from compclip.report.steps import ListEntries
from compclip.score.entries import ENTRY, EntrySet, entry_sets
from compclip.score.score_images import Embed, embed_once
from compclip.split.judged import judged_images
from compclip.split.pools import class_names

# Rows whose similarities are held at once.
BLOCK = 1024


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
    nearest: list[int] = []
    for start in range(0, len(images), BLOCK):
        rows = slice(start, start + BLOCK)
        cosines = images[rows] @ texts.T
        cosines[of_entries[rows, None] == of_pool] = -np.inf
        known = own[rows] >= 0
        cosines[np.flatnonzero(known), own[rows][known]] = -np.inf
        nearest += cosines.argmax(axis=1).tolist()
    return [captions[number] for number in nearest]


def marked(prompts: pd.DataFrame, swapped: pd.DataFrame, pairs: pd.DataFrame) -> list[list[list[str]]]:
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


class Numbers(dict[str, int]):
    """Numbers of distinct texts, in the order in which they are asked for."""

    def __missing__(self, text: str) -> int:
        self[text] = len(self)
        return self[text]


def of_composition(layout: Layout, step: ListEntries) -> dict[str, Any]:
    """Return the data of one composition: its prompts, and of each generator columns with a row per judged image."""
    captions = read_table(layout.data / "captions.parquet", CAPTIONS)
    images = read_table(layout.data / "images.parquet", IMAGES)
    swapped = read_table(layout.place / "swapped.parquet", SWAPPED)
    prompts = read_table(layout.place / "prompts.parquet", PROMPTS)
    judged = judged_images(read_table(layout.place / "splits.parquet", SPLIT), images, step.train_on, step.halves)
    tables = {"prompts": prompts, "captions": captions, "judged": judged, "swapped": swapped}
    number = {key: row for row, key in enumerate(prompts[["split", *ENTRY]].itertuples(index=False, name=None))}
    classes, texts = class_names(captions), Numbers()
    of_judged = captions.loc[captions["image_id"].isin(judged["image_id"]), "text"]
    generators = {}
    judge = layout.judge(step.judge)
    with open_embedder(judge, step.batch, step.threads, step.device, step.cache) as embedder:
        embed_texts = embed_once(embedder, list(of_judged))
        for name in step.generators:
            manifest = read_table(layout.generated(name) / "manifest.parquet", MANIFEST)
            folder = layout.scores(name, step.judge)
            candidates = read_json(folder / "summary.json")["candidates"]
            columns: dict[str, list[Any]] = {key: [] for key in ("prompt", "path", "hit", "rank", "nearest")}
            served = list(dict.fromkeys(manifest["split"]))
            for entry_set in entry_sets(served, ["original"], manifest=manifest, **tables):
                scores = read_table(folder / f"{entry_set.name}.parquet", SCORES)
                if scores.empty:
                    continue
                rows = entry_set.entries[[*ENTRY, "path"]].merge(scores, on=ENTRY, validate="one_to_one")
                embedded = embedder.images(items_of(entry_set.entries["path"].tolist(), images, step.results))
                columns["prompt"] += [number[entry_set.split, *key] for key in rows[ENTRY].itertuples(index=False)]
                columns["path"] += list(rows["path"])
                columns["hit"] += rows["hit"].astype(int).tolist()
                rank = 1 + (candidates - 1) * (rows["p_beaten"] + rows["p_tied"] / 2)
                columns["rank"] += rank.round(1).tolist()
                columns["nearest"] += [texts[text] for text in nearest_wrong(entry_set, classes, embed_texts, embedded)]
            prefix = os.path.commonprefix(columns["path"])
            generators[name] = columns | {
                "prefix": prefix, "path": [path[len(prefix) :] for path in columns["path"]], "candidates": candidates
            }  # fmt: skip
    pairs = read_table(layout.read / "pairs.parquet", PAIRS)
    return {
        "prompts": {
            "image": prompts["image_id"].tolist(),
            "split": [SPLIT_NAMES[split] for split in prompts["split"]],
            "pair": [pair_words(pair) if isinstance(pair, str) else "" for pair in prompts["pair"]],
            "text": marked(prompts, swapped, pairs),
        },
        "generators": generators,
        "texts": list(texts),
    }


def main(step: ListEntries) -> None:
    with atomic_folder(step.data) as folder:
        for name in step.compositions:
            data = of_composition(step.layout.of(name), step)
            text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
            (folder / f"{name}.js").write_text(f"received({json.dumps(name)},{text});\n", encoding="utf-8")
            judged = sum(len(columns["prompt"]) for columns in data["generators"].values())
            log.info("%s: %s judged images, %.1f MB", name, f"{judged:,}", len(text.encode()) / 1e6)
    context = {
        "dataset": step.dataset,
        "compositions": step.compositions,
        "judge": step.judge,
        "splits": [SPLIT_NAMES[s] for s in TESTS],
    }
    write_page(step.page, "entries.html.j2", context, {})


if __name__ == "__main__":
    cli.run(main)
