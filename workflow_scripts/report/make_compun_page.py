"""Write compun.html: whether models understand compound nouns, in one file that fetches nothing."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from workflow_scripts.common import cli
from workflow_scripts.common.cli import log
from workflow_scripts.common.io import write_text
from workflow_scripts.report.compun_results import read_compun
from workflow_scripts.report.page import render


def main(options: argparse.Namespace) -> None:
    settings = json.dumps(json.loads(options.settings), indent=2, ensure_ascii=False)
    found = read_compun(options.results, options.dataset)
    page = render("compun.html.j2", {"dataset": options.dataset, "compun": found, "settings": settings})
    file = options.results / "compun.html"
    write_text(page, file)
    log.info("%s: %.1f MB", file, len(page.encode()) / 1e6)


def arguments() -> argparse.ArgumentParser:
    parser = cli.parser(__doc__)
    parser.add_argument("--results", type=Path, required=True, help="the folder of the artifacts")
    parser.add_argument("--dataset", required=True)
    parser.add_argument("--settings", default="{}", metavar="JSON", help="the config's sections that the page shows")
    return parser


if __name__ == "__main__":
    cli.run(main, arguments())
