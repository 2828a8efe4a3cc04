"""Draw what is composed, the scores, held-out pairs, and the judges' training."""

import pandas as pd

from compclip.core.artifacts.parquet import read_table
from compclip.core.log import log
from compclip.core.tables import MEASUREMENTS
from compclip.plot.drawing import save, style
from compclip.report.draw_scores import draw_composed, draw_loss, draw_pairs, draw_scores
from compclip.report.rows import select_composition
from workflow_scripts.job import Job, run_script


def main(job: Job) -> None:
    output = job.output
    seed = job.params.seed
    names = (job.params.dataset, job.wildcards.composition)
    # The tables have the rows of all compositions.
    all_scores = read_table(job.input.scores, MEASUREMENTS)
    scores = select_composition(all_scores, *names)
    all_pairs = pd.read_csv(job.input.by_pair)
    pairs = select_composition(all_pairs, *names)
    trainings = [pd.read_csv(judge / "log.csv") for judge in job.input.judges]
    with style():
        composed = draw_composed(scores, seed)
        by_split = draw_scores(scores, job.params.reference, seed)
        by_pair = draw_pairs(pairs, seed)
        loss = draw_loss(trainings, seed)
        for path, title, figure in (
            (output.composed, "How much of what was held out is composed", composed),
            (output.scores, "Both scores of each generator on each split", by_split),
            (output.pairs, "Adjective accuracy by held-out pair", by_pair),
            (output.loss, "The judges' training", loss),
        ):
            save(figure, path, f"{title} ({', '.join(names)})")
    log.info("%s, %s: figures drawn", *names)


if __name__ == "__main__":
    run_script(main)
