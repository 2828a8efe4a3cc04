"""Write compun.html: whether models understand compound nouns, in one file that fetches nothing."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from workflow_scripts.compun.section import section
from workflow_scripts.core import cli
from workflow_scripts.core.layout import Layout
from workflow_scripts.plot.page import write_section_page


def main(options: argparse.Namespace) -> None:
    found = section(Layout(options.results, options.dataset))
    write_section_page(options.results / "compun.html", options.dataset, found, json.loads(options.settings))


def arguments() -> argparse.ArgumentParser:
    parser = cli.parser(__doc__)
    parser.add_argument("--results", type=Path, required=True, help="folder of the artifacts")
    parser.add_argument("--dataset", required=True)
    parser.add_argument("--settings", default="{}", metavar="JSON", help="the config's sections that the page shows")
    return parser


if __name__ == "__main__":
    cli.run(main, arguments())
