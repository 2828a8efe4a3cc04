"""Write the published formats, and the train list for people who train generators."""

from compclip.core.heldout import read_heldout
from compclip.core.tables import CAPTIONS, IMAGES, SPLIT, SWAPPED
from compclip.io import atomic_folder, read_table
from compclip.split.export import export
from workflow_scripts.job import Job, run


def main(job: Job) -> None:
    files = export(
        read_table(job.input.captions, CAPTIONS), read_table(job.input.images, IMAGES, ["image_id", "path"]),
        read_table(job.input.splits, SPLIT), read_table(job.input.swapped, SWAPPED), read_heldout(job.input.heldout),
    )  # fmt: skip
    with atomic_folder(job.output.folder) as folder:
        for name, content in files.items():
            (folder / name).write_bytes(content)


if __name__ == "__main__":
    run(main)
