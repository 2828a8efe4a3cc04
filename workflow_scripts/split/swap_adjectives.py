"""Swap adjectives in the captions of test_seen so that each changed pair is held out, or take
published swaps.

A shard finds the captions that can be swapped; the changes are chosen for all together.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from compclip.core.heldout import read_heldout
from compclip.core.published import read_data
from compclip.core.tables import OFFERS, SPLIT, SWAPPED
from compclip.io import read_json, read_table, write_json, write_table
from compclip.split.published import take_swaps
from compclip.split.swap_adjectives import choose_swaps, count_swaps, offer_swaps
from workflow_scripts.inputs import read_blocks, read_lexicons, read_tables
from workflow_scripts.job import Job, run_script


def find(job: Job, lexicons: Mapping[str, Any]) -> tuple[pd.DataFrame, int, Counter[str]]:
    """Return the captions that can be swapped, the number of those of test_seen, and why mentions
    are left alone.
    """
    if job.input.shards:
        offers, counts = job.input.shards[::2], [read_json(path) for path in job.input.shards[1::2]]
        reasons = sum((Counter(of["left_alone"]) for of in counts), Counter[str]())
        whole = pd.concat([read_table(path, OFFERS) for path in offers], ignore_index=True)
        return whole, sum(of["captions"] for of in counts), reasons
    return offer_swaps(
        **read_blocks(job, "captions", "pairs"),
        **lexicons,
        splits=read_table(job.input.splits, SPLIT),
        heldout=read_heldout(job.input.heldout),
        known_nouns=read_json(job.input.forms)["nouns"],
    )


def main(job: Job) -> None:
    heldout, params = read_heldout(job.input.heldout), job.params
    lexicons = read_lexicons(job, "adjectives", "nouns", "compounds")
    if params.one_value:
        lexicons["adjectives"] = replace(lexicons["adjectives"], groups=())
    swapped: pd.DataFrame | Iterable[pd.DataFrame]
    more: dict[str, Any]
    if params.published:
        captions, splits, pairs = read_tables(job, "captions", "splits", "pairs").values()
        adjectives, nouns = lexicons["adjectives"], lexicons["nouns"]
        published = read_data(params.published)[0]
        swapped, faults = take_swaps(
            published, captions, splits, pairs, adjectives, nouns and nouns.forms
        )
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
        composition = job.wildcards.composition
        swapped, entries, exclusive = choose_swaps(
            offers, lexicons["adjectives"], params.seed, params.dataset, composition
        )
        more["exclusive"] = exclusive
    write_table(swapped, job.output.swapped, SWAPPED)
    write_json(count_swaps(entries, number, heldout, job.where, **more), job.output.summary)


if __name__ == "__main__":
    run_script(main)
