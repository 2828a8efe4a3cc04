"""Write the published formats, and the train list for people who train generators."""

from compclip.core.artifacts.files import atomic_folder
from compclip.core.artifacts.heldout import read_heldout
from compclip.split.export import export
from workflow_scripts.inputs import read_blocks
from workflow_scripts.job import Job, run_script


def main(job: Job) -> None:
    # In blocks, so that no table of a large data set is read whole.
    tables = read_blocks(job, "captions", "images", "splits", "swapped")
    with atomic_folder(job.output.folder) as folder:
        export(folder, **tables, heldout=read_heldout(job.input.heldout))


if __name__ == "__main__":
    run_script(main)
