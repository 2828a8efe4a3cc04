"""Ask a further judge, each of its members, to choose each prompt's adjective, and the prompt."""

import pandas as pd

from compclip.core.artifacts.parquet import write_table
from compclip.core.log import log
from compclip.core.tables import TEXT_CHOICES
from compclip.score.choose_texts import choose_texts
from workflow_scripts.job import Job, run_script
from workflow_scripts.judge.members import open_members
from workflow_scripts.score.chosen_entries import read_entries


def main(job: Job) -> None:
    entries, options, asker = read_entries(job)
    tables = []
    for member, chooser in open_members(job):
        log.info("judge %s, %d images", member, len(entries))
        table = choose_texts(chooser, entries, options, asker)
        tables.append(table.assign(member=member, judge_hash=chooser.hash))
    choices = pd.concat(tables, ignore_index=True)
    write_table(choices[[*TEXT_CHOICES.columns]], job.output.choices, TEXT_CHOICES)


if __name__ == "__main__":
    run_script(main)
