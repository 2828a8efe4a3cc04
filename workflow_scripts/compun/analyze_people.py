"""Compute how often people are right, in total and by compound, and how much they agree."""

from compclip.compun.analyze_people import analyze_people
from compclip.core.artifacts.files import write_json, write_text
from compclip.core.artifacts.rounding import DECIMALS, json_values
from compclip.human.tasks import read_tasks
from workflow_scripts.job import Job, run_script


def main(job: Job) -> None:
    params = job.params
    tasks = read_tasks(job.input.tasks)
    summary, items, workers = analyze_people(tasks, job.input.answers, params.keep, params.seed)
    # Rounded, so that equal results give equal text.
    rounded = items.round(DECIMALS)
    by_compound = rounded.to_csv(index=False, lineterminator="\n")
    write_text(by_compound, job.output.by_compound)

    by_worker = workers.to_csv(index=False, lineterminator="\n")
    write_text(by_worker, job.output.by_worker)
    write_json(json_values(summary), job.output.people)


if __name__ == "__main__":
    run_script(main)
