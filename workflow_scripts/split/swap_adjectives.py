"""Swap adjectives in the captions of test_seen so that each changed pair is held out, or take
published swaps.

A shard finds the captions that can be swapped; the changes are chosen for all together.
"""

from collections import Counter
from dataclasses import replace
from typing import Any

import pandas as pd

from compclip.core.artifacts.files import read_json, write_json
from compclip.core.artifacts.heldout import read_heldout
from compclip.core.artifacts.parquet import read_table, write_table
from compclip.core.reading.published_files import read_data
from compclip.core.tables import OFFERS, SPLIT, SWAPPED
from compclip.split.composition import Lexicons, Stream
from compclip.split.published_split import take_swaps
from compclip.split.swap_adjectives import (
    Offers,
    choose_swaps,
    count_swaps,
    log_swaps,
    offer_swaps,
)
from compclip.text.lexicon import find_lexicon
from workflow_scripts.inputs import read_blocks, read_lexicons, read_tables
from workflow_scripts.job import Job, run_script


def describe_offers(offers: Offers, seed: int) -> dict[str, Any]:
    """Return what the summary tells of offers besides the number of captions."""
    return {"excluded": dict(sorted(offers.reasons.items())), "seed": seed}


def find_offers(job: Job, lexicons: Lexicons) -> Offers:
    return offer_swaps(
        **read_blocks(job, "captions", "pairs"),
        lexicons=lexicons,
        splits=read_table(job.input.splits, SPLIT),
        heldout=read_heldout(job.input.heldout),
        known_nouns=read_json(job.input.forms)["nouns"],
    )


def join_shards(job: Job) -> Offers:
    tables = [read_table(path, OFFERS) for path in job.input.shard_tables]
    captions = 0
    unchanged = Counter[str]()
    # Each image is in one shard, so counts add up.
    for path in job.input.shard_counts:
        counts = read_json(path)
        captions += counts["captions"]
        unchanged += Counter(counts["excluded"])
    return Offers(pd.concat(tables, ignore_index=True), captions, unchanged)


def write_offers(job: Job, lexicons: Lexicons) -> None:
    """Write the offers of a shard (rule offer_swaps)."""
    offers = find_offers(job, lexicons)
    write_table(offers.table, job.output.offers, OFFERS)
    summary = {"captions": offers.captions, **describe_offers(offers, job.params.seed)}
    write_json(summary, job.output.summary)


def write_summary(job: Job, entries: Counter[str], captions: int, more: dict[str, Any]) -> None:
    summary = count_swaps(entries, captions, read_heldout(job.input.heldout), more)
    log_swaps(summary, job.where)
    write_json(summary, job.output.summary)


def write_chosen(job: Job, lexicons: Lexicons) -> None:
    """Choose a swap of each caption that has one, and write them."""
    params = job.params
    # The choice depends on how often each pair is offered in all captions.
    offers = join_shards(job) if job.input.shard_tables else find_offers(job, lexicons)
    stream = Stream(params.seed, params.dataset, job.wildcards.composition)
    swapped, entries, exclusive = choose_swaps(offers.table, lexicons.adjectives, stream)
    write_table(swapped, job.output.swapped, SWAPPED)
    more = {**describe_offers(offers, params.seed), "exclusive": exclusive}
    write_summary(job, entries, offers.captions, more)


def write_published(job: Job, lexicons: Lexicons) -> None:
    """Write the swaps of a published data.pkl."""
    captions, splits, pairs = read_tables(job, "captions", "splits", "pairs").values()
    # The images without captions do not matter here.
    published = read_data(job.params.published)[0]
    # Without a noun lexicon, any noun counts.
    _, nouns = lexicons.forms()
    adjectives = find_lexicon(lexicons.adjectives, "adjectives")
    swapped, faults = take_swaps(published, captions, splits, pairs, adjectives, nouns)
    write_table(swapped, job.output.swapped, SWAPPED)
    seen = splits.loc[splits["split"] == "test_seen", "image_id"]
    seen_captions = int(captions["image_id"].isin(seen).sum())
    more = {
        "exclusive": int(swapped["exclusive"].sum()),
        "source": "published",
        "violations": faults,
    }
    write_summary(job, Counter(swapped["pair"].tolist()), seen_captions, more)


def main(job: Job) -> None:
    read = read_lexicons(job, "adjectives", "nouns", "compounds")
    if job.params.one_value:
        # Without groups, any two adjectives exclude each other.
        read["adjectives"] = replace(read["adjectives"], groups=())
    lexicons = Lexicons(**read)
    if job.params.published:
        write_published(job, lexicons)
    elif job.is_shard:
        write_offers(job, lexicons)
    else:
        write_chosen(job, lexicons)


if __name__ == "__main__":
    run_script(main)
