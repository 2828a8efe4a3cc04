"""Write compun.html: whether models understand compound nouns."""

from workflow_scripts.compun.section import section
from workflow_scripts.compun.steps import MakeCompunPage
from workflow_scripts.core import cli
from workflow_scripts.plot.page import write_section_page


def main(step: MakeCompunPage) -> None:
    write_section_page(step.page, step.dataset, section(step.layout), step.settings)


if __name__ == "__main__":
    cli.run(main)
