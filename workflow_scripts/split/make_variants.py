"""Make the variants of each prompt: its copies with other ranked adjectives of its noun, false of the image."""

from dataclasses import replace

from compclip.core.tables import VARIANTS
from compclip.io import write_json, write_table
from compclip.split.make_variants import make_variants
from workflow_scripts.inputs import read_lexicons, read_tables
from workflow_scripts.job import Job, run_script


def main(job: Job) -> None:
    lexicons = read_lexicons(job, "adjectives", "nouns")
    if job.params.one_value:
        lexicons["adjectives"] = replace(lexicons["adjectives"], groups=())
    tables = read_tables(job, "prompts", "captions", "pairs", "ranking", "swapped")
    variants, counts = make_variants(**tables, **lexicons)
    write_table(variants, job.output.variants, VARIANTS)
    write_json({"splits": counts}, job.output.summary)


if __name__ == "__main__":
    run_script(main)
