"""Run the benchmarks named (all, if none is) and put their figures into results/bench.json.

A benchmark gives ``ratio`` (how many times as fast), ``ours``, ``baseline``, ``unit``, ``n`` and, where there
is one, ``bound``. Close other programs first: two cores that do other work measure that work.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

# As the workflow's steps have it (rules/common.smk); read when torch is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

from workflow_scripts.common import cli, plugins
from workflow_scripts.common.io import read_json, write_json

PACKAGE = "workflow_scripts.bench"


def main(options: argparse.Namespace) -> None:
    figures = read_json(options.out) if options.out.is_file() else {}
    for name in options.names or plugins.available(PACKAGE):
        cli.log.info("%s ...", name)
        measured = plugins.load(PACKAGE, name).measure()
        figures[name] = measured
        write_json(dict(sorted(figures.items())), options.out)
        bound = f", bound {measured['bound']:.1f}" if "bound" in measured else ""
        cli.log.info(
            "%s: %.1f times (%.1f against %.1f %s, n %d%s)",
            name, measured["ratio"], measured["ours"], measured["baseline"], measured["unit"], measured["n"], bound,
        )  # fmt: skip


if __name__ == "__main__":
    parser = cli.parser(__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(plugins.available(PACKAGE))}")
    parser.add_argument("--out", type=Path, default=Path("results/bench.json"))
    cli.run(main, parser)
