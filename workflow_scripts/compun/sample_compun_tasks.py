"""Make a task for people for each compound, and write the tasks as Label Studio projects."""

from compclip.compun.sample_compun_tasks import sample_compun_tasks
from compclip.core.artifacts.files import write_json
from compclip.core.artifacts.parquet import read_table
from compclip.core.tables import COMPOUND_IMAGES, COMPOUNDS
from compclip.human.study import check_counts
from workflow_scripts.human.study import write_study
from workflow_scripts.job import Job, run_script


def main(job: Job) -> None:
    seed = job.params.seed
    compounds = read_table(job.input.compounds, COMPOUNDS)
    images = read_table(job.input.images, COMPOUND_IMAGES)
    pages = sample_compun_tasks(compounds, images, seed=seed)
    # The second word keeps these tasks apart from those of a scored run with the same seed.
    write_study(job, {"compound": pages}, (seed, "compun"), job.input.folder)
    # Compounds that lack an image have no task.
    complete = int(compounds["complete"].sum())
    incomplete = len(compounds) - complete
    summary = {"seed": seed, "compounds": complete, "incomplete": incomplete}
    write_json(summary | check_counts(pages), job.output.summary)


if __name__ == "__main__":
    run_script(main)
