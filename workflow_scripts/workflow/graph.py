"""The workflow's jobs as Snakemake sees them, for what is generated from them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from snakemake.api import SnakemakeApi
from snakemake.dag import DAG
from snakemake.settings.enums import Quietness
from snakemake.settings.types import ConfigSettings, DAGSettings, OutputSettings, ResourceSettings

from workflow_scripts.core.code import ROOT


@dataclass(frozen=True)
class Job:
    """A job of the DAG; paths are relative to the project, those on object storage addresses."""

    rule: str
    stage: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    params: dict[str, object]
    threads: int
    resources: dict[str, object]
    benchmark: str | None


@contextmanager
def _dag(config: Path, **asked: bool) -> Iterator[DAG]:
    """Snakemake's own DAG of a full run with ``config``; asked: settings of ``DAGSettings``."""
    settings = [] if config.resolve() == ROOT / "config.yaml" else [config]
    with SnakemakeApi(OutputSettings(quiet={Quietness.ALL})) as api:
        workflow = api.workflow(
            # As many as no job asks for: threads are what the rules say.
            resource_settings=ResourceSettings(cores=1024),
            config_settings=ConfigSettings(configfiles=settings),
            snakefile=ROOT / "Snakefile",
            workdir=ROOT,
        )
        workflow.dag(DAGSettings(**asked))
        # The public interface prints a DAG but does not hand it over.
        inner = workflow._workflow
        forceall = asked.get("forceall", False)
        inner._prepare_dag(forceall=forceall, ignore_incomplete=forceall, lock_warn_only=True)
        inner._build_dag()
        yield inner.dag


def jobs(config: Path) -> list[Job]:
    """Every job of a full run with ``config``, by stage and outputs; ``rule all`` is left out."""
    with _dag(config, forceall=True) as dag:
        found = [
            Job(
                rule=job.rule.name,
                stage=Path(job.rule.snakefile).stem,
                inputs=tuple(file.storage_object.query if file.is_storage else str(file) for file in job.input),
                outputs=tuple(map(str, job.output)),
                params=dict(job.params.items()),
                threads=job.threads,
                resources=dict(job.resources.items()),
                benchmark=job.benchmark and str(job.benchmark),
            )
            for job in dag.jobs
            if job.rule.name != "all"
        ]
    return sorted(found, key=lambda job: (job.stage, job.outputs))


def unfinished(config: Path) -> list[tuple[str, str, str]]:
    """Rule, a file and the reason of each job that a run with ``config`` would still do, after those that it needs."""
    with _dag(config, force_incomplete=True) as dag:
        left = {job for job in dag.needrun_jobs() if job.rule.name != "all"}
        found = []
        for level in dag.toposorted(left):
            for job in sorted(level, key=lambda job: list(job.output)):
                why = dag.reason(job)
                file = min({*why.missing_output, *why.incomplete_output} or set(job.output[:1]))
                found.append((job.rule.name, str(file), next(iter(why.get_names()))))
    return found
