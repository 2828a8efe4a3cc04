"""Read or draw the images and captions of the config's source."""

import os
from pathlib import Path

import pandas as pd

from compclip.core.artifacts.files import atomic_folder, scratch_folder, write_json
from compclip.core.artifacts.parquet import write_frame, write_table
from compclip.core.identity.fingerprint import check_unchanged, fingerprint
from compclip.core.tables import IMAGES
from compclip.dataset.load_dataset import Folders, load_dataset
from workflow_scripts.job import Job, run_script


def main(job: Job) -> None:
    params = job.params
    output = job.output
    # The captions of a large data set are written while they are read, not held as a table.
    with scratch_folder(output.captions) as scratch:
        with atomic_folder(output.folder) as folder:
            images, tables, summary = load_dataset(
                params.source,
                params.settings,
                Folders(folder, scratch, params.cache),
                seed=params.seed,
                limit=params.limit,
                processes=job.threads,
            )
            # Inside the block, so that nothing is kept of files that changed while they were read.
            current = fingerprint(*params.files, cache=params.cache)
            check_unchanged(params.contents, current, f"dataset source {params.source}")
        # The table is complete now, so that a killed job leaves no half one.
        os.replace(scratch / "captions.parquet", output.captions)
    # Later steps find images relative to the results folder.
    prefix = Path(os.path.relpath(output.folder, params.results)).as_posix()
    for table in (images, *tables.values()):
        if "path" in table:
            paths = table["path"]
            table["path"] = [path if pd.isna(path) else f"{prefix}/{path}" for path in paths]
    write_table(images, output.images, IMAGES)
    # Tables that only some sources have, such as the scenes of sketches.
    for file in output.tables:
        write_frame(tables[file.stem], file)
    write_json(summary, output.summary)


if __name__ == "__main__":
    run_script(main)
