"""Sample tasks for people from a scored run, and write them as Label Studio projects."""

from collections import Counter
from functools import cache
from pathlib import Path

import pandas as pd

from compclip.core.digests import sha256
from compclip.core.errors import require
from compclip.core.heldout import read_heldout
from compclip.core.tables import CAPTIONS, IMAGES, MANIFEST, PAIRS, PROMPTS, RANKING, SCORES, SWAPPED
from compclip.human.config import Sampling
from compclip.human.entries import entries_of, other_captions
from compclip.human.sample_tasks import sample_tasks
from compclip.human.study import check_counts
from compclip.io import read_table, write_json
from workflow_scripts.human.study import write_study
from workflow_scripts.job import Job, run


def read_entries(job: Job, splits: list[str]) -> tuple[pd.DataFrame, Counter[str]]:
    """Return what ``entries_of`` does."""
    read, prompts = job.input, read_table(job.input.prompts, PROMPTS)
    captions, pairs = read_table(read.captions, CAPTIONS), read_table(read.pairs, PAIRS)
    adjectives = sorted(read_table(read.ranking, RANKING)["adjective"].unique())
    heldout, swapped = set(read_heldout(read.heldout)), read_table(read.swapped, SWAPPED)
    others = other_captions(captions, pairs, swapped, prompts, heldout, adjectives, job.params.seed)
    names = job.params.generators
    manifests = {name: read_table(path, MANIFEST) for name, path in zip(names, read.manifests, strict=True)}
    files = {(name, split): place / f"{split}.parquet" for name, place in zip(names, read.scores, strict=True)
             for split in splits}  # fmt: skip
    scores = {key: read_table(path, SCORES) for key, path in files.items() if path.is_file()}
    return entries_of(prompts, manifests, scores, others, splits)


def main(job: Job) -> None:
    params, sampling = job.params, Sampling.model_validate(job.params.sampling)
    entries, skipped = read_entries(job, sampling.splits)
    require(len(entries), job.where, f"no scored image of {', '.join(params.generators)}", "compute the scores first")
    real = read_table(job.input.images, IMAGES).dropna(subset="path").set_index("image_id")["path"].to_dict()
    results = Path(params.results)
    content = cache(lambda path: sha256(results / path))
    pages, cells, unused = sample_tasks(entries, real, content, sampling, params.seed)
    write_study(job, pages, (params.seed, params.dataset, job.wildcards.composition), results)
    summary = {
        "dataset": params.dataset, "composition": job.wildcards.composition, "seed": params.seed,
        "generators": params.generators, "kinds": {kind: check_counts(of_kind) for kind, of_kind in pages.items()},
        "cells": cells, "skipped": {reason: n for reason, n in sorted((skipped + unused).items()) if n},
    }  # fmt: skip
    write_json(summary, job.output.summary)


if __name__ == "__main__":
    run(main)
