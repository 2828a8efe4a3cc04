"""Measure how often right details raise the similarity and wrong ones lower it, and compare the
three judges.
"""

from collections.abc import Iterator

from compclip.clip.embed import Embedder, open_embedder
from compclip.core.artifacts.files import write_json
from compclip.core.artifacts.parquet import write_frame
from compclip.specs.evaluation import result_head
from compclip.specs.intrinsic import INTRINSIC_DEFINITION, intrinsic, read_steps
from workflow_scripts.job import Job, run_script

IMAGES_AT_ONCE = 256  # changes floating-point rounding


def judges(job: Job) -> Iterator[tuple[str, Embedder]]:
    """Load one judge after another."""
    params = job.params
    for folder in [job.input.judge, *job.input.against]:
        opened = open_embedder(folder, IMAGES_AT_ONCE, params.threads, params.device, params.cache)
        with opened as embedder:
            # The names of judges are those of their folders, also of linked ones.
            yield folder.resolve().name, embedder


def main(job: Job) -> None:
    data = job.input.data
    seed = int(job.wildcards.seed)
    steps, skipped = read_steps(data, job.input.images)
    result, compared = intrinsic(steps, judges(job), skipped=skipped, seed=seed, where=data)
    first_entries = result_head(data, INTRINSIC_DEFINITION, seed)
    write_json(first_entries | result, job.output.result)
    write_frame(compared, job.output.similarities)


if __name__ == "__main__":
    run_script(main)
