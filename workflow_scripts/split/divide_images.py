"""Divide the images so that train and test diverge in pairs, but little in words."""

from compclip.core.artifacts.files import write_json
from compclip.core.artifacts.parquet import read_table, write_table
from compclip.core.tables import CAPTIONS, DIVISION, PAIRS, RANKING
from compclip.split.config import Divergence
from compclip.split.divide_images import divide_images
from workflow_scripts.job import Job, run_script


def main(job: Job) -> None:
    division, summary = divide_images(
        # Captions list all images, also those without a pair.
        read_table(job.input.captions, CAPTIONS, ["image_id"])["image_id"],
        read_table(job.input.pairs, PAIRS, ["image_id", "adjective", "noun"]),
        read_table(job.input.ranking, RANKING),
        Divergence.model_validate(job.params.divergence),
        seed=job.params.seed,
        dataset=job.params.dataset,
        composition=job.wildcards.composition,
    )
    write_table(division, job.output.division, DIVISION)
    write_json(summary, job.output.summary)


if __name__ == "__main__":
    run_script(main)
