"""Read the long captions: which are usable, and where their chunks end."""

from compclip.core.artifacts.parquet import write_table
from compclip.core.tables import CHUNKS
from compclip.specs.chunk_captions import chunk_captions
from compclip.specs.data import read_source
from compclip.text.language import skip_torch
from workflow_scripts.job import Job, run_script


def main(job: Job) -> None:
    model = job.params.model
    skip_torch(model)
    chunks = chunk_captions(
        read_source(job.input.examples),
        job.input.images,
        model=model,
        processes=job.threads,
        # A killed job resumes from this file.
        cache=job.params.cache / "specs" / "chunks.sqlite",
    )
    write_table(chunks, job.output.captions, CHUNKS)


if __name__ == "__main__":
    run_script(main)
