"""Run one generator over the prompts, and write its images, manifest, summary and, if known,
scenes.
"""

import os
from pathlib import Path

from compclip.core.artifacts.files import atomic_folder, write_json
from compclip.core.artifacts.parquet import read_frame, read_table, write_frame, write_table
from compclip.core.tables import MANIFEST, PROMPTS
from compclip.generate.config import Generator
from compclip.generate.generate_images import generate_images
from compclip.generate.generator import Context
from workflow_scripts.job import Job, run_script


def main(job: Job) -> None:
    params = job.params
    output = job.output
    generator = Generator.model_validate(params.generator)
    prompts = read_table(job.input.prompts, PROMPTS)
    # Only the tables that this kind of generator reads.
    tables = {path.stem: read_frame(path) for path in job.input.tables}
    # The manifest's paths are relative to the results folder, as those of all images.
    prefix = Path(os.path.relpath(output.folder, params.results)).as_posix()
    # A killed generator leaves no folder with a part of its images.
    with atomic_folder(output.folder) as folder:
        context = Context(
            tables,
            folder,
            prefix,
            job.wildcards.composition,
            params.seed,
            params.cache,
            params.threads,
            Path(params.results),
        )
        generated = generate_images(generator, prompts, context, params.contents)
    write_table(generated.manifest, output.manifest, MANIFEST)
    # Only generators that draw know what their images show; the oracle reads it.
    if generated.scenes is not None:
        write_frame(generated.scenes, output.scenes)
    write_json(generated.summary, output.summary)


if __name__ == "__main__":
    run_script(main)
