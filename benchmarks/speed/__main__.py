"""Run the benchmarks named (all, if none is) and put their figures into results/bench.json.

A benchmark gives ``ratio`` (how many times as fast), ``ours``, ``baseline``, ``unit``, ``n`` and, where there
is one, ``bound``; a part of it may give these once more. Close other programs first: two cores that do other work
measure that work.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# As the workflow's steps have it (rules/common.smk); read when torch is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

from workflow_scripts.core import cli, plugins
from workflow_scripts.core.io import read_json, write_json

PACKAGE = "benchmarks.speed"


def main(options: argparse.Namespace) -> None:
    figures = read_json(options.out) if options.out.is_file() else {}
    for name in options.names or plugins.available(PACKAGE):
        cli.log.info("%s ...", name)
        measured = plugins.load(PACKAGE, name).measure()
        figures[name] = measured
        write_json(dict(sorted(figures.items())), options.out)
        for line in lines(name, measured):
            cli.log.info("%s", line)


def lines(name: str, measured: dict[str, Any]) -> Iterator[str]:
    """A benchmark's figures, one line for the comparison and one for each part that has several."""
    bound = f", bound {measured['bound']:.1f}" if "bound" in measured else ""
    yield (
        f"{name}: {measured['ratio']:.1f} times ({measured['ours']:.1f} against {measured['baseline']:.1f}"
        f" {measured['unit']}, n {measured['n']}{bound})"
    )
    for part, figures in measured.items():
        if isinstance(figures, dict) and "ratio" in figures:
            yield from lines(f"{name}, {part}", figures)
        elif isinstance(figures, dict):
            yield f"{name}, {part}: {', '.join(f'{key}: {value}' for key, value in figures.items())}"


if __name__ == "__main__":
    parser = cli.parser(__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(plugins.available(PACKAGE))}")
    parser.add_argument("--out", type=Path, default=Path("results/bench.json"))
    cli.run(main, parser)
