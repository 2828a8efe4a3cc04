"""Measure whether a judge reads held-out pairs as well as seen ones."""

from pathlib import Path

from compclip.clip.embed import items_of, open_embedder
from compclip.core.heldout import read_heldout
from compclip.core.log import log
from compclip.io import write_json
from compclip.score.health import Health
from compclip.score.measure_health import measure_health
from workflow_scripts.job import Job, run
from workflow_scripts.tables import read_tables


def main(job: Job) -> None:
    params, drawn = job.params, ["manifest"] if job.input.manifest else []
    read = read_tables(job, "captions", "images", "pairs", "ranking", "prompts", "variants", *drawn)
    with open_embedder(job.input.judge, params.batch, params.threads, params.device, params.cache) as embedder:
        result = measure_health(
            embedder.texts,
            lambda paths: embedder.images(items_of(paths, read["images"], Path(params.results))),
            heldout=read_heldout(job.input.heldout),
            seed=params.seed,
            **read,
        )
    judge = {"judge": embedder.judge.name, "judge_hash": embedder.judge.hash}
    about = {"dataset": params.dataset, "composition": job.wildcards.composition}
    write_json({**about, **judge, **result}, job.output.health)
    health = Health({job.wildcards.judge: result}, params.loss)
    for line in filter(None, (health.line, health.unreadable_line)):
        log.info("%s: %s", job.where, line)


if __name__ == "__main__":
    run(main)
