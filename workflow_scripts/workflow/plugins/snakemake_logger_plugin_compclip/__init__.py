"""Snakemake finds the screen of `make run` by the name of this package (``--logger compclip``)."""

from workflow_scripts.workflow.screen import LogHandler as LogHandler
