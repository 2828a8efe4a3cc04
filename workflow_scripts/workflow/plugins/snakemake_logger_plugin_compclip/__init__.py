"""Snakemake finds the screen of `make run` by the name of this package (``--logger compclip``)."""

from typing import Any

from snakemake import cli

from workflow_scripts.workflow.screen import LogHandler as LogHandler


def print_unless_profile(text: str = "", **options: Any) -> None:
    """Print what Snakemake's command line prints, except the line about its profile."""
    if not text.startswith("Using "):
        print(text, **options)


# Snakemake names its profile on each run, past its loggers.
cli.print = print_unless_profile
