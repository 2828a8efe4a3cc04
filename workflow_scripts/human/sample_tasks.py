"""Sample tasks for people from a scored run, and write them as Label Studio projects."""

from collections import Counter
from functools import cache
from pathlib import Path

import pandas as pd

from compclip.core.artifacts.files import write_json
from compclip.core.artifacts.heldout import read_heldout
from compclip.core.artifacts.parquet import read_table
from compclip.core.errors import require
from compclip.core.identity.digests import sha256
from compclip.core.tables import CAPTIONS, IMAGES, MANIFEST, PAIRS, PROMPTS, RANKING, SWAPPED
from compclip.human.config import Sampling
from compclip.human.sample_tasks import sample_tasks
from compclip.human.study import check_counts
from compclip.human.task_entries import entries_of, make_trials, other_captions
from workflow_scripts.human.study import read_scores, write_study
from workflow_scripts.job import Job, run_script


def read_entries(job: Job, sampling: Sampling) -> tuple[pd.DataFrame, Counter[str]]:
    """Return the scored images of the splits to ask about, and why others are skipped."""
    read = job.input
    params = job.params
    prompts = read_table(read.prompts, PROMPTS)
    # The swaps give wrong captions for the other splits; for test_unseen, trials make them.
    unseen = prompts.loc[prompts["split"] == "test_unseen", "image_id"]
    captions = read_table(read.captions, CAPTIONS)
    captions = captions[captions["image_id"].isin(unseen)]
    pairs = read_table(read.pairs, PAIRS)
    pairs = pairs[pairs["image_id"].isin(unseen)]
    ranking = read_table(read.ranking, RANKING)
    adjectives = sorted(ranking["adjective"].unique())
    heldout = set(read_heldout(read.heldout))
    trials = make_trials(captions, pairs, heldout, adjectives, params.seed)
    swapped = read_table(read.swapped, SWAPPED)
    other_texts = other_captions(swapped, prompts, trials)
    tables = []
    for name, path in zip(params.generators, read.manifests, strict=True):
        tables.append(read_table(path, MANIFEST).assign(generator=name))
    manifests = pd.concat(tables)
    # Entries of other splits would count as skipped.
    manifests = manifests[manifests["split"].isin(sampling.splits)]
    entries, skipped = entries_of(prompts, manifests, read_scores(read.scores), other_texts)
    fault = f"no scored image of {', '.join(params.generators)}"
    require(len(entries), job.location, fault, "compute the scores first")
    return entries, skipped


def main(job: Job) -> None:
    params = job.params
    composition = job.wildcards.composition
    results = Path(params.results)
    sampling = Sampling.model_validate(params.sampling)
    entries, skipped = read_entries(job, sampling)
    # Captions may come without an image.
    images = read_table(job.input.images, IMAGES).dropna(subset="path")
    real_paths = images.set_index("image_id")["path"].to_dict()
    # Several entries may show one file, which is then hashed once.
    content = cache(lambda path: sha256(results / path))
    pages, cells, unused = sample_tasks(entries, real_paths, content, sampling, params.seed)
    write_study(job, pages, (params.seed, params.dataset, composition), results)
    summary = {
        "dataset": params.dataset,
        "composition": composition,
        "seed": params.seed,
        "generators": params.generators,
        "kinds": {kind: check_counts(kind_pages) for kind, kind_pages in pages.items()},
        "cells": cells,
        "excluded": dict(sorted((skipped + unused).items())),
    }
    write_json(summary, job.output.summary)


if __name__ == "__main__":
    run_script(main)
