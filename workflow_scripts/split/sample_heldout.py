"""Draw the held-out pairs, or take those listed, published, or missing from train."""

from typing import Any

from compclip.core.seeds import rng
from compclip.core.tables import DIVISION, PAIRS, RANKING, Blocks
from compclip.io import read_table, write_json
from compclip.split.choose_draw import TrialData, choose_draw, draws_of
from compclip.split.composition import Lexicons, Stream
from compclip.split.config import DrawConfig
from compclip.split.sample_heldout import sample_heldout
from workflow_scripts.inputs import image_blocks, read_lexicons, read_tables, sample_images
from workflow_scripts.job import Job, run_script

# Draws are tried with the images of so many captions.
MOST_CAPTIONS = 400_000
COLUMNS = ["image_id", "adjective", "noun", "relation"]


def main(job: Job) -> None:
    read, params = job.input, job.params
    ranking, config = read_table(read.ranking, RANKING), DrawConfig.model_validate(params.draw)
    division = read_table(read.division, DIVISION) if read.division else None
    lexicons = read_lexicons(job, "adjectives", "nouns")
    names = {
        "seed": params.seed,
        "dataset": params.dataset,
        "composition": job.wildcards.composition,
    }
    draw, chosen = draws_of(config)[0], dict[str, Any]()
    if params.is_chosen:
        images = sample_images(
            read.captions, MOST_CAPTIONS, rng(params.seed, "sample_heldout", params.dataset)
        )
        data = TrialData(
            **read_tables(job, "captions", "pairs", images=images),
            ranking=ranking,
            lexicons=Lexicons(**read_lexicons(job, "adjectives", "nouns", "compounds")),
            stream=Stream(**names),
            test_seen=params.test_seen,
        )
        draw, chosen = choose_draw(data, config, params.width)
    pairs: Blocks | None = None
    if division is not None:
        pairs = read_table(read.pairs, PAIRS, COLUMNS)
    elif read.pairs:
        pairs = (
            read_table(read.pairs, PAIRS, COLUMNS, images) for images in image_blocks(job, "pairs")
        )
    heldout = sample_heldout(
        ranking,
        draw,
        pairs=pairs,
        listed=params.listed,
        published=params.published,
        division=division,
        **lexicons,
        **names,
    )
    write_json(heldout | chosen, job.output.heldout)


if __name__ == "__main__":
    run_script(main)
