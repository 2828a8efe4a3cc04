"""Run benchmarks and put their figures into results/bench.json.

A benchmark returns ``ratio`` (speed relative to the baseline), ``ours``, ``baseline``, ``unit``,
``n`` and, if there is one, ``bound``; so may its parts. Close other programs first.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# As for the workflow's steps (Snakefile); torch reads it when it is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

from pydantic import Field
from pydantic_settings import CliPositionalArg

from compclip.core.artifacts.files import read_json, write_json
from compclip.core.settings import cli, plugins
from compclip.core.settings.cli import Command

SPEED_PACKAGE = "benchmarks.speed"


class Speed(Command):
    """Run benchmarks and put their figures into results/bench.json."""

    names: CliPositionalArg[list[str]] = Field(
        [], description=f"of {', '.join(plugins.available(SPEED_PACKAGE))}"
    )
    out: Path = Field(Path("results/bench.json"), description="file of the figures")


def main(command: Speed) -> None:
    figures = read_json(command.out) if command.out.is_file() else {}
    for name in command.names or plugins.available(SPEED_PACKAGE):
        cli.log.info("%s ...", name)
        measured = plugins.load(SPEED_PACKAGE, name).measure()
        figures[name] = measured
        write_json(dict(sorted(figures.items())), command.out)
        for line in figure_lines(name, measured):
            cli.log.info("%s", line)


def figure_lines(name: str, measured: dict[str, Any]) -> Iterator[str]:
    """Yield a line for the comparison, and one for each part with figures of its own."""
    bound = f", bound {measured['bound']:.1f}" if "bound" in measured else ""
    yield (
        f"{name}: {measured['ratio']:.1f} times ({measured['ours']:.1f} against "
        f"{measured['baseline']:.1f}"
        f" {measured['unit']}, n {measured['n']}{bound})"
    )
    for part, figures in measured.items():
        if isinstance(figures, dict) and "ratio" in figures:
            yield from figure_lines(f"{name}, {part}", figures)
        elif isinstance(figures, dict):
            yield (
                f"{name}, {part}: {', '.join(f'{key}: {value}' for key, value in figures.items())}"
            )


if __name__ == "__main__":
    cli.run(main)
