"""Draw the scores, the falls from seen, also by pair, and the judges' training."""

import pandas as pd

from compclip.core.log import log
from compclip.plot.drawing import save, style
from compclip.report.draw_scores import draw_gaps, draw_loss, draw_pairs, draw_scores
from compclip.report.rows import against_seen, beyond_reference, of_measure
from compclip.report.verdicts import deciding_measure
from workflow_scripts.job import Job, run


def main(job: Job) -> None:
    dataset, composition, seed = job.params.dataset, job.wildcards.composition, job.params.seed
    table, differences, pairs = (
        rows[(rows["dataset"] == dataset) & (rows["composition"] == composition)]
        for rows in map(pd.read_csv, (job.input.table, job.input.differences, job.input.by_pair))
    )
    measure = deciding_measure(differences)
    falls, beyond = (of_measure(rows(differences), measure) for rows in (against_seen, beyond_reference))
    reference = next(iter(beyond_reference(differences)["b"]), None)
    trainings = [pd.read_csv(judge / "log.csv") for judge in job.input.judges]
    beyond_title = "How far each generator falls from seen, also beyond the reference"
    with style():
        gaps = draw_gaps(falls, beyond, measure, seed)
        for path, title, figure in (
            (job.output.scores, "Both scores of each generator on each split", draw_scores(table, reference, seed)),
            (job.output.gaps, beyond_title, gaps),
            (job.output.pairs, "How far each generator falls from seen, by held-out pair", draw_pairs(pairs, seed)),
            (job.output.loss, "The judges' training", draw_loss(trainings, seed)),
        ):
            save(figure, path, f"{title} ({dataset}, {composition})")
    log.info("%s, %s: figures drawn", dataset, composition)


if __name__ == "__main__":
    run(main)
