"""Score a generator's images by a trained judge: does it retrieve the caption that an image was made from?

Writes one table of scores for each split that the generator serves (and for a second pool of distractors), beside
it its sampled predictions in the published format (``scores.predictions``), and summary.json. Each distinct image
and caption is encoded once; the cache serves all generators and later runs. Images that embed_images has embedded are
not looked at.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from workflow_scripts.clip import embed
from workflow_scripts.clip.embed import Embedder, items_of, mean_embedding, merge_equal, open_embedder, similarities
from workflow_scripts.clip.tokens import cut_texts, say_cut
from workflow_scripts.core import cli
from workflow_scripts.core.cli import log
from workflow_scripts.core.io import atomic_folder, read_json, write_json
from workflow_scripts.score import scores
from workflow_scripts.score.embed_images import Embed, open_shards
from workflow_scripts.score.entries import EntrySet, number, renumber
from workflow_scripts.score.scores import Inputs, SetScores, Settings, rounded
from workflow_scripts.stats.r_precision import BLOCK, Judged, judge


def score_set(
    entry_set: EntrySet, inputs: Inputs, embedder: Embedder, embed_files: Embed, settings: Settings, prompt_rule: str
) -> SetScores:
    """The scores of one set, with what the judge gets from text alone."""
    numbered = number(entry_set, inputs.classes)
    images = embed_files(entry_set.entries["path"].tolist())
    texts, index = merge_equal(embedder.texts(numbered.texts))
    numbered = renumber(numbered, index)

    def blind(rows: np.ndarray, _: Judged) -> dict[str, Any]:
        if not rows.any():
            return {"blind_control": None}
        alike = mean_embedding(images, rows)[None].repeat(BLOCK, axis=0)
        values = similarities(alike, texts)(np.arange(BLOCK))
        part = scores.subset(entry_set, numbered, rows)[1]
        found = judge(lambda _: values, len(texts), part.entries, part.pool, **settings.candidate_rule)
        return {"blind_control": rounded(found.expected.mean())}

    return scores.score_set(
        entry_set,
        numbered,
        similarities(images, texts),
        len(texts),
        swapped=inputs.swapped,
        prompt_rule=prompt_rule,
        settings=settings,
        more=blind,
    )


def main(options: argparse.Namespace) -> None:
    started = time.monotonic()
    inputs = scores.load_inputs(options)
    settings = scores.settings_of(options)
    found: dict[str, SetScores] = {}
    captions = sorted({text for part in inputs.sets for text in [*part.entries["text"], *part.pool["text"]]})
    with open_embedder(options) as embedder:

        def embed_files(paths: Sequence[str]) -> np.ndarray:
            return embedder.images(items_of(paths, inputs.images, options.results))

        if options.embedded:
            embed_files = open_shards(options.embedded, embedder.judge.hash)
        for entry_set in inputs.sets:
            found[entry_set.name] = score_set(entry_set, inputs, embedder, embed_files, settings, options.prompt_rule)
        truncated = len(cut_texts(embedder.judge.tokenizer, captions))
    say_cut(truncated, len(captions))
    about = options.judge / "manifest.json"
    summary = scores.head(options, inputs) | {
        "judge": embedder.judge.name,
        "judge_hash": embedder.judge.hash,
        "judge_epochs": read_json(about).get("epochs") if about.is_file() else None,
        "captions": len(captions),
        "truncated_captions": truncated,
    }
    with atomic_folder(options.output) as folder:
        summaries = scores.write_scores(found, folder)
        write_json(summary | {"scores": summaries}, folder / "summary.json")
    scores.warn(summaries, options.generator, settings)
    log.info("%s: scored in %.0f s", options.generator, time.monotonic() - started)


def arguments() -> argparse.ArgumentParser:
    parser = cli.parser(__doc__)
    scores.add_arguments(parser)
    embed.add_arguments(parser)
    parser.add_argument(
        "--embedded", type=Path, nargs="*", default=[], help="all shards of embed_images; none: images are encoded here"
    )
    return parser


if __name__ == "__main__":
    cli.run(main, arguments())
