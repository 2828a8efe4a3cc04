"""Select a composition's adjectives and nouns, and rank their pairs by frequency."""

from compclip.core.artifacts.parquet import read_table, write_table
from compclip.core.tables import PAIRS, RANKING
from compclip.pairs.config import Selection
from compclip.pairs.rank_pairs import rank_pairs
from workflow_scripts.inputs import image_blocks, read_lexicons
from workflow_scripts.job import Job, run_script


def main(job: Job) -> None:
    columns = ["image_id", "adjective", "noun", "relation"]
    # Lazy, so that one block of a large table is in memory at once.
    pairs = (
        read_table(job.input.pairs, PAIRS, columns, images) for images in image_blocks(job, "pairs")
    )
    selection = Selection.model_validate(job.params.selection)
    ranking = rank_pairs(pairs, **read_lexicons(job, "adjectives", "nouns"), selection=selection)
    write_table(ranking, job.output.ranking, RANKING)


if __name__ == "__main__":
    run_script(main)
