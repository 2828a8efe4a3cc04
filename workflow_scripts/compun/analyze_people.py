"""Compute how often people are right, in total and by compound, and how much they agree."""

from compclip.compun.analyze_people import analyze_people
from compclip.core.rounding import DECIMALS, json_values
from compclip.human.tasks import read_tasks
from compclip.io import write_json, write_text
from workflow_scripts.job import Job, run_script


def main(job: Job) -> None:
    tasks, params = read_tasks(job.input.tasks), job.params
    summary, items, workers = analyze_people(tasks, job.input.answers, params.keep, params.seed)
    write_text(
        items.round(DECIMALS).to_csv(index=False, lineterminator="\n"), job.output.by_compound
    )
    write_text(workers.to_csv(index=False, lineterminator="\n"), job.output.by_worker)
    write_json(json_values(summary), job.output.people)


if __name__ == "__main__":
    run_script(main)
