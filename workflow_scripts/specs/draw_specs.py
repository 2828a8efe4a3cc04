"""Draw the effect of training with long captions for each seed, and write its page as one file."""

from pathlib import Path

from compclip.core.artifacts.files import write_text
from compclip.plot.drawing import save, style
from compclip.plot.page import write_section_page
from compclip.specs.draw_specs import draw_specs
from compclip.specs.specs_view import read_intrinsic
from workflow_scripts.job import Job, run_script
from workflow_scripts.layout import Layout
from workflow_scripts.specs.section import section


def main(job: Job) -> None:
    params = job.params
    table = read_intrinsic(job.input.intrinsic)
    # With fixed decimals, equal results give equal text.
    text = table.to_csv(index=False, float_format="%.6f", lineterminator="\n")
    write_text(text, job.output.table)
    with style():
        figure, values = draw_specs(table)
        title = "How each judge tells right details from wrong ones"
        save(figure, job.output.measures, title, values)
    # The section reads the table and the figure that were just written.
    layout = Layout(Path(params.results), params.dataset)
    write_section_page(job.output.page, params.dataset, section(layout), params.settings)


if __name__ == "__main__":
    run_script(main)
