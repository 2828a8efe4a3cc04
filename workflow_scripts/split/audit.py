"""Check a split and its swaps by word order alone, and compare word order with the extracted pairs."""

from compclip.core.heldout import read_heldout
from compclip.io import read_frame, read_json, write_json
from compclip.split.audit import audit, unused_images
from workflow_scripts.inputs import read_lexicons, read_tables
from workflow_scripts.job import Job, run_script


def main(job: Job) -> None:
    lexicons = read_lexicons(job, "adjectives", "nouns", "compounds")
    result = audit(
        **read_tables(job, "captions", "pairs", "splits", "swapped"), **lexicons,
        heldout=read_heldout(job.input.heldout),
        facts=read_frame(job.input.facts, ["image_id", "part", "value"]) if job.input.facts else None,
        reported=[violation for path in job.input.reports for violation in read_json(path).get("violations", [])],
        unused=unused_images(read_json(job.input.unused)), tolerance=job.params.violations, where=job.where,
    )  # fmt: skip
    write_json(result, job.output.audit)


if __name__ == "__main__":
    run_script(main)
