"""Find the adjective-noun pairs of all captions."""

from compclip.core import limits
from compclip.core.errors import require
from compclip.core.tables import CAPTIONS, PAIRS
from compclip.io import read_table, write_json, write_table
from compclip.pairs.extract_pairs import extract_pairs, summarize_pairs
from compclip.text.lexicon import load_lexicon
from workflow_scripts.job import Job, run


def main(job: Job) -> None:
    captions = read_table(job.input.captions, CAPTIONS, ["image_id", "caption_id", "text"])
    for row in captions[captions["text"].str.len() > limits.CAPTION].head(1).itertuples():
        fault = limits.over("CAPTION", f"{len(row.text):,} characters")
        require(False, f"{job.input.captions}: {row.image_id}, caption {row.caption_id}", fault, "shorten or remove it")
    pairs = extract_pairs(
        captions,
        [load_lexicon(path) for path in job.input.adjectives],
        load_lexicon(job.input.nouns) if job.input.nouns else None,
        load_lexicon(job.input.compounds),
        model=job.params.model,
        processes=job.threads,
        cache=job.params.cache / "pairs" / "occurrences.sqlite",
    )
    write_table(pairs, job.output.pairs, PAIRS)
    write_json(summarize_pairs(captions, pairs, job.params.model), job.output.summary)


if __name__ == "__main__":
    run(main)
