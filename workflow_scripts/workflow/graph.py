"""The workflow's jobs as Snakemake sees them, for what is generated from them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from snakemake.api import SnakemakeApi
from snakemake.settings.enums import Quietness
from snakemake.settings.types import ConfigSettings, DAGSettings, OutputSettings, ResourceSettings

from workflow_scripts.common.code import ROOT


@dataclass(frozen=True)
class Job:
    """A job of the DAG; paths are relative to the project."""

    rule: str
    stage: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    params: dict[str, object]


def jobs(config: Path) -> list[Job]:
    """Every job of a full run with ``config``, by stage and outputs; ``rule all`` is left out."""
    settings = [] if config.resolve() == ROOT / "config.yaml" else [config]
    with SnakemakeApi(OutputSettings(quiet={Quietness.ALL})) as api:
        workflow = api.workflow(
            resource_settings=ResourceSettings(cores=1),
            config_settings=ConfigSettings(configfiles=settings),
            snakefile=ROOT / "Snakefile",
            workdir=ROOT,
        )
        workflow.dag(DAGSettings(forceall=True))
        # The public interface prints a DAG but does not hand it over.
        inner = workflow._workflow
        inner._prepare_dag(forceall=True, ignore_incomplete=True, lock_warn_only=True)
        inner._build_dag()
        found = [
            Job(
                rule=job.rule.name,
                stage=Path(job.rule.snakefile).stem,
                inputs=tuple(map(str, job.input)),
                outputs=tuple(map(str, job.output)),
                params=dict(job.params.items()),
            )
            for job in inner.dag.jobs
            if job.rule.name != "all"
        ]
    return sorted(found, key=lambda job: (job.stage, job.outputs))
