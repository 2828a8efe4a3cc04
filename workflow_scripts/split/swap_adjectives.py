"""Swap adjectives in the captions of test_seen so that each changed pair is held out, or take
published swaps.

A shard finds the captions that can be swapped; the changes are chosen for all together.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pandas as pd

from compclip.core.heldout import read_heldout
from compclip.core.published import read_data
from compclip.core.tables import OFFERS, SPLIT, SWAPPED
from compclip.io import read_json, read_table, write_json, write_table
from compclip.split.composition import Lexicons, Stream
from compclip.split.published import take_swaps
from compclip.split.swap_adjectives import (
    Offers,
    choose_swaps,
    count_swaps,
    log_swaps,
    offer_swaps,
)
from workflow_scripts.inputs import read_blocks, read_lexicons, read_tables
from workflow_scripts.job import Job, run_script


def find(job: Job, lexicons: Lexicons) -> Offers:
    """Return the captions that can be swapped, from the shards if there are any."""
    if job.input.shards:
        offers, counts = job.input.shards[::2], [read_json(path) for path in job.input.shards[1::2]]
        reasons = sum((Counter(of["left_alone"]) for of in counts), Counter[str]())
        whole = pd.concat([read_table(path, OFFERS) for path in offers], ignore_index=True)
        return Offers(whole, sum(of["captions"] for of in counts), reasons)
    return offer_swaps(
        **read_blocks(job, "captions", "pairs"),
        lexicons=lexicons,
        splits=read_table(job.input.splits, SPLIT),
        heldout=read_heldout(job.input.heldout),
        known_nouns=read_json(job.input.forms)["nouns"],
    )


def main(job: Job) -> None:
    heldout, params = read_heldout(job.input.heldout), job.params
    read = read_lexicons(job, "adjectives", "nouns", "compounds")
    if params.one_value:
        read["adjectives"] = replace(read["adjectives"], groups=())
    lexicons = Lexicons(**read)
    swapped: pd.DataFrame | Iterable[pd.DataFrame]
    more: dict[str, Any]
    if params.published:
        captions, splits, pairs = read_tables(job, "captions", "splits", "pairs").values()
        published = read_data(params.published)[0]
        nouns = lexicons.forms()[1]
        swapped, faults = take_swaps(published, captions, splits, pairs, read["adjectives"], nouns)
        seen = splits.loc[splits["split"] == "test_seen", "image_id"]
        number, entries = (
            int(captions["image_id"].isin(seen).sum()),
            Counter(swapped["pair"].tolist()),
        )
        more = {
            "exclusive": int(swapped["exclusive"].sum()),
            "source": "published",
            "violations": faults,
        }
    else:
        offers, number, reasons = find(job, lexicons)
        more = {"left_alone": dict(sorted(reasons.items())), "seed": params.seed}
        if hasattr(job.wildcards, "shard"):
            write_table(offers, job.output.offers, OFFERS)
            write_json({"captions": number, **more}, job.output.summary)
            return
        stream = Stream(params.seed, params.dataset, job.wildcards.composition)
        swapped, entries, exclusive = choose_swaps(offers, lexicons.adjectives, stream)
        more["exclusive"] = exclusive
    write_table(swapped, job.output.swapped, SWAPPED)
    summary = count_swaps(entries, number, heldout, more)
    log_swaps(summary, job.where)
    write_json(summary, job.output.summary)


if __name__ == "__main__":
    run_script(main)
