"""Sample tasks for people from a scored run, and write them as Label Studio projects."""

from functools import cache
from pathlib import Path

import pandas as pd

from compclip.core.digests import sha256
from compclip.core.errors import require
from compclip.core.heldout import read_heldout
from compclip.core.tables import CAPTIONS, IMAGES, MANIFEST, PAIRS, PROMPTS, RANKING, SWAPPED
from compclip.human.config import Sampling
from compclip.human.entries import entries_of, make_trials, other_captions
from compclip.human.sample_tasks import sample_tasks
from compclip.human.study import check_counts
from compclip.io import read_table, write_json
from workflow_scripts.human.study import read_scores, write_study
from workflow_scripts.job import Job, run_script


def main(job: Job) -> None:
    read, params, sampling = job.input, job.params, Sampling.model_validate(job.params.sampling)
    prompts, names, results = (
        read_table(read.prompts, PROMPTS),
        params.generators,
        Path(params.results),
    )
    unseen = prompts.loc[prompts["split"] == "test_unseen", "image_id"]
    captions, pairs = read_table(read.captions, CAPTIONS), read_table(read.pairs, PAIRS)
    captions, pairs = (table[table["image_id"].isin(unseen)] for table in (captions, pairs))
    adjectives = sorted(read_table(read.ranking, RANKING)["adjective"].unique())
    trials = make_trials(captions, pairs, set(read_heldout(read.heldout)), adjectives, params.seed)
    others = other_captions(read_table(read.swapped, SWAPPED), prompts, trials)
    tables = zip(names, (read_table(path, MANIFEST) for path in read.manifests), strict=True)
    manifests = pd.concat([table.assign(generator=name) for name, table in tables])
    manifests = manifests[manifests["split"].isin(sampling.splits)]
    entries, skipped = entries_of(prompts, manifests, read_scores(read.scores), others)
    require(
        len(entries),
        job.where,
        f"no scored image of {', '.join(names)}",
        "compute the scores first",
    )
    real = (
        read_table(read.images, IMAGES)
        .dropna(subset="path")
        .set_index("image_id")["path"]
        .to_dict()
    )
    content = cache(lambda path: sha256(results / path))
    pages, cells, unused = sample_tasks(entries, real, content, sampling, params.seed)
    write_study(job, pages, (params.seed, params.dataset, job.wildcards.composition), results)
    summary = {
        "dataset": params.dataset,
        "composition": job.wildcards.composition,
        "seed": params.seed,
        "generators": names,
        "kinds": {kind: check_counts(of_kind) for kind, of_kind in pages.items()},
        "cells": cells,
        "skipped": dict(sorted((skipped + unused).items())),
    }
    write_json(summary, job.output.summary)


if __name__ == "__main__":
    run_script(main)
