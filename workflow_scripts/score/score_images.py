"""Score the images of all generators by each judge, and measure the health of each judge.

One process runs all judges of a composition, because each start costs as much as scoring a small
run. A killed job finds its embeddings in the cache.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from compclip.clip.embed import Embedder, items_of, open_embedders
from compclip.core.digests import file_digests
from compclip.core.heldout import read_heldout
from compclip.core.log import log
from compclip.core.tables import MANIFEST
from compclip.io import read_json, read_table, write_json
from compclip.score.adjust import choose_adjustment
from compclip.score.entries import EntrySet
from compclip.score.health import Health
from compclip.score.measure_health import HealthEntries, health_entries, measure_health
from compclip.score.score_images import embed_once, find_truncated, score_images
from workflow_scripts.inputs import read_tables
from workflow_scripts.job import Job, run_script
from workflow_scripts.score.scores import Inputs, JudgedSets, read_inputs, score_generators


def score_by(
    job: Job,
    inputs: Inputs,
    digests: Mapping[str, str],
    of_health: HealthEntries,
    embedder: Embedder,
    epochs: int | None,
    scores: Sequence[Path],
) -> dict[str, Any]:
    """Score all generators by one judge, each into its folder of ``scores``; return the judge's
    health.
    """
    params, captions = job.params, inputs.captions
    texts = embed_once(embedder, captions + inputs.variants["text"].tolist())
    truncated = find_truncated(embedder.judge, captions)

    def images(paths: Sequence[str]) -> np.ndarray:
        return embedder.images(items_of(paths, inputs.images, Path(params.results)), digests)

    adjustment = choose_adjustment(
        inputs.tables["prompts"], inputs.images, inputs.variants, texts, images, params.seed
    )
    multiple = adjustment and adjustment.multiple
    log.info(
        "adjusted adjective accuracy: similarity minus %s times that with reference images",
        multiple,
    )
    judge = {"judge": embedder.judge.name, "judge_hash": embedder.judge.hash}

    def score(name: str, sets: list[EntrySet]) -> JudgedSets:
        scored = score_images(sets, inputs.rules, inputs.variants, texts, images, adjustment)
        used = {
            text
            for part in sets
            for table in (part.entries, part.pool)
            for text in table["text"].tolist()
        }
        about: dict[str, Any] = {"captions": len(used), "truncated_captions": len(truncated & used)}
        return scored, judge | {"judge_epochs": epochs, "adjustment": multiple} | about

    score_generators(job, inputs, scores, score)
    place = {"dataset": params.dataset, "composition": job.wildcards.composition}
    return place | judge | measure_health(texts, images, adjustment, inputs.variants, of_health)


def main(job: Job) -> None:
    params, inputs = job.params, read_inputs(job)
    manifests = dict(zip(params.serves, job.input.manifests, strict=True))
    of_health = health_entries(
        inputs.tables["captions"],
        inputs.images,
        **read_tables(job, "pairs", "ranking"),
        heldout=read_heldout(job.input.heldout),
        prompts=inputs.tables["prompts"],
        manifest=read_table(manifests[params.as_asked], MANIFEST) if params.as_asked else None,
    )
    digests = file_digests(
        filter(None, [job.input.files, *job.input.made])
    )  # without files if they are the user's
    healths: dict[str, dict[str, Any]] = {}
    scores = np.array(job.output.scores, object).reshape(len(params.judges), -1).tolist()
    opened = open_embedders(
        job.input.judges, params.batch, params.threads, params.device, params.cache
    )
    with opened as embedders:
        of_judges = zip(
            params.judges, job.input.judges, embedders, scores, job.output.health, strict=True
        )
        for name, folder, embedder, to, file in of_judges:
            log.info("judge %s", name)
            manifest = folder / "manifest.json"
            epochs = read_json(manifest).get("epochs") if manifest.is_file() else None
            healths[name] = score_by(job, inputs, digests, of_health, embedder, epochs, to)
            write_json(healths[name], file)
    health = Health(healths, params.loss)
    for line in filter(None, (health.line, health.unrecognized_line)):
        log.info("%s: %s", job.where, line)


if __name__ == "__main__":
    run_script(main)
