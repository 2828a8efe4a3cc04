"""Write what a judge of kind ``table`` is asked, a line of JSON for each choice."""

from compclip.core.artifacts.files import write_text
from compclip.score.choose_texts import option_lines
from workflow_scripts.job import Job, run_script
from workflow_scripts.score.chosen_entries import read_entries


def main(job: Job) -> None:
    entries, options, asker = read_entries(job)
    lines = option_lines(asker.questions(entries, options))
    write_text("\n".join(lines) + "\n", job.output.options)


if __name__ == "__main__":
    run_script(main)
