"""Score the images of all generators by a trained judge; each distinct image and caption is encoded once."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from compclip.clip.embed import items_of, open_embedder
from compclip.clip.tokens import cut_texts, say_cut
from compclip.core.log import log
from compclip.io import read_json
from compclip.score.adjust import choose_adjustment
from compclip.score.entries import EntrySet
from compclip.score.score_images import embed_once, score_images
from workflow_scripts.job import Job, run
from workflow_scripts.score.scores import Scored, read_inputs, score_generators


def main(job: Job) -> None:
    params, inputs = job.params, read_inputs(job)
    captions, manifest = inputs.captions, job.input.judge / "manifest.json"
    epochs = read_json(manifest).get("epochs") if manifest.is_file() else None
    with open_embedder(job.input.judge, params.batch, params.threads, params.device, params.cache) as embedder:
        judge = {"judge": embedder.judge.name, "judge_hash": embedder.judge.hash, "judge_epochs": epochs}
        texts = embed_once(embedder, captions + inputs.variants["text"].tolist())
        truncated = cut_texts(embedder.judge.tokenizer, captions)
        say_cut(len(truncated), len(captions))

        def images(paths: Sequence[str]) -> np.ndarray:
            return embedder.images(items_of(paths, inputs.images, Path(params.results)))

        adjustment = choose_adjustment(
            inputs.tables["prompts"], inputs.images, inputs.variants, texts, images, params.seed
        )
        multiple = adjustment and adjustment.multiple
        log.info("adjusted adjective accuracy: similarity minus %s times that with reference images", multiple)
        judge["adjustment"] = multiple

        def score(name: str, sets: list[EntrySet]) -> Scored:
            scored = score_images(sets, inputs.rules, inputs.variants, texts, images, adjustment)
            used = {text for part in sets for table in (part.entries, part.pool) for text in table["text"].tolist()}
            about: dict[str, Any] = {"captions": len(used), "truncated_captions": len(truncated & used)}
            return scored, judge | about

        score_generators(job, inputs, score)


if __name__ == "__main__":
    run(main)
