"""Draw the scores, the falls from seen, also by pair, and the judges' training."""

import pandas as pd

from compclip.core.log import log
from compclip.core.tables import MEASUREMENTS
from compclip.io import read_table
from compclip.plot.drawing import save, style
from compclip.report.draw_scores import draw_gaps, draw_loss, draw_pairs, draw_scores
from compclip.report.rows import against_seen, of_composition, of_kind, of_measure
from compclip.report.verdicts import deciding_measure
from workflow_scripts.job import Job, run


def main(job: Job) -> None:
    names, seed = (job.params.dataset, job.wildcards.composition), job.params.seed
    files = read_table(job.input.scores, MEASUREMENTS), *map(pd.read_csv, (job.input.differences, job.input.by_pair))
    scores, differences, pairs = (of_composition(table, *names) for table in files)
    measure, beyond = deciding_measure(differences), of_kind(differences, "beyond")
    falls = of_measure(against_seen(differences), measure)
    reference = next(iter(beyond["b"]), None)
    trainings = [pd.read_csv(judge / "log.csv") for judge in job.input.judges]
    fall = "How far each generator falls from seen"
    with style():
        gaps = draw_gaps(falls, of_measure(beyond, measure), measure, seed)
        for path, title, figure in (
            (job.output.scores, "Both scores of each generator on each split", draw_scores(scores, reference, seed)),
            (job.output.gaps, f"{fall}, also beyond the reference", gaps),
            (job.output.pairs, f"{fall}, by held-out pair", draw_pairs(pairs, seed)),
            (job.output.loss, "The judges' training", draw_loss(trainings, seed)),
        ):
            save(figure, path, f"{title} ({', '.join(names)})")
    log.info("%s, %s: figures drawn", *names)


if __name__ == "__main__":
    run(main)
