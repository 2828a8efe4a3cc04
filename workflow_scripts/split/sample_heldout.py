"""Draw the held-out pairs, or take those listed, published, or missing from train."""

from typing import Any

import pandas as pd

from compclip.core.artifacts.files import write_json
from compclip.core.artifacts.parquet import read_table
from compclip.core.seeds import rng
from compclip.core.tables import DIVISION, PAIRS, RANKING, Blocks
from compclip.split.choose_draw import TrialData, choose_draw, draws_of
from compclip.split.composition import Lexicons, Seeding
from compclip.split.config import Draw, DrawConfig
from compclip.split.sample_heldout import sample_heldout
from workflow_scripts.inputs import image_blocks, read_lexicons, read_tables, sample_images
from workflow_scripts.job import Job, run_script

# Draws are tried with the images of so many captions.
MOST_CAPTIONS = 400_000
# The columns of pairs that decide which occur, in which images.
COLUMNS = ["image_id", "adjective", "noun", "relation"]


def choose(job: Job, ranking: pd.DataFrame, config: DrawConfig) -> tuple[Draw, dict[str, Any]]:
    """Try draws on a sample of the images; return the best one, and what heldout.json tells of the
    choice.
    """
    params = job.params
    # Each try makes splits, swaps and prompts, so a large data set is sampled.
    generator = rng(params.seed, "sample_heldout", params.dataset)
    images = sample_images(job.input.captions, MOST_CAPTIONS, generator)
    data = TrialData(
        **read_tables(job, "captions", "pairs", images=images),
        ranking=ranking,
        lexicons=Lexicons(**read_lexicons(job, "adjectives", "nouns", "compounds")),
        seeding=Seeding(params.seed, params.dataset, job.wildcards.composition),
        test_seen=params.test_seen,
        swaps=params.swaps,
    )
    return choose_draw(data, config, params.width)


def read_pairs(job: Job) -> Blocks | None:
    """Return the occurrences of pairs: whole for a division, otherwise in blocks; None if the rule
    omits them.
    """
    file = job.input.pairs
    if job.input.division:
        return read_table(file, PAIRS, COLUMNS)
    if file:
        return (read_table(file, PAIRS, COLUMNS, images) for images in image_blocks(job, "pairs"))
    return None


def main(job: Job) -> None:
    params = job.params
    ranking = read_table(job.input.ranking, RANKING)
    division = read_table(job.input.division, DIVISION) if job.input.division else None
    config = DrawConfig.model_validate(params.draw)
    # Without a choice, the config sets the draw, or the pairs are not drawn at all.
    draw = draws_of(config)[0]
    choice: dict[str, Any] = {}
    if params.is_chosen:
        draw, choice = choose(job, ranking, config)
    lexicons = read_lexicons(job, "adjectives", "nouns")
    heldout = sample_heldout(
        ranking,
        draw,
        pairs=read_pairs(job),
        listed=params.listed,
        published=params.published,
        division=division,
        **lexicons,
        seed=params.seed,
        dataset=params.dataset,
        composition=job.wildcards.composition,
    )
    write_json(heldout | choice, job.output.heldout)


if __name__ == "__main__":
    run_script(main)
