"""Describe the sketches at length, and divide them into training and test images."""

from pathlib import Path

from compclip.core.artifacts.parquet import read_frame, read_table, write_table
from compclip.core.tables import IMAGES
from compclip.specs.describe_images import DESCRIPTION_SCHEMAS, describe_images
from workflow_scripts.job import Job, run_script


def main(job: Job) -> None:
    scenes = read_frame(job.input.scenes)
    paths = read_table(job.input.images, IMAGES).set_index("image_id")["path"]
    # Descriptions name images relative to their folder, not to the results folder.
    scenes["file"] = [Path(paths[image]).name for image in scenes["image_id"]]
    # Each seed describes and divides the same images differently.
    described = describe_images(scenes, test=job.params.test, seed=int(job.wildcards.seed))
    for name, table in described.items():
        write_table(table, getattr(job.output, name), DESCRIPTION_SCHEMAS[name])


if __name__ == "__main__":
    run_script(main)
