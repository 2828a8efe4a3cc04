"""Draw what the splits hold: the adjectives and nouns of each, and the swapped pairs."""

from compclip.core.tables import PAIRS, PROMPTS, RANKING, SPLIT, SWAPPED
from compclip.io import read_table
from compclip.plot.drawing import save, style
from compclip.split.draw_splits import draw_splits
from workflow_scripts.job import Job, run


def main(job: Job) -> None:
    with style():
        figures = draw_splits(
            read_table(job.input.pairs, PAIRS), read_table(job.input.ranking, RANKING),
            read_table(job.input.splits, SPLIT), read_table(job.input.swapped, SWAPPED),
            read_table(job.input.prompts, PROMPTS), dominant=job.params.dominant, ratio=job.params.ratio,
            seed=job.params.seed,
        )  # fmt: skip
        for name, (figure, title) in figures.items():
            save(figure, getattr(job.output, name), f"{title} ({job.params.dataset}, {job.wildcards.composition})")


if __name__ == "__main__":
    run(main)
