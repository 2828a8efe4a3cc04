"""Read the long captions: which are usable, and where their chunks end."""

from compclip.core.tables import CHUNKS
from compclip.io import write_table
from compclip.specs.cut_captions import cut_captions
from compclip.specs.data import read_source
from compclip.text.language import skip_torch
from workflow_scripts.job import Job, run_script


def main(job: Job) -> None:
    skip_torch(job.params.model)
    examples, cache = read_source(job.input.examples), job.params.cache / "specs" / "chunks.sqlite"
    options = {"model": job.params.model, "processes": job.threads, "cache": cache}
    write_table(cut_captions(examples, job.input.images, **options), job.output.captions, CHUNKS)


if __name__ == "__main__":
    run_script(main)
