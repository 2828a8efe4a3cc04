"""Draw how often each model is right about compound nouns, next to the paper's figures, and write
the page.
"""

from pathlib import Path

from compclip.compun.compun_view import read_analysis, text_table
from compclip.compun.draw_compun import draw_compun
from compclip.core.artifacts.files import write_text
from compclip.plot.drawing import save, style
from compclip.plot.page import write_section_page
from workflow_scripts.compun.section import section
from workflow_scripts.job import Job, run_script
from workflow_scripts.layout import Layout


def main(job: Job) -> None:
    dataset = job.params.dataset
    analysis = read_analysis(job.input.analysis)
    with style():
        for name, (figure, title, description) in draw_compun(analysis).items():
            file = getattr(job.output, name)
            save(figure, file, title, description)
    write_text(text_table(analysis), job.output.text)
    # The section reads the figures that were just drawn.
    layout = Layout(Path(job.params.results), dataset)
    write_section_page(job.output.page, dataset, section(layout), job.params.settings)


if __name__ == "__main__":
    run_script(main)
