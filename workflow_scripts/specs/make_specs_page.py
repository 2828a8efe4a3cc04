"""Write specs.html: what training with long captions changed, in one file that fetches nothing."""

from __future__ import annotations

import argparse

from workflow_scripts.core import cli
from workflow_scripts.plot.page import stage_arguments, write_stage_page
from workflow_scripts.specs.section import read_long_captions


def main(options: argparse.Namespace) -> None:
    write_stage_page(options, "specs", "long_captions", read_long_captions)


def arguments() -> argparse.ArgumentParser:
    return stage_arguments(__doc__)


if __name__ == "__main__":
    cli.run(main, arguments())
