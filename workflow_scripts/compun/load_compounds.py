"""Read the compounds and the three images of each, and copy the images."""

import shutil

from compclip.compun.load_compounds import load_compounds
from compclip.core.artifacts.disk import check_space
from compclip.core.artifacts.files import atomic_folder, write_json
from compclip.core.artifacts.parquet import write_table
from compclip.core.progress import track
from compclip.core.reading.pictures import NamesByKind, keep_as_shown
from compclip.core.tables import COMPOUND_IMAGES, COMPOUNDS
from compclip.dataset.load_dataset import warn
from compclip.dataset.source import named_differences
from workflow_scripts.job import Job, run_script


def main(job: Job) -> None:
    compounds, images, summary = load_compounds(job.input.file, job.input.source)
    # Incomplete compounds lack an image.
    names = images["path"].dropna().tolist()
    size = sum((job.input.source / name).stat().st_size for name in names)
    differing: NamesByKind = {}
    with atomic_folder(job.output.files) as folder:
        # Before the copies, because a full disk would be noticed late.
        check_space(size, folder, f"copying {len(names)} images")
        for name in track(names, len(names), "images copied"):
            copy = folder / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(job.input.source / name, copy)
            # A PNG may replace the copy, under another name.
            final, _, _ = keep_as_shown(copy, name, differing)
            images["path"] = images["path"].replace(name, final.relative_to(folder).as_posix())
    differences = named_differences(differing)
    warn(differences)
    summary |= differences
    write_table(compounds, job.output.compounds, COMPOUNDS)
    write_table(images, job.output.images, COMPOUND_IMAGES)
    write_json(summary, job.output.summary)


if __name__ == "__main__":
    run_script(main)
