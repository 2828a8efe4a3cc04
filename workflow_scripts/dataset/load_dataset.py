"""Read or draw the images and captions of the config's source."""

import os
from pathlib import Path

import pandas as pd

from compclip.core.fingerprint import check_unchanged, fingerprint
from compclip.core.tables import IMAGES
from compclip.dataset.load_dataset import load_dataset
from compclip.io import atomic_folder, scratch_folder, write_frame, write_json, write_table
from workflow_scripts.job import Job, run_script


def main(job: Job) -> None:
    given, output = job.params, job.output
    with scratch_folder(output.captions) as scratch:
        with atomic_folder(output.folder) as folder:
            images, tables, summary = load_dataset(
                given.source,
                given.settings,
                folder,
                scratch,
                seed=given.seed,
                limit=given.limit,
                cache=given.cache,
                processes=job.threads,
            )
            now = fingerprint(*given.files, cache=given.cache)
            check_unchanged(given.contents, now, f"dataset source {given.source}")
        os.replace(scratch / "captions.parquet", output.captions)
    place = Path(os.path.relpath(output.folder, given.results)).as_posix()
    for table in (images, *tables.values()):
        if "path" in table:
            table["path"] = [path if pd.isna(path) else f"{place}/{path}" for path in table["path"]]
    write_table(images, output.images, IMAGES)
    for file in output.tables:
        write_frame(tables[file.stem], file)
    write_json(summary, output.summary)


if __name__ == "__main__":
    run_script(main)
