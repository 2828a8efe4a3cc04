"""Check a split and its swaps from words alone, and compare the order of words with the extracted pairs."""

from compclip.core.heldout import read_heldout
from compclip.core.tables import CAPTIONS, PAIRS, SPLIT, SWAPPED
from compclip.io import read_frame, read_json, read_table, write_json
from compclip.split.audit import audit, unused_images
from compclip.text.lexicon import load_lexicon
from workflow_scripts.job import Job, run

OCCURRENCE_COLUMNS = ["image_id", "caption_id", "adjective", "noun", "relation"]


def main(job: Job) -> None:
    result = audit(
        read_table(job.input.captions, CAPTIONS), read_table(job.input.pairs, PAIRS, OCCURRENCE_COLUMNS),
        read_table(job.input.splits, SPLIT), read_table(job.input.swapped, SWAPPED), read_heldout(job.input.heldout),
        load_lexicon(job.input.adjectives), load_lexicon(job.input.nouns) if job.input.nouns else None,
        load_lexicon(job.input.compounds),
        facts=read_frame(job.input.facts, ["image_id", "part", "value"]) if job.input.facts else None,
        reported=[violation for path in job.input.reports for violation in read_json(path).get("violations", [])],
        unused=unused_images(read_json(job.input.unused)), tolerance=job.params.violations,
        where=job.where,
    )  # fmt: skip
    write_json(result, job.output.audit)


if __name__ == "__main__":
    run(main)
