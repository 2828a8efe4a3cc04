"""The jobs of a run, as Snakemake's logger reports them in a dry run.

The only use of an interface of Snakemake that is not documented: the name of its logger. Tests fail when it changes.
"""

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from snakemake.api import SnakemakeApi
from snakemake.settings.enums import Quietness
from snakemake.settings.types import ConfigSettings, DAGSettings, OutputSettings, ResourceSettings
from snakemake_interface_logger_plugins.common import LogEvent

from compclip.core.code import ROOT

# More cores than any job asks for, so that jobs keep the threads of their rules.
MANY_CORES = 1024


@dataclass(frozen=True)
class Job:
    """A job; paths are relative to the project."""

    rule: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    log: str
    command: str

    @property
    def stage(self) -> str:
        """The stage whose rules file has the rule: logs lie in ``logs/<stage>``."""
        return self.log.split("/logs/")[-1].split("/")[0]


class _Collector(logging.Handler):
    """Keeps the jobs that Snakemake reports."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.jobs: list[Job] = []

    def emit(self, record: logging.LogRecord) -> None:
        about: dict[str, Any] = record.__dict__
        if about.get("event") == LogEvent.JOB_INFO and about["rule_name"] != "all":
            paths = [tuple(map(str, about[name])) for name in ("input", "output", "log")]
            self.jobs.append(Job(about["rule_name"], paths[0], paths[1], " ".join(paths[2]), about["shellcmd"] or ""))


def jobs(config: Path) -> list[Job]:
    """Return all jobs of a run, by stage and outputs."""
    collector = _Collector()
    with SnakemakeApi(OutputSettings(dryrun=True, quiet={Quietness.ALL})) as api:
        workflow = api.workflow(
            resource_settings=ResourceSettings(cores=MANY_CORES),
            config_settings=ConfigSettings(configfiles=[config]),
            snakefile=ROOT / "Snakefile",
            workdir=ROOT,
        )
        dag = workflow.dag(DAGSettings(forceall=True, force_incomplete=True))
        # The API replaces all handlers when it starts, and prints the jobs of a dry run: they are read, not shown.
        logging.getLogger("snakemake.logging").handlers = [collector]
        dag.execute_workflow(executor="dryrun")
    return sorted(collector.jobs, key=lambda job: (job.stage, job.outputs))
