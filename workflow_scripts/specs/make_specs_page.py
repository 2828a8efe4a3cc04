"""Write specs.html: what training with long captions changed, in one self-contained file."""

from workflow_scripts.core import cli
from workflow_scripts.plot.page import write_section_page
from workflow_scripts.specs.section import section
from workflow_scripts.specs.steps import MakeSpecsPage


def main(step: MakeSpecsPage) -> None:
    write_section_page(step.page, step.dataset, section(step.layout), step.settings)


if __name__ == "__main__":
    cli.run(main)
