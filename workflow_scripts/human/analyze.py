"""Summarize the answers, and correlate the scores with them."""

from compclip.core.rounding import DECIMALS, json_values
from compclip.human.analyze import analyze
from compclip.human.correlation import other_scores, run_scores
from compclip.human.people_figure import draw_people
from compclip.human.tasks import read_tasks
from compclip.io import atomic_folder, spreadsheet_safe, write_json
from compclip.plot.drawing import save, style
from workflow_scripts.human.study import read_scores
from workflow_scripts.job import Job, run


def main(job: Job) -> None:
    params = job.params
    scores = run_scores(read_scores(job.input.scores))
    scores |= {name: other_scores(path) for name, path in zip(params.other, job.input.other, strict=True)}
    tasks, answers = read_tasks(job.input.tasks), job.input.answers
    summary, tables = analyze(tasks, answers, scores, keep=params.keep, resamples=params.bootstrap, seed=params.seed)
    count, workers = sum(kind["answers"] for kind in summary["kinds"].values()), summary["workers"]
    people = workers["answered"] - workers["excluded"]
    about = f"n = {count:,} answers of {people} people; lines: 95 % intervals over images; seed {params.seed}"
    with atomic_folder(job.output.analysis) as folder, style():
        for name, table in tables.items():
            spreadsheet_safe(table.round(DECIMALS)).to_csv(folder / f"{name}.csv", index=False, lineterminator="\n")
        figure = draw_people(tables["preferences"], tables["correlations"], about)
        save(figure, folder / "people.svg", "What people answered", about)
    write_json(json_values(summary), job.output.summary)


if __name__ == "__main__":
    run(main)
