"""Find the adjective-noun pairs of all captions, or join those of its shards."""

import pandas as pd

from compclip.core import limits
from compclip.core.errors import require
from compclip.core.tables import CAPTIONS, PAIRS
from compclip.io import read_table, write_json, write_table
from compclip.pairs.extract_pairs import extract_pairs, summarize_pairs
from compclip.text.lexicon import load_lexicon
from workflow_scripts.job import Job, run_script


def checked_captions(job: Job) -> pd.DataFrame:
    """Return image_id, caption_id and text of all captions; raises UserError if one is too long."""
    captions = read_table(job.input.captions, CAPTIONS, ["image_id", "caption_id", "text"])
    for row in captions[captions["text"].str.len() > limits.CAPTION].head(1).itertuples():
        fault = limits.over("CAPTION", f"{len(row.text):,} characters")
        require(False, f"{job.input.captions}: {row.image_id}, caption {row.caption_id}", fault, "shorten or remove it")
    return captions


def parse_captions(job: Job, captions: pd.DataFrame) -> pd.DataFrame:
    """Return the pairs of some captions."""
    return extract_pairs(
        captions,
        [load_lexicon(path) for path in job.input.adjectives],
        load_lexicon(job.input.nouns) if job.input.nouns else None,
        load_lexicon(job.input.compounds),
        model=job.params.model,
        processes=job.threads,
        cache=job.params.cache / "pairs" / "occurrences.sqlite",
    )


def main(job: Job) -> None:
    captions = checked_captions(job)
    shards = [read_table(path, PAIRS) for path in job.input.extracted]
    pairs = pd.concat(shards, ignore_index=True) if shards else parse_captions(job, captions)
    write_table(pairs, job.output.pairs, PAIRS)
    write_json(summarize_pairs(captions, pairs, job.params.model), job.output.summary)


if __name__ == "__main__":
    run_script(main)
