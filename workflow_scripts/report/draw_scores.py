"""Draw what is composed, the scores, held-out pairs, and the judges' training."""

import pandas as pd

from compclip.core.log import log
from compclip.core.tables import MEASUREMENTS
from compclip.io import read_table
from compclip.plot.drawing import save, style
from compclip.report.draw_scores import draw_composed, draw_loss, draw_pairs, draw_scores
from compclip.report.rows import of_composition
from workflow_scripts.job import Job, run_script


def main(job: Job) -> None:
    names, seed, reference = (
        (job.params.dataset, job.wildcards.composition),
        job.params.seed,
        job.params.reference,
    )
    files = read_table(job.input.scores, MEASUREMENTS), pd.read_csv(job.input.by_pair)
    scores, pairs = (of_composition(table, *names) for table in files)
    trainings = [pd.read_csv(judge / "log.csv") for judge in job.input.judges]
    with style():
        for path, title, figure in (
            (
                job.output.composed,
                "How much of what was held out is composed",
                draw_composed(scores, seed),
            ),
            (
                job.output.scores,
                "Both scores of each generator on each split",
                draw_scores(scores, reference, seed),
            ),
            (job.output.pairs, "Adjective accuracy by held-out pair", draw_pairs(pairs, seed)),
            (job.output.loss, "The judges' training", draw_loss(trainings, seed)),
        ):
            save(figure, path, f"{title} ({', '.join(names)})")
    log.info("%s, %s: figures drawn", *names)


if __name__ == "__main__":
    run_script(main)
