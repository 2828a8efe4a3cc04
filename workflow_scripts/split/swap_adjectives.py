"""Swap adjectives in the captions of test_seen so that each changed pair is held out, or take
published swaps.
"""

from collections import Counter
from dataclasses import replace
from typing import Any

import pandas as pd

from compclip.core.artifacts.files import read_json, write_json
from compclip.core.artifacts.heldout import read_heldout
from compclip.core.artifacts.parquet import read_table, write_table
from compclip.core.reading.published_files import read_data
from compclip.core.tables import OFFERS, SWAPPED
from compclip.split.composition import Lexicons, Seeding
from compclip.split.published_split import take_swaps
from compclip.split.swap_adjectives import Offers, choose_swaps, count_swaps, log_swaps
from compclip.text.lexicon import find_lexicon
from workflow_scripts.inputs import read_lexicons, read_tables
from workflow_scripts.job import Job, run_script
from workflow_scripts.split.offer_swaps import describe_offers, find_offers


def join_offers(job: Job) -> Offers:
    """Return the offers of all shards."""
    tables = [read_table(path, OFFERS) for path in job.input.shard_tables]
    captions = 0
    unchanged = Counter[str]()
    # Each image is in one shard, so counts add up.
    for path in job.input.shard_counts:
        counts = read_json(path)
        captions += counts["captions"]
        unchanged += Counter(counts["excluded"])
    return Offers(pd.concat(tables, ignore_index=True), captions, unchanged)


def write_summary(job: Job, entries: Counter[str], captions: int, more: dict[str, Any]) -> None:
    summary = count_swaps(entries, captions, read_heldout(job.input.heldout), more)
    log_swaps(summary, job.location)
    write_json(summary, job.output.summary)


def write_chosen(job: Job, lexicons: Lexicons) -> None:
    """Choose a swap of each caption that has one, and write them."""
    params = job.params
    # The choice depends on how often each pair is offered in all captions.
    offers = join_offers(job) if job.input.shard_tables else find_offers(job, lexicons)
    seeding = Seeding(params.seed, params.dataset, job.wildcards.composition)
    swapped, entries, exclusive = choose_swaps(
        offers.table, lexicons.adjectives, params.swaps, seeding
    )
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
    else:
        write_chosen(job, lexicons)


if __name__ == "__main__":
    run_script(main)
