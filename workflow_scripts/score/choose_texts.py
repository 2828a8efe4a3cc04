"""Ask a further judge, each of its members, to choose each prompt's adjective."""

from contextlib import ExitStack
from pathlib import Path

import pandas as pd

from compclip.core.artifacts.parquet import write_table
from compclip.core.log import log
from compclip.core.settings import plugins
from compclip.core.tables import TEXT_CHOICES
from compclip.judge.chooser import Context, load_kind
from compclip.score.choose_texts import choose_texts
from workflow_scripts.job import Job, run_script
from workflow_scripts.score.chosen_entries import read_entries


def main(job: Job) -> None:
    params = job.params
    kind = load_kind(params.kind)
    settings = plugins.settings(kind, params.settings, f"judge {job.wildcards.judge}")
    entries, variants, find_item = read_entries(job)
    tables = []
    # A judge without trained members is its only member.
    for model in job.input.members or [None]:
        member = Path(model).name if model else job.wildcards.judge
        log.info("judge %s, %d images", member, len(entries))
        with ExitStack() as closing:
            context = Context(
                model=model,
                cache=params.cache,
                threads=params.threads,
                seed=params.seed,
                device=params.device,
                batch=params.batch,
                closing=closing,
            )
            chooser = kind.open_chooser(settings, context)
            table = choose_texts(chooser, entries, variants, find_item, params.seed)
        tables.append(table.assign(member=member, judge_hash=chooser.hash))
    choices = pd.concat(tables, ignore_index=True)
    write_table(choices[[*TEXT_CHOICES.columns]], job.output.choices, TEXT_CHOICES)


if __name__ == "__main__":
    run_script(main)
