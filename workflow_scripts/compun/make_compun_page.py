"""Write compun.html: whether models understand compound nouns, in one file that fetches nothing."""

from __future__ import annotations

import argparse

from workflow_scripts.compun.section import read_compun
from workflow_scripts.core import cli
from workflow_scripts.plot.page import stage_arguments, write_stage_page


def main(options: argparse.Namespace) -> None:
    write_stage_page(options, "compun", "compun", read_compun)


def arguments() -> argparse.ArgumentParser:
    return stage_arguments(__doc__)


if __name__ == "__main__":
    cli.run(main, arguments())
