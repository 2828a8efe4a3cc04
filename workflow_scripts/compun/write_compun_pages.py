"""Write the tasks about compounds as web pages, as stage human does."""

from workflow_scripts.compun.steps import WriteCompunPages
from workflow_scripts.core import cli
from workflow_scripts.human import write_pages


def main(step: WriteCompunPages) -> None:
    write_pages.main(step)


if __name__ == "__main__":
    cli.run(main)
