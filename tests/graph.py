"""The jobs of a run, as Snakemake's logger reports them in a dry run.

The only use of an interface of Snakemake that is not documented: the name of its logger. Tests fail
when it changes.
"""

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from snakemake.api import SnakemakeApi, Workflow
from snakemake.settings.enums import Quietness
from snakemake.settings.types import ConfigSettings, DAGSettings, OutputSettings, ResourceSettings
from snakemake_interface_logger_plugins.common import LogEvent

from compclip.core.identity.code import ROOT
from workflow_scripts.job import Job as ScriptJob
from workflow_scripts.mock_job import load_workflow, mock_job

# More cores than any job asks for, so that jobs keep the threads of their rules.
MANY_CORES = 1024


@dataclass(frozen=True)
class Job:
    """A job; paths are relative to the project."""

    rule: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    log: str
    wildcards: dict[str, str]
    workflow: Workflow

    @property
    def stage(self) -> str:
        """The stage whose rules file has the rule: logs lie in ``logs/<stage>``."""
        return self.log.split("/logs/")[-1].split("/")[0]

    @property
    def script(self) -> str:
        """The module of the rule's script: ``workflow_scripts.stage.name``, "" if it has none."""
        path = self.workflow.get_rule(self.rule).script
        return ".".join(Path(path).with_suffix("").parts[1:]) if path else ""

    def mock_job(self) -> ScriptJob:
        """What the script is given."""
        return mock_job(self.rule, self.workflow, **self.wildcards)

    @property
    def params(self) -> str:
        """The params that the script is given, as one text."""
        return repr(self.mock_job().params)


class _Collector(logging.Handler):
    """Keeps the jobs that Snakemake reports."""

    def __init__(self, workflow: Workflow) -> None:
        super().__init__(logging.DEBUG)
        self.workflow, self.jobs = workflow, list[Job]()

    def emit(self, record: logging.LogRecord) -> None:
        about: dict[str, Any] = record.__dict__
        if about.get("event") == LogEvent.JOB_INFO and about["rule_name"] != "all":
            paths = [tuple(map(str, about[name])) for name in ("input", "output", "log")]
            wildcards = dict(about["wildcards"] or {})
            rest = (" ".join(paths[2]), wildcards, self.workflow)
            self.jobs.append(Job(about["rule_name"], paths[0], paths[1], *rest))


def jobs(
    config: Path | None, snakefile: Path = ROOT / "Snakefile", folder: Path = ROOT
) -> list[Job]:
    """Return all jobs of a run in the working ``folder``, by stage and outputs."""
    collector = _Collector(load_workflow(config, snakefile, folder))
    with SnakemakeApi(OutputSettings(dryrun=True, quiet={Quietness.ALL})) as api:
        workflow = api.workflow(
            resource_settings=ResourceSettings(cores=MANY_CORES),
            config_settings=ConfigSettings(configfiles=[config] if config else []),
            snakefile=snakefile,
            workdir=folder,
        )
        dag = workflow.dag(DAGSettings(forceall=True, force_incomplete=True))
        # The API replaces all handlers when it starts, and prints the jobs of a dry run: they are
        # read, not shown.
        logging.getLogger("snakemake.logging").handlers = [collector]
        dag.execute_workflow(executor="dryrun")
    return sorted(collector.jobs, key=lambda job: (job.stage, job.outputs))
