"""Compute how often each model is right, by prompt, and test the differences."""

from compclip.compun.analyze_choices import analyze_choices
from compclip.core.artifacts.files import read_json, write_text
from compclip.core.artifacts.parquet import read_table
from compclip.core.artifacts.rounding import DECIMALS
from compclip.core.tables import CHOICES, COMPOUNDS
from workflow_scripts.job import Job, run_script


def main(job: Job) -> None:
    choices = read_table(job.input.choices / "choices.parquet", CHOICES)
    compounds = read_table(job.input.compounds, COMPOUNDS)
    # Not every config has a study with people.
    people = read_json(job.input.people)["accuracy"] if job.input.people else None
    table = analyze_choices(choices, compounds, people, seed=job.params.seed)
    # With fixed decimals, equal results give equal text.
    text = table.to_csv(index=False, float_format=f"%.{DECIMALS}f", lineterminator="\n")
    write_text(text, job.output.analysis)


if __name__ == "__main__":
    run_script(main)
