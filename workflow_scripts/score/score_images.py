"""Score a generator's images by a trained judge: does it retrieve the caption that an image was made from?

Writes one table of scores for each split that the generator serves (and for the second pool of distractors), and
summary.json. Each distinct image and caption is encoded once; the cache serves all generators and later runs.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from workflow_scripts.common import cli
from workflow_scripts.common.cache import Cache
from workflow_scripts.common.cli import log
from workflow_scripts.common.code import code_hash
from workflow_scripts.common.io import atomic_folder, write_json
from workflow_scripts.score.embed import Embedder, items_of, mean_embedding, merge_equal, similarities
from workflow_scripts.score.entries import EntrySet, Numbered, number
from workflow_scripts.score.precision import BLOCK, Entries, judge
from workflow_scripts.score.scores import (
    Inputs,
    Settings,
    add_arguments,
    cut_of,
    head,
    load_inputs,
    rounded,
    score_table,
    set_summary,
    settings_of,
    subset,
    swapped_rows,
    warn,
    weights_of,
    write_scores,
)


def blind_control(images: np.ndarray, texts: np.ndarray, numbered: Numbered, settings: Settings) -> float | None:
    """The exact score where every image is the mean image: what the judge gets from text alone."""
    if not len(images):
        return None
    row = similarities(mean_embedding(images)[None].repeat(BLOCK, axis=0), texts)(np.arange(BLOCK))[0]
    same = np.broadcast_to(row, (BLOCK, len(row)))
    found = _judge(lambda _: same, len(texts), numbered, settings)
    return rounded(found.expected.mean())


def _judge(similarities_of: Any, texts: int, numbered: Numbered, settings: Settings) -> Any:
    return judge(
        similarities_of,
        texts,
        numbered.entries,
        numbered.pool,
        candidates=settings.candidates,
        ties=settings.ties,
        seed=settings.seed,
    )


def score_set(
    entry_set: EntrySet, inputs: Inputs, embedder: Embedder, results: Path, settings: Settings, prompt_rule: str
) -> tuple[pd.DataFrame, list[dict[str, Any]]]:
    """The table of one set, and the summaries of its scores: of all prompts, and of the swapped captions alone."""
    numbered = number(entry_set, inputs.classes)
    paths = entry_set.entries["path"].tolist()
    cut = cut_of(entry_set, settings)
    if paths:
        images = embedder.images(items_of(paths, inputs.images, results))
        texts, index = merge_equal(embedder.texts(numbered.texts))
    else:
        images, texts, index = np.zeros((0, 1), np.float32), np.zeros((0, 1), np.float32), np.zeros(0, int)
    entries = numbered.entries
    numbered = replace(
        numbered,
        entries=Entries(index[entries.own], entries.classes, entries.keys),
        pool=replace(numbered.pool, texts=index[numbered.pool.texts]) if len(index) else numbered.pool,
    )
    found = _judge(similarities(images, texts), len(texts), numbered, settings)
    table = score_table(entry_set, found, weights_of(entry_set, cut))
    prompts = "swapped" if entry_set.split == "test_swapped" else prompt_rule
    summaries = [set_summary(entry_set, numbered, table, cut, settings, prompts=prompts)]
    summaries[0]["blind_control"] = blind_control(images, texts, numbered, settings)
    if entry_set.split == "test_seen":
        rows = swapped_rows(entry_set, inputs.swapped)
        part, part_numbered = subset(entry_set, numbered, rows)
        summaries.append(set_summary(part, part_numbered, table[rows], None, settings, prompts="swapped"))
        summaries[1]["blind_control"] = blind_control(images[rows], texts, part_numbered, settings)
    return table, summaries


def main(options: argparse.Namespace) -> None:
    # Here, not above: building a model is slow to import, and the functions above judge by any encoder.
    from workflow_scripts.judge.model import load_judge
    from workflow_scripts.judge.tokens import tokenize

    started = time.monotonic()
    inputs = load_inputs(options)
    settings = settings_of(options)
    trained = load_judge(options.judge, options.threads, options.device)
    made = f"{options.batch} {options.threads} {trained.device} {torch.__version__} {code_hash(load_judge.__module__)}"
    tables: dict[str, pd.DataFrame] = {}
    summaries: list[dict[str, Any]] = []
    captions = sorted({text for found in inputs.sets for text in [*found.entries["text"], *found.pool["text"]]})
    with Cache(options.cache / "embeddings" / f"{trained.hash}.sqlite") as cache:
        embedder = Embedder(trained, cache, options.batch, made)
        for entry_set in inputs.sets:
            table, found = score_set(entry_set, inputs, embedder, options.results, settings, options.prompt_rule)
            tables[entry_set.name] = table
            summaries += found
    summary = head(options, inputs) | {
        "judge": trained.name,
        "judge_hash": trained.hash,
        "captions": len(captions),
        "truncated_captions": tokenize(trained.tokenizer, captions)[1] if captions else 0,
        "scores": summaries,
    }
    with atomic_folder(options.out) as folder:
        write_scores(tables, folder)
        write_json(summary, folder / "summary.json")
    warn(summaries, options.generator, settings)
    log.info("%s: scored in %.0f s", options.generator, time.monotonic() - started)


def arguments() -> argparse.ArgumentParser:
    parser = cli.parser(__doc__)
    add_arguments(parser)
    parser.add_argument("--judge", type=Path, required=True, help="folder of the judge")
    parser.add_argument("--cache", type=Path, default=Path(".cache"), help="folder that keeps embeddings between runs")
    parser.add_argument("--batch", type=int, default=256, help="items encoded at once; another number, other last bits")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--device", default="auto", choices=("auto", "cpu", "cuda"))
    return parser


if __name__ == "__main__":
    cli.run(main, arguments())
