"""Select a composition's adjectives and nouns, and rank their pairs by frequency."""

from compclip.core.tables import PAIRS, RANKING
from compclip.io import read_table, write_table
from compclip.pairs.config import Selection
from compclip.pairs.rank_pairs import rank_pairs
from compclip.text.lexicon import load_lexicon
from workflow_scripts.job import Job, run


def main(job: Job) -> None:
    ranking = rank_pairs(
        read_table(job.input.pairs, PAIRS, ["image_id", "adjective", "noun", "relation"]),
        load_lexicon(job.input.adjectives),
        load_lexicon(job.input.nouns) if job.input.nouns else None,
        Selection.model_validate(job.params.selection),
    )
    write_table(ranking, job.output.ranking, RANKING)


if __name__ == "__main__":
    run(main)
