"""Draw the held-out pairs, or take those listed, published, or missing from train."""

from typing import Any

from compclip.core.tables import CAPTIONS, DIVISION, PAIRS, RANKING
from compclip.io import read_table, write_json
from compclip.split.choose_draw import choose_draw, draws_of
from compclip.split.config import DrawConfig
from compclip.split.sample_heldout import sample_heldout
from workflow_scripts.inputs import read_lexicons
from workflow_scripts.job import Job, run_script


def main(job: Job) -> None:
    read, params = job.input, job.params
    ranking, config = read_table(read.ranking, RANKING), DrawConfig.model_validate(params.draw)
    columns = None if params.is_chosen else ["image_id", "adjective", "noun", "relation"]
    pairs = read_table(read.pairs, PAIRS, columns) if read.pairs else None
    lexicons = read_lexicons(job, "adjectives", "nouns")
    names = {"seed": params.seed, "dataset": params.dataset, "composition": job.wildcards.composition}
    draw, chosen = draws_of(config)[0], dict[str, Any]()
    if params.is_chosen:
        assert pairs is not None
        draw, chosen = choose_draw(
            read_table(read.captions, CAPTIONS), pairs, ranking, config, params.width,
            **read_lexicons(job, "adjectives", "nouns", "compounds"), test_seen=params.test_seen, **names,
        )  # fmt: skip
    heldout = sample_heldout(
        ranking, draw, pairs=pairs, listed=params.listed, published=params.published,
        division=read_table(read.division, DIVISION) if read.division else None,
        **lexicons, **names,
    )  # fmt: skip
    write_json(heldout | chosen, job.output.heldout)


if __name__ == "__main__":
    run_script(main)
