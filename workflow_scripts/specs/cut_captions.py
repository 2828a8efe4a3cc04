"""Read a source of long captions once: which can be used, and where their chunks end.

What was found is kept below --cache, where each training on these captions finds it (``data.open_examples``).
"""

from __future__ import annotations

import argparse
from pathlib import Path

from workflow_scripts.core import cli
from workflow_scripts.core.io import write_json
from workflow_scripts.specs.data import open_examples


def main(options: argparse.Namespace) -> None:
    examples = open_examples(options.examples, options.images, options.model, options.cache, options.processes)
    write_json(examples.summary, options.summary)


def arguments() -> argparse.ArgumentParser:
    parser = cli.parser(__doc__)
    parser.add_argument("--examples", type=Path, required=True, help="JSON, Parquet or tar file, or a folder of them")
    parser.add_argument("--images", type=Path, help="folder that the images' paths are relative to")
    parser.add_argument("--model", default="en_core_web_sm", help="spaCy pipeline")
    parser.add_argument("--processes", type=int, default=2, help="that parse at once; the result is the same")
    parser.add_argument("--cache", type=Path, default=Path(".cache"), help="folder of what is kept between runs")
    parser.add_argument("--summary", type=Path, required=True, help="JSON: what was found and left out")
    return parser


if __name__ == "__main__":
    cli.run(main, arguments())
