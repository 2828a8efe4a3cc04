"""Find the captions of a shard that can be swapped, and their possible changes.

``swap_adjectives`` chooses among them, because the choice depends on the offers of all shards.
"""

from typing import Any

from compclip.core.artifacts.files import read_json, write_json
from compclip.core.artifacts.heldout import read_heldout
from compclip.core.artifacts.parquet import read_table, write_table
from compclip.core.tables import OFFERS, SPLIT
from compclip.split.composition import Lexicons
from compclip.split.swap_adjectives import Offers, offer_swaps
from workflow_scripts.inputs import read_blocks, read_lexicons
from workflow_scripts.job import Job, run_script


def find_offers(job: Job, lexicons: Lexicons) -> Offers:
    """Return the offers of the job's images."""
    return offer_swaps(
        **read_blocks(job, "captions", "pairs"),
        lexicons=lexicons,
        splits=read_table(job.input.splits, SPLIT),
        heldout=read_heldout(job.input.heldout),
        rule=job.params.swaps,
        known_nouns=read_json(job.input.forms)["nouns"],
    )


def describe_offers(offers: Offers, seed: int) -> dict[str, Any]:
    """Return what the summary tells of offers besides the number of captions."""
    return {"excluded": dict(sorted(offers.reasons.items())), "seed": seed}


def main(job: Job) -> None:
    lexicons = Lexicons(**read_lexicons(job, "adjectives", "nouns", "compounds"))
    offers = find_offers(job, lexicons)
    write_table(offers.table, job.output.offers, OFFERS)
    summary = {"captions": offers.captions, **describe_offers(offers, job.params.seed)}
    write_json(summary, job.output.summary)


if __name__ == "__main__":
    run_script(main)
