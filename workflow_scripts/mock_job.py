"""A mock of the object that Snakemake gives to a script, to debug a script by hand.

    >>> from workflow_scripts.split import make_splits
    >>> make_splits.main(mock_job("make_splits", composition="color"))

Snakemake has no documented interface for this; this module uses its internal ``Workflow``, ``Rule``
and ``Job`` (tests/workflow/test_chain.py fails when they change).
"""

from pathlib import Path

from snakemake.api import Workflow  # first, because of a circular import
from snakemake.dag import DAG
from snakemake.jobs import Job as SnakemakeJob
from snakemake.logging import LoggerManager, logger
from snakemake.settings.types import (
    ConfigSettings,
    DAGSettings,
    DeploymentSettings,
    OutputSettings,
    ResourceSettings,
    StorageSettings,
    WorkflowSettings,
)

from workflow_scripts.job import Job
from workflow_scripts.root import WORKFLOW_ROOT


def load_workflow(
    config: str | Path | None = "config.yaml",
    snakefile: Path = WORKFLOW_ROOT / "Snakefile",
    folder: Path = WORKFLOW_ROOT,
    cores: int = 1,
) -> Workflow:
    """Return the workflow for a config file, with paths relative to the working ``folder``."""
    # Settings as of a plain ``snakemake``.
    output_settings = OutputSettings()
    workflow = Workflow(
        config_settings=ConfigSettings(configfiles=[Path(config)] if config else []),
        resource_settings=ResourceSettings(cores=cores),
        workflow_settings=WorkflowSettings(),
        output_settings=output_settings,
        logger_manager=LoggerManager(logger, output_settings),
        storage_settings=StorageSettings(),
        dag_settings=DAGSettings(),
        deployment_settings=DeploymentSettings(),
        overwrite_workdir=folder,
    )
    workflow.include(str(snakefile))
    return workflow


def mock_job(rule: str, workflow: Workflow | None = None, **wildcards: str) -> Job:
    """Return the job of a rule with these wildcards; paths are relative to the checkout."""
    workflow = workflow or load_workflow()
    snakemake_rule = workflow.get_rule(rule)
    # A graph of this rule alone: the jobs that make its inputs are not needed.
    graph = DAG(workflow, rules=[snakemake_rule])
    job = SnakemakeJob(snakemake_rule, graph, wildcards)
    return Job.from_snakemake(job)
