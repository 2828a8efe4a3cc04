"""Write the splits in the data layout of AttnGAN."""

from compclip.generate.export_layout import export_layout
from workflow_scripts.inputs import read_tables
from workflow_scripts.job import Job, run_script


def main(job: Job) -> None:
    read = read_tables(job, "captions", "images", "splits", "prompts")
    export_layout(job.output.folder, **read, dataset=job.params.dataset, results=job.params.results)


if __name__ == "__main__":
    run_script(main)
