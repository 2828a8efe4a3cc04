"""Draw the pairs that are held out, or take those that are listed, published, or missing from train."""

from compclip.core.tables import DIVISION, PAIRS, RANKING
from compclip.io import read_table, write_json
from compclip.split.config import Draw
from compclip.split.sample_heldout import sample_heldout
from workflow_scripts.job import Job, run
from workflow_scripts.lexicons import read_lexicons


def main(job: Job) -> None:
    read, columns = job.input, ["image_id", "adjective", "noun", "relation"]
    heldout = sample_heldout(
        read_table(read.ranking, RANKING), Draw.model_validate(job.params.draw),
        pairs=read_table(read.pairs, PAIRS, columns) if read.pairs else None, listed=job.params.listed,
        published=job.params.published, division=read_table(read.division, DIVISION) if read.division else None,
        **read_lexicons(job, "adjectives", "nouns"), seed=job.params.seed, dataset=job.params.dataset,
        composition=job.wildcards.composition,
    )  # fmt: skip
    write_json(heldout, job.output.heldout)


if __name__ == "__main__":
    run(main)
