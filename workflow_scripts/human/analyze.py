"""Summarize the answers, and correlate the scores with them."""

from compclip.core.artifacts.files import atomic_folder, write_json
from compclip.core.artifacts.rounding import DECIMALS, json_values
from compclip.human.analyze import analyze
from compclip.human.correlation import run_scores
from compclip.human.tasks import read_tasks
from workflow_scripts.human.study import read_scores
from workflow_scripts.job import Job, run_script


def main(job: Job) -> None:
    params = job.params
    tasks = read_tasks(job.input.tasks)
    # Answers are compared with the mean of the judges.
    all_scores = read_scores(job.input.scores)
    scores = run_scores(all_scores)
    summary, tables = analyze(tasks, job.input.answers, scores, params.keep, params.seed)
    with atomic_folder(job.output.analysis) as folder:
        for name, table in tables.items():
            # Rounded, so that equal results give equal text.
            rounded = table.round(DECIMALS)
            rounded.to_csv(folder / f"{name}.csv", index=False, lineterminator="\n")
    write_json(json_values(summary), job.output.summary)


if __name__ == "__main__":
    run_script(main)
